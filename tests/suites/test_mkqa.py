"""The MKQA suite: prepared texts over DPR's Wikipedia, the filter, what it asserts, mini data."""

import gzip
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.core.errors import DataError, UsageError
from bench.evaluation.measures.answers import first_hit
from bench.testing import fields
from bench.types import Answers, DataRequest, Item
from suites import dpr, mkqa
from tests.conftest import WriteFile, present
from tests.suites.conftest import Checked, jsonl


def row(number: int, *answers: Mapping[str, object]) -> dict[str, object]:
    questions = {name: f"“Q{number}” – {name}?" for name in mkqa.LANGUAGES}
    unanswered = [{"type": "entity", "text": "no English", "aliases": []}]
    accepted = {name: list(answers) if name == "en" else unanswered for name in mkqa.LANGUAGES}
    return {"example_id": number, "query": f"q{number}", "queries": questions, "answers": accepted}


ROWS = [
    row(-5, {"type": "entity", "text": "Dave Edmunds", "aliases": ["D. Edmunds"], "entity": "Q1"}),
    row(6, {"type": "entity", "text": "Köln", "aliases": []}, {"type": "unanswerable", "text": None}),
    row(7, {"type": "unanswerable", "text": None}, {"type": "number", "text": "7"}),
]
PASSAGES = "1\t“Hear You” – DAVE EDMUNDS\tThe Song\n2\tSeven dwarfs\tİstanbul\n"


@pytest.fixture
def root(tmp_path: Path, write: WriteFile) -> Path:
    write("mkqa/mkqa.jsonl.gz", gzip.compress(jsonl(*ROWS).encode()))
    write("dpr-w100/psgs_w100.tsv.gz", gzip.compress(f"id\ttext\ttitle\n{PASSAGES}".encode()))
    return tmp_path


def test_the_languages_and_the_files() -> None:
    """26, English among them, ten of the embedded world; the passages with the published md5."""
    from bench.data import mini

    assert len(set(mkqa.SUITE.task_names("official"))) == 26
    assert set(mkqa.SUITE.task_names("mini")) == set(mkqa.LANGUAGES) & set(mini.LANGUAGES)

    questions, wikipedia = mkqa.BENCHMARK.releases
    assert questions.path == "mkqa/mkqa.jsonl.gz"
    assert (wikipedia.path, wikipedia.md5) == ("dpr-w100/psgs_w100.tsv.gz", "612fe66e0b6b41ee28f806140226c563")


def test_a_release(root: Path, checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions and passages are lower-cased and normalised; answers are looked for in the texts as released."""
    monkeypatch.setattr(mkqa, "QUERIES", 2)
    monkeypatch.setattr(dpr, "PASSAGES", 2)
    task = mkqa.SUITE.load("zh_cn", DataRequest("official", root, offline=True))
    assert (task.id, task.data) == ("mkqa/zh_cn", "official")
    (subset,) = task.subsets
    assert list(subset.queries.read()) == [
        Item("-5", '"q-5" - zh_cn?', language="zh"),
        Item("7", '"q7" - zh_cn?', language="zh"),
    ]
    assert list(present(subset.answers).read()) == [Answers("-5", ("D. Edmunds", "Dave Edmunds")), Answers("7", ("7",))]
    assert list(subset.corpus.items.read()) == [
        Item("1", '"hear you" - dave edmunds', "the song"),
        Item("2", "seven dwarfs", "i\u0307stanbul"),
    ]
    assert [item.text for item in present(subset.corpus.texts).read()] == ["“Hear You” – DAVE EDMUNDS", "Seven dwarfs"]
    assert (subset.language, subset.corpus.language, subset.qrels) == ("zh", "en", None)
    metadata = checked(subset)
    assert (metadata["queries"], metadata["unjudged_queries"], metadata["answers"]) == (2, 0, 3)
    swedish = mkqa.SUITE.load("sv", DataRequest("official", root)).subsets[0]
    assert swedish.queries.reader != subset.queries.reader
    assert (present(swedish.answers).reader, swedish.corpus.items.reader) == (
        present(subset.answers).reader,
        subset.corpus.items.reader,
    )


def test_published_counts_and_missing_files(root: Path, checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of passages and questions are asserted; without questions nothing is loaded."""
    request = DataRequest("official", root)
    with pytest.raises(DataError, check=fields(found="2 documents", expected="21,015,324")):
        checked(mkqa.SUITE.load("sv", request).subsets[0])
    with monkeypatch.context() as patch:
        patch.setattr(dpr, "PASSAGES", 2)
        with pytest.raises(DataError, check=fields(found="2 judged queries", expected="6,619")):
            checked(mkqa.SUITE.load("sv", request).subsets[0])
    # Without passages the questions can be read, and a search says why not.
    (root / "dpr-w100" / "psgs_w100.tsv.gz").unlink()
    subset = mkqa.SUITE.load("sv", DataRequest("official", root)).subsets[0]
    assert len(list(subset.queries.read())) == 2
    for source in (subset.corpus.items, subset.corpus.texts):
        assert source is not None
        with pytest.raises(
            UsageError, check=fields(where="psgs_w100.tsv.gz", found="no such file", expected="the 21,015,324 passages")
        ):
            list(source.read())
    (root / "mkqa" / "mkqa.jsonl.gz").unlink()
    place, hint = f"{root}/mkqa/mkqa.jsonl.gz", f"fetch {mkqa.URLS[0]} and put it there as it is"
    with pytest.raises(UsageError, check=fields(where=place, expected="the 10,000 questions of MKQA in 26", hint=hint)):
        mkqa.SUITE.load("sv", DataRequest("official", root))


@pytest.mark.parametrize("name", ["en", "th"])
def test_mini_data(name: str) -> None:
    """Prepared as the real texts are; every question is answered in an original text."""
    (subset,) = mkqa.SUITE.load(name, DataRequest("mini")).subsets
    originals, searched = list(present(subset.corpus.texts).read()), list(subset.corpus.items.read())
    assert [item.id for item in originals] == [item.id for item in searched]
    assert all(item.text == item.text.lower() for item in searched)
    assert any(item.text != item.text.lower() for item in originals)
    for answer in list(present(subset.answers).read())[:5]:
        assert first_hit(answer.strings, (item.text for item in originals))
    assert {item.language for item in subset.queries.read()} == {name}
