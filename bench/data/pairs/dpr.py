"""Training files of DPR: one JSON array of {question, answers, positive_ctxs, negative_ctxs, hard_negative_ctxs}.

So are released DPR's own files (`biencoder-nq-train.json.gz` and its like) and the training data of XOR-TyDi's DPR
baseline, which is where XOR-Retrieve gets its passages from: its own training file has questions and answers alone.

Conventions, those of dpr/models/biencoder.py and dpr/data/biencoder_data.py: passages are {title, text, passage_id or
psg_id}; a question without positives is left out; hard negatives are `hard_negative_ctxs`, and `negative_ctxs` where
there are none of those. Texts stay as they are: whether a question loses its mark is a matter of how it is read out.
A question's id is under `q_id`, `question_id` or `id`, else it is the record's number in the file, from 1.
"""

from functools import partial
from typing import Any

from bench.data.formats.archive import File
from bench.data.formats.faults import RecordError, shown
from bench.data.formats.jsonl import members, optional, text
from bench.data.pairs.arrays import elements
from bench.data.pairs.rows import first_key, id_of, passages
from bench.data.pairs.sources import (
    NO_POSITIVE,
    Outcomes,
    PairOutcome,
    PairSource,
    pair,
    pair_source,
    read_records,
    reader,
)
from bench.types import Item

CODE = "dpr-pairs/1"

_NEGATIVES = ("hard_negative_ctxs", "negative_ctxs")


def pairs(path: File, name: str = "", language: str = "en", passage_language: str = "en") -> PairSource:
    """Return the pairs of a file.

    Args:
        path: the file.
        name: where the pairs come from; default: the file's name.
        language: ISO 639 code of questions without `lang`.
        passage_language: ISO 639 code of passages without `lang`.

    Reading raises `DataError` or `DataFaultsError`, with the number of the record.
    """
    name = name or path.name
    code = reader(CODE, name, language, passage_language)
    return pair_source(name, code, (path,), partial(read, path, name, language, passage_language))


def read(path: File, name: str, language: str, passage_language: str) -> Outcomes:
    """Stream (record, outcome); arguments as in `pairs`."""
    parse = partial(_parse_record, name, language, passage_language)
    return read_records(f"{path}, record", lambda _: elements(path), "record", parse)


def _parse_record(name: str, language: str, passage_language: str, number: int, row: Any) -> tuple[PairOutcome]:
    """Parse one record. Raises `RecordError`."""
    if not isinstance(row, dict):
        raise RecordError(f"JSON that is no object: {shown(row)}", 'an object with "question" and "positive_ctxs"')
    query_id = id_of(row, ("q_id", "question_id", "id"), "question id") or str(number)
    query = Item(query_id, text(row, "question"), language=optional(row, "lang").strip() or language)
    if not members(row, "positive_ctxs"):
        return (PairOutcome(query_id, None, (NO_POSITIVE,)),)
    if key := first_key(row, _NEGATIVES):
        members(row, key)  # must be a list
    positives = passages(row, ("positive_ctxs",), "positive", passage_language)
    return (pair(query, positives, passages(row, _NEGATIVES, "negative", passage_language), name),)
