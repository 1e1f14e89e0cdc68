"""Sweeps: how trials are drawn and chosen, on dev questions alone."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.config.request import Request
from bench.config.spaces import Choice, LogUniform, Space, Uniform
from bench.core.errors import StoreError, UsageError
from bench.core.files import read_sealed
from bench.pipeline import run as pipeline
from bench.pipeline.plan import plan
from bench.plugins import Plugins, load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.studies.sweep import Sweep, SweepPlan, Trial, best, draw, prepare, run
from bench.testing import fields
from bench.types import DataRequest, Method
from methods.bm25 import BM25

POOLING = Choice(("mean", "cls"))
SPACE: dict[str, Space] = {"rate": LogUniform(1e-4, 1e-1), "share": Uniform(0.0, 1.0), "pooling": POOLING}
DEFAULTS = {"rate": 2e-3, "share": 0.1, "pooling": "mean"}


@settings(max_examples=50)
@given(trials=st.integers(1, 20), more=st.integers(0, 10), seed=st.integers(0, 1000))
def test_fewer_trials_are_the_first_of_more(trials: int, more: int, seed: int) -> None:
    """So that sixteen after eight cost eight; the first is the defaults, and the same seed draws the same."""
    some = draw(SPACE, DEFAULTS, trials, seed)
    assert some == draw(SPACE, DEFAULTS, trials + more, seed)[:trials]
    assert some[0] == {}
    assert len(some) == trials
    for values in some[1:]:
        assert values.keys() == SPACE.keys()
        assert 1e-4 <= values["rate"] <= 1e-1
        assert 0 <= values["share"] <= 1
        assert values["pooling"] in {"mean", "cls"}


def test_draws_are_of_their_scale_and_can_be_typed() -> None:
    """Half of a logarithmic space lies below the geometric middle, 10^-2.5; four significant digits; by seed."""
    trials = draw(SPACE, DEFAULTS, 2001, 3)[1:]
    assert sum(trial["rate"] < 10**-2.5 for trial in trials) == pytest.approx(1000, abs=70)
    assert sum(trial["share"] < 0.5 for trial in trials) == pytest.approx(1000, abs=70)
    assert sum(trial["pooling"] == "cls" for trial in trials) == pytest.approx(1000, abs=70)
    for values in draw(SPACE, DEFAULTS, 50, 1)[1:]:
        for key in ("rate", "share"):
            assert values[key] == float(f"{values[key]:.4g}")
    assert draw(SPACE, DEFAULTS, 5, 0) != draw(SPACE, DEFAULTS, 5, 1)


def test_a_small_space_is_drawn_without_repeats_and_runs_out() -> None:
    """2 × 3 combinations: the defaults and the five others, each once; or the defaults alone."""
    space: dict[str, Space] = {"a": Choice((1, 2)), "b": Choice(("x", "y", "z"))}
    trials = draw(space, {"a": 1, "b": "y"}, 100, 0)
    assert trials[0] == {}
    assert sorted((trial["a"], trial["b"]) for trial in trials[1:]) == [
        (1, "x"),
        (1, "z"),
        (2, "x"),
        (2, "y"),
        (2, "z"),
    ]
    assert draw(space, {"a": 1, "b": "y"}, 3, 0) == trials[:3]
    assert draw({}, {}, 8, 0) == [{}]
    assert draw({"a": Choice((1,))}, {"a": 1}, 8, 0) == [{}]


def test_settings_that_a_method_refuses_are_drawn_again() -> None:
    """A rule between two settings costs no trial; others are drawn as they were without it."""
    space: dict[str, Space] = {"rate": LogUniform(0.001, 0.1), "pairs": Choice((32, 64))}
    free = draw(space, {}, 40, 0)
    held = draw(space, {}, 20, 0, lambda values: values["pairs"] > 32)
    assert held == [{}, *[values for values in free[1:] if values["pairs"] > 32][:19]]
    listed = draw({"pairs": Choice((32, 64)), "k": Choice((1, 2))}, {}, 9, 0, lambda values: values["pairs"] > 32)
    assert sorted(map(str, listed[1:])) == ["{'k': 1, 'pairs': 64}", "{'k': 2, 'pairs': 64}"]


def _trial(number: int, score: float | None) -> Trial:
    return Trial(number, {}, score, {}, 0.0, {}, "" if score is not None else "the loss is nan")


def test_the_first_of_equal_scores_wins_and_failures_never() -> None:
    """By hand."""
    assert best([_trial(0, 0.5), _trial(1, None), _trial(2, 0.7), _trial(3, 0.7)]).number == 2
    assert best([_trial(0, 0.0), _trial(1, None)]).number == 0
    assert best([_trial(0, 0.1), _trial(1, 0.2)]).score == 0.2


Make = Callable[..., Method]
Swept = Callable[..., tuple[SweepPlan, Sweep]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A BEIR folder in which the short answer loses to the long one by BM25's defaults, and wins with a larger b.

    By hand, at k1 0.9 and b 0.4: 2 / (2 + 0.9 · (0.6 + 0.4 · 32/18)) = 0.629 beats 1 / (1 + 0.9 · (0.6 + 0.4 · 4/18)) =
    0.617; at the first values that seed 0 draws, 2.298 and 0.8444, it is 0.344 against 0.559.
    """
    place = tmp_path / "made"
    (place / "qrels").mkdir(parents=True)
    texts = {"long": "red red" + " green" * 30, "short": "red blue blue blue"}
    rows = [{"_id": name, "title": "", "text": text} for name, text in texts.items()]
    (place / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "queries.jsonl").write_text('{"_id": "q", "text": "red"}\n')
    for split in ("dev", "test"):
        (place / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\nq\tshort\t1\n")
    return place


@pytest.fixture
def sweep(tmp_path: Path, folder: Path, with_methods: Callable[..., Plugins]) -> Swept:
    """Sweep a method on the folder's dev part, in folders of its own."""

    def call(method: Method = BM25, trials: int = 3, **request: Any) -> tuple[SweepPlan, Sweep]:
        plugins, space = with_methods(*([] if method is BM25 else [method])), request.pop("space", ())
        on_dev = Request(**{"methods": (method.name,), "suites": ("beir",), "tasks": (f"{folder}:dev",), **request})
        store = Store(tmp_path / "store")
        ready = prepare(on_dev, trials, plugins, store, space)
        (swept,), _ = run(ready, plugins, store, NullListener(), tmp_path / "sweeps")
        return ready, swept

    return call


def test_trials_are_scored_on_dev_and_kept(sweep: Swept, tmp_path: Path, folder: Path) -> None:
    """The first is the defaults, as a plain run on dev scores them; the best wins; all is in the record."""
    ready, swept = sweep(trials=4)
    assert [trial.values for trial in swept.trials] == list(ready.draws["bm25"])
    assert swept.trials[0].values == {}
    on_dev = Request(("bm25",), ("beir",), (f"{folder}:dev",), results=tmp_path / "results")
    plain = pipeline.run(on_dev, load({}), Store(tmp_path / "store"), NullListener())
    assert swept.trials[0].score == plain.rows[0]["measures"]["nDCG@10"]
    scores = [trial.score or 0 for trial in swept.trials]
    assert (round(scores[0], 4), scores[1], swept.chosen) == (0.6309, 1, 1)  # second, then first
    assert scores.index(max(scores)) == swept.chosen
    record = read_sealed(swept.record)
    assert (record["split"], record["measure"], record["chosen"]) == ("dev", "nDCG@10", swept.chosen)
    assert [trial["score"] for trial in record["trials"]] == [trial.score for trial in swept.trials]
    assert record["space"]["k1"] == {"kind": "Uniform", "low": 0.1, "high": 3.0}
    assert all(set(trial["keys"]) == set(record["tasks"]) for trial in record["trials"])


def test_again_runs_nothing_and_more_goes_on(sweep: Swept) -> None:
    """Same seed, same trials, same file byte for byte; six after three make three."""
    _, first = sweep(trials=3)
    settings = first.config.read_text()
    ready, second = sweep(trials=3)
    assert not any(step.runs for step in ready.plan.steps)
    assert second == first
    assert second.config.read_text() == settings
    ready, more = sweep(trials=6)
    assert more.trials[:3] == first.trials
    stages = [step.stage.name for step in ready.plan.steps if step.runs]
    assert sorted(set(stages)) == ["index", "score", "search"]
    assert stages.count("search") == 3


def test_the_chosen_settings_run_and_say_how_they_were_chosen(sweep: Swept, tmp_path: Path, folder: Path) -> None:
    """On the test part, with the config that was chosen; one value changed, and it does not count as tuned."""
    ready, swept = sweep(trials=4)
    winner = dict(swept.trials[swept.chosen].values)
    on_test = Request(("bm25",), ("beir",), (str(folder),), file=swept.config, results=tmp_path / "results")
    outcome = pipeline.run(on_test, load({}), Store(tmp_path / "store"), NullListener())
    (system,) = [result.content["system"] for result in outcome.published]
    values = {row["key"]: row["value"] for row in system["settings"]}
    assert winner
    assert {key: values[f"method.{key}"] for key in winner} == winner
    seal = json.loads(swept.record.read_text())["seal"]
    tuned = {"method": "bm25", "trials": 4, "seed": 0, "suite": "beir", "data": "local", "split": "dev"}
    assert tuned.items() <= system["tuning"].items()
    assert system["tuning"]["record"] == seal
    changed = plan(replace(on_test, sets=("method.b=0.123",)), load({}), Store(tmp_path / "store"))
    assert changed.cells[0].system.tuning is None
    assert "does not count as tuned" in changed.warnings[0]
    assert not ready.warnings


def test_what_the_user_fixes_is_not_searched_and_is_in_the_file(sweep: Swept) -> None:
    """`--set` leaves the space; a preset lies under the trials and is named in the file."""
    ready, swept = sweep(trials=3, sets=("method.b=0.2",), preset="bm25/elasticsearch")
    assert {key for trial in swept.trials for key in trial.values} == {"k1"}
    configs = [cell.system.resolved.method.model_dump() for cell in ready.plan.cells]
    assert [(config["b"], config["k1"] == 1.2) for config in configs] == [(0.2, True), (0.2, False), (0.2, False)]
    text = swept.config.read_text()
    assert "b = 0.2" in text
    assert "--preset bm25/elasticsearch" in text
    assert read_sealed(swept.record)["fixed"] == {"b": 0.2}


def test_a_space_that_the_user_names_is_searched(sweep: Swept) -> None:
    """In place of the method's, or besides; the record has it, and other settings keep theirs."""
    ready, swept = sweep(trials=9, space=("k1=0.5..0.6", "method.b=0.1,0.9"))
    drawn = [trial.values for trial in swept.trials[1:]]
    assert all(0.5 <= values["k1"] <= 0.6 and values["b"] in (0.1, 0.9) for values in drawn)
    assert {values["b"] for values in drawn} == {0.1, 0.9}
    assert read_sealed(swept.record)["space"] == {
        "k1": {"kind": "LogUniform", "low": 0.5, "high": 0.6},
        "b": {"kind": "Choice", "values": [0.1, 0.9]},
    }
    assert ready.bases["bm25"].method.space["k1"] != LogUniform(0.5, 0.6)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("k1", {"found": "--space k1", "expected": "KEY=LOW..HIGH"}),
        ("k1=2..1", {"found": "--space k1=2..1", "expected": "a lower number"}),
        ("k1=low..high", {"found": "--space k1 with low..high", "expected": "values of bm25"}),
        ("k1=1,1", {"found": "--space k1=1,1", "expected": "values that differ"}),
        ("k2=1..2", {"found": "--space k2", "expected": "a setting of bm25", "hint": "analyzer, b, "}),
        (
            "k1=-1..2",
            {"found": "--space k1 with -1.0", "expected": "values of bm25", "hint": "expected a number ≥ 0; "},
        ),
        ("b=0.1,2", {"found": "--space b with 2", "hint": "bench show bm25"}),
    ],
)
def test_a_space_that_is_none_is_refused(sweep: Swept, text: str, error: dict[str, str]) -> None:
    """Before any trial, with what was typed."""
    with pytest.raises(UsageError, check=fields(**error)):
        sweep(space=(text,))


def test_a_space_is_of_what_is_not_fixed(tmp_path: Path, folder: Path) -> None:
    """A setting that is typed has no space; whole numbers have values and no range."""
    request = Request(("bm25",), ("beir",), (f"{folder}:dev",), sets=("method.b=0.2",))
    store = Store(tmp_path / "store")
    with pytest.raises(UsageError, check=fields(found="--space b and --set method.b", expected="one of them")):
        prepare(request, 2, load(), store, ("b=0.1,0.9",))
    with pytest.raises(UsageError, check=fields(found="--space k1 twice", expected="one space")):
        prepare(request, 2, load(), store, ("k1=1..2", "method.k1=0.9,1.2"))
    with pytest.raises(UsageError, check=fields(found="a range of pairs", expected="--space pairs=16,64")):
        prepare(replace(request, methods=("crop",), sets=()), 2, load(), store, ("pairs=16..64",))
    with pytest.raises(UsageError, check=fields(found="a range of window, a whole", expected="--space window=2,8")):
        prepare(replace(request, methods=("crop",), sets=()), 2, load(), store, ("window=2..8",))


def test_nothing_is_a_value_to_draw(tmp_path: Path, folder: Path) -> None:
    """Of a setting that may be unset `none` is that; of one that has a text `none` it is the text."""
    request, store = Request(("crop",), ("beir",), (f"{folder}:dev",)), Store(tmp_path / "store")
    ready = prepare(request, 8, load(), store, ("window=none,2,4",))
    assert ready.bases["crop"].typed == {"window": Choice((None, 2, 4))}
    assert {draw["window"] for draw in ready.draws["crop"][1:]} == {None, 2, 4}
    assert ready.draws["crop"][0] == {}, "as without a sweep"
    named = prepare(request, 2, load(), store, ("heads=none,shared",))
    assert named.bases["crop"].typed == {"heads": Choice(("none", "shared"))}
    with pytest.raises(UsageError, check=fields(found="--space pairs with none", expected="values of crop")):
        prepare(request, 2, load(), store, ("pairs=none,16",))


def test_every_method_gets_the_same_number_of_trials(tmp_path: Path, folder: Path, with_methods: Any) -> None:
    """In one plan that shares the checks; a space that is too small gives a warning."""
    wide = replace(BM25, name="wide", space={"k1": Uniform(0.5, 2.0)})
    narrow = replace(BM25, name="narrow", space={"variant": Choice(("lucene", "rank_bm25"))})
    plugins, store = with_methods(wide, narrow), Store(tmp_path / "store")
    on_dev = Request(("bm25", "wide", "narrow"), ("beir",), (f"{folder}:dev",))
    ready = prepare(on_dev, 4, plugins, store)
    assert {name: len(draws) for name, draws in ready.draws.items()} == {"bm25": 4, "wide": 4, "narrow": 2}
    assert "narrow: 2 instead of 4 trials" in ready.warnings[0]
    assert [step.stage.name for step in ready.plan.steps].count("read") == 1


def test_a_method_that_never_trains_spares_the_others(
    tmp_path: Path, folder: Path, dense: Make, small: dict[str, Any], with_methods: Callable[..., Plugins]
) -> None:
    """Its sweep comes to nothing, which is told; without others there is nothing to tell but that."""
    plugins, store = with_methods(dense(space={"fault": Choice(("nan",))})), Store(tmp_path / "store")
    request = {**small, "tasks": (f"{folder}:dev",), "sets": (*small["sets"], 'method.fault="nan"')}
    ready = prepare(Request(**{**request, "methods": ("dense", "bm25"), "suites": ("beir",)}), 2, plugins, store)
    sweeps, failed = run(ready, plugins, store, NullListener(), tmp_path / "sweeps")
    assert [swept.method for swept in sweeps] == ["bm25"]
    assert failed.keys() == {"dense"}
    assert "1 trials failed; the first one said" in failed["dense"]
    ready = prepare(Request(**{**request, "methods": ("dense",), "suites": ("beir",)}), 2, plugins, store)
    with pytest.raises(UsageError, match=r"dense: all 1 trials failed; the first one said: .*is nan"):
        run(ready, plugins, store, NullListener(), tmp_path / "sweeps")


@pytest.mark.parametrize("setting", ["curve.points=2", 'encode.readout="protocol"', 'post.kind="whiten"'])
def test_a_trial_is_one_system(sweep: Swept, dense: Make, small: dict[str, Any], setting: str) -> None:
    """Points, protocols and post-processing make several rows of one choice of settings, or none as it was trained."""
    request = {**{key: value for key, value in small.items() if key != "tasks"}, "sets": (*small["sets"], setting)}
    with pytest.raises(UsageError, check=fields(found="trials that are several systems", hint="curve.points out")):
        sweep(dense(space={"fault": Choice(("", "x"))}), trials=1, **request)


def test_a_folder_that_cannot_be_written_is_told_before_any_work(tmp_path: Path, folder: Path) -> None:
    """`--out` names a file."""
    plugins, store = load({}), Store(tmp_path / "store")
    ready = prepare(Request(("bm25",), ("beir",), (f"{folder}:dev",)), 2, plugins, store)
    with pytest.raises(StoreError, match="--out"):
        run(ready, plugins, store, NullListener(), folder / "corpus.jsonl")
    assert not [*store.artefacts()]


def test_a_trial_that_fails_is_recorded_and_loses(sweep: Swept, dense: Make, small: dict[str, Any]) -> None:
    """A learning rate that is too high is a finding, not the end of the sweep."""
    method = dense(space={"fault": Choice(("", "nan"))})
    request = {key: value for key, value in small.items() if key != "tasks"}
    _, swept = sweep(method, trials=2, **request)
    assert [trial.score is None for trial in swept.trials] == [False, True]
    assert swept.chosen == 0
    assert read_sealed(swept.record)["trials"][1]["failed"] == "the loss of training step 7 is nan"


def test_what_cannot_be_swept_is_refused(sweep: Swept, folder: Path) -> None:
    """With what to type; the test part of a folder, named or not."""
    message_of_test = "whose test part a sweep must not see; name another part"
    refused: list[tuple[dict[str, Any], str]] = [
        ({"suites": ("tatoeba",), "tasks": ()}, "suite tatoeba has no questions besides its test.*mrtydi"),
        ({"suites": ("mrtydi", "beir"), "tasks": ()}, "found --suite mrtydi,beir; a sweep chooses settings for one"),
        ({"seeds": (0, 1)}, "found --seed 0,1"),
        ({"methods": ()}, "type --method NAME"),
        ({"preset": "bm25/none"}, "no preset 'none'"),
        *(({"tasks": (name,)}, message_of_test) for name in (str(folder), f"{folder}:test")),
    ]
    for request, message in refused:
        with pytest.raises(UsageError, match=message):
            sweep(**request)


def test_suites_serve_dev_questions_that_are_not_the_test(with_methods: Callable[..., Plugins]) -> None:
    """On mini data: other ids, other questions, the same passages."""
    plugins = with_methods()
    for name, task, tested in (("mrtydi", "sw", "sw"), ("askubuntu", "dev", "test")):
        suite = plugins.suite(name)
        assert suite.dev is not None
        dev, test = suite.dev(task, DataRequest("mini")), suite.load(tested, DataRequest("mini"))
        assert dev.id != test.id
        questions = [{item.id: item.text for item in part.subsets[0].queries.read()} for part in (dev, test)]
        assert not set(questions[0].values()) & set(questions[1].values())
    beir = plugins.suite("beir")
    assert beir.dev_names is not None
    assert beir.dev_names("official") == ("nfcorpus", "hotpotqa", "fiqa", "quora", "dbpedia-entity", "fever")
