r"""A run in its usual form, read a query at a time: lines of a query together, one blank between columns.

Convention: between two lines of a query are the same words then, ` TAG\nQUERY Q0 `. Put a NUL between blanks in their
place, split the text at its white space, and each line has left three words, document, rank and score, before a NUL: if
not every fourth word is one, some line has not six columns. So nothing is done line by line.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np

from bench.core.errors import DataError
from bench.core.order import best
from bench.core.records import LARGEST, CleanRun, Ranking, Tie
from bench.data.formats.faults import RecordError
from bench.data.formats.text import pieces

_RANKS = [str(rank) for rank in range(1, 1001)]
_FEWEST = 5  # lines of a query, in the mean: with fewer, line by line is as quick


class _UnusualError(Exception):
    """Something is not in the usual form, and may be wrong."""


@dataclass
class _QueryLines:
    """Lines of whole queries."""

    queries: list[str] = field(default_factory=list)
    documents: list[tuple[str, ...]] = field(default_factory=list)  # of each query
    scores: "array[float]" = field(default_factory=lambda: array("d"))  # of all lines
    is_rising: bool = True  # the ranks of each query


def read_usual(path: Path, tie: Tie) -> CleanRun | None:
    """Read a run as `bench.data.formats.trec.read_run` does; return None for one that is not in the usual form.

    Args:
        path: a file that can be read twice.
        tie: as in `read_run`.
    """
    run = CleanRun()
    try:
        for ranking in (ranking for rows in _blocks(path) if rows.queries for ranking in _rankings(rows, tie)):
            if ranking.query in run:
                return None
            run[ranking.query] = ranking
    except (_UnusualError, DataError, RecordError, ValueError):  # of a decoder, `int` or `float`
        return None
    return run or None


def _blocks(path: Path) -> Iterator[_QueryLines]:
    """Yield the queries that end in each piece of a file."""
    waiting, size, enough = list[str](), 0, 0
    for number, piece in enumerate(pieces(path)):
        waiting.append(piece.decode("utf-8" if number else "utf-8-sig"))
        size += len(waiting[-1]) + 1
        if size < enough:  # a query that goes over many pieces is looked at each time that its text has doubled
            continue
        text = "\n".join((*waiting, ""))
        rows, begin = _split(text, is_last=False)
        yield rows
        waiting, size, enough = [text[begin:-1]], len(text) - begin, 2 * (len(text) - begin)
    rows, _ = _split("\n".join((*waiting, "")), is_last=True)
    yield rows


def _split(text: str, *, is_last: bool) -> tuple[_QueryLines, int]:
    """Split lines into words, up to where the last query begins, which may go on behind them, or to the end."""
    rows, begin = _QueryLines(), 0
    if "\0" in text:
        raise _UnusualError
    has_odd_digits = "_" in text  # which `int` and `float` take
    while begin < len(text):
        first = text[begin : text.index("\n", begin) + 1]
        query, iteration, document, rank, score, tag = first.split()
        start = f"{query} {iteration} "
        if first != f"{start}{document} {rank} {score} {tag}\n":
            raise _UnusualError
        end = _end(text, begin + len(first), start, f" {rank} ")
        if end == len(text) and not is_last:
            break
        # Words are let go of with each query, so that the next one's take their place in the processor's cache.
        words = text[begin + len(start) : end].replace(f" {tag}\n{start}", " \0 ").split()
        count, ranks, scores = len(words) // 4, words[1::4], words[2::4]
        if len(words) % 4 or words[3::4].count("\0") != count - 1 or words[-1] != tag:
            raise _UnusualError
        if has_odd_digits and ("_" in "".join(ranks) or "_" in "".join(scores)):
            raise _UnusualError
        if ranks != _RANKS[:count]:
            numbers = list(map(int, ranks))
            rows.is_rising &= all(before < after for before, after in pairwise(numbers))
        rows.scores.extend(map(float, scores))
        rows.documents.append(tuple(words[::4]))
        rows.queries.append(query)
        begin = end
    # A line end within three words is that of a line with fewer columns, and its next line has fewer, too.
    if text.count("\n", 0, begin) != len(rows.scores) or len(rows.scores) < _FEWEST * len(rows.queries):
        raise _UnusualError
    return rows, begin


def _end(text: str, begin: int, start: str, rank: str) -> int:
    """Return where the lines of a query end: before the next line of the same rank that does not start alike."""
    while (place := text.find(rank, begin)) >= 0:
        begin = text.rindex("\n", 0, place) + 1
        if not text.startswith(start, begin):
            return begin
        begin = text.index("\n", begin) + 1
    return len(text)


def _rankings(rows: _QueryLines, tie: Tie) -> Iterator[Ranking]:
    """Yield the ranking of each query. Raises `_UnusualError` for what is wrong or, under `list`, not in its order."""
    values, ends = np.asarray(rows.scores), list(accumulate(map(len, rows.documents)))
    if not (np.abs(values) <= LARGEST).all() or (tie == "list" and not rows.is_rising):
        raise _UnusualError
    compared = values.astype(np.float32) if tie == "trec" else values
    in_order = np.ones(len(values), bool)
    in_order[1:] = compared[1:] < compared[:-1] if tie == "trec" else compared[1:] <= compared[:-1]
    in_order[[0, *ends[:-1]]] = True
    unordered = {*np.searchsorted(ends, np.flatnonzero(~in_order), "right").tolist()}
    listed: list[float] = compared.tolist()
    for at, (begin, end) in enumerate(pairwise((0, *ends))):
        query, documents = rows.queries[at], rows.documents[at]
        if len({*documents}) < len(documents):
            raise _UnusualError
        if at not in unordered:
            yield Ranking(query, documents, tuple(listed[begin:end]))
        elif tie == "trec":
            yield best(query, documents, values[begin:end], end - begin, tie)
        else:
            raise _UnusualError
