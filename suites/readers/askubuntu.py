"""Candidate lists in AskUbuntu's format, and the questions that they name.

Conventions: a line of a candidate file is four columns separated by tabs: query id, ids of the similar questions, ids
of all candidates in the order of the first stage, its scores (never increasing); within a column blanks separate. The
similar questions are among the candidates; a query may have none, and then it has no judgement. A line of the texts is
question id, title, body, separated by tabs; the body may be missing.
"""

import math
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Literal

from bench import DataError, Item, Judgement, Source
from bench.suites import (
    Candidates,
    File,
    FileSource,
    Format,
    RecordError,
    check_id,
    file_source,
    numbered_source,
    records,
    shown,
)

_COLUMNS = "4 columns separated by tabs: query id, similar ids, candidate ids, scores"
_TEXT_COLUMNS = "3 columns separated by tabs: question id, title, body (which may be missing)"

Role = Literal["queries", "candidates"]
_Row = tuple[tuple[str, ...], Candidates]
"""One line of a candidate file: the similar questions, in the file's order, and all candidates."""


def candidates(path: File, name: str = "") -> FileSource[Candidates]:
    """Return the candidate lists of all queries, also of those without a similar question."""
    return numbered_source(name or path.name, "askubuntu-candidates/1", path, _candidates)


def judgements(path: File, name: str = "") -> FileSource[Judgement]:
    """Return the judgements: every similar question at grade 1; a query without one has no row."""
    return numbered_source(name or path.name, "askubuntu-similar/1", path, _judgements)


def texts(path: File, name: str = "", *, body: bool = False) -> FileSource[Item]:
    """Return the questions of a text file: their titles, or title and body joined by a blank."""
    reader = f"askubuntu-texts/1:{'title+body' if body else 'title'}"
    form = Format("question", partial(_question, body=body), lambda item: f"question id {item.id!r}")
    return file_source(name or path.name, reader, path, form)


def select(texts: Source[Item], lists: Source[Candidates], role: Role) -> Source[Item]:
    """Return the texts that candidate lists name as queries, or as candidates of any query, in their own order.

    Reading raises `DataError` at the end if a text is missing.
    """
    return Source(
        f"{texts.name}: {role} of {lists.name}",
        f"chosen-{role}/1:{texts.reader}:{lists.reader}",
        (*texts.files, *lists.files),
        partial(_selected, texts, lists, role),
    )


def _selected(texts: Source[Item], lists: Source[Candidates], role: Role) -> Iterator[Item]:
    ids = {name for row in lists.read() for name in ((row.query,) if role == "queries" else row.documents)}
    count = len(ids)
    for item in texts.read():
        if item.id in ids:
            ids.remove(item.id)
            yield item
    if ids:
        missing = f"no text for {len(ids):,} of the {count:,} questions of {lists.name}, e.g. {min(ids)!r}"
        raise DataError(texts.name, None, missing, "one for each", "the two files do not belong together")


def _row(text: str) -> _Row:
    """Parse one line. Raises `RecordError`."""
    columns = text.split("\t")
    if len(columns) != 4:
        raise RecordError(f"{len(columns)} column{'s' * (len(columns) != 1)} in {shown(text)}", _COLUMNS)
    query = check_id(columns[0].strip(), "query id")
    similar, offered = columns[1].split(), columns[2].split()
    for ids, kind in ((similar, "similar question"), (offered, "candidate")):
        if len(set(ids)) != len(ids):
            duplicate = next(name for position, name in enumerate(ids) if name in ids[:position])
            raise RecordError(f"{kind} {duplicate!r} a second time", "each once", "remove one of the two")
    if not offered:
        raise RecordError(f"no candidate of query {query!r}", "at least one")
    if strays := [name for name in similar if name not in offered]:
        raise RecordError(f"similar question {strays[0]!r}", f"one of the {len(offered)} candidates of the line")
    return tuple(similar), Candidates(query, tuple(offered), _scores(columns[3], len(offered)))


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


_ROWS = Format("query", _row, lambda row: f"query id {row[1].query!r}")


def _candidates(path: File) -> Iterator[tuple[int, Candidates]]:
    return ((line, candidates) for line, (_, candidates) in records(path, _ROWS))


def _judgements(path: File) -> Iterator[tuple[int, Judgement]]:
    for line, (similar, candidates) in records(path, _ROWS):
        for document in similar:
            yield line, Judgement(candidates.query, document, 1)


def _question(text: str, *, body: bool) -> Item:
    """Parse one line of the texts. Raises `RecordError`."""
    columns = text.split("\t")
    if len(columns) not in (2, 3):
        raise RecordError(f"{len(columns)} column{'s' * (len(columns) != 1)} in {shown(text)}", _TEXT_COLUMNS)
    identity = check_id(columns[0].strip(), "question id")
    parts = columns[1:] if body else columns[1:2]
    return Item(identity, " ".join(filter(None, map(str.strip, parts))))
