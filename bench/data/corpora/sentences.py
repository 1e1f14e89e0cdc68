"""Text → sentences, by the sentencex library, and what a clean sentence is.

Conventions: a line end ends a sentence; within a line sentencex decides by the language's abbreviations and stops.
Thai and Lao write no full stops but a blank between sentences and clauses: there, blanks split, and pieces are gathered
until they hold `_SHORTEST` characters, so that a name or a number is no sentence by itself.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial

from bench.core.installed import version

_SPACED = frozenset({"th", "tha", "lo", "lao"})
_SHORTEST = 40
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NOTHING = re.compile(r"[\u00ad\ufeff]")  # the soft hyphen, and a byte order mark inside a text


_QUOTES = "`«»‘“„‹›《「"  # sentencex looks for the end of each, up to the end of the line
_STEPS = 10**8
_PIECE = 10_000


def splitter() -> str:
    """Name and version of what decides where sentences end; part of a key."""
    return f"sentencex-{version('sentencex')}"


def clean(text: str) -> str:
    """Return text on one line: controls and runs of white space become one blank, soft hyphens go."""
    return " ".join(_NOTHING.sub("", _CONTROL.sub(" ", text)).split())


def cleaned(sentences: Iterable[str]) -> tuple[str, ...]:
    """Return the clean sentences, without those that are empty."""
    return tuple(sentence for text in sentences if (sentence := clean(text)))


def split(text: str, language: str) -> tuple[str, ...]:
    """Return the clean sentences of a text; a code unknown to sentencex has the rules of a near language or English."""
    import sentencex

    base = language.partition("-")[0].lower()
    cut = _by_blanks if base in _SPACED else partial(sentencex.segment, base)
    lines = (piece for line in text.split("\n") if line.strip() for piece in _pieces(line))
    return cleaned(sentence for piece in lines for sentence in cut(piece))


def _pieces(line: str) -> Iterator[str]:
    """Cut a line that holds too many quotation marks for its length at full stops, blanks, or anywhere."""
    start, end = 0, len(line)
    if end * sum(map(line.count, _QUOTES)) > _STEPS:
        while end - start > _PIECE:
            stops = (line.rfind(mark, start, start + _PIECE) + len(mark) for mark in (". ", " "))
            behind = next((stop for stop in stops if stop > start + 1), start + _PIECE)
            yield line[start:behind]
            start = behind
    yield line[start:]


def _by_blanks(line: str) -> Iterator[str]:
    """Split at blanks, gathering pieces until they are long enough."""
    gathered = ""
    for piece in line.split():
        gathered = f"{gathered} {piece}".lstrip()
        if len(gathered) >= _SHORTEST:
            yield gathered
            gathered = ""
    if gathered:
        yield gathered
