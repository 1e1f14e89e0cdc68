"""The graph: order, what is needed, what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.executors.local import LocalExecutor
from bench.graph import Cost, Node, Quiet, closure, node, steps
from bench.store import Store
from bench.types import Json
from bench.workspace import Workspace


def _node(stage: str, name: str, log: list[str], units: float = 10.0, **inputs: Node) -> Node:
    """A stage that logs its name and writes the sum of its inputs' text and its own name."""

    def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        log.append(name)
        text = "".join((folders[key] / "text").read_text() for key in sorted(folders))
        (space.out / "text").write_text(text + name)
        return {}

    return node(stage, name, {"name": name}, work, Cost(stage, units, 2.0), inputs)


def _diamond(log: list[str]) -> Node:
    top = _node("validate", "corpus", log)
    left, right = _node("index", "left", log, corpus=top), _node("read", "right", log, corpus=top)
    return _node("score", "end", log, left=left, right=right)


def test_inputs_come_first_and_checks_before_all_other_work() -> None:
    """`read` stands before `index` although it was met later."""
    assert [item.recipe.title for item in closure([_diamond([])])] == ["corpus", "right", "left", "end"]


def test_the_checks_of_every_task_come_before_the_work_of_any() -> None:
    """Bad input of a later task is found before an earlier task has cost anything."""
    targets = [_node("index", name, [], corpus=_node("validate", f"corpus {name}", [])) for name in ("a", "b")]
    for order in (targets, targets[::-1]):
        assert {item.recipe.stage for item in closure(order)[:2]} == {"validate"}
        assert [item.recipe.title for item in closure(order)[2:]] == [item.recipe.title for item in order]


def test_a_shared_node_is_one_node() -> None:
    """Equal recipes are one stage, whoever made them."""
    assert len(closure([_diamond([]), _diamond([])])) == 4


def test_keys_of_inputs_enter_the_key() -> None:
    """A change far up changes everything below."""
    one, other = _node("validate", "a", []), _node("validate", "b", [])
    assert _node("index", "x", [], corpus=one).key != _node("index", "x", [], corpus=other).key


def test_runs_once_then_nothing(tmp_path: Path) -> None:
    """A second run finds all four stages."""
    log: list[str] = []
    store, end = Store(tmp_path), _diamond(log)
    LocalExecutor().run([step.node for step in steps([end], store) if step.runs], store, Quiet())
    assert log == ["corpus", "right", "left", "end"]
    assert (store.folder(end.recipe) / "text").read_text() == "corpusleftcorpusrightend"
    assert [step.state for step in steps([end], store)] == ["cached"] * 4
    assert not any(step.runs for step in steps([end], store))


def test_a_missing_input_of_a_finished_stage_is_not_made_again(tmp_path: Path) -> None:
    """Only what somebody still needs is made; a damaged artefact is made in any case."""
    log: list[str] = []
    store, end = Store(tmp_path), _diamond(log)
    LocalExecutor().run(closure([end]), store, Quiet())
    left = end.inputs["left"]
    (store.folder(left.recipe) / "text").unlink()
    assert [step.node.recipe.title for step in steps([end], store) if step.runs] == ["left"]
    for path in sorted(store.folder(left.recipe).iterdir()):
        path.unlink()
    store.folder(left.recipe).rmdir()
    assert [step.state for step in steps([end], store) if step.node.key == left.key] == ["missing"]
    assert not any(step.runs for step in steps([end], store))


def test_a_failure_keeps_what_is_finished(tmp_path: Path) -> None:
    """The stage after the failure is not tried, the ones before it stay."""
    log: list[str] = []

    def fails(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        raise RuntimeError("boom")

    store, top = Store(tmp_path), _node("validate", "corpus", log)
    bad = node("index", "bad", {}, fails, Cost("index", 1, 1), {"corpus": top})
    end = _node("score", "end", log, bad=bad)
    with pytest.raises(RuntimeError, match="boom"):
        LocalExecutor().run(closure([end]), store, Quiet())
    assert log == ["corpus"]
    assert store.state(top.recipe) == "cached"


def test_estimates_learn_from_the_store(tmp_path: Path) -> None:
    """Without experience units / default rate; with it, the median rate of that kind of work in this store."""
    store = Store(tmp_path)
    assert steps([_node("index", "a", [], units=10)], store)[0].seconds == 5.0
    done = _node("index", "b", [], units=10)
    LocalExecutor().run([done], store, Quiet())
    taken = store.open(done.recipe)
    assert taken is not None
    expected = 5.0 if taken.seconds == 0 else taken.seconds
    assert steps([_node("index", "a", [], units=10)], store)[0].seconds == pytest.approx(expected)
