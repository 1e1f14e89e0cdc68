"""What BM25 knows of languages: their codes, and how their words are found."""

from collections.abc import Iterator, Mapping

_STEMMED = """
ar ara: arabic; ca cat: catalan; cs ces: czech; da dan: danish; de deu: german; el ell: greek; en eng: english;
eo epo: esperanto; es spa: spanish; et est: estonian; eu eus: basque; fa fas pes: persian; fi fin: finnish;
fr fra: french; ga gle: irish; hi hin: hindi; hu hun: hungarian; hy hye: armenian; id ind: indonesian; it ita: italian;
lt lit: lithuanian; ne nep npi: nepali; nl nld: dutch; no nor nb nob nn nno: norwegian; pl pol: polish;
pt por: portuguese; ro ron: romanian; ru rus: russian; sr srp: serbian; st sot: sesotho; sv swe: swedish; ta tam: tamil;
tr tur: turkish; yi yid: yiddish
"""
"""Codes of a language (ISO 639-1 first), and its Snowball stemmer in PyStemmer 3."""

_UNSPACED = """
ja jpn: Japanese; km khm: Khmer; ko kor: Korean; lo lao: Lao; my mya: Burmese; th tha: Thai;
zh zho cmn yue wuu lzh: Chinese
"""
"""Languages that part no words by blanks, or (Korean) glue particles to them: pairs of letters serve them better."""

_PLAIN = """
af: Afrikaans; am: Amharic; ang: Old English; arq: Algerian Arabic; arz: Egyptian Arabic; ast: Asturian; awa: Awadhi;
az: Azerbaijani; be: Belarusian; ber: Berber; bg: Bulgarian; bn ben: Bengali; br: Breton; bs: Bosnian; cbk: Chavacano;
ceb: Cebuano; ch: Chamorro; csb: Kashubian; cy: Welsh; dsb: Lower Sorbian; dtp: Central Dusun; fo: Faroese;
fy: Western Frisian; gd: Scottish Gaelic; gl: Galician; gsw: Swiss German; he heb: Hebrew; hr: Croatian;
hsb: Upper Sorbian; ia: Interlingua; ie: Interlingue; io: Ido; is: Icelandic; jv: Javanese; ka: Georgian; kab: Kabyle;
kk: Kazakh; ku: Kurdish; kw: Cornish; kzj: Coastal Kadazan; la: Latin; lfn: Lingua Franca Nova; lv: Latvian;
max: North Moluccan Malay; mhr: Meadow Mari; mk: Macedonian; ml: Malayalam; mn: Mongolian; mr: Marathi;
ms msa zsm: Malay; nds: Low German; nov: Novial; oc: Occitan; orv: Old East Slavic; pam: Kapampangan; pms: Piedmontese;
sk: Slovak; sl: Slovenian; sq: Albanian; sw swa swh: Swahili; swg: Swabian; te tel: Telugu; tk: Turkmen; tl: Tagalog;
tt: Tatar; tzl: Talossan; ug: Uyghur; uk ukr: Ukrainian; ur urd: Urdu; uz: Uzbek; vi vie: Vietnamese; war: Waray;
xh: Xhosa
"""
"""Languages of the suites that part words by blanks (Vietnamese: syllables) and have no stemmer in PyStemmer. The
stemmer of a relative (Arabic's for Egyptian, Indonesian's for Malay, Serbian's for Croatian) is not borrowed: it was
written for other endings."""


def _rows(table: str) -> Iterator[tuple[list[str], str]]:
    """Yield the codes and the name of every entry."""
    for entry in table.split(";"):
        codes, _, name = entry.partition(": ")
        yield codes.split(), name.strip()


SNOWBALL: Mapping[str, str] = {codes[0]: name for codes, name in _rows(_STEMMED)}
"""Language → its Snowball stemmer."""

UNSPACED = frozenset(codes[0] for codes, _ in _rows(_UNSPACED))
"""Languages that are served by pairs of letters."""

PLAIN: Mapping[str, str] = {codes[0]: name for codes, name in _rows(_PLAIN)}
"""Language → its name, of those that are served by words alone, by decision."""

SEVERAL = frozenset({"", "mul"})
"""What a corpus says that holds several languages, or does not say its own. One analyzer must do for all of them: pairs
of letters where words are not parted by blanks, words elsewhere."""

_FIRST = {code: codes[0] for codes, _ in _rows(";".join((_STEMMED, _UNSPACED, _PLAIN))) for code in codes}


def language_code(language: str) -> str:
    """Return the code in these tables of an ISO 639 code (`zh_cn`, `pt-BR`, or empty), else its first subtag."""
    code = language.strip().lower().replace("_", "-").partition("-")[0]
    return _FIRST.get(code, code)
