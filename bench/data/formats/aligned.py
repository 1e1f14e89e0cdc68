"""Bitexts: two files of sentences whose equal lines are translations of each other.

Conventions: a sentence's id is its line's number counted from 0, as text; texts are as the file gives them. No line
may be blank, since the lines behind it would have no partner's number.
"""

from collections.abc import Iterator

from bench.core.errors import DataError
from bench.data.formats.archive import File
from bench.data.formats.faults import Faults
from bench.data.formats.source import FileSource, numbered_source
from bench.data.formats.text import lines
from bench.types import Item, Judgement


def sentences(path: File, name: str = "") -> FileSource[Item]:
    """Return the sentences of one side. Reading raises as `lines` does, and `DataError` for blank lines."""
    return numbered_source(name or path.name, "sentence-lines/1", path, _sentences)


def same_line(path: File, name: str = "") -> FileSource[Judgement]:
    """Return the judgements of a bitext: lines of one number answer each other. Errors as in `sentences`."""
    return numbered_source(name or path.name, "same-line/1", path, _judgements)


def _sentences(path: File) -> Iterator[tuple[int, Item]]:
    """Stream (line, sentence), and raise all faults at the end."""
    with Faults() as faults:
        for line, text in lines(path, faults):
            if not text or text.isspace():
                faults.add(
                    DataError(str(path), line, "a blank line", "one sentence a line, aligned with the other file")
                )
            elif not faults:
                yield line, Item(str(line - 1), text)


def _judgements(path: File) -> Iterator[tuple[int, Judgement]]:
    """Stream (line, judgement)."""
    return ((line, Judgement(item.id, item.id, 1)) for line, item in _sentences(path))
