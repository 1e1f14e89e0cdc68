"""What several readers share: lists of accepted answers, and rows that hold records of several kinds."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench.suites import File, FileSource, RecordError, numbered_source, shown


def answer_strings(value: object, label: str) -> tuple[str, ...]:
    """Return accepted answers as releases write them, a list of strings; equal and empty strings stay.

    Args:
        value: the field's value as read from the file.
        label: what messages call it.

    Raises:
        RecordError: anything but a list of strings, an empty list, or half of a surrogate pair in a string.
    """
    if not isinstance(value, list) or not all(isinstance(answer, str) for answer in value):
        raise RecordError(f"{label}: {shown(value)}", "a list of strings")
    if not value:
        raise RecordError(f"{label}: an empty list", "at least one accepted answer")
    try:
        "".join(value).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise RecordError(f"half of a surrogate pair ({half}) in {label}", "whole characters") from None
    return tuple(value)


def column_source(
    path: File, name: str, reader: str, rows: Callable[[File], Iterator[tuple[int, tuple[Any, ...]]]], position: int
) -> FileSource[Any]:
    """Return one kind of record of a file whose rows hold a record of each kind.

    Args:
        path: the file.
        name: of the source; default: that of the file.
        reader: name and version of what reads it, and whatever else decides which records come (`my-queries/1:sw`).
        rows: a function of this kind that can be pickled: file → (line, (a record of each kind, or None for none)).
        position: which of a row's records are read.

    Example: where `_rows` yields (line, (query, answers)), the queries of a file are

        column_source(path, name, "my-queries/1", _rows, 0)
    """
    return numbered_source(name or path.name, reader, path, partial(_column, rows, position))


def _column(
    rows: Callable[[File], Iterator[tuple[int, tuple[Any, ...]]]], position: int, path: File
) -> Iterator[tuple[int, Any]]:
    return ((line, records[position]) for line, records in rows(path) if records[position] is not None)
