"""Training files of DPR: one JSON array of {question, answers, positive_ctxs, negative_ctxs, hard_negative_ctxs}.

So are released DPR's own files (`biencoder-nq-train.json.gz` and its like) and the training data of XOR-TyDi's DPR
baseline, which is where XOR-Retrieve gets its passages from: its own training file has questions and answers alone.

Conventions, those of dpr/models/biencoder.py and dpr/data/biencoder_data.py: passages are {title, text, passage_id or
psg_id}; a question without positives is left out; hard negatives are `hard_negative_ctxs`, and `negative_ctxs` where
there are none of those. Texts stay as they are: whether a question loses its mark is a matter of how it is read out.
A question's id is under `q_id`, `question_id` or `id`, else it is the record's number in the file, from 1.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from bench.data.formats.archive import File
from bench.data.formats.faults import Faults, RecordError, shown
from bench.data.formats.jsonl import members, optional, text
from bench.data.formats.source import Format, checked
from bench.data.pairs.arrays import elements
from bench.data.pairs.rows import given, id_of, passages
from bench.data.pairs.sources import (
    NO_POSITIVE,
    PairOutcome,
    PairSource,
    pair,
    pair_source,
    reader,
    with_unique_queries,
)
from bench.types import Item

CODE = "dpr-pairs/1"

_IDS = ("q_id", "question_id", "id")
_NEGATIVES = ("hard_negative_ctxs", "negative_ctxs")


def pairs(path: File, name: str = "", language: str = "en", passage_language: str = "en") -> PairSource:
    """Return the pairs of a file, called `name` where given; the languages are those of texts without `lang`.

    Reading raises `DataError` or `DataFaultsError`, with the number of the record.
    """
    name = name or path.name
    code = reader(CODE, name, language, passage_language)
    return pair_source(name, code, (path,), partial(found, path, name, language, passage_language))


def found(path: File, name: str, language: str, passage_language: str) -> Iterator[tuple[int, PairOutcome]]:
    """Stream (record, what was found); arguments as in `pairs`."""
    where = f"{path}, record"
    form = Format("record", partial(_record, name, language, passage_language))
    with Faults() as faults:
        rows = ((number, (number, value)) for number, value in elements(path))
        yield from with_unique_queries(where, ((at, (one,)) for at, one in checked(where, rows, form, faults)), faults)


def _record(name: str, language: str, passage_language: str, row: tuple[int, Any]) -> PairOutcome:
    """Parse one record. Raises `RecordError`."""
    number, values = row
    if not isinstance(values, dict):
        raise RecordError(f"JSON that is no object: {shown(values)}", 'an object with "question" and "positive_ctxs"')
    identity = id_of(values, _IDS, "question id") or str(number)
    asked = Item(identity, text(values, "question"), language=optional(values, "lang").strip() or language)
    if not members(values, "positive_ctxs"):
        return PairOutcome(identity, None, (NO_POSITIVE,))
    key = given(values, _NEGATIVES)
    return pair(
        asked,
        passages(values["positive_ctxs"], "positive", passage_language),
        passages(members(values, key), "negative", passage_language) if key else (),
        name,
    )
