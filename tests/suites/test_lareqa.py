"""The LAReQA suite: one pool for all languages, what it asserts, its files, mini data."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench import mini
from bench.errors import DataError, UsageError
from bench.scoring.aggregate import macro
from bench.types import DataRequest, Json, Leg
from suites import lareqa

Checked = Callable[[Leg], Mapping[str, Json]]

LANGUAGES = ["ar", "de", "el", "en", "es", "hi", "ru", "th", "tr", "vi", "zh"]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a download cache of our own, with nothing in it."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def lay_out(root: Path, *, without: str = "") -> Path:
    """Write a tiny release: two sentences and one question in each language."""
    folder = root / "lareqa" / "xquad-r"
    folder.mkdir(parents=True)
    for code in LANGUAGES:
        qas = [{"id": "q1", "question": f"{code}?", "answers": [{"answer_start": 4, "text": "x"}]}]
        one = {"context": f"{code}. So.", "sentence_breaks": [[0, 3], [4, 7]], "qas": qas}
        if code != without:
            (folder / f"{code}.json").write_text(json.dumps({"data": [{"paragraphs": [one]}]}))
    return root


def test_the_table_adds_up_to_the_published_totals() -> None:
    """Eleven languages and their candidates, as XTREME-R's loader counts them."""
    assert list(lareqa.LANGUAGES) == list(lareqa.task_names("official")) == LANGUAGES
    ones = lareqa.LANGUAGES.values()
    assert sum(one.candidates for one in ones) == lareqa.CANDIDATES == 13_014
    assert lareqa.QUESTIONS * len(ones) == 13_090
    assert lareqa.task_names("local") == ()


def test_a_task(tmp_path: Path) -> None:
    """The questions of one language over the pool of all, under the protocol's rules."""
    task = lareqa.load("el", DataRequest("official", lay_out(tmp_path), offline=True))
    (leg,) = task.legs
    assert (task.id, task.data, leg.corpus.id, leg.name) == ("lareqa/el", "official", "lareqa", "")
    assert (task.measures, task.tie, task.depth, task.official) == (("AP@20",), "list", 20, ("lareqa",))
    assert (task.similarity, task.lengths, task.drop_identical) == ("cos", (96, 256), False)
    assert (leg.language, leg.corpus.language, leg.corpus.documents) == ("el", "", 13_014)
    assert dict(leg.counts) == {"queries": 1_190, "qrels": 13_090}
    assert [(item.id, item.text) for item in leg.queries.read()] == [("q1_el", "el?")]
    pool = list(leg.corpus.items.read())
    assert [item.id for item in pool] == [f"{code}_1_{at}" for code in LANGUAGES for at in (0, 1)]
    assert (pool[5].text, pool[5].title, pool[5].language) == ("So.el. So.", "", "el")
    assert leg.qrels is not None
    assert [row.document for row in leg.qrels.read()] == [f"{code}_1_1" for code in LANGUAGES]


def test_all_tasks_share_one_pool(tmp_path: Path) -> None:
    """It is read from the same files in the same order, so it is indexed and encoded once."""
    request = DataRequest("official", lay_out(tmp_path))
    pools = [lareqa.load(code, request).legs[0].corpus for code in LANGUAGES]
    assert len({(pool.id, pool.items.reader, pool.items.files) for pool in pools}) == 1


def test_published_counts_are_asserted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: Checked) -> None:
    """Another pool, other questions or other answers than the published ones are refused."""
    request = DataRequest("official", lay_out(tmp_path))
    with pytest.raises(DataError, match=r"found 22 documents, expected 13,014; this is not the published lareqa"):
        checked(lareqa.load("en", request).legs[0])
    monkeypatch.setattr(lareqa, "CANDIDATES", 22)
    with pytest.raises(DataError, match=r"found 1 judged queries, expected 1,190"):
        checked(lareqa.load("en", request).legs[0])
    monkeypatch.setattr(lareqa, "QUESTIONS", 1)
    facts = checked(lareqa.load("en", request).legs[0])
    assert (facts["queries"], facts["judgements"], facts["grades"]) == (1, 11, {"1": 11})


def test_missing_files_get_a_sentence(tmp_path: Path) -> None:
    """Whichever language is asked for, the file that the pool lacks is named, with its source and checksum."""
    root = lay_out(tmp_path, without="th")
    with pytest.raises(UsageError) as caught:
        lareqa.load("en", DataRequest("official", root))
    assert str(caught.value) == (
        f"{root}/lareqa/xquad-r/th.json: found no such file, expected a language of XQuAD-R; the pool needs all 11; "
        "fetch https://github.com/google-research-datasets/lareqa/raw/master/xquad-r/th.json and put it there as it is "
        "(sha256 c3a041864c3a9fb0b4dd91cfdf99cf36b411b3e704c58a303c97bc6dc786cfe4)"
    )
    with pytest.raises(UsageError, match=r"none was named; type --data-dir FOLDER or set BENCH_DATA"):
        lareqa.load("en", DataRequest("official"))
    with pytest.raises(UsageError, match=r"no task of lareqa 'gr'"):
        lareqa.load("gr", DataRequest("official", root))


def test_mini_data(checked: Checked) -> None:
    """Six languages, one pool, as many answers for each question; candidates are joined as the official ones."""
    names = lareqa.task_names("mini")
    assert names == mini.SENTENCE_LANGUAGES
    assert set(names) < set(LANGUAGES)
    tasks = [lareqa.load(name, DataRequest("mini")) for name in names]
    assert [task.id for task in tasks] == [f"mini/lareqa/{name}" for name in names]
    assert {(task.legs[0].corpus.id, task.legs[0].corpus.items.reader) for task in tasks} == {
        ("mini/lareqa", tasks[0].legs[0].corpus.items.reader)
    }
    assert (tasks[0].lengths, tasks[0].similarity, tasks[0].tie) == ((96, 256), "cos", "list")
    raw = next(mini.sentence_answers("en").corpus.read())
    item = next(tasks[0].legs[0].corpus.items.read())
    assert (item.id, item.text, item.title) == (raw.id, raw.title + raw.text, "")
    for task in (tasks[0], tasks[-1]):
        facts = checked(task.legs[0])
        assert facts["judgements"] == 6 * int(str(facts["queries"])) > 0
    other = lareqa.load("en", DataRequest("mini", world="few-names"))
    assert (other.id, other.legs[0].corpus.id) == ("mini-few-names/lareqa/en", "mini-few-names/lareqa")


def test_the_averages() -> None:
    """Over the languages of the questions; the second for mini data."""
    eleven, six = lareqa.SUITE.macros
    values = {f"lareqa/{code}": float(at) for at, code in enumerate(LANGUAGES)}
    assert macro(eleven, values) == 5.0
    assert macro(six, {f"lareqa/{code}": 0.5 for code in lareqa.MINI}) == 0.5
    del values["lareqa/th"]
    assert macro(eleven, values) is None


def test_what_is_told_of_it() -> None:
    """The card holds the counts; releases name every file once; papers' numbers are of this suite."""
    card = lareqa.card()
    assert "<!--" not in card
    assert "| th | 1,190 | 852 |" in card
    found = lareqa.releases()
    assert [one.path for one in found] == [f"lareqa/xquad-r/{code}.json" for code in LANGUAGES]
    assert all(len(bytes.fromhex(one.sha256)) == 32 and one.urls and not one.unpack for one in found)
    assert len({one.sha256 for one in found}) == 11
    printed = lareqa.reported()
    assert {row.suite for row in printed} == {"lareqa"}
    averages = {row.value for row in printed if row.paper == "MSM" and row.key == "avg"}
    assert {33.5, 33.4, 29.3} <= averages


def test_importing_is_light() -> None:
    """Listing the suite loads no numeric library, no world and no table."""
    heavy = "{'numpy', 'torch', 'bench.mini', 'suites.reported'}"
    code = f"import sys, suites.lareqa, suites.mewsli_x, suites.beir; print({heavy} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "set()"


@pytest.fixture
def real() -> Path:
    """The folder of real data."""
    folder = Path(os.environ.get("BENCH_DATA", ""))
    if "BENCH_DATA" not in os.environ or not (folder / "lareqa" / "xquad-r").is_dir():
        pytest.skip("BENCH_DATA is not set, or holds no lareqa/: no real data")
    return folder


def test_the_released_files_are_those_of_the_table(real: Path) -> None:
    """Sizes and sha256."""
    for one in lareqa.releases():
        content = (real / one.path).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (one.size, one.sha256)


def test_the_released_questions_pass_the_stages(real: Path, checked: Checked) -> None:
    """All counts hold: one language's questions over the whole pool."""
    facts: Mapping[str, Any] = checked(lareqa.load("hi", DataRequest("official", real)).legs[0])
    assert (facts["queries"], facts["judgements"], facts["unjudged_queries"]) == (1_190, 13_090, 0)
