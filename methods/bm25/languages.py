"""What BM25 knows of languages: their codes, and how their words are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_STEMMED = """
ar ara: arabic
ca cat: catalan
cs ces: czech
da dan: danish
de deu: german
el ell: greek
en eng: english
eo epo: esperanto
es spa: spanish
et est: estonian
eu eus: basque
fa fas pes: persian
fi fin: finnish
fr fra: french
ga gle: irish
hi hin: hindi
hu hun: hungarian
hy hye: armenian
id ind: indonesian
it ita: italian
lt lit: lithuanian
ne nep npi: nepali
nl nld: dutch
no nor nb nob nn nno: norwegian
pl pol: polish
pt por: portuguese
ro ron: romanian
ru rus: russian
sr srp: serbian
st sot: sesotho
sv swe: swedish
ta tam: tamil
tr tur: turkish
yi yid: yiddish
"""
"""Codes of a language (ISO 639-1 first), and its Snowball stemmer in PyStemmer 3."""

_UNSPACED = """
ja jpn: Japanese
km khm: Khmer
ko kor: Korean
lo lao: Lao
my mya: Burmese
th tha: Thai
zh zho cmn yue wuu lzh: Chinese
"""
"""Languages that part no words by blanks, or (Korean) glue particles to them: pairs of letters serve them better."""


def _rows(table: str) -> Iterator[tuple[list[str], str]]:
    """Yield the codes and the name of every line."""
    for line in table.strip().splitlines():
        codes, _, name = line.partition(": ")
        yield codes.split(), name


SNOWBALL: Mapping[str, str] = {codes[0]: name for codes, name in _rows(_STEMMED)}
"""Language → its Snowball stemmer."""

UNSPACED = frozenset(codes[0] for codes, _ in _rows(_UNSPACED))
"""Languages that are served by pairs of letters."""

_FIRST = {code: codes[0] for codes, _ in _rows(_STEMMED + _UNSPACED) for code in codes}


def language_code(language: str) -> str:
    """Return the code under which a language stands in these tables, or its first subtag where it does not.

    Args:
        language: ISO 639 code, also with a region or script (`zh_cn`, `pt-BR`); may be empty.
    """
    code = language.strip().lower().replace("_", "-").partition("-")[0]
    return _FIRST.get(code, code)
