"""The XOR-Retrieve suite: where it looks, what it asserts, which answers count, mini data, the released questions."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench.core.errors import DataError, DataFaultsError, UsageError
from bench.core.workspace import Parts, Workspace
from bench.data.fetching import records
from bench.data.fetching.records import Record
from bench.pipeline.stages.validate import Validate
from bench.store.input_hashes import InputHashes
from bench.store.store import Store
from bench.testing import fields
from bench.types import Answers, Corpus, DataRequest, Item, Json, Source, Subset
from suites import xor_retrieve
from tests.conftest import present, released
from tests.suites.conftest import Checked, jsonl

PASSAGES = 'id\ttext\ttitle\n1\t"The ""Rose City"" is Portland."\tPortland\n2\tMount Hood.\tOregon\n'
ROWS = [
    ("7", "te", "ఒరెగాన్?", ["Portland", "Portland"]),
    ("8", "te", "అవునా?", ["yes"]),
    ("9", " ar", "ماذا؟", ["no", "Hood"]),
]


def lay_out(root: Path, split: str = "dev", *, passages: bool = True) -> Path:
    folder = root / "xor-retrieve"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": name, "question": text, "answers": answers, "lang": language, "split": split}
        for name, language, text, answers in ROWS
    ]
    (root / xor_retrieve.SPLITS[split].path).write_text(jsonl(*rows), encoding="utf-8")
    if passages:
        (folder / "enwiki_20190201_w100.tsv").write_text(PASSAGES, encoding="utf-8")
    return root


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xor_retrieve, "ROWS", {"dev": 3, "train": 3})
    monkeypatch.setitem(xor_retrieve.LANGUAGES, "te", xor_retrieve.Language(2, 1, 1))
    monkeypatch.setitem(xor_retrieve.LANGUAGES, "ar", xor_retrieve.Language(1, 1, 1))


def validated(corpus: Corpus, folder: Path) -> Mapping[str, Json]:
    """Read all passages as a run does; return what the stage says of itself."""
    (folder / "out").mkdir()
    stage = Validate.corpus_of(corpus, InputHashes(Store(folder / "store")), {})
    return stage.run(Workspace(folder / "out", Parts(folder / "parts")), {})


def answers_of(subset: Subset) -> list[Answers]:
    return list(present(subset.answers).read())


def test_the_table_and_the_files() -> None:
    """2,110 dev questions, 1,928 of them counted, in the paper's languages."""
    assert xor_retrieve.SUITE.task_names("official") == xor_retrieve.SUITE.task_names("mini")
    assert " ".join(xor_retrieve.LANGUAGES) == "ar bn fi ja ko ru te"
    languages = xor_retrieve.LANGUAGES.values()
    assert [language.counted for language in languages] == [309, 304, 314, 241, 285, 237, 238]
    assert (sum(language.dev for language in languages), sum(language.counted for language in languages)) == (
        2_110,
        1_928,
    )
    assert all(language.counted <= language.dev for language in languages)
    assert sum(language.train for language in languages) < xor_retrieve.ROWS["train"] == 15_250
    # Questions with their checksums, passages without.
    dev, train, wikipedia = xor_retrieve.BENCHMARK.releases
    assert dev.urls == ("https://nlp.cs.washington.edu/xorqa/XORQA_site/data/xor_dev_retrieve_eng_span_v1_1.jsonl",)
    assert (dev.size, train.size) == (426_987, 2_912_848)
    assert wikipedia.urls[0].endswith("/XORQA_site/data/models/enwiki_20190201_w100.tsv")
    assert not wikipedia.sha256


@pytest.mark.usefixtures("small")
def test_a_release(tmp_path: Path, checked: Checked) -> None:
    """Counted questions alone are judged."""
    task = xor_retrieve.SUITE.load("te", DataRequest("official", lay_out(tmp_path), offline=True))
    assert (task.id, task.data, task.release) == ("xor-retrieve/te", "official", "v1.1")
    (subset,) = task.subsets
    assert [item.text for item in subset.queries.read()] == ["ఒరెగాన్?", "అవునా?"]
    assert answers_of(subset) == [Answers("7", ("Portland", "Portland"))]
    assert (subset.qrels, subset.language, subset.corpus.language) == (None, "te", "en")
    assert (subset.corpus.id, subset.corpus.documents, subset.corpus.texts) == (
        "xor-retrieve/enwiki-20190201",
        None,
        None,
    )
    assert next(iter(subset.corpus.items.read())) == Item("1", 'The "Rose City" is Portland.', "Portland")
    metadata = checked(subset)
    assert (metadata["queries"], metadata["unjudged_queries"], metadata["answers"]) == (1, 1, 2)
    arabic = xor_retrieve.SUITE.load("ar", DataRequest("official", tmp_path)).subsets[0]
    assert answers_of(arabic) == [Answers("9", ("Hood",))]
    assert arabic.corpus.items.files == subset.corpus.items.files
    assert arabic.corpus.items.reader == subset.corpus.items.reader


@pytest.mark.usefixtures("small")
def test_passages_are_held_to_the_count_of_their_first_fetch(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nobody published one: put there by hand they are marked; fetched they are counted, one row less is refused."""
    request = DataRequest("official", lay_out(tmp_path))
    name, mark = "xor-retrieve/enwiki_20190201_w100.tsv", "passages put there by hand, of which nobody published"
    path = tmp_path / name

    def passages() -> Corpus:
        return xor_retrieve.SUITE.load("te", request).subsets[0].corpus

    assert passages().unverified.startswith(mark)
    assert passages().documents is None
    assert validated(passages(), tmp_path_factory.mktemp("stage"))["unverified"] == passages().unverified
    for content in (PASSAGES, PASSAGES.partition("\n")[2], PASSAGES.replace("\n", "\r\n") + " \n\n"):
        path.write_text(content, encoding="utf-8", newline="")
        now = records.digests(path)
        records.remember(
            tmp_path, Record(name, now.size, now.sha256, now.md5, "", "", records.stamp(path), lines=now.lines)
        )
        assert (passages().documents, passages().unverified) == (2, "")
        assert validated(passages(), tmp_path_factory.mktemp("stage")) == {"documents": 2, "characters": 53, "empty": 0}
    path.write_text("".join(PASSAGES.splitlines(keepends=True)[:-1]), encoding="utf-8")
    with pytest.raises(DataError, check=fields(found="1 documents", expected="2")):
        validated(passages(), tmp_path_factory.mktemp("stage"))


@pytest.mark.usefixtures("small")
def test_questions_to_train_on(tmp_path: Path) -> None:
    """The training file is read by the same rules, also where only it is there."""
    subset = xor_retrieve.subset("ar", "train", DataRequest("official", lay_out(tmp_path, "train")))
    assert [(item.id, item.language) for item in subset.queries.read()] == [("9", "ar")]
    assert dict(subset.counts) == {"queries": 1}
    (tmp_path / xor_retrieve.SPLITS["train"].path).rename(tmp_path / xor_retrieve.SPLITS["dev"].path)
    with pytest.raises(DataFaultsError, match=r"found a question of split 'train', expected one of 'dev'"):
        list(xor_retrieve.subset("ar", "dev", DataRequest("official", tmp_path)).queries.read())


def test_published_counts_and_missing_files(tmp_path: Path, checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with other rows is refused, and so is a language with another number of counted questions."""
    request = DataRequest("official", lay_out(tmp_path))
    with pytest.raises(DataError, check=fields(found="3 questions", expected="2,110")):
        checked(xor_retrieve.SUITE.load("te", request).subsets[0])
    with monkeypatch.context() as patch:
        patch.setitem(xor_retrieve.ROWS, "dev", 3)
        with pytest.raises(DataError, check=fields(found="1 judged queries", expected="238")):
            checked(xor_retrieve.SUITE.load("te", request).subsets[0])
    # Without questions nothing is loaded; without passages the questions can be read, and a search says why not.
    (tmp_path / "xor-retrieve" / "enwiki_20190201_w100.tsv").unlink()
    subset = xor_retrieve.SUITE.load("te", DataRequest("official", tmp_path)).subsets[0]
    place = tmp_path / "xor-retrieve"
    hint = "the suites xor-mlqa-en and xor-afriqa-en ask the same kind of question over smaller English pools"
    with pytest.raises(UsageError, check=fields(where=f"{place}/enwiki_20190201_w100.tsv", hint=hint)):
        list(subset.corpus.items.read())
    (place / "xor_dev_retrieve_eng_span_v1_1.jsonl").unlink()
    hint = f"fetch {xor_retrieve.URL}/xor_dev_retrieve_eng_span_v1_1.jsonl (426,987 bytes, sha256 cfe569e4c6d3539c"
    with pytest.raises(UsageError, check=fields(expected="the 2,110 questions of dev in 7 languages", hint=hint)):
        xor_retrieve.SUITE.load("te", DataRequest("official", tmp_path))


@pytest.mark.parametrize("name", ["ar", "te"])
def test_mini_data(name: str) -> None:
    """Every question is answered in an English passage as the answer is written, and does not say it itself."""
    (subset,) = xor_retrieve.SUITE.load(name, DataRequest("mini")).subsets
    texts = [item.text for item in subset.corpus.items.read()]
    questions = {item.id: item for item in subset.queries.read()}
    for row in answers_of(subset):
        assert any(answer in text for answer in row.strings for text in texts)
        assert not any(answer in questions[row.query].text for answer in row.strings)
    assert {item.language for item in questions.values()} == {name}
    korean = xor_retrieve.SUITE.load("ko", DataRequest("mini")).subsets[0]
    assert korean.corpus.items.reader == subset.corpus.items.reader
    assert korean.queries.reader != subset.queries.reader


@pytest.mark.parametrize(
    "split", [pytest.param(name, marks=() if name == "dev" else pytest.mark.slow) for name in xor_retrieve.SPLITS]
)
def test_the_released_questions(split: str, checked: Checked) -> None:
    """Rows and counted questions of every language are those of the table."""
    root = released(xor_retrieve.SPLITS[split].path)
    corpus = Corpus("one", Source("one", "test/1", (), lambda: iter([Item("1", "a passage")])))
    all_ids: set[str] = set()
    for name, language in xor_retrieve.LANGUAGES.items():
        subset = replace(xor_retrieve.subset(name, split, DataRequest("official", root)), corpus=corpus)
        metadata = checked(subset)
        assert metadata["queries"] == (language.counted if split == "dev" else language.train)
        question_ids = {item.id for item in subset.queries.read()}
        assert not question_ids & all_ids
        all_ids |= question_ids
        if split == "dev":
            assert len(question_ids) == language.dev
    assert len(all_ids) == xor_retrieve.ROWS[split]
