"""Analyzers: named, versioned, pure functions from a text to its tokens, and which of them serves a language.

All may normalise (NFKC, lower case), split into words, drop stop words, and stem, in this order.
"""

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from typing import Literal

from bench import Json, UsageError, unknown
from methods.bm25 import words
from methods.bm25.words import SEVERAL, SNOWBALL, UNSPACED, language_code

AUTO = "auto"
"""The name that leaves the choice to the corpus's language."""

PLAIN = "plain"
"""The name that leaves it to the language too, and knows three kinds of them only; for comparison with rough BM25."""

Tokenise = Callable[[str], list[str]]
"""Text → tokens, in the order of the text, with repetitions."""

Splitter = Literal["runs", "standard", "bigrams", "pairs", "icu", "jieba"]

_DOTLESS = str.maketrans({"I": "ı", "İ": "i"})
"""Turkish has two letters i; Python's `lower` knows only the dotted one."""


@dataclass(frozen=True)
class Analyzer:
    """One analyzer as data; `build` makes the function."""

    name: str
    summary: str
    splitter: Splitter = "runs"  # one of `methods.bm25.words`, or a segmenter of the extra `lang`
    stemmer: str = ""  # PyStemmer's algorithm
    unstemmed: int = 0  # letters up to which a word is not stemmed
    possessive: bool = False  # drop an English `'s` at the end of a word
    stop: frozenset[str] = frozenset()  # words dropped before stemming
    dotless: bool = False  # lower-case I to ı, as Turkish does
    version: str = "1"  # changes whenever the same text would give other tokens though no library changed

    @property
    def libraries(self) -> tuple[str, ...]:
        """Return the distributions that it needs."""
        return (("PyStemmer",) if self.stemmer else ()) + _SEGMENTERS.get(self.splitter, ())

    def build(self) -> Tokenise:
        """Make the function; raises as `check` does."""
        self.check()
        split = _splitter(self.splitter)
        token = _Tokens(self).__getitem__

        def tokenise(text: str) -> list[str]:
            text = words.normalise(text)
            pieces = split((text.translate(_DOTLESS) if self.dotless else text).lower())
            return list(filter(None, map(token, pieces)))

        return tokenise

    def check(self) -> None:
        """Raise `UsageError` if a library that it needs is not installed, or too old to have the stemmer."""
        missing = [name for name in _SEGMENTERS.get(self.splitter, ()) if find_spec(name) is None]
        if missing:
            raise UsageError(
                f"the analyzer `{self.name}` needs {missing[0]}, which is not installed; "
                "type: pip install 'retrieval-bench[lang]'"
            )
        if self.stemmer and self.stemmer not in _algorithms():
            raise UsageError(
                f"the analyzer `{self.name}` needs the stemmer {self.stemmer!r}, which PyStemmer "
                f"{version('PyStemmer')} does not have; type: pip install --upgrade PyStemmer"
            )


_REMEMBERED = 1 << 17  # words, 20 MB

_SEGMENTERS: Mapping[str, tuple[str, ...]] = {"icu": ("icu4py",), "jieba": ("rjieba",)}
"""Splitter → the distributions it needs; their import names are the same."""


def _all() -> Iterator[Analyzer]:
    """Yield those of `analyzers.json`, Snowball's of all languages before the ones that need extras."""
    for row in json.loads(files("methods.bm25").joinpath("analyzers.json").read_bytes()):
        if row["name"] == "icu":
            for language, algorithm in SNOWBALL.items():
                summary = f"words, Snowball's stemmer for {algorithm.capitalize()}"
                yield Analyzer(f"{language}-snowball", summary, stemmer=algorithm, dotless=language == "tr")
        yield Analyzer(**{**row, "stop": frozenset(row.get("stop", ()))})


ANALYZERS: Mapping[str, Analyzer] = {analyzer.name: analyzer for analyzer in _all()}
"""Every analyzer by name."""

NAMES = (AUTO, *ANALYZERS, PLAIN)
"""What a config may say."""


def for_language(language: str) -> Analyzer:
    """Return the default analyzer of a language (ISO 639 code, `mul` for several, or empty); it needs no extra.

    English has `en-porter`, others their Snowball stemmer; languages without blanks between words, several, and an
    empty code have `bigrams`, all else `words`.
    """
    code = language_code(language)
    if code == "en":
        return ANALYZERS["en-porter"]
    if code in UNSPACED or code in SEVERAL:
        return ANALYZERS["bigrams"]
    if code in SNOWBALL and SNOWBALL[code] in _algorithms():
        return ANALYZERS[f"{code}-snowball"]
    return ANALYZERS["words"]


def plain(language: str) -> Analyzer:
    """Return what `plain` is in a language: `en-plain`, `pairs` where words are not parted by blanks, else `words`."""
    code = language_code(language)
    return ANALYZERS["en-plain" if code == "en" else "pairs" if code in UNSPACED or code in SEVERAL else "words"]


def choose(name: str, language: str) -> Analyzer:
    """Return the analyzer for a corpus.

    Args:
        name: of an analyzer; or `auto` or `plain`, which leave it to the language.
        language: of the corpus, a code of ISO 639, `mul` for several, or empty.

    Raises:
        UsageError: there is no analyzer of that name, or a library that it needs is not installed.

    Example:
        >>> choose("auto", "en").build()("The dogs were running")
        ['dog', 'were', 'run']
    """
    if name not in NAMES:
        raise UsageError(unknown("analyzer", name, NAMES))
    by_language = {AUTO: for_language, PLAIN: plain}
    analyzer = by_language[name](language) if name in by_language else ANALYZERS[name]
    analyzer.check()
    return analyzer


def describe(analyzer: Analyzer) -> dict[str, Json]:
    """Return all that decides an analyzer's tokens: name, version, versions of its libraries and of Unicode."""
    return {
        "analyzer": analyzer.name,
        "version": analyzer.version,
        "libraries": {name: version(name) for name in analyzer.libraries},
        "unicode": unicodedata.unidata_version,
    }


@cache
def _algorithms() -> frozenset[str]:
    """Return the stemmers of the installed PyStemmer."""
    import Stemmer

    return frozenset(Stemmer.algorithms(aliases=False))


class _Tokens(dict[str, str]):
    """Word → its token, empty where it is dropped: made once, since a text repeats words far more often than not."""

    def __init__(self, analyzer: Analyzer) -> None:
        import Stemmer

        super().__init__()
        self._analyzer = analyzer
        self._stem: Callable[[str], str] = Stemmer.Stemmer(analyzer.stemmer, 0).stemWord if analyzer.stemmer else str

    def __missing__(self, word: str) -> str:
        """Make it; a word that the stemmer would leave nothing of stays."""
        if len(self) >= _REMEMBERED:
            self.clear()
        token = word[:-2] if self._analyzer.possessive and word.endswith(("'s", "’s")) else word
        if token in self._analyzer.stop:
            token = ""
        elif len(token) > self._analyzer.unstemmed:
            token = self._stem(token) or token
        self[word] = token
        return token


def _splitter(name: Splitter) -> Callable[[str], list[str]]:
    """Return the function that finds words; what is no word in a segmenter's pieces is left out."""
    if name == "icu":
        from icu4py.breakers import WordBreaker

        # The locale changes nothing but a few boundaries at colons: dictionaries are chosen by script.
        return lambda text: [word for piece in WordBreaker(text, "root") for word in words.standard(piece)]
    if name == "jieba":
        from rjieba import cut_for_search

        return lambda text: [word for piece in cut_for_search(text) for word in words.standard(piece)]
    return {"runs": words.runs, "standard": words.standard, "bigrams": words.bigrams, "pairs": words.pairs}[name]
