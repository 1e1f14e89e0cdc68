"""Records of a file with their lines: how every reader of line-based files is made.

Conventions: a reader is a `Format`, or a function from a file's first line to one; `records` does the rest. After the
first fault no record is yielded (the file will be refused), but reading goes on to report the other faults.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

from bench.core.errors import DataError
from bench.data.formats.archive import File
from bench.data.formats.faults import Faults, RecordError, shown
from bench.data.formats.text import lines
from bench.types import Item, Judgement, Source

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class FileSource(Source[T_co]):
    """A source that is one file of lines and can give the line of each record."""

    numbered: Callable[[], Iterator[tuple[int, T_co]]]  # opens the stream as (line number from 1, record)


@dataclass(frozen=True)
class Format(Generic[T]):
    """How the lines of a file become records."""

    what: str  # one record in messages, e.g. `query`
    parse: Callable[[Any], T]  # a line's text (or what a library gives) → the record; raises `RecordError`
    # The record → the words for what may come only once in the file, e.g. `query id 'q1'`; None: duplicates are allowed
    unique_label: Callable[[T], str] | None = None
    # columns of the first line, separated by tabs; None: the first line is a record
    header: tuple[str, ...] | None = None


def records(path: File, form: Format[T] | Callable[[str], Format[T]]) -> Iterator[tuple[int, T]]:
    """Stream (line, record) of a file, and raise all its faults at the end; blank lines are skipped.

    Args:
        path: any file that `bench.data.formats.text.lines` takes.
        form: the file's format, or a function from the first line that is not blank to it.

    Raises:
        DataError: for a fault (`DataFaultsError` for several), or a file that has no record.
    """
    with Faults() as faults:
        rows: Iterator[tuple[int, str]]
        rows = ((line, text) for line, text in lines(path, faults) if text and not text.isspace())
        head = next(rows, None)
        if head is None:
            if faults:
                return
            raise DataError(str(path), None, "no record", "at least one")
        try:
            form = form if isinstance(form, Format) else form(head[1])
        except RecordError as error:  # another kind of file: its other lines need no fault of their own
            raise error.at(str(path), head[0]) from None
        if form.header is None:
            rows = chain((head,), rows)
        elif tuple(head[1].split("\t")) != form.header:
            expected = f"the header line with the columns {', '.join(form.header)}, separated by tabs"
            faults.add(DataError(str(path), head[0], shown(head[1]), expected, "write that as the first line"))
        yield from checked(path, rows, form, faults)


def checked(
    where: File | str, rows: Iterable[tuple[int, Any]], form: Format[T], faults: Faults
) -> Iterator[tuple[int, T]]:
    """Stream (place from 1, record), gathering what is malformed or comes twice; none once `faults` holds one.

    `where` is what messages call the origin of the rows. Raises `DataError` if there is no record.
    """
    first_places: dict[str, int] = {}
    at = None
    for at, row in rows:
        try:
            record = form.parse(row)
            if form.unique_label is not None:
                words = form.unique_label(record)
                first = first_places.setdefault(words, at)
                if first != at:
                    raise duplicate_error(words, first)
        except RecordError as error:
            faults.add(error.at(where, at))
            continue
        if not faults:
            yield at, record
    if at is None and not faults:
        raise DataError(str(where), None, f"no {form.what}", f"at least one {form.what}")


def query_label(item: Item) -> str:
    """Return the words for what may come only once among queries."""
    return f"query id {item.id!r}"


def judgement_label(row: Judgement) -> str:
    """Return the words for what may come only once in qrels."""
    return f"document {row.document!r} of query {row.query!r}"


def duplicate_error(words: str, first: int) -> RecordError:
    """Return the error for a duplicate record."""
    return RecordError(f"{words} a second time", f"it once (first at line {first})", "remove one of the two")


def file_source(name: str, reader: str, path: File, form: Format[T] | Callable[[str], Format[T]]) -> FileSource[T]:
    """Make the source of one file; functions of `form` are those of a module, so that it can be pickled."""
    return numbered_source(name, reader, path, partial(records, form=form))


def numbered_source(
    name: str, reader: str, path: File, stream: Callable[[File], Iterator[tuple[int, T]]]
) -> FileSource[T]:
    """Make the source of a file that `stream`, a function of a module, turns into (line, record)."""
    file, opened = path if isinstance(path, Path) else path.archive, partial(stream, path)
    return FileSource(name, reader, (file,), partial(_without_lines, opened), numbered=opened)


def _without_lines(stream: Callable[[], Iterator[tuple[int, T]]]) -> Iterator[T]:
    """Stream the records alone."""
    return (record for _, record in stream())


def numbered(source: Source[T]) -> Iterator[tuple[int, T]]:
    """Stream (place, record): the line where the source is a file, else the record's number from 1."""
    if isinstance(source, FileSource):
        return source.numbered()
    return enumerate(source.read(), start=1)


def place(source: Source[T]) -> str:
    """Return what messages put before the place: the file, or the source's name."""
    return str(source.files[0]) if isinstance(source, FileSource) else source.name


def check_id(value: object, what: str) -> str:
    """Return an id as text; `what` is what messages call it, e.g. `document id`.

    A whole number is taken as its digits (some tools write ids unquoted). An id may not be empty, nor hold white space
    or a NUL, since TREC files are separated by blanks and read in C. Raises `RecordError` for anything else.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise RecordError(f"{what} {shown(value)}", "a string")
    if not value:
        raise RecordError(f"an empty {what}", "at least one character")
    if value.split() != [value] or "\0" in value:
        hint = "run and qrels files are separated by white space; replace it, e.g. by _"
        raise RecordError(f"{what} {shown(value)}", "an id without white space", hint)
    return value
