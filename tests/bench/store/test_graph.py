"""The graph: order, what is needed, what it costs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.core.workspace import Workspace
from bench.store.executors.local import LocalExecutor
from bench.store.fingerprinted import Fingerprinted
from bench.store.graph import NullListener, RuntimeStatistics, closure, runtime_statistics, steps
from bench.store.stage import NOT_IN_KEY, Cost, Stage
from bench.store.store import Store
from bench.types import Json, Source
from experiments.plans import row
from tests.conftest import cases, present


@dataclass(frozen=True, kw_only=True)
class Labelled(Stage):
    """A stage that logs its label and writes the sum of its inputs' text and its own label."""

    code = 1
    label: str
    corpus: Stage | None = None
    left: Stage | None = None
    right: Stage | None = None
    log: list[str] = field(metadata=NOT_IN_KEY)
    units: float = field(default=10.0, metadata=NOT_IN_KEY)

    title = property(lambda self: self.label)
    cost = property(lambda self: Cost(self.name, self.units, 2.0, start=1.0))  # two units a second, after a second

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        self.log.append(self.label)
        text = "".join((folders[key] / "text").read_text() for key in sorted(folders))
        (space.out / "text").write_text(text + self.label)
        return {}


VERBS = {verb: type(verb, (Labelled,), {"name": verb}) for verb in ("validate", "read", "index", "score")}


def _stage(verb: str, label: str, log: list[str], **fields: Any) -> Labelled:
    stage: Labelled = VERBS[verb](label=label, log=log, **fields)
    return stage


def _diamond(log: list[str]) -> Labelled:
    top = _stage("validate", "corpus", log)
    left, right = _stage("index", "left", log, corpus=top), _stage("read", "right", log, corpus=top)
    return _stage("score", "end", log, left=left, right=right)


def test_inputs_come_first_and_checks_before_all_other_work() -> None:
    """Bad input of a later task is found before any work; equal stages are one, whoever built them."""
    assert [item.title for item in closure([_diamond([])])] == ["corpus", "right", "left", "end"]
    targets = [_stage("index", name, [], corpus=_stage("validate", f"corpus {name}", [])) for name in ("a", "b")]
    for order in (targets, targets[::-1]):
        assert {item.name for item in closure(order)[:2]} == {"validate"}
        assert [item.title for item in closure(order)[2:]] == [item.title for item in order]
    assert len(closure([_diamond([]), _diamond([])])) == 4
    first, second = _stage("validate", "a", []), _stage("validate", "b", [])
    assert _stage("index", "x", [], corpus=first).key != _stage("index", "x", [], corpus=second).key


def test_what_runs(tmp_path: Path) -> None:
    """All once, then nothing; a damaged artefact is made again, a missing one only if somebody still needs it."""
    log: list[str] = []
    store, end = Store(tmp_path), _diamond(log)
    LocalExecutor().run([step.stage for step in steps([end], store) if step.runs], store, NullListener())
    assert log == ["corpus", "right", "left", "end"]
    assert (store.folder(end) / "text").read_text() == "corpusleftcorpusrightend"
    assert [step.state for step in steps([end], store)] == ["cached"] * 4
    assert not any(step.runs for step in steps([end], store))
    left_stage = end.inputs["left"]
    (store.folder(left_stage) / "text").unlink()
    assert [step.stage.title for step in steps([end], store) if step.runs] == ["left"]
    for path in sorted(store.folder(left_stage).iterdir()):
        path.unlink()
    store.folder(left_stage).rmdir()
    assert [step.state for step in steps([end], store) if step.stage.key == left_stage.key] == ["missing"]
    assert not any(step.runs for step in steps([end], store))


def test_estimates_learn_from_the_store(tmp_path: Path) -> None:
    """Without experience a start and units / default rate; with it, the median rate of that work in this store."""
    store = Store(tmp_path)
    assert [step.seconds for step in steps([_stage("index", name, []) for name in "ab"], store)] == [6.0, 5.0]
    finished = _stage("index", "b", [], units=10)
    LocalExecutor().run([finished], store, NullListener())
    artefact = present(store.open(finished))
    expected = 6.0 if artefact.seconds == 0 else artefact.seconds
    assert steps([_stage("index", "a", [], units=10)], store)[0].seconds == pytest.approx(expected)


@pytest.mark.parametrize(("finished_work", "units", "seconds"), cases("estimates-of-stages"))
def test_estimates_are_a_start_and_so_much_a_unit(
    tmp_path: Path, finished_work: list[tuple[float, float]], units: int, seconds: float
) -> None:
    """Learnt from finished work of the kind, whatever lies among it."""
    for number, (size, seconds_taken) in enumerate([*finished_work, ("x", None)]):
        manifest = tmp_path / "artefacts" / "index" / str(number) / "manifest.json"
        manifest.parent.mkdir(parents=True)
        manifest.write_text(
            json.dumps({"provenance": {"cost": {"kind": "own", "units": size}}, "seconds": seconds_taken})
        )
    statistics = runtime_statistics(Store(tmp_path), [_stage("index", "a", [])])["own"]
    assert statistics.seconds(Cost("own", units, rate=100.0), begun=True) == pytest.approx(seconds)


def test_estimates_do_not_learn_from_the_last_attempt_of_several(tmp_path: Path) -> None:
    """Its seconds are for what was left, its units are all: ten units a second, and a resumed one seems to do 200."""
    for units, seconds, provenance in ((100, 10.0, {}), (1000, 5.0, {"resumed": True})):
        manifest = tmp_path / "artefacts" / "index" / str(units) / "manifest.json"
        manifest.parent.mkdir(parents=True)
        cost = {"cost": {"kind": "own", "units": units}}
        manifest.write_text(json.dumps({"provenance": cost | provenance, "seconds": seconds}))
    statistics = runtime_statistics(Store(tmp_path), [_stage("index", "a", [])])["own"]
    assert statistics.seconds(Cost("own", 200, rate=1.0), begun=True) == pytest.approx(20.0)


def test_what_loads_is_counted_once_a_run(tmp_path: Path) -> None:
    """The first work of a run says how long loading takes; work in other units is compared by what a unit is."""
    first_work = (10, 3.0), (10, 3.0)
    for later, expected in ((None, (22.0, 20.0)), (((10, 0.5), (10, 0.5)), (12.5, 10.0))):
        cost = Cost("own", 20, rate=10.0, each=10.0, start=2.0)
        assert [RuntimeStatistics(first_work, later).seconds(cost, is_warm) for is_warm in (False, True)] == [*expected]
    quick = RuntimeStatistics(
        ((300, 0.9), (300, 0.9)), None
    )  # loading and 300 units take half of what was expected, both
    assert quick.seconds(Cost("own", 1200, rate=300.0, start=0.8), begun=True) == pytest.approx(2.0)
    (lines := tmp_path / "pairs.jsonl").write_text('{"a": 1}\n' * 1000)
    assert Fingerprinted(Source[str]("pairs", "1", (lines,), partial(iter, ())), ()).size(1000, None) == 1000


def test_a_plan_within_three_times() -> None:
    """On either side of what happened."""
    for estimated, reached in ((3.1, "no"), (3.0, "yes"), (0.3, "no"), (0.34, "yes")):
        measured = {"estimated": estimated, "guessed": 0.0, "happened": 1.0, "share": 1.0}
        assert row("--method bm25", "A", measured).endswith(f"| {reached} |")
