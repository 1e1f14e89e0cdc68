"""Pairs of the user's as JSON lines: {"query", "positive", "negative", …}, one query a line.

Conventions: the query stands under `query` or `question`; its passages under the first key of `POSITIVES` and of
`NEGATIVES` that holds any, each one passage or a list, a text or an object with `text` and perhaps `title` and an id.
So read are, too, files in the forms of Tevatron (`positive_passages`), FlagEmbedding (`pos`, `neg`) and one DPR record
a line. A line may say its id (`id`, `_id`, `query_id`, `qid`; else its number in the file), its `lang` or `language`,
and its `source`; other keys are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from bench.data.archive import File
from bench.data.faults import Faults, RecordError
from bench.data.jsonl import json_object
from bench.data.nested import text
from bench.data.pairs.found import Found, PairSource, pair, pair_source, reader, unique
from bench.data.pairs.values import given, id_of, optional, passages
from bench.data.source import Format, checked
from bench.data.text import lines
from bench.types import Item

CODE = "jsonl-pairs/1"
QUERIES = ("query", "question")
POSITIVES = ("positives", "positive", "positive_passages", "positive_ctxs", "pos")
NEGATIVES = (
    "negatives",
    "negative",
    "hard_negatives",
    "hard_negative",
    "negative_passages",
    "hard_negative_ctxs",
    "neg",
)

_IDS = ("id", "_id", "query_id", "qid")
_LANGUAGES = ("lang", "language")


def pairs(path: File, name: str = "", language: str = "") -> PairSource:
    """Name the pairs of a file.

    Reading raises `DataError` or `DataFaultsError`, with the line.

    Args:
        path: the file, plain or compressed; not opened before the source is read.
        name: where pairs that do not say so come from; the file's name where empty.
        language: of lines that do not say their own; passages have that of their query.
    """
    name = name or path.name
    return pair_source(name, reader(CODE, name, language), (path,), partial(found, path, name, language))


def found(path: File, name: str, language: str) -> Iterator[tuple[int, Found]]:
    """Stream (line, what was found); arguments as in `pairs`."""
    form = Format("pair", partial(_row, name, language))
    with Faults() as faults:
        rows = ((number, (number, line)) for number, line in lines(path, faults) if line and not line.isspace())
        yield from unique(path, ((at, (one,)) for at, one in checked(path, rows, form, faults)), faults)


def _row(name: str, language: str, row: tuple[int, str]) -> Found:
    """Read one line. Raises `RecordError`."""
    number, line = row
    values = json_object(line, ("query", "positive", "negative"))
    spoken = _first(values, _LANGUAGES).strip() or language
    key = given(values, QUERIES)
    if key is None:
        raise RecordError('no "query" that says anything', 'the query\'s text under "query" or "question"')
    asked = Item(id_of(values, _IDS, "query id") or str(number), text(values, key), language=spoken)
    positives = _passages(values, POSITIVES, "positive", spoken)
    negatives = _passages(values, NEGATIVES, "negative", spoken)
    return pair(asked, positives, negatives, optional(values, "source") or name)


def _first(row: dict[str, Any], keys: tuple[str, ...]) -> str:
    """Take the string under the first of several keys that holds anything. Raises `RecordError`."""
    key = given(row, keys)
    return text(row, key) if key else ""


def _passages(row: dict[str, Any], keys: tuple[str, ...], what: str, language: str) -> Iterator[Item]:
    """Read the passages under the first of several keys that holds any. Raises `RecordError`."""
    key = given(row, keys)
    return passages(row[key], what, language) if key else iter(())
