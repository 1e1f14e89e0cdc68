"""MLDR's files: long passages, questions, and what is judged."""

import gzip
import pickle

import pytest

from bench.types import Item, Judgement
from suites.readers import mldr
from tests.conftest import ReadErrors, WriteFile
from tests.suites.conftest import jsonl

CORPUS = jsonl({"docid": "doc-ar-0", "text": "نص\nطويل"}, {"docid": "doc-ar-1", "text": ""})
QUESTIONS = jsonl(
    {
        "query_id": "q-ar-0",
        "query": "ما هو؟",
        "positive_passages": [{"docid": "doc-ar-1", "text": "x"}],
        "negative_passages": [{"docid": "doc-ar-0", "text": "y"}],
    },
    {
        "query_id": "q-ar-1",
        "query": "من؟",
        "positive_passages": [{"docid": "doc-ar-0", "text": "x"}, {"docid": "doc-ar-0", "text": "x"}],
        "negative_passages": [],
    },
)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_files(ending: str, write: WriteFile) -> None:
    """Packed or not; negatives judge nothing, and a passage that stands twice is one judgement."""
    packed = gzip.compress if ending else bytes
    corpus = write(f"corpus.jsonl{ending}", packed(CORPUS.encode()))
    test = write(f"test.jsonl{ending}", packed(QUESTIONS.encode()))
    assert list(mldr.passages(corpus).read()) == [Item("doc-ar-0", "نص\nطويل"), Item("doc-ar-1", "")]
    assert list(mldr.questions(test).read()) == [Item("q-ar-0", "ما هو؟"), Item("q-ar-1", "من؟")]
    judged = pickle.loads(pickle.dumps(mldr.judgements(test)))  # noqa: S301 (our own bytes)
    assert list(judged.read()) == [Judgement("q-ar-0", "doc-ar-1", 1), Judgement("q-ar-1", "doc-ar-0", 1)]


def test_faults(write: WriteFile, errors: ReadErrors) -> None:
    """Each by its line: other keys, an id twice, a question that nothing answers."""
    corpus = write("corpus.jsonl", jsonl({"docid": "a", "text": "x"}, {"id": "b", "text": "x"}))
    (sentence,) = errors(mldr.passages(corpus).read())
    assert sentence.startswith(f'{corpus}:2: found no "docid"')
    rows = [{"query_id": "q", "query": "x", "positive_passages": []}] * 2
    test = write("test.jsonl", jsonl(*rows))
    (sentence,) = errors(mldr.questions(test).read())
    assert sentence.startswith(f"{test}:2: found query id 'q' a second time")
    first, second = errors(mldr.judgements(test).read())
    assert first.startswith(f'{test}:1: found no member of "positive_passages"')
    assert second.startswith(f"{test}:2: ")
