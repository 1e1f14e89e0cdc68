"""The LAReQA suite: one pool for all languages, what it asserts, its files, mini data."""

import json
from pathlib import Path

import pytest

from bench.core.errors import DataError, UsageError
from bench.data import mini
from bench.testing import fields
from bench.types import DataRequest
from suites import lareqa
from tests.conftest import present
from tests.suites.conftest import Checked

LANGUAGES = ["ar", "de", "el", "en", "es", "hi", "ru", "th", "tr", "vi", "zh"]


def lay_out(root: Path, *, without: str = "") -> Path:
    folder = root / "lareqa" / "xquad-r"
    folder.mkdir(parents=True)
    for code in LANGUAGES:
        qas = [{"id": "q1", "question": f"{code}?", "answers": [{"answer_start": 4, "text": "x"}]}]
        paragraph = {"context": f"{code}. So.", "sentence_breaks": [[0, 3], [4, 7]], "qas": qas}
        if code != without:
            (folder / f"{code}.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
    return root


def test_the_table_and_the_files() -> None:
    """Eleven languages and their candidates, as XTREME-R's loader counts them; every file once, with its checksum."""
    assert list(lareqa.LANGUAGES) == list(lareqa.SUITE.task_names("official")) == LANGUAGES
    assert sum(lareqa.LANGUAGES.values()) == lareqa.CANDIDATES == 13_014
    assert lareqa.QUESTIONS * len(lareqa.LANGUAGES) == 13_090
    assert [release.path for release in lareqa.RELEASES.values()] == [
        f"lareqa/xquad-r/{code}.json" for code in LANGUAGES
    ]
    assert all(len(bytes.fromhex(release.sha256)) == 32 and release.urls for release in lareqa.RELEASES.values())


def test_a_task_and_the_pool_of_all(tmp_path: Path) -> None:
    """The questions of one language over the pool of all, which is read from the same files in the same order."""
    task = lareqa.SUITE.load("el", DataRequest("official", lay_out(tmp_path), offline=True))
    (subset,) = task.subsets
    assert (task.id, task.data, subset.corpus.id, subset.name) == ("lareqa/el", "official", "lareqa", "")
    assert (subset.language, subset.corpus.language, subset.corpus.documents) == ("el", "", 13_014)
    assert dict(subset.counts) == {"queries": 1_190, "qrels": 13_090}
    assert [(item.id, item.text) for item in subset.queries.read()] == [("q1_el", "el?")]
    pool = list(subset.corpus.items.read())
    assert [item.id for item in pool] == [f"{code}_1_{at}" for code in LANGUAGES for at in (0, 1)]
    assert (pool[5].text, pool[5].title, pool[5].language) == ("So.el. So.", "", "el")
    assert [row.document for row in present(subset.qrels).read()] == [f"{code}_1_1" for code in LANGUAGES]
    request = DataRequest("official", tmp_path)
    pools = [lareqa.SUITE.load(code, request).subsets[0].corpus for code in LANGUAGES]
    assert len({(pool.id, pool.items.reader, pool.items.files) for pool in pools}) == 1


def test_bare_sentences_are_a_suite_of_their_own(tmp_path: Path) -> None:
    """The same ids, questions and answers; the texts of candidates differ, and no number passes for the benchmark's."""
    request = DataRequest("official", lay_out(tmp_path))
    bare, contextual = (benchmark.load("el", request).subsets[0] for benchmark in (lareqa.SENTENCES, lareqa.BENCHMARK))
    pools = [list(subset.corpus.items.read()) for subset in (bare, contextual)]
    assert [item.text for item in pools[0][4:6]] == ["el.", "So."]
    assert [item.id for item in pools[0]] == [item.id for item in pools[1]]
    assert (bare.queries.reader, present(bare.qrels).reader) == (
        contextual.queries.reader,
        present(contextual.qrels).reader,
    )
    assert (bare.corpus.id, bare.corpus.documents, contextual.corpus.id) == ("lareqa-sentences", 13_014, "lareqa")
    assert bare.corpus.items.reader != contextual.corpus.items.reader
    assert lareqa.SENTENCES.suite().proxy_for == "lareqa"


def test_published_counts_are_asserted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: Checked) -> None:
    """Another pool, other questions or other answers than the published ones are refused."""
    request = DataRequest("official", lay_out(tmp_path))
    with pytest.raises(DataError, check=fields(found="22 documents", expected="13,014")):
        checked(lareqa.SUITE.load("en", request).subsets[0])
    monkeypatch.setattr(lareqa, "CANDIDATES", 22)
    with pytest.raises(DataError, check=fields(found="1 judged queries", expected="1,190")):
        checked(lareqa.SUITE.load("en", request).subsets[0])
    monkeypatch.setattr(lareqa, "QUESTIONS", 1)
    metadata = checked(lareqa.SUITE.load("en", request).subsets[0])
    assert (metadata["queries"], metadata["judgements"], metadata["grades"]) == (1, 11, {"1": 11})


def test_missing_files_get_a_sentence(tmp_path: Path) -> None:
    """Whichever language is asked for, the file that the pool lacks is named, with its source and checksum."""
    root = lay_out(tmp_path, without="th")
    place = f"{root}/lareqa/xquad-r/th.json"
    hint = "/lareqa/raw/master/xquad-r/th.json and put it there as it is (sha256 c3a"
    with pytest.raises(UsageError, check=fields(where=place, found="no such file", expected="needs all 11", hint=hint)):
        lareqa.SUITE.load("en", DataRequest("official", root))


def test_mini_data(checked: Checked) -> None:
    """Six languages, one pool, as many answers for each question; candidates are joined as the official ones."""
    names = lareqa.SUITE.task_names("mini")
    assert names == mini.SENTENCE_LANGUAGES
    assert set(names) < set(LANGUAGES)
    subsets = [lareqa.SUITE.load(name, DataRequest("mini")).subsets[0] for name in names]
    assert len({(subset.corpus.id, subset.corpus.items.reader) for subset in subsets}) == 1
    raw = next(mini.sentence_answers("en").corpus.read())
    item = next(subsets[0].corpus.items.read())
    assert (item.id, item.text, item.title) == (raw.id, raw.title + raw.text, "")
    metadata = checked(subsets[-1])
    assert metadata["judgements"] == 6 * int(str(metadata["queries"])) > 0
