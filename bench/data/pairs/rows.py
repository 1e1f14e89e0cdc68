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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from bench.data.formats.archive import File
from bench.data.formats.faults import Faults, RecordError, shown
from bench.data.formats.jsonl import json_object, missing_key, optional, text
from bench.data.formats.source import Format, check_id, records
from bench.data.formats.text import lines
from bench.data.pairs.sources import Outcomes, PairOutcome, PairSource, pair, pair_source, read_records, reader
from bench.types import Item

JSONL, TSV = "jsonl-pairs/1", "tsv-pairs/1"
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
PASSAGE_IDS = ("id", "_id", "docid", "passage_id", "psg_id", "pid")
"""Keys under which a passage may have its id; the first that holds one counts."""


def jsonl_pairs(path: File, name: str = "", language: str = "") -> PairSource:
    """Return the pairs of a file of JSON lines.

    Args:
        path: the file.
        name: where pairs come from that do not say; default: the file's name.
        language: ISO 639 code of texts that do not say theirs; may be empty.

    Reading raises `DataError` or `DataFaultsError`, with the line.
    """
    name = name or path.name
    return pair_source(name, reader(JSONL, name, language), (path,), partial(read_jsonl, path, name, language))


def read_jsonl(path: File, name: str, language: str) -> Outcomes:
    """Stream (line, outcome); arguments as in `jsonl_pairs`."""

    def rows(faults: Faults) -> Iterable[tuple[int, str]]:
        return ((number, line) for number, line in lines(path, faults) if line and not line.isspace())

    return read_records(path, rows, "pair", partial(_parse_line, name, language))


def _parse_line(name: str, language: str, number: int, line: str) -> tuple[PairOutcome]:
    """Parse one line. Raises `RecordError`."""
    row = json_object(line, ("query", "positive", "negative"))
    key = first_key(row, ("lang", "language"))
    language = (text(row, key).strip() if key else "") or language
    key = first_key(row, QUERIES)
    if key is None:
        expected = 'the query\'s text under "query" or "question"'
        empty = any(name in row for name in QUERIES)
        raise RecordError("an empty query", expected) if empty else missing_key(row, "query", expected)
    query_id = id_of(row, ("id", "_id", "query_id", "qid"), "query id") or str(number)
    query = Item(query_id, text(row, key), language=language)
    positives = passages(row, POSITIVES, "positive", language)
    negatives = passages(row, NEGATIVES, "negative", language)
    return (pair(query, positives, negatives, optional(row, "source") or name),)


def tsv_pairs(path: File, name: str = "", language: str = "") -> PairSource:
    """Return the pairs of a table; arguments and errors as in `jsonl_pairs`."""
    name = name or path.name
    return pair_source(name, reader(TSV, name, language), (path,), partial(_read_tsv, path, name, language))


def _read_tsv(path: File, name: str, language: str) -> Outcomes:
    """Stream (line, outcome); a pair's id is its line, and so never comes twice."""
    for line, outcome in records(path, partial(_table_format, name, language)):
        if outcome.pair is not None:
            query = replace(outcome.pair.query, id=str(line))
            yield line, replace(outcome, query=query.id, pair=replace(outcome.pair, query=query))


def _table_format(name: str, language: str, first: str) -> Format[PairOutcome]:
    """Return the format of a table, whose first line may be a header."""
    cells = [cell.strip().lower() for cell in first.split("\t")]
    has_header = len(cells) > 1 and cells[0] in QUERIES and cells[1].startswith("positive")
    header = tuple(first.split("\t")) if has_header else None
    return Format("pair", partial(_parse_cells, name, language), header=header)


def _parse_cells(name: str, language: str, line: str) -> PairOutcome:
    """Parse one line; its id is not known here. Raises `RecordError`."""
    query, *cells = line.split("\t")
    if not cells:
        columns = "at least 2 columns separated by tabs: query, positive, and negatives if there are any"
        raise RecordError(f"1 column in {shown(line)}", columns)
    positive, *negatives = (Item(text_id(cell), cell, language=language) for cell in cells)
    return pair(Item("", query, language=language), (positive,), negatives, name)


def text_id(text: str, title: str = "") -> str:
    """Return an id that equal passages share: 16 hexadecimal digits of the hash of title and text."""
    return hashlib.blake2b(f"{title}\0{text}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def first_key(row: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """Return the first of several keys that holds anything: no null, empty text or empty list."""
    return next((key for key in keys if row.get(key) not in (None, "", [])), None)


def id_of(row: Mapping[str, Any], keys: Sequence[str], what: str) -> str:
    """Take the id under the first of several keys that holds one; empty where none does. Raises `RecordError`."""
    key = first_key(row, keys)
    return check_id(row[key], what) if key else ""


def passages(row: Mapping[str, Any], keys: Sequence[str], what: str, language: str) -> Iterator[Item]:
    """Parse the passages of a record: one or a list, each a text or an object with `text`.

    An object may have `title`, `lang` and an id (`PASSAGE_IDS`). Without an id, `text_id` makes one.

    Args:
        row: the record.
        keys: keys of passages; the first that holds any counts.
        what: what messages call a passage.
        language: ISO 639 code of passages that do not say theirs.

    Raises:
        RecordError: for anything else.
    """
    key = first_key(row, keys)
    value = row[key] if key else []
    for passage in value if isinstance(value, list) else [value]:
        if not isinstance(passage, str | dict):
            raise RecordError(f"{what} {shown(passage)}", 'a text, or an object with "text"')
        fields: dict[str, Any] = {"text": passage} if isinstance(passage, str) else passage
        body, title = text(fields, "text"), optional(fields, "title")
        passage_id = id_of(fields, PASSAGE_IDS, f"id of a {what}") or text_id(body, title)
        yield Item(passage_id, body, title, optional(fields, "lang") or language)
