"""Training pairs and questions as texts: which files are taken for them, what of them is read, and what is refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from bench.data.overlap import Text
from bench.data.pair_texts import pair_texts
from bench.errors import UsageError
from bench.types import Source

Put = Callable[[str, str | bytes], Path]
Told = Callable[[Iterable[Any]], list[str]]


def _source(where: Path | str) -> Source[Text]:
    """The source, which must be there."""
    found = pair_texts(str(where))
    assert found is not None
    return found


def _rows(*rows: object) -> str:
    """JSON lines."""
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _texts(where: Path | str) -> list[tuple[str, str]]:
    """Place and text of each; every text of a pair stands alone."""
    return [(text.where, *text.sentences) for text in _source(where).read()]  # type: ignore[misc] # one sentence each


def test_json_lines_of_pairs(put: Put) -> None:
    """The question, then passages under whatever key begins as such a key does, as texts or objects; no more."""
    rows = (
        {"id": "1", "query": "Who?", "positive": {"title": "T", "text": "He."}, "answers": ["x"], "source": "s"},
        {"question": "What?", "positive_ctxs": [{"text": "A."}, "B."], "hard_negative_ctxs": [{"text": "C."}]},
        {"query": "Why?", "negatives": ["D."], "positive": None},
    )
    assert _texts(put("pairs.jsonl", _rows(*rows))) == [
        ("pairs.jsonl:1", "Who?"),
        ("pairs.jsonl:1", "T He."),
        ("pairs.jsonl:2", "What?"),
        ("pairs.jsonl:2", "A."),
        ("pairs.jsonl:2", "B."),
        ("pairs.jsonl:2", "C."),
        ("pairs.jsonl:3", "Why?"),
        ("pairs.jsonl:3", "D."),
    ]


def test_questions_in_beirs_layout(put: Put) -> None:
    """The text of each, compressed or not."""
    content = _rows({"_id": "q1", "text": "Who?"}, {"_id": "q2", "text": "Où?"})
    expected = [("queries.jsonl.gz:1", "Who?"), ("queries.jsonl.gz:2", "Où?")]
    assert _texts(put("queries.jsonl.gz", gzip.compress(content.encode()))) == expected


def test_columns(put: Put) -> None:
    """All but ids under a header that names the question, else an id and a text."""
    table = put("a.tsv", "query-id\tquery\tpositive\n7\tWho?\tHe.\n8\tWhat?\tIt.\n")
    assert [text for _, text in _texts(table)] == ["Who?", "He.", "What?", "It."]
    assert _texts(put("topics.tsv", "7\tWho?\n8\tWhat?\n")) == [("topics.tsv:1", "Who?"), ("topics.tsv:2", "What?")]


def test_a_folder_of_pairs(put: Put) -> None:
    """All its files, in the order of their names; the files decide the digest."""
    put("pairs/b.jsonl", _rows({"query": "B?"}))
    folder = put("pairs/a.tsv", "1\tA?\n").parent
    put("pairs/README.md", "no pairs")
    assert _texts(folder) == [("a.tsv:1", "A?"), ("b.jsonl:1", "B?")]
    assert [path.name for path in _source(folder).files] == ["a.tsv", "b.jsonl"]


def test_a_split(put: Put) -> None:
    """Its questions, and the passages that answer them; nothing of other splits."""
    rows = [{"_id": f"d{at}", "title": "T" * (at == 1), "text": f"text {at}"} for at in range(4)]
    folder = put("set/corpus.jsonl", _rows(*rows)).parent
    put("set/queries.jsonl", _rows(*({"_id": f"q{at}", "text": f"question {at}"} for at in range(3))))
    put("set/qrels/train.tsv", "query-id\tcorpus-id\tscore\nq0\td1\t1\nq0\td2\t0\nq2\td3\t2\n")
    put("set/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td0\t1\n")
    found = _source(f"{folder}:train")
    assert list(found.read()) == [
        Text("queries.jsonl:1", ("question 0",)),
        Text("queries.jsonl:3", ("question 2",)),
        Text("corpus.jsonl:2", ("T", "text 1")),
        Text("corpus.jsonl:4", ("text 3",)),
    ]
    assert sorted(path.name for path in found.files) == ["corpus.jsonl", "queries.jsonl", "train.tsv"]
    with pytest.raises(UsageError, match=r"type a split of it, e\.g\. .*set:train \(it has: test, train\)"):
        pair_texts(str(folder))
    with pytest.raises(UsageError, match=r"found no qrels/dev\.tsv, there are: test, train"):
        pair_texts(f"{folder}:dev")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("en.jsonl", _rows({"id": "a", "lang": "en", "sentences": ["One."]})),
        ("en.txt", "query\tand more\n"),
        ("en.jsonl", "no JSON\n"),
    ],
)
def test_documents_are_left_to_others(put: Put, name: str, content: str) -> None:
    """A file or folder of documents, names that are none, and data of a hub."""
    path = put(f"documents/{name}", content)
    assert pair_texts(str(path)) is None
    assert pair_texts(str(path.parent)) is None
    assert pair_texts("mini") is None
    assert pair_texts("hf:some/data:config@main") is None


def test_what_is_refused(put: Put, told: Told) -> None:
    """Every fault with file and line."""
    path = put(
        "a.jsonl", _rows({"query": "Who?"}, {"query": 7}, {"query": "W", "positive": [{"title": "T"}]}, {"x": 1})
    )
    second, third, fourth = (line for line in told(_source(path).read()) if "a.jsonl" in line)
    assert "a.jsonl:2" in second
    assert '"query": 7' in second
    assert "a.jsonl:3" in third
    assert "expected a string, or an object with" in third
    assert "a.jsonl:4" in fourth
    (short,) = told(_source(put("b.tsv", "id\tquery\n1\tWho?\textra\n")).read())
    assert "found 3 columns" in short
    assert "expected 2 columns" in short
    (bare,) = told(_source(put("c.tsv", "Who is it?\n")).read())
    assert "expected a query id, a tab" in bare
