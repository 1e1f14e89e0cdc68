"""Pairs of the user's as a table: query, tab, positive, and any number of negatives, each after a tab.

So is MS MARCO's `triples.train.small.tsv`, too. Conventions: a first line whose first cell is `query` or `question` and
whose second begins with `positive` is a header; there is no quoting, so a text holds no tab. A pair's id is its line's
number; the same query on several lines is several pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from bench.data.archive import File
from bench.data.faults import RecordError, shown
from bench.data.pairs.found import Found, PairSource, pair, pair_source, reader
from bench.data.pairs.values import plain_passage
from bench.data.source import Format, records
from bench.types import Item

CODE = "tsv-pairs/1"

_EXPECTED = "at least 2 columns separated by tabs: query, positive, and negatives if there are any"


def pairs(path: File, name: str = "", language: str = "") -> PairSource:
    """Name the pairs of a file.

    Reading raises `DataError` or `DataFaultsError`, with the line.

    Args:
        path: the file, plain or compressed; not opened before the source is read.
        name: where the pairs come from; the file's name where empty.
        language: ISO 639 code of all texts.
    """
    name = name or path.name
    return pair_source(name, reader(CODE, name, language), (path,), partial(found, path, name, language))


def found(path: File, name: str, language: str) -> Iterator[tuple[int, Found]]:
    """Stream (line, what was found); arguments as in `pairs`."""
    for line, one in records(path, partial(_format, name, language)):
        if one.pair is not None:
            query = replace(one.pair.query, id=str(line))
            yield line, replace(one, query=query.id, pair=replace(one.pair, query=query))


def _format(name: str, language: str, first: str) -> Format[Found]:
    """Return the format of a table, whose first line may be a header."""
    cells = [cell.strip().lower() for cell in first.split("\t")]
    named = len(cells) > 1 and cells[0] in ("query", "question") and cells[1].startswith("positive")
    return Format("pair", partial(_row, name, language), header=tuple(first.split("\t")) if named else None)


def _row(name: str, language: str, line: str) -> Found:
    """Read one line; its id is not known here. Raises `RecordError`."""
    cells = line.split("\t")
    if len(cells) < 2:
        raise RecordError(f"1 column in {shown(line)}", _EXPECTED)
    positive, *negatives = (plain_passage(cell, language) for cell in cells[1:])
    return pair(Item("", cells[0], language=language), (positive,), negatives, name)
