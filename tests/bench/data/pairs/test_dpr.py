"""DPR's training files: what is read of a record, and what is told of a malformed one."""

import gzip
import json
import pickle
from typing import Any

import pytest

from bench.data.pairs import dpr
from bench.data.pairs.rows import text_id
from bench.data.pairs.sources import ALSO_POSITIVE, NO_POSITIVE
from bench.types import Item, TrainingPair
from tests.conftest import ReadErrors, WriteFile, cases


def _context(name: object, text: str, title: str | None = "T", key: str = "passage_id") -> dict[str, Any]:
    return {"title": title, "text": text, "score": 12.5, "title_score": 0, key: name}


RECORDS: list[dict[str, Any]] = cases("dpr-records")
PAIRS = [
    TrainingPair(
        Item("1", "who sings does he love me?", language="en"),
        (Item("1", "sung by Linda Davis", "T", "en"), Item("2", "recorded by ’Reba’\nMcEntire", "", "en")),
        (Item("3", "another song", "T", "en"),),
        "nq",
    ),
    TrainingPair(
        Item("-77", "من", language="ar"),
        (Item(text_id("without an id"), "without an id", "", "en"),),
        (Item("4", "simple", "T", "en"),),
        "nq",
    ),
]


@pytest.mark.parametrize("name", ["nq.json", "nq.json.gz"])
def test_records(write: WriteFile, name: str) -> None:
    """Texts as they stand, hard negatives before others, ids of either spelling; a negative that answers goes."""
    data = json.dumps(RECORDS, indent=4).encode()
    source = dpr.pairs(write(name, gzip.compress(data) if name.endswith(".gz") else data), "nq")
    assert list(source.read()) == PAIRS
    assert [(at, outcome.query, outcome.left_out) for at, outcome in source.open_outcomes()] == [
        (1, "1", (ALSO_POSITIVE,)),
        (2, "2", (NO_POSITIVE,)),
        (3, "-77", ()),
    ]
    assert list(pickle.loads(pickle.dumps(source)).read()) == PAIRS  # noqa: S301 (our own bytes)


def test_languages(write: WriteFile) -> None:
    """Questions and passages may be in different ones; a record's own counts; the key knows."""
    path = write("x.json", json.dumps(RECORDS))
    source = dpr.pairs(path, language="fi", passage_language="de")
    assert [(pair.query.language, pair.positives[0].language) for pair in source.read()] == [("fi", "de"), ("ar", "de")]
    assert [pair.source for pair in source.read()] == ["x.json", "x.json"]
    assert source.reader != dpr.pairs(path).reader


def test_all_faults_are_told_with_the_number_of_the_record(write: WriteFile, errors: ReadErrors) -> None:
    """One file is mended in one go, question ids are unique, and an empty array or a row a line is refused."""
    good = RECORDS[0]
    bad: list[tuple[Any, str]] = [
        ({**good, "question": " "}, "found an empty query"),
        ("text", "found JSON that is no object: 'text'"),
        ({"question": "q"}, "found no \"positive_ctxs\" (only 'question')"),
        ({**good, "positive_ctxs": [{"title": "T"}]}, "found no \"text\" (only 'title')"),
        ({**good, "positive_ctxs": [_context("1", " ", "")]}, "found an empty positive"),
        ({**good, "hard_negative_ctxs": [7]}, 'found negative 7, expected a text, or an object with "text"'),
        (
            {**good, "positive_ctxs": [_context("a b", "x")]},
            "found id of a positive 'a b', expected an id without white",
        ),
        ({**good, "positive_ctxs": [_context("1", "\ud800")]}, 'found half of a surrogate pair (\\ud800) in "text"'),
    ]
    path = write("bad.json", json.dumps([good, *(record for record, _ in bad), good]))
    sentences = errors(dpr.pairs(path).read())
    assert [sentence.partition(": ")[0] for sentence in sentences] == [f"{path}, record:{at}" for at in range(2, 10)]
    assert all(words in sentence for sentence, (_, words) in zip(sentences, bad, strict=True))
    path = write("x.json", json.dumps([{**RECORDS[0], "id": "a"}, RECORDS[0], {**RECORDS[0], "id": "a"}]))
    (sentence,) = errors(dpr.pairs(path).read())
    assert sentence == (
        f"{path}, record:3: found query id 'a' a second time, expected it once (first at line 1); remove one of the two"
    )
    path = write("x.json", "[]")
    assert errors(dpr.pairs(path).read()) == [f"{path}, record: found no record, expected at least one record"]
    path = write("y.json", '{"question": "q"}\n')
    assert errors(dpr.pairs(path).read()) == [f'{path}:1: found \'{{"question": "q"}}\\n\', expected a list']
