"""Curves of a result: what a log says, thinned without losing its peaks, and kept with the tasks that need it."""

import json
import math
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bench.core.files import read_sealed
from bench.evaluation.curves import MOST, curves, thinned
from bench.evaluation.results import CURVES, Entry, Heading, faults, publish


def log(folder: Path, *lines: dict[str, Any]) -> Path:
    """Write a log."""
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_lines_of_a_log(tmp_path: Path) -> None:
    """Losses, probes and dev values against tokens, a cross-encoder's questions or steps; an empty log has no lines."""
    said = (
        {"step": 0, "tokens": 0, "probe": {"accuracy": 0.1, "chance": 0.03}, "warnings": []},
        {"step": 5, "tokens": 50, "loss": 4.0, "learning_rate": 0.1, "gradient_norm": 2.0},
        {"step": 9, "tokens": 90, "dev": 0.5, "best_step": 9, "loss": math.nan},
        {"step": 10, "tokens": 100, "loss": 3, "probe": {"accuracy": 0.4}, "done": True},
    )
    losses, probes = {"x": [50, 100], "y": [4.0, 3]}, {"x": [0, 100], "y": [0.1, 0.4]}
    lines = {"loss": losses, "dev": {"x": [90], "y": [0.5]}, "probe accuracy": probes}
    assert curves(log(tmp_path, *said)) == {"across": "tokens", "lines": lines}
    assert curves(log(tmp_path, {"step": 1, "loss": 1.0}))["across"] == "step"
    assert curves(log(tmp_path, {"step": 1, "questions": 8, "loss": 1.0}))["across"] == "questions"
    assert curves(log(tmp_path))["lines"] == {}
    long = curves(log(tmp_path, *({"tokens": at, "loss": float(at % 7)} for at in range(5000))))
    assert len(long["lines"]["loss"]["x"]) <= MOST


@given(st.lists(st.floats(-1e6, 1e6), max_size=2000), st.integers(4, 60))
def test_thinning_keeps_ends_and_extremes(values: list[float], most: int) -> None:
    """Few points, in order, all of them the line's own; no peak is lost."""
    points = [(float(x), y) for x, y in enumerate(values)]
    kept = thinned(points, most)
    assert len(kept) <= max(most, min(len(points), most))
    assert kept == sorted(set(kept))
    assert set(kept) <= set(points)
    assert (kept[:1], kept[-1:]) == (points[:1], points[-1:])
    assert min((y for _, y in kept), default=0) == min(values, default=0)
    assert max((y for _, y in kept), default=0) == max(values, default=0)
    assert thinned(points, max(len(points), 4)) == points


def test_a_bundle_keeps_the_curves_that_its_tasks_rest_on(tmp_path: Path) -> None:
    """Tasks merge, and so do curves; what no task names any more goes; the checksum is that of the file."""
    system = {"label": "m", "hash": "0" * 64, "method": "m", "version": "1"}
    suite = {"name": "s", "version": "1", "title": "S"}
    heading = Heading(system, suite, "unsupervised", "official", "mini", 0, {"method": ""})
    for name in ("run.gz", "values.gz"):
        (tmp_path / name).write_bytes(b"")

    def entry(task: str, **keys: str) -> Entry:
        content = {"measures": {"R@1": 0.5}, "queries": 1, "keys": keys}
        drawn = {key: {"stage": stage, "lines": {"loss": {"x": [1], "y": [2]}}} for stage, key in keys.items()}
        return Entry(task, "", content, tmp_path / "run.gz", tmp_path / "values.gz", drawn)

    def held() -> set[str]:
        return set(json.loads((done.path.parent / CURVES).read_bytes()))

    results = tmp_path / "results"
    done = publish(results, heading, [entry("s/a", train="t", tune="a1")], ())
    done = publish(results, heading, [entry("s/b", train="t", tune="b1")], ())
    assert held() == {"t", "a1", "b1"}
    done = publish(results, heading, [entry("s/a", train="t", tune="a2")], ())
    assert held() == {"t", "a2", "b1"}
    assert faults(done.path) == []
    (done.path.parent / CURVES).write_bytes(b"{}")
    assert [fault.path.name for fault in faults(done.path)] == [CURVES]
    plain = publish(tmp_path / "plain", heading, [entry("s/a")], ())
    assert CURVES not in read_sealed(plain.path)["files"]
