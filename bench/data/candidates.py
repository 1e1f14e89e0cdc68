"""Candidate lists in AskUbuntu's format, and the questions that they name.

Conventions: a line of a candidate file is four columns separated by tabs: query id, ids of the similar questions, ids
of all candidates in the order of the first stage, its scores (never increasing); within a column blanks separate. The
similar questions are among the candidates; a query may have none, and then it has no judgement. A line of the texts is
question id, title, body, separated by tabs; the body may be missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from bench.data.archive import File
from bench.data.faults import RecordError, shown
from bench.data.source import FileSource, Format, check_id, file_source, numbered_source, records
from bench.errors import DataError
from bench.types import Candidates, Item, Judgement, Source

_COLUMNS = "4 columns separated by tabs: query id, similar ids, candidate ids, scores"
_Choice = Callable[[Candidates], Collection[str]]
_TEXT_COLUMNS = "3 columns separated by tabs: question id, title, body (which may be missing)"


@dataclass(frozen=True)
class _Row:
    """One line of a candidate file.

    Args:
        similar: ids of the candidates that answer the query, in their file's order.
        candidates: all of them.
    """

    similar: tuple[str, ...]
    candidates: Candidates


def candidates(path: File, name: str = "") -> FileSource[Candidates]:
    """Name the candidate lists of all queries, also of those without a similar question.

    Args:
        path: the file; not opened before the source is read.
        name: what messages call it; the file's name where empty.
    """
    return numbered_source(name or path.name, "askubuntu-candidates/1", path, _candidates)


def judgements(path: File, name: str = "") -> FileSource[Judgement]:
    """Name the judgements: every similar question at grade 1; a query without one has no row.

    Arguments as in `candidates`.
    """
    return numbered_source(name or path.name, "askubuntu-similar/1", path, _judgements)


def texts(path: File, name: str = "", *, body: bool = False) -> FileSource[Item]:
    """Name the questions of a text file.

    Args:
        path: the file, plain or compressed; not opened before the source is read.
        name: what messages call it; the file's name where empty.
        body: whether an item's text is title and body joined by a blank, instead of the title alone.
    """
    reader = f"askubuntu-texts/1:{'title+body' if body else 'title'}"
    return file_source(name or path.name, reader, path, _with_body if body else _titles)


def queries_of(text: Source[Item], lists: Source[Candidates]) -> Source[Item]:
    """Name the questions that are asked in candidate lists, in the order of the texts.

    Reading raises `DataError` if the texts lack one of them, beside what the two sources raise.
    """
    return _chosen("queries", text, lists, _asked)


def pool_of(text: Source[Item], lists: Source[Candidates]) -> Source[Item]:
    """Name the questions that are candidates of any query, in the order of the texts; errors as in `queries_of`."""
    return _chosen("candidates", text, lists, _offered)


def _rows(_first: str) -> Format[_Row]:
    """Return the format of a candidate file."""
    return Format("query", _row, lambda row: f"query id {row.candidates.query!r}")


def _row(text: str) -> _Row:
    """Read one line. Raises `RecordError`."""
    columns = text.split("\t")
    if len(columns) != 4:
        raise RecordError(f"{len(columns)} column{'s' * (len(columns) != 1)} in {shown(text)}", _COLUMNS)
    query = check_id(columns[0].strip(), "query id")
    similar, offered = columns[1].split(), columns[2].split()
    for ids, what in ((similar, "similar question"), (offered, "candidate")):
        if len(set(ids)) != len(ids):
            twice = next(one for at, one in enumerate(ids) if one in ids[:at])
            raise RecordError(f"{what} {twice!r} a second time", "each once", "remove one of the two")
    if not offered:
        raise RecordError(f"no candidate of query {query!r}", "at least one")
    if strays := [one for one in similar if one not in offered]:
        raise RecordError(f"similar question {strays[0]!r}", f"one of the {len(offered)} candidates of the line")
    return _Row(tuple(similar), Candidates(query, tuple(offered), _scores(columns[3], len(offered))))


def _scores(text: str, expected: int) -> tuple[float, ...]:
    """Read the scores of a line. Raises `RecordError`."""
    words = text.split()
    if len(words) != expected:
        raise RecordError(f"{len(words)} scores", f"{expected}, one a candidate")
    try:
        scores = tuple(map(float, words))
    except ValueError as error:
        raise RecordError(str(error), "a number") from None
    if not all(map(math.isfinite, scores)):
        raise RecordError(f"scores that are not finite in {shown(text)}", "finite numbers")
    if rise := next((pair for pair in pairwise(scores) if pair[1] > pair[0]), None):
        raise RecordError(f"score {rise[1]} after {rise[0]}", "scores that never increase")
    return scores


def _candidates(path: File) -> Iterator[tuple[int, Candidates]]:
    """Stream (line, candidates)."""
    for line, row in records(path, _rows):
        yield line, row.candidates


def _judgements(path: File) -> Iterator[tuple[int, Judgement]]:
    """Stream (line, judgement)."""
    for line, row in records(path, _rows):
        for document in row.similar:
            yield line, Judgement(row.candidates.query, document, 1)


def _titles(_first: str) -> Format[Item]:
    """Return the format of the texts, read for the titles."""
    return Format("question", partial(_question, body=False), _once)


def _with_body(_first: str) -> Format[Item]:
    """Return the format of the texts, read whole."""
    return Format("question", partial(_question, body=True), _once)


def _once(item: Item) -> str:
    """Name what may stand only once among the texts."""
    return f"question id {item.id!r}"


def _question(text: str, *, body: bool) -> Item:
    """Read one line of the texts. Raises `RecordError`."""
    columns = text.split("\t")
    if len(columns) not in (2, 3):
        raise RecordError(f"{len(columns)} column{'s' * (len(columns) != 1)} in {shown(text)}", _TEXT_COLUMNS)
    identity = check_id(columns[0].strip(), "question id")
    parts = columns[1:] if body else columns[1:2]
    return Item(identity, " ".join(filter(None, map(str.strip, parts))))


def _asked(one: Candidates) -> Collection[str]:
    """Return the query."""
    return (one.query,)


def _offered(one: Candidates) -> Collection[str]:
    """Return the candidates."""
    return one.documents


def _chosen(what: str, text: Source[Item], lists: Source[Candidates], choose: _Choice) -> Source[Item]:
    """Make the source of the texts that candidate lists name."""
    return Source(
        f"{text.name}: {what} of {lists.name}",
        f"chosen-{what}/1:{text.reader}:{lists.reader}",
        (*text.files, *lists.files),
        partial(_read_chosen, text, lists, choose),
    )


def _read_chosen(text: Source[Item], lists: Source[Candidates], choose: _Choice) -> Iterator[Item]:
    """Stream the chosen texts; raise at the end if one did not come."""
    wanted = {identity for one in lists.read() for identity in choose(one)}
    asked = len(wanted)
    for item in text.read():
        if item.id in wanted:
            wanted.remove(item.id)
            yield item
    if wanted:
        found = f"no text for {len(wanted):,} of the {asked:,} questions of {lists.name}, e.g. {min(wanted)!r}"
        raise DataError(text.name, None, found, "one for each", "the two files do not belong together")
