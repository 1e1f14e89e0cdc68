"""A new kind of stage is one class: keys, caching, plans, executors and provenance follow from it.

That an addition of another kind touches its own files alone is tested where it belongs: methods in
`tests/bench/pipeline/test_doors.py`, measures in `tests/bench/pipeline/test_what_keys_hold.py`, suites in
`tests/suites/test_public_face.py`, columns of the site in `tests/leaderboard/test_columns.py`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import bench
from bench.config.base import Config
from bench.core.files import read_sealed
from bench.store.executors import executor
from bench.store.graph import NullListener, steps
from bench.store.stage import IDLE, OPTIONAL, Cost, Stage
from bench.store.store import MANIFEST, Store
from bench.types import Json


class DistilConfig(Config):
    """How an encoder is made smaller."""

    layers: int = bench.setting(2, ge=1, source="ours: a test", help="layers that are kept")
    batch: int = bench.setting(64, ge=1, source="ours: a test", help="texts at once", idle=True)


@dataclass(frozen=True, kw_only=True)
class Teacher(Stage):
    """Nothing → weights by layer."""

    name, code = "teach", 1
    weights: tuple[float, ...]

    title = property(lambda self: f"{len(self.weights)} layers")
    cost = property(lambda self: Cost("teach", len(self.weights), 1e3))

    def run(self, space: bench.Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        assert not folders
        (space.out / "weights.json").write_text(json.dumps(self.weights))
        return {"layers": len(self.weights)}


@dataclass(frozen=True, kw_only=True)
class Distil(Stage):
    """Weights by layer → those of some layers."""

    name, code, libraries = "distil", 1, ("numpy",)
    teacher: Teacher
    config: DistilConfig
    start: str | None = field(default=None, metadata=OPTIONAL)
    label: str = field(default="distilled", metadata=IDLE)

    title = property(lambda self: self.label)
    cost = property(lambda self: Cost("distil", self.config.layers, 1e3))

    def run(self, space: bench.Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        weights = json.loads((folders["teacher"] / "weights.json").read_text())[: self.config.layers]
        (space.out / "weights.json").write_text(json.dumps(weights))
        return {"layers": len(weights)}


TEACHER = Teacher(weights=(0.5, 0.25, 0.125))
DISTIL = Distil(teacher=TEACHER, config=DistilConfig())


def test_a_new_stage_is_run_once_and_after_its_input(tmp_path: Path) -> None:
    """The plan finds its input, the executor makes both, a second plan has nothing to do; the manifest says whence."""
    store = Store(tmp_path)
    planned = steps([DISTIL], store)
    states = [(step.stage.name, step.state, step.runs) for step in planned]
    assert states == [("teach", "missing", True), ("distil", "missing", True)]
    executor("local").run([step.stage for step in planned], store, NullListener())
    assert [(step.state, step.runs) for step in steps([DISTIL], store)] == [("cached", False)] * 2
    artefact, state = store.make(replace(DISTIL, label="the same work by another name"))
    assert state == "cached"
    assert artefact.facts == {"layers": 2}
    assert json.loads((artefact.folder / "weights.json").read_text()) == [0.5, 0.25]
    manifest = read_sealed(artefact.folder / MANIFEST)
    assert (manifest["stage"], manifest["key"]) == ("distil", DISTIL.key)
    assert manifest["identity"]["inputs"] == {"teacher": TEACHER.key}
    assert manifest["identity"]["config"] == {"layers": 2}
    assert set(manifest["identity"]) == {"code", "config", "libraries", "inputs"}
    assert store.faults(artefact.folder, thorough=True) == []


def test_its_key_is_its_fields_and_its_inputs() -> None:
    """And neither idle fields and settings nor notes; an optional field counts once it is filled."""
    equal = (
        replace(DISTIL, label="another title"),
        replace(DISTIL, config=DistilConfig(batch=8)),
        replace(DISTIL, notes={"host": "here"}),
        replace(DISTIL, teacher=replace(TEACHER, notes={"host": "there"})),
    )
    unlike = (
        replace(DISTIL, config=DistilConfig(layers=1)),
        replace(DISTIL, start="random"),
        replace(DISTIL, teacher=replace(TEACHER, weights=(0.5, 0.25))),
    )
    assert {stage.key for stage in equal} == {DISTIL.key}
    assert len({DISTIL.key, *(stage.key for stage in unlike)}) == 1 + len(unlike)
