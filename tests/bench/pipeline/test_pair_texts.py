"""Training pairs and questions as texts: which files are taken for them, what of them is read, and what is refused."""

import gzip
import json
from pathlib import Path

import pytest

from bench.core.errors import UsageError
from bench.data.contamination.search import Text
from bench.pipeline.audit import pair_texts
from bench.types import Item, PairFormat, Source, TrainingPair
from tests.conftest import ReadErrors, WriteFile, present


def _source(place: Path | str) -> Source[Text]:
    return present(pair_texts(str(place)))


def _rows(*rows: object) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _texts(place: Path | str) -> list[tuple[str, str]]:
    """Place and text of each; every text of a pair stands alone."""
    return [(text.where, *text.sentences) for text in _source(place).read()]  # type: ignore[misc] # one sentence each


def test_json_lines_of_pairs(write: WriteFile) -> None:
    """What a fine-tuning reads: the question, then its passages, each a text of its own."""
    rows = (
        {"id": "1", "query": "Who?", "positive": {"title": "T", "text": "He."}, "answers": ["x"], "source": "s"},
        {"question": "What?", "positive_ctxs": [{"text": "A."}, "B."], "hard_negative_ctxs": [{"text": "C."}]},
        {"query": "Why?", "pos": ["E."], "neg": ["D."]},
    )
    texts = list(_source(write("pairs.jsonl", _rows(*rows))).read())
    assert texts == [
        Text("pairs.jsonl:1", ("Who?",)),
        Text("pairs.jsonl:1", ("T", "He.")),
        *(Text("pairs.jsonl:2", (text,)) for text in ("What?", "A.", "B.", "C.")),
        *(Text("pairs.jsonl:3", (text,)) for text in ("Why?", "E.", "D.")),
    ]


@pytest.mark.parametrize("name", ["nq.json", "nq.json.gz"])
def test_arrays_of_dpr(write: WriteFile, name: str) -> None:
    """By the record's number; the reader's name is recorded in stores."""
    passages = {"positive_ctxs": [{"title": "T", "text": "yes"}], "hard_negative_ctxs": [{"text": "no"}]}
    content = json.dumps([{"question": "who asked", "answers": [], **passages}]).encode()
    source = _source(write(name, gzip.compress(content) if name.endswith(".gz") else content))
    assert [(text.where, text.sentences) for text in source.read()] == [
        (f"{name}:1", ("who asked",)),
        (f"{name}:1", ("T", "yes")),
        (f"{name}:1", ("no",)),
    ]
    assert source.reader.startswith("released-pair-texts/1:json-pairs/1:")


@pytest.mark.parametrize("version_first", [False, True])
def test_the_form_of_squad(write: WriteFile, version_first: bool) -> None:
    """Whatever key comes first."""
    context = "Ada was born in 1815. She wrote."
    row = {
        "id": "a",
        "question": "When?",
        "answers": [{"text": "1815", "answer_start": context.index("1815")}],
    }
    data = {"data": [{"title": "Ada", "paragraphs": [{"context": context, "qas": [row]}]}]}
    content = {"version": "1.1", **data} if version_first else {**data, "version": "1.1"}
    question, positive = _source(write("train-v1.1.json", json.dumps(content))).read()
    assert question.sentences == ("When?",)
    assert "".join(positive.sentences).endswith(context)


def test_a_form_that_a_suite_brings(write: WriteFile) -> None:
    """It is recognised by ending and first line, and read as the suite says."""

    def pairs(path: Path) -> Source[TrainingPair]:
        read = TrainingPair(Item("1", "asked"), (Item("2", "answer"),))
        return Source(path.name, "mine/1", (path,), lambda: iter([read]))

    form, path = PairFormat(".jsonl", '"mine"', pairs), write("a.jsonl.gz", gzip.compress(b'{"mine": 1}\n'))
    source = present(pair_texts(str(path), [form]))
    assert [text.sentences for text in source.read()] == [("asked",), ("answer",)]
    assert source.reader == "released-pair-texts/1:mine/1"
    assert pair_texts(str(path)) is None
    assert pair_texts(str(write("b.tsv", 'a\t"mine"\n')), [form]) != source


def test_questions_and_columns(write: WriteFile) -> None:
    """Each question in BEIR's layout, every column of a table but its header; stores record the reader's name."""
    content = _rows({"_id": "q1", "text": "Who?"}, {"_id": "q2", "text": "Où?"})
    expected = [("queries.jsonl.gz:1", "Who?"), ("queries.jsonl.gz:2", "Où?")]
    path = write("queries.jsonl.gz", gzip.compress(content.encode()))
    assert (_texts(path), _source(path).reader) == (expected, "pair-texts/1")
    table = write("a.tsv", "query\tpositive\n7 up?\tHe.\n")
    assert [text for _, text in _texts(table)] == ["7 up?", "He."]
    assert [text for _, text in _texts(write("topics.tsv", "7\tWho?\n8\tWhat?\n"))] == ["7", "Who?", "8", "What?"]


def test_a_folder_of_pairs(write: WriteFile) -> None:
    """All its files, in the order of their names; the files decide the digest."""
    write("pairs/b.jsonl", _rows({"query": "B?"}))
    folder = write("pairs/a.tsv", "A?\tYes.\n").parent
    write("pairs/README.md", "no pairs")
    assert _texts(folder) == [("a.tsv:1", "A?"), ("a.tsv:1", "Yes."), ("b.jsonl:1", "B?")]
    assert [path.name for path in _source(folder).files] == ["a.tsv", "b.jsonl"]


def test_a_split(write: WriteFile) -> None:
    """Its questions with the passages judged for them; nothing of other splits."""
    rows = [{"_id": f"d{at}", "title": "T" * (at == 1), "text": f"text {at}"} for at in range(4)]
    folder = write("set/corpus.jsonl", _rows(*rows)).parent
    write("set/queries.jsonl", _rows(*({"_id": f"q{at}", "text": f"question {at}"} for at in range(3))))
    write("set/qrels/train.tsv", "query-id\tcorpus-id\tscore\nq0\td1\t1\nq0\td2\t0\nq2\td3\t2\n")
    write("set/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td0\t1\n")
    source = _source(f"{folder}:train")
    assert [text.sentences for text in source.read()] == [
        ("question 0",),
        ("T", "text 1"),
        ("text 2",),
        ("question 2",),
        ("text 3",),
    ]
    assert sorted(path.name for path in source.files) == ["corpus.jsonl", "queries.jsonl", "train.tsv"]
    with pytest.raises(UsageError, match=r"type a split of it, e\.g\. .*set:train \(it has: test, train\)"):
        pair_texts(str(folder))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("en.jsonl", _rows({"id": "a", "lang": "en", "sentences": ["One."]})),
        ("en.txt", "query\tand more\n"),
        ("en.jsonl", "no JSON\n"),
    ],
)
def test_documents_are_left_to_others(write: WriteFile, name: str, content: str) -> None:
    """A file or folder of documents, names that are none, and data of a hub."""
    path = write(f"documents/{name}", content)
    assert pair_texts(str(path)) is None
    assert pair_texts(str(path.parent)) is None
    assert pair_texts("mini") is None
    assert pair_texts("hf:some/data:config@main") is None


def test_what_is_refused(write: WriteFile, errors: ReadErrors) -> None:
    """Every fault with file and line."""
    second, third = errors(_source(write("a.jsonl", _rows({"query": "Who?"}, {"query": 7}, {"x": 1}))).read())
    assert "a.jsonl:2" in second
    assert '"query": 7' in second
    assert "a.jsonl:3" in third
    (bare,) = errors(_source(write("c.tsv", "Who is it?\n")).read())
    assert "expected at least 2 columns" in bare
