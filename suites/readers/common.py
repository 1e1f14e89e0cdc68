"""What several readers share: lists of accepted answers, and rows that hold records of several kinds."""

from collections.abc import Callable, Iterator
from typing import Any

from bench.suites import File, RecordError, shown


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


def column(
    rows: Callable[[File], Iterator[tuple[int, tuple[Any, ...]]]], position: int, path: File
) -> Iterator[tuple[int, Any]]:
    """Stream (line, record) of one kind from a file whose rows hold a record of each kind; None is left out.

    Example: where `_rows` yields (line, (query, answers)), the queries are

        numbered_source(name, "my-queries/1", path, partial(column, _rows, 0))
    """
    return ((line, records[position]) for line, records in rows(path) if records[position] is not None)
