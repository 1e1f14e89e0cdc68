"""SQuAD as training data of LAReQA."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bench.data.pairs import outcomes, squad
from bench.data.pairs.squad import MISPLACED, NO_ANSWER, NO_SENTENCE, inferred
from bench.types import TrainingPair
from suites.readers import xquad
from tests.conftest import ReadErrors, WriteFile, present

CONTEXT = "Dr. Ada was born in 1815.  She wrote\nnotes on it. The end"
FIRST, SECOND, THIRD = "Dr. Ada was born in 1815.", "She wrote\nnotes on it.", "The end"


def _question(name: str, *answers: str, start: int | None = None) -> dict[str, Any]:
    answer_rows = [
        {"text": answer, "answer_start": CONTEXT.find(answer) if start is None else start} for answer in answers
    ]
    return {"id": name, "question": f"{name}?", "answers": answer_rows}


def _file(*questions: dict[str, Any], **more: Any) -> str:
    """Put questions under the paragraph."""
    paragraph = {"context": CONTEXT, "qas": list(questions), **more}
    return json.dumps({"version": "1.1", "data": [{"title": "Ada", "paragraphs": [paragraph]}]})


def test_sentence_and_paragraph(write: WriteFile) -> None:
    """The first of several answers counts; the positive is what the test searches, or two segments as in the script."""
    path = write("train.json", _file(_question("a", "1815", "notes"), _question("b", "notes")))
    pairs = list(squad.pairs(path, "squad").read())
    assert [(pair.query.id, pair.query.text, pair.query.language, pair.source) for pair in pairs] == [
        ("a", "a?", "en", "squad"),
        ("b", "b?", "en", "squad"),
    ]
    assert [[item.text for item in pair.positives] for pair in pairs] == [
        [(FIRST + CONTEXT).replace("\n", "")],
        [(SECOND + CONTEXT).replace("\n", "")],
    ]
    assert {(item.title, item.language) for pair in pairs for item in pair.positives} == {("", "en")}
    assert all(not pair.negatives for pair in pairs)
    path = write("train.json", _file(_question("a", "1815")))
    source = squad.pairs(path, segments=True)
    (pair,) = source.read()
    assert [(item.title, item.text) for item in pair.positives] == [(FIRST, CONTEXT)]
    assert source.reader != squad.pairs(path).reader


def test_sentences(write: WriteFile) -> None:
    """Found ones end at no abbreviation and have no blanks around; given ones count, what is between is in none."""
    assert [CONTEXT[start:end] for start, end in inferred(CONTEXT, "en")] == [FIRST, SECOND, THIRD]
    assert inferred("", "en") == []
    path = write("train.json", _file(_question("a", "1815"), _question("b", "Ada"), sentence_breaks=[[0, 8], [20, 57]]))
    by_query = {outcome.query: outcome for _, outcome in outcomes(squad.pairs(path, segments=True))}
    assert present(by_query["a"].pair).positives[0].title == CONTEXT[20:57]
    path = write("other.json", _file(_question("a", "was"), sentence_breaks=[[0, 7], [20, 57]]))
    assert [(outcome.pair, outcome.left_out) for _, outcome in outcomes(squad.pairs(path))] == [(None, (NO_SENTENCE,))]


def test_what_cannot_be_trained_on_is_left_out(write: WriteFile) -> None:
    """Questions that nothing answers (version 2.0), and answers that stand elsewhere."""
    path = write("train.json", _file(_question("a"), _question("b", "1815", start=3), _question("c", "end")))
    assert [(outcome.query, outcome.pair is None, outcome.left_out) for _, outcome in outcomes(squad.pairs(path))] == [
        ("a", True, (NO_ANSWER,)),
        ("b", True, (MISPLACED,)),
        ("c", False, ()),
    ]


def test_all_faults_are_told(write: WriteFile, errors: ReadErrors) -> None:
    """With the number of the paragraph; a question may stand once in the file."""
    good = {"context": CONTEXT, "qas": [_question("a", "1815")]}
    bad: list[tuple[dict[str, Any], str]] = [
        ({"context": CONTEXT}, "found no \"qas\" (only 'context')"),
        (
            {**good, "qas": [_question("x", "1815", start=-1)]},
            "found answer start -1, expected a whole number of at least 0",
        ),
        ({**good, "sentence_breaks": [[0, 999]]}, "found sentence from 0 to 999, expected 0 ≤ start < end ≤ 57"),
        ({**good, "sentence_breaks": [7]}, 'found "sentence_breaks": 7, expected pairs of start and end'),
        ({**good, "qas": [{**_question("x", "1815"), "question": " "}]}, "found an empty query"),
    ]
    halves = [good, *(paragraph for paragraph, _ in bad[:2])], [paragraph for paragraph, _ in bad[2:]]
    path = write("train.json", json.dumps({"data": [{"paragraphs": half} for half in halves]}))
    for number, (sentence, (_, words)) in enumerate(zip(errors(squad.pairs(path).read()), bad, strict=True), start=2):
        assert sentence.startswith(f"{path}, paragraph:{number}: {words}")
    path = write("twice.json", json.dumps({"data": [{"paragraphs": [good, good]}]}))
    assert errors(squad.pairs(path).read()) == [
        (
            f"{path}, paragraph:2: found query id 'a' a second time, expected it once (first at line 1); "
            "remove one of the two"
        )
    ]
    path = write("article.json", json.dumps({"data": [{"paragraphs": [good]}, {"title": "x"}]}))
    assert f"{path}, article 2: found no \"paragraphs\" (only 'title')" in errors(squad.pairs(path).read())[0]


@pytest.mark.skipif("BENCH_DATA" not in os.environ, reason="needs BENCH_DATA, the folder of official layouts")
@pytest.mark.parametrize("language", ["en", "th"])
def test_xquad_is_read_as_the_suite_reads_it(language: str) -> None:
    """A question's positive is the candidate that the suite judges right in the question's language."""
    path = Path(os.environ["BENCH_DATA"]) / f"lareqa/xquad-r/{language}.json"
    pairs = list(squad.pairs(path, language=language).read())
    pool = {item.id: item.text for item in xquad.candidates({language: path}, "pool").read()}
    right: dict[str, set[str]] = {}
    for row in xquad.judgements(language, {language: path}, "right").read():
        right.setdefault(row.query, set()).add(pool[row.document])
    assert len(pairs) == len(right) == 1190
    assert all(isinstance(pair, TrainingPair) for pair in pairs)
    assert {f"{pair.query.id}_{language}": {item.text for item in pair.positives} for pair in pairs} == right
