"""The suites nq and triviaqa: DPR's questions over DPR's Wikipedia, shared and unchanged."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from bench.core.errors import DataError, UsageError
from bench.data.fetching.local_files import asked_tasks, local_files
from bench.testing import fields
from bench.types import Answers, DataRequest, Item, Suite
from suites import dpr, mkqa
from tests.conftest import WriteFile, present
from tests.suites.conftest import Checked

QUESTIONS = "who sang it\t['Dave Edmunds', 'D. Edmunds']\nwho else\t[\"Nobody's\"]\n"
PASSAGES = "id\ttext\ttitle\n1\t“Hear You” – DAVE EDMUNDS\tThe Song\n"


@pytest.fixture
def root(tmp_path: Path, write: WriteFile) -> Path:
    write("nq/nq-test.qa.csv", QUESTIONS)
    write("nq/nq-dev.qa.csv", "dev question\t['x']\n")
    write("triviaqa/trivia-test.qa.csv.gz", gzip.compress(QUESTIONS.encode()))
    write("dpr-w100/psgs_w100.tsv", PASSAGES)
    return tmp_path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dpr, "PASSAGES", 1)
    for name, question_set in dpr.SETS.items():
        monkeypatch.setitem(dpr.SETS, name, replace(question_set, queries={"test": 2, "dev": 1}))


def by_name(name: str) -> Suite:
    (suite,) = (suite for suite in dpr.SUITES if suite.name == name)
    return suite


def test_the_counts_are_those_of_dprs_table() -> None:
    """Test and dev of both; each suite has one task."""
    assert [(question_set.name, dict(question_set.queries)) for question_set in dpr.SETS.values()] == [
        ("nq", {"test": 3_610, "dev": 8_757}),
        ("triviaqa", {"test": 11_313, "dev": 8_837}),
    ]
    assert [suite.name for suite in dpr.SUITES] == ["nq", "triviaqa"]
    assert all(suite.task_names("official") == suite.task_names("mini") == ("test",) for suite in dpr.SUITES)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["nq", "triviaqa"])
def test_a_release(root: Path, name: str, checked: Checked) -> None:
    """Texts as released, answers as listed."""
    task = by_name(name).load("test", DataRequest("official", root, offline=True))
    assert (task.id, task.data) == (f"{name}/test", "official")
    (subset,) = task.subsets
    assert list(subset.queries.read()) == [Item("0", "who sang it"), Item("1", "who else")]
    assert list(present(subset.answers).read()) == [
        Answers("0", ("Dave Edmunds", "D. Edmunds")),
        Answers("1", ("Nobody's",)),
    ]
    assert list(subset.corpus.items.read()) == [Item("1", "“Hear You” – DAVE EDMUNDS", "The Song")]
    assert (subset.corpus.id, subset.corpus.texts, subset.language) == ("dpr-w100", None, "en")
    metadata = checked(subset)
    assert (metadata["queries"], metadata["answers"]) == (2, 3)


def test_published_counts_and_missing_files(root: Path, checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of passages and questions are asserted; questions are missed in their folder, passages when read."""
    request = DataRequest("official", root)
    with pytest.raises(DataError, check=fields(found="1 documents", expected="21,015,324")):
        checked(by_name("nq").load("test", request).subsets[0])
    monkeypatch.setattr(dpr, "PASSAGES", 1)
    for name, expected in (("nq", "3,610"), ("triviaqa", "11,313")):
        with pytest.raises(DataError, match=rf"found 2 judged queries, expected {expected}"):
            checked(by_name(name).load("test", request).subsets[0])
    (root / "triviaqa" / "trivia-test.qa.csv.gz").unlink()
    place, hint = f"{root}/triviaqa/trivia-test.qa.csv.gz", f"fetch {dpr.URL}/trivia-test.qa.csv.gz and put it there"
    with pytest.raises(UsageError, check=fields(where=place, expected="the 11,313 test questions", hint=hint)):
        by_name("triviaqa").load("test", DataRequest("official", root))
    (root / "triviaqa" / "trivia-test.qa.csv").write_text(QUESTIONS)
    (root / "dpr-w100" / "psgs_w100.tsv").unlink()
    subset = by_name("triviaqa").load("test", DataRequest("official", root)).subsets[0]
    assert len(list(subset.queries.read())) == 2
    with pytest.raises(UsageError, match=r"psgs_w100.tsv.gz: found no such file"):
        list(subset.corpus.items.read())


def test_what_is_encoded_once(root: Path) -> None:
    """Both suites search the same passages under one key; MKQA searches prepared ones, and looks into the same."""
    (root / "mkqa").mkdir()
    (root / "mkqa" / "mkqa.jsonl.gz").write_bytes(b"")
    request = DataRequest("official", root)
    first, second = (by_name(name).load("test", request).subsets[0].corpus for name in ("nq", "triviaqa"))
    prepared = mkqa.SUITE.load("sv", request).subsets[0].corpus
    assert (first.items.reader, first.items.files, first.id) == (second.items.reader, second.items.files, second.id)
    assert prepared.items.files == first.items.files
    assert prepared.items.reader != first.items.reader
    assert present(prepared.texts).reader == first.items.reader


@pytest.mark.usefixtures("small")
def test_questions_to_choose_settings_by(root: Path, checked: Checked) -> None:
    """Dev questions of the release, with an id of their own; none in the embedded world."""
    suite = by_name("nq")
    assert suite.dev is not None
    assert suite.dev_names is not None
    task = suite.dev("test", DataRequest("official", root))
    assert task.id == "nq/test@dev"
    assert [item.text for item in task.subsets[0].queries.read()] == ["dev question"]
    assert checked(task.subsets[0])["queries"] == 1
    assert (suite.dev_names("official"), suite.dev_names("mini")) == (("test",), ())
    with pytest.raises(UsageError, match=r"no task of nq 'test'"):
        suite.dev("test", DataRequest("mini"))


def test_mini_data() -> None:
    """English questions of the embedded world, each answered as it is written; the two suites have two pools."""
    subsets = [by_name(name).load("test", DataRequest("mini")).subsets[0] for name in ("nq", "triviaqa")]
    pools = [[item.text for item in subset.corpus.items.read()] for subset in subsets]
    for subset, texts in zip(subsets, pools, strict=True):
        assert all(
            any(answer in text for answer in row.strings for text in texts) for row in present(subset.answers).read()
        )
    assert subsets[0].corpus.items.reader != subsets[1].corpus.items.reader
    assert pools[0] != pools[1]


@pytest.mark.parametrize("name", ["nq", "triviaqa"])
def test_where_the_files_come_from(name: str) -> None:
    """DPR's places, without checksums but for the passages and the pairs; those come only where they are named."""
    releases = present(by_name(name).releases)()
    questions, (wikipedia, *pairs) = releases[:2], releases[2:]
    assert [release.urls[0].removeprefix(dpr.URL) for release in questions] == [
        f"/{file}" for file in dpr.SETS[name].files.values()
    ]
    assert not any(release.sha256 or release.md5 for release in questions)
    assert wikipedia == dpr.RELEASE
    assert [release.path for release in pairs] == [
        f"nq/biencoder-nq-{split}.json.gz" for split in ("train", "dev") if name == "nq"
    ]
    suite, here = by_name(name), (Path("nowhere"),)
    assert [file.release for file in local_files(suite, here)] == [*questions, wikipedia]
    pairs = [*pairs]
    if pairs:
        named = local_files(suite, here, asked_tasks(suite, ("pairs", "test")))
        assert [file.release for file in named] == [*releases]
        assert [file.release for file in local_files(suite, here, asked_tasks(suite, ("pairs",)))] == pairs
        with pytest.raises(UsageError, match="no task of nq 'pear'"):
            asked_tasks(suite, ("pear",))
