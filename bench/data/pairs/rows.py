"""Pairs of the user's as JSON lines and as tables, and the values that rows of pairs share.

JSON lines are {"query", "positive", "negative", …}, one query a line: the query under `query` or `question`; its
passages under the first key of `POSITIVES` and of `NEGATIVES` that holds any, each one passage or a list, a text or an
object with `text` and perhaps `title` and an id. That covers the forms of Tevatron (`positive_passages`), FlagEmbedding
(`pos`, `neg`) and one DPR record a line. A line may have an id (`id`, `_id`, `query_id`, `qid`; else its number in the
file), `lang` or `language`, and `source`; other keys are not read.

Tables are query, tab, positive, and any number of negatives, each after a tab, as in MS MARCO's
`triples.train.small.tsv`. A first line whose first cell is `query` or `question` and whose second begins with
`positive` is a header; there is no quoting, so a text holds no tab. A pair's id is its line's number; the same query on
several lines is several pairs.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from bench.data.formats.archive import File
from bench.data.formats.faults import Faults, RecordError, shown
from bench.data.formats.jsonl import json_object, optional, text
from bench.data.formats.source import Format, check_id, checked, records
from bench.data.formats.text import lines
from bench.data.pairs.sources import PairOutcome, PairSource, pair, pair_source, reader, with_unique_queries
from bench.types import Item

JSONL = "jsonl-pairs/1"
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


def jsonl_pairs(path: File, name: str = "", language: str = "") -> PairSource:
    """Return the pairs of a file; `name` and `language` are those of lines that do not say their own.

    Reading raises `DataError` or `DataFaultsError`, with the line.
    """
    name = name or path.name
    return pair_source(name, reader(JSONL, name, language), (path,), partial(jsonl_found, path, name, language))


def jsonl_found(path: File, name: str, language: str) -> Iterator[tuple[int, PairOutcome]]:
    """Stream (line, what was found); arguments as in `pairs`."""
    form = Format("pair", partial(_line, name, language))
    with Faults() as faults:
        rows = ((number, (number, line)) for number, line in lines(path, faults) if line and not line.isspace())
        yield from with_unique_queries(path, ((at, (one,)) for at, one in checked(path, rows, form, faults)), faults)


def _line(name: str, language: str, row: tuple[int, str]) -> PairOutcome:
    """Parse one line. Raises `RecordError`."""
    number, line = row
    values = json_object(line, ("query", "positive", "negative"))
    said = given(values, _LANGUAGES)
    spoken = (text(values, said).strip() if said else "") or language
    key = given(values, QUERIES)
    if key is None:
        raise RecordError('no "query" that says anything', 'the query\'s text under "query" or "question"')
    asked = Item(id_of(values, _IDS, "query id") or str(number), text(values, key), language=spoken)
    positives = _passages(values, POSITIVES, "positive", spoken)
    negatives = _passages(values, NEGATIVES, "negative", spoken)
    return pair(asked, positives, negatives, optional(values, "source") or name)


def _passages(row: dict[str, Any], keys: tuple[str, ...], what: str, language: str) -> Iterator[Item]:
    """Read the passages under the first of several keys that holds any. Raises `RecordError`."""
    key = given(row, keys)
    return passages(row[key], what, language) if key else iter(())


TSV = "tsv-pairs/1"

_EXPECTED = "at least 2 columns separated by tabs: query, positive, and negatives if there are any"


def tsv_pairs(path: File, name: str = "", language: str = "") -> PairSource:
    """Return the pairs of a file, from `name` and in `language`; reading raises as that of `jsonl_pairs`."""
    name = name or path.name
    return pair_source(name, reader(TSV, name, language), (path,), partial(tsv_found, path, name, language))


def tsv_found(path: File, name: str, language: str) -> Iterator[tuple[int, PairOutcome]]:
    """Stream (line, what was found); arguments as in `pairs`."""
    for line, one in records(path, partial(_table, name, language)):
        if one.pair is not None:
            query = replace(one.pair.query, id=str(line))
            yield line, replace(one, query=query.id, pair=replace(one.pair, query=query))


def _table(name: str, language: str, first: str) -> Format[PairOutcome]:
    """Return the format of a table, whose first line may be a header."""
    cells = [cell.strip().lower() for cell in first.split("\t")]
    named = len(cells) > 1 and cells[0] in ("query", "question") and cells[1].startswith("positive")
    return Format("pair", partial(_cells, name, language), header=tuple(first.split("\t")) if named else None)


def _cells(name: str, language: str, line: str) -> PairOutcome:
    """Parse one line; its id is not known here. Raises `RecordError`."""
    cells = line.split("\t")
    if len(cells) < 2:
        raise RecordError(f"1 column in {shown(line)}", _EXPECTED)
    positive, *negatives = (plain_passage(cell, language) for cell in cells[1:])
    return pair(Item("", cells[0], language=language), (positive,), negatives, name)


PASSAGE_IDS = ("id", "_id", "docid", "passage_id", "psg_id", "pid")
"""Keys under which a passage may have its id; the first that holds one counts."""


def text_id(words: str, title: str = "") -> str:
    """Return an id that equal passages share: 16 hexadecimal digits of the hash of title and text."""
    said = f"{title}\0{words}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, digest_size=8).hexdigest()


def plain_passage(words: str, language: str) -> Item:
    """Return a passage that has a text and nothing else."""
    return Item(text_id(words), words, language=language)


def given(row: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """Return the first of several keys that holds anything: no null, empty text or empty list."""
    return next((key for key in keys if row.get(key) not in (None, "", [])), None)


def id_of(row: Mapping[str, Any], keys: Sequence[str], what: str) -> str:
    """Take the id under the first of several keys that holds one; empty where none does. Raises `RecordError`."""
    key = given(row, keys)
    return check_id(row[key], what) if key else ""


def passages(value: object, what: str, language: str) -> Iterator[Item]:
    """Parse the value under a key of passages: one or a list, each a text or an object with `text`.

    An object may have `title`, `lang` and an id (`PASSAGE_IDS`). Without an id, `text_id` makes one. Messages call a
    passage `what`; `language` is that of passages that do not say their own. Raises `RecordError` for anything else.
    """
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str):
            row: dict[str, Any] = {"text": one}
        elif isinstance(one, dict):
            row = one
        else:
            raise RecordError(f"{what} {shown(one)}", 'a text, or an object with "text"')
        words, title = text(row, "text"), optional(row, "title")
        name = id_of(row, PASSAGE_IDS, f"id of a {what}") or text_id(words, title)
        yield Item(name, words, title, optional(row, "lang") or language)
