"""A task that is judged by answers, from its sources to the result file, and a run of it from elsewhere."""

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.cli.leaderboard_judges import SuiteJudges
from bench.cli.outcome import print_outcome
from bench.config.request import Request
from bench.core.errors import DataError, PluginError, UsageError
from bench.evaluation.measures import kilotokens
from bench.pipeline.run import Outcome, run
from bench.plugins import Plugins, load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.studies.external import External, score_against_task
from bench.testing import fields
from bench.types import Answers, Corpus, DataRequest, Item, Judgement, Source, Subset, Suite, Task
from leaderboard.submissions.validate import validate
from suites.scorers import OFFICIAL
from tests.conftest import plugin

SEARCHED = (Item("a", "wall city berlin"), Item("b", "moon man 1969 landing"), Item("c", "river longest nile"))
ORIGINALS = (
    Item("a", "The Wall in Berlin.", "Wall"),
    Item("b", "In 1969 men landed.", "Moon"),
    Item("c", "The Nile is long.", "1969"),  # the answer in a title does not count
)
QUERIES = (Item("q1", "wall"), Item("q2", "moon river"), Item("q3", "nobody has judged it"))
ANSWERS = (Answers("q2", ("1970", "1969")), Answers("q1", ("Berlin",)))


def _source(name: str, *records: Any) -> Source[Any]:
    return Source(name, f"test-{hash(records)}/1", (), lambda: iter(records))


SUBSET = Subset(
    "",
    _source("queries", *QUERIES),
    None,
    Corpus("toy", _source("searched", *SEARCHED), "en", 3, _source("originals", *ORIGINALS)),
    "en",
    {"queries": 2},
    answers=_source("answers", *ANSWERS),
)
MEASURES = ("answer-R@1", "answer-R@2", "R@1kt", "R@5kt")


def _plugins(subset: Subset = SUBSET, measures: tuple[str, ...] = MEASURES, scorer: str = "xor-asked") -> Plugins:
    """What is installed, and a suite of one task with dev questions."""

    def task(name: str, _: DataRequest) -> Task:
        return Task(f"mini/toy/{name}", "mini", (subset,), measures, "list", official=(OFFICIAL[scorer],), release="v9")

    def dev(name: str, request: DataRequest) -> Task:
        return replace(task(name, request), id=f"mini/toy/{name}@dev", official=())

    suite = Suite(
        *("toy", "1", "Toy", "A toy.", "Nobody.", "None."),
        regimes=("unsupervised",),
        data=("mini",),
        task_names=lambda _: ("t",),
        load=task,
        folder=None,
        macros=(),
        primary="answer-R@2",
        card=lambda: "# Toy",
        dev=dev,
    )
    return load({}, extra=[plugin("bench_suites", suite)])


def _run(tmp_path: Path, plugins: Plugins, *tasks: str) -> Outcome:
    request = Request(methods=("bm25",), suites=("toy",), tasks=tasks, results=tmp_path / "results")
    return run(request, plugins, Store(tmp_path / "store"), NullListener())


def test_answers_are_looked_for_in_the_originals(tmp_path: Path) -> None:
    """By hand: q1 finds a, which holds it. q2 finds c (shorter), then b, whose second token answers."""
    outcome = _run(tmp_path, _plugins())
    (row,) = outcome.rows
    assert row["measures"] == {"answer-R@1": 0.5, "answer-R@2": 1.0, "R@1kt": 1.0, "R@5kt": 1.0}
    assert row["official"] == {"R@1kt (XOR)": 1.0, "R@5kt (XOR)": 1.0}
    entry = outcome.published[0].content["tasks"]["mini/toy/t"][""]
    assert entry["release"] == "v9"
    assert "nltk" in entry["libraries"]["tokeniser"]
    assert entry["metadata"]["read"]["answers"] == 3
    table = outcome.published[0].path.parent / "per-query" / "mini" / "toy" / "t.json.gz"
    values = json.loads(gzip.decompress(table.read_bytes()))
    assert values["queries"] == ["q2", "q1"]
    assert values["evidence"] == {"rank": [2, 1], "tokens": [5 + 2, 4]}


def test_names_of_tasks(tmp_path: Path) -> None:
    """`t@dev` asks the suite's dev questions, and those alone."""
    (row,) = _run(tmp_path, _plugins(), "t@dev").rows
    assert row["task"] == "mini/toy/t@dev"
    with pytest.raises(UsageError, match="no task 'u@dev'"):
        _run(tmp_path, _plugins(), "u@dev")
    # A task of mini data says so: refused before any work, for its result could not be told from an official one.
    plugins = _plugins()
    suite = plugins.suite("toy")
    renamed = replace(suite, load=lambda name, request: replace(suite.load(name, request), id="toy/t"))
    with pytest.raises(PluginError, check=fields(found="'toy/t'", expected="'mini/toy/t'")):
        _run(tmp_path / "bare", load({}, extra=[plugin("bench_suites", renamed)]))
    assert not (tmp_path / "bare" / "store").exists()


@pytest.fixture
def scored(tmp_path: Path) -> Any:
    def score(lines: str, plugins: Plugins | None = None, **options: Any) -> External:
        path = tmp_path / "theirs.trec"
        path.write_text(lines)
        store = Store(tmp_path / "store")
        return score_against_task(plugins or _plugins(), store, suite="toy", task="t", run_file=path, **options)

    return score


def test_a_run_from_elsewhere(tmp_path: Path, scored: Any) -> None:
    """A query that it misses counts 0 for us and leaves XOR's mean; an unknown document is refused at its line.

    What a killed command has left in the store is cleared: no run may ever come.
    """
    lease = tmp_path / "store" / "leases" / "1-a.lock"
    lease.parent.mkdir(parents=True)
    lease.touch()
    scored_run = scored("q1 Q0 b 1 2.0 x\nq1 Q0 a 2 1.0 x\n")
    assert list(lease.parent.iterdir()) == []
    assert scored_run.means == {"answer-R@1": 0.0, "answer-R@2": 0.5, "R@1kt": 0.5, "R@5kt": 0.5}
    assert scored_run.official == {"R@1kt (XOR)": 1.0, "R@5kt (XOR)": 1.0}
    assert "lacks 1 of 2 judged queries" in scored_run.notices[0]
    with pytest.raises(DataError, match=r"theirs\.trec:2: found document id 'z'"):
        scored("q1 Q0 a 1 2.0 x\nq1 Q0 z 2 1.0 x\n")


@pytest.mark.parametrize("model", ["punkt_tab", "abbreviations/1"])
def test_other_tokens_than_the_official_ones_are_marked(
    model: str, tmp_path: Path, scored: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """R@Nkt without NLTK's model of sentences says so in the table of a run and where a run is scored."""
    name = f"nltk-3:word_tokenize:{model}"
    monkeypatch.setattr(kilotokens, "tokeniser", lambda: kilotokens.Tokeniser(name, str.split))
    outcome = _run(tmp_path, _plugins())
    print_outcome(outcome, (), {}, ())
    head, *_ = capsys.readouterr().out.splitlines()
    scored_run = scored("q1 Q0 a 1 2.0 x\nq2 Q0 b 1 2.0 x\n")
    notices = [] if model == "punkt_tab" else [f"R@Nkt without NLTK's punkt_tab ({name}): not the official tokens"]
    assert head == " · ".join(("toy", "unsupervised", "mini data", *notices, "percent"))
    assert list(scored_run.notices) == notices


def test_passages_that_were_compared_with_nothing_are_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The suite says why, the row keeps it, and the table of the run prints it."""
    mark = "passages put there by hand"
    outcome = _run(tmp_path, _plugins(replace(SUBSET, corpus=replace(SUBSET.corpus, unverified=mark))))
    print_outcome(outcome, (), {}, ())
    head, *_ = capsys.readouterr().out.splitlines()
    assert mark in head.split(" · ")
    (published,) = outcome.published
    assert published.content["tasks"]["mini/toy/t"][""]["metadata"]["validate"]["unverified"] == mark


SILENT = replace(SUBSET, queries=_source("silent", Item("q1", "wall"), Item("q2", "zzz")))
"""BM25 finds nothing for q2."""


def test_a_question_that_found_nothing_is_a_miss(tmp_path: Path, scored: Any) -> None:
    """As in the official input, where its `ctxs` are empty; a file next to the run lists it, or it was not asked."""
    (row,) = _run(tmp_path, _plugins(SILENT)).rows
    assert row["official"] == {"R@1kt (XOR)": 0.5, "R@5kt (XOR)": 0.5}
    run = Path(row["run_file"])
    assert run.with_name("run.trec.empty").read_text() == "q2\n"
    theirs = tmp_path / "theirs.trec"
    shutil.copyfile(run.with_name("run.trec.empty"), tmp_path / "theirs.trec.empty")
    scored_run = scored(run.read_text(), _plugins(SILENT))
    assert scored_run.official == row["official"]
    assert not any("is over" in notice for notice in scored_run.notices)
    bundled = Path(row["result_file"]).parent / "runs/mini/toy/t.trec.gz"
    bundled_run = score_against_task(
        _plugins(SILENT), Store(tmp_path / "store"), suite="toy", task="t", run_file=bundled
    )
    assert (bundled_run.means, bundled_run.official) == (scored_run.means, scored_run.official), (
        "the file travels in the bundle"
    )
    verdict = validate(
        Path(row["result_file"]).parent, "it", SuiteJudges(_plugins(SILENT), Store(tmp_path / "store"), None)
    )
    assert (verdict.reasons, verdict.findings.not_recomputed) == ((), {})
    theirs.with_name("theirs.trec.empty").unlink()
    scored_run = scored(run.read_text(), _plugins(SILENT))
    assert scored_run.official == {"R@1kt (XOR)": 1.0, "R@5kt (XOR)": 1.0}
    assert "R@1kt (XOR) is over 1 of 2 judged queries" in scored_run.notices[1]


def test_an_official_mean_over_fewer_queries_says_so(tmp_path: Path) -> None:
    """BEIR's leaves out who found nothing: 1 over one query of two, where ours counts 0 for the other."""
    subset = replace(SILENT, answers=None, qrels=_source("qrels", Judgement("q1", "a", 1), Judgement("q2", "c", 1)))
    outcome = _run(tmp_path, _plugins(subset, ("nDCG@10",), "beir"))
    (row,) = outcome.rows
    assert (row["measures"], row["official"]["NDCG@10 (BEIR)"]) == ({"nDCG@10": 0.5}, 1.0)
    assert set(row["official_queries"].values()) == {1}
    assert set(row["official_queries"]) == set(row["official"])
    entry = outcome.published[0].content["tasks"]["mini/toy/t"][""]
    assert (entry["official_queries"], entry["queries"]) == (row["official_queries"], 2)


def test_documents_and_answers_judge_the_same_queries(tmp_path: Path, scored: Any) -> None:
    """Both kinds of measures stand in one table; a query that only one of them judges is refused."""
    both = (Judgement("q1", "a", 1), Judgement("q2", "c", 1))
    subset = replace(SUBSET, qrels=_source("qrels", *both))
    (row,) = _run(tmp_path, _plugins(subset, ("RR@10", "answer-R@1"))).rows
    assert row["measures"] == {"RR@10": 1.0, "answer-R@1": 0.5}
    half = replace(SUBSET, qrels=_source("qrels", *both[:1]))
    with pytest.raises(DataError, match="query 'q2' judged by answers alone"):
        _run(tmp_path / "half", _plugins(half, ("RR@10", "answer-R@1")))
    stranger = replace(SUBSET, answers=_source("answers", Answers("q9", ("x",))))
    with pytest.raises(DataError, match="answers of query 'q9'"):
        _run(tmp_path / "stranger", _plugins(stranger))


def test_measures_that_nothing_can_judge_are_refused(scored: Any) -> None:
    """Answers where only documents are judged, and the other way round."""
    with pytest.raises(UsageError, match="no judgements"):
        scored("q1 Q0 a 1 2.0 x\n", measures="RR@10")
    plugins = _plugins(replace(SUBSET, answers=None, qrels=_source("qrels", Judgement("q1", "a", 1)), counts={}))
    with pytest.raises(UsageError, match="looks for answers"):
        scored("q1 Q0 a 1 2.0 x\n", plugins, measures="answer-R@1")
    # An empty answer stands in every text, as the official scorers have it; a query that the run misses still counts 0.
    plugins = _plugins(replace(SUBSET, answers=_source("answers", Answers("q1", ("",)), Answers("q2", ("",)))))
    assert scored("q1 Q0 a 1 2.0 x\n", plugins).means["R@1kt"] == 0.5
