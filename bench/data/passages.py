r"""Passages in DPR's TSV form: a Wikipedia cut into blocks of a hundred words, tens of millions of rows.

Conventions: a row is id, text, title, separated by tabs; a first line of just these words is a header, any other first
line is a row. A field that begins with `"` is quoted, with `""` for a quotation mark inside; elsewhere the mark stands
for itself. So csv reads it, and with csv the official programs; but here a quoted field ends on its line. In the
released files they all do, and one that does not would swallow the rows below it, so it is refused.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.data.archive import File
from bench.data.faults import RecordError, shown
from bench.data.normalise import normalise
from bench.data.source import FileSource, Format, check_id, file_source
from bench.errors import UsageError
from bench.types import Item, Source

COLUMNS = ("id", "text", "title")
"""Of a row, and the words of the header where there is one."""

_MARK, _TAB = '"', "\t"


def passages(path: File, name: str = "") -> FileSource[Item]:
    """Name the passages of a file; duplicate ids are not looked for (see `bench.data.ids.IdCollector`).

    Args:
        path: the file, plain or compressed; not opened before the source is read.
        name: what messages call it; the file's name where empty.
    """
    return file_source(name or path.name, "dpr-passages/1", path, _passages)


def prepared(source: Source[Item]) -> Source[Item]:
    """Name the same items as Contriever encodes them across languages: title and text lower-cased, then normalised.

    Preparing the two apart and joining them by a blank gives what preparing the joined string gives, but where three
    spaced dots (` . . . `) begin in a title and end in the text.
    """
    name, reader = f"{source.name} (lower-cased, normalised)", f"lower-normalised/1:{source.reader}"
    read = partial(_prepared, source.read)
    if isinstance(source, FileSource):
        return FileSource(name, reader, source.files, read, numbered=partial(_prepared_lines, source.numbered))
    return Source(name, reader, source.files, read)


def missing(path: Path, name: str, sentence: str) -> Source[Item]:
    """Stand in for passages that are not there: reading them raises `UsageError` with the sentence.

    So questions and answers can be looked at where the large file is not at hand.

    Args:
        path: where the file is expected.
        name: what messages call the passages.
        sentence: what is said; the path is put before it.
    """
    return Source(name, "missing/1", (path,), partial(_missing, f"{path}: {sentence}"))


def cells(text: str, columns: Sequence[str]) -> list[str]:
    """Cut a line into its fields, quoted or not.

    Args:
        text: the line.
        columns: what they are called.

    Raises:
        RecordError: another number of fields, or a quoted one that does not end on the line.
    """
    if _MARK in text:
        rows = csv.reader((text, ""), delimiter=_TAB)  # the second line is taken only by a quotation still open
        try:
            found = next(rows)
        except csv.Error:  # there are two: a field over csv's limit, and a bare carriage return outside quotes
            limit = csv.field_size_limit()
            fault = f"a field longer than {limit:,} characters" if len(text) > limit else "a carriage return in a line"
            raise RecordError(fault, _expected(columns)) from None
        if rows.line_num > 1:
            hint = "a quotation mark inside a quoted field is written twice"
            raise RecordError("a quoted field that does not end on its line", 'a closing "', hint)
    else:
        found = text.split(_TAB)
    if len(found) != len(columns):
        raise RecordError(f"{len(found)} column{'s' * (len(found) != 1)} in {shown(text)}", _expected(columns))
    return found


def _expected(columns: Sequence[str]) -> str:
    """Say what a line should hold."""
    return f"{len(columns)} columns separated by tabs: {', '.join(columns)}"


def _passages(first: str) -> Format[Item]:
    """Return the format of the file, with a header or without."""
    return Format("document", _passage, header=COLUMNS if tuple(first.split(_TAB)) == COLUMNS else None)


def _passage(text: str) -> Item:
    """Read one row. Raises `RecordError`."""
    identity, passage, title = cells(text, COLUMNS)
    return Item(check_id(identity, "document id"), passage, title)


def _prepared(read: Callable[[], Iterator[Item]]) -> Iterator[Item]:
    """Stream prepared items."""
    return map(_prepare, read())


def _prepared_lines(numbered: Callable[[], Iterator[tuple[int, Item]]]) -> Iterator[tuple[int, Item]]:
    """Stream (line, prepared item)."""
    for line, item in numbered():
        yield line, _prepare(item)


def _prepare(item: Item) -> Item:
    """Lower and normalise title and text."""
    return Item(item.id, normalise(item.text.lower()), normalise(item.title.lower()), item.language)


def _missing(sentence: str) -> Iterator[Item]:
    """Say that the passages are not there. Raises `UsageError`."""
    raise UsageError(sentence)
