"""Belebele's files as mteb makes retrieval of them: passages by links, questions by words."""

import pickle
from typing import Any

from bench.types import Item, Judgement
from suites.readers import belebele
from tests.conftest import ReadErrors, WriteFile
from tests.suites.conftest import jsonl


def row(link: str, number: int, passage: str, question: str) -> dict[str, Any]:
    """Return a row with all keys of the release."""
    answers = {f"mc_answer{at}": str(at) for at in range(1, 5)}
    more = {"correct_answer_num": "1", "dialect": "swh_Latn", "ds": "2023-05-03"}
    return {"link": link, "question_number": number, "flores_passage": passage, "question": question, **answers, **more}


ROWS = (
    row("https://en.wikibooks.org/wiki/A", 1, "first", "what?"),
    row("https://en.wikinews.org/wiki/B b", 1, "second", "who?"),
    row("https://en.wikibooks.org/wiki/A", 2, "first ", "who?"),
    row("https://en.wikinews.org/wiki/B b", 2, "second", "who?"),
)
A, B = "https://en.wikibooks.org/wiki/A", "https://en.wikinews.org/wiki/B_b"


def test_files(write: WriteFile) -> None:
    """A passage once; questions of equal words are one, which both passages answer; a link without blanks is an id."""
    path = write("swh_Latn.jsonl", jsonl(*ROWS))
    assert list(belebele.passages(path).read()) == [Item(A, "first"), Item(B, "second")]
    assert list(belebele.questions(path).read()) == [Item(f"{A}#1", "what?"), Item(f"{B}#1", "who?")]
    judged = pickle.loads(pickle.dumps(belebele.judgements(path)))  # noqa: S301 (our own bytes)
    assert list(judged.read()) == [Judgement(f"{A}#1", A, 1), Judgement(f"{B}#1", B, 1), Judgement(f"{B}#1", A, 1)]


def test_as_mteb_counts(write: WriteFile) -> None:
    """The number of queries, passages and judgements is that of mteb's own code, written out here once more."""
    path = write("swh_Latn.jsonl", jsonl(*ROWS))
    questions, links, judged = set(), set(), set()
    for entry in ROWS:
        questions.add(entry["question"])
        links.add(entry["link"])
        judged.add((entry["question"], entry["link"]))
    found = (belebele.questions(path), belebele.passages(path), belebele.judgements(path))
    assert [len(list(source.read())) for source in found] == [len(questions), len(links), len(judged)]


def test_faults(write: WriteFile, errors: ReadErrors) -> None:
    """Each by its line: a key that is not there, a question that stands twice."""
    path = write("swh_Latn.jsonl", jsonl(ROWS[0], ROWS[0], {"link": "x"}))
    twice, lacking = errors(belebele.questions(path).read())
    assert twice.startswith(f"{path}:2: found question '{A}#1' a second time")
    assert lacking.startswith(f'{path}:3: found no "')
