r"""Languages and their words: which codes there are, and where words begin and end, without any extra library.

Boundaries are read from Unicode's character classes.

A word is made of letters, marks, digits and underscores. Marks matter: Python's own `\w` leaves them out, and so would
cut Hindi, Bengali, Telugu or Thai words at every vowel sign. What counts as a mark is asked of `unicodedata`, so the
answer depends on Python's Unicode version (`unicodedata.unidata_version`), which every index records.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import chain, pairwise
from typing import NamedTuple

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

_INVISIBLE = dict.fromkeys(
    code for first, last, _ in TABLES["invisible"] for code in range(int(first, 16), int(last, 16) + 1)
)
"""Characters that occur inside words without being seen. The zero-width space (U+200B) is not among them: scripts
without blanks use it to part words."""

_UNSPACED = "".join(f"{chr(int(first, 16))}-{chr(int(last, 16))}" for first, last, _ in TABLES["unspaced_scripts"])
"""Scripts whose runs are cut into bigrams, as the inside of a regular expression's class."""


def language_code(language: str) -> str:
    """Return the code in these tables of an ISO 639 code (`zh_cn`, `pt-BR`, or empty), else its first subtag."""
    code = language.strip().lower().replace("_", "-").partition("-")[0]
    return _FIRST.get(code, code)


class _Patterns(NamedTuple):
    runs: re.Pattern[str]
    standard: re.Pattern[str]
    scripts: re.Pattern[str]
    units: re.Pattern[str]


def normalise(text: str) -> str:
    """Return the text in NFKC (widths, ligatures and accents spelt one way), without invisible characters."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text.translate(_INVISIBLE))


def runs(text: str) -> list[str]:
    """Return the maximal runs of letters, marks, digits and underscores."""
    return _patterns(text.isascii()).runs.findall(text)


def standard(text: str) -> list[str]:
    """Return the runs, joined by what joins words in UAX #29: `don't`, `e.g`, `U.S.A`, `3.14`."""
    return _patterns(text.isascii()).standard.findall(text)


def bigrams(text: str) -> list[str]:
    """Return overlapping pairs in runs of scripts that part no words by blanks, and `runs` elsewhere.

    The scripts are Han, Hiragana, Katakana, Hangul (as Lucene's CJKBigramFilter), Thai, Lao, Khmer and Myanmar. A
    letter and the marks on it make one unit of a pair. A single unit is a token of its own.
    """
    return [token for run in runs(text) for token in _pairs(run, _patterns().units.findall)]


def pairs(text: str) -> list[str]:
    """Return what `bigrams` does, with every code point for a unit: marks are separate from their letters."""
    return [token for run in runs(text) for token in _pairs(run, list)]


def _pairs(run: str, cut: Callable[[str], list[str]]) -> Iterator[str]:
    """Yield the tokens of one run: pairs of the units that `cut` finds where its script asks for them, else the run."""
    if run.isascii():
        yield run
        return
    for match in _patterns().scripts.finditer(run):
        if match["unspaced"] is None:
            yield match[0]
            continue
        units = cut(match[0])
        if len(units) == 1:
            yield units[0]
        else:
            yield from map("".join, pairwise(units))


@cache
def _patterns(ascii_only: bool = False) -> _Patterns:
    """Compile the patterns at first use: the marks are looked up in Unicode's table (20 ms); ASCII has none."""
    marks = _marks()
    word = r"\w+" if ascii_only else rf"[\w{marks}]+"
    letters = rf"(?<![\d_])[.'’·](?![\d_]){word}"
    digits = rf"(?<=\d)[.,;'’](?=\d){word}"
    return _Patterns(
        runs=re.compile(word),
        standard=re.compile(rf"{word}(?:{letters}|{digits})*"),
        scripts=re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|[^{_UNSPACED}]+"),
        units=re.compile(rf".[{marks}]*", re.DOTALL),
    )


@cache
def _marks() -> str:
    """Return all of Unicode's marks (Mn, Mc, Me) as the inside of a regular expression's class."""
    ranges: list[list[int]] = []
    for code in chain(range(0x20000), range(0xE0100, 0xE01F0)):  # no mark is assigned elsewhere
        if unicodedata.category(chr(code)).startswith("M"):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
