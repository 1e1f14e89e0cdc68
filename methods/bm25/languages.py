"""What BM25 knows of languages: their codes, and how their words are found."""

import json
from collections.abc import Mapping
from importlib.resources import files

TABLES = json.loads(files("methods.bm25").joinpath("languages.json").read_bytes())
"""`stemmed`: codes of a language (ISO 639-1 first) and its Snowball stemmer in PyStemmer 3. `unspaced`: languages that
part no words by blanks, or (Korean) glue particles to them: pairs of letters serve them better. `plain`: languages of
the suites that part words by blanks (Vietnamese: syllables) and have no stemmer; that of a relative (Arabic's for
Egyptian, Indonesian's for Malay, Serbian's for Croatian) is not borrowed: it was written for other endings. The others
are ranges of characters with what they are."""

SNOWBALL: Mapping[str, str] = {codes.split()[0]: name for codes, name in TABLES["stemmed"].items()}
"""Language → its Snowball stemmer."""

UNSPACED = frozenset(codes.split()[0] for codes in TABLES["unspaced"])
"""Languages that are served by pairs of letters."""

PLAIN: Mapping[str, str] = {codes.split()[0]: name for codes, name in TABLES["plain"].items()}
"""Language → its name, of those that are served by words alone, by decision."""

SEVERAL = frozenset({"", "mul"})
"""What a corpus says that holds several languages, or does not say its own. One analyzer must do for all of them: pairs
of letters where words are not parted by blanks, words elsewhere."""

_FIRST: Mapping[str, str] = {
    code: codes.split()[0]
    for kind in ("stemmed", "unspaced", "plain")
    for codes in TABLES[kind]
    for code in codes.split()
}


def language_code(language: str) -> str:
    """Return the code in these tables of an ISO 639 code (`zh_cn`, `pt-BR`, or empty), else its first subtag."""
    code = language.strip().lower().replace("_", "-").partition("-")[0]
    return _FIRST.get(code, code)
