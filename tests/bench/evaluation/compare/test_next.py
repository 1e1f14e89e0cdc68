"""`bench compare --next`: what would decide the open differences, with the time that records say it takes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from bench.cli.compare import command
from bench.core.errors import UsageError
from bench.testing import fields
from tests.published import SyntheticResult

SECONDS = {
    "prepare": 100.0,
    "read": 5.0,
    "init": 1.0,
    "train": 60.0,
    "encode": 4.0,
    "encode-2": 1.0,
    "search": 2.0,
    "score": 1.0,
}


def publish(
    folder: Path, label: str, levels: list[float], seconds: dict[str, float] | None, noise: float = 0.1, **system: Any
) -> None:
    """Write the seeds of a system on two languages."""
    draw = np.random.default_rng(len(label))
    for seed, level in enumerate(levels):
        tasks = {
            f"mrtydi/{language}": {"": list(np.clip(level + noise * draw.normal(size=40), 0, 1))}
            for language in ("en", "sw")
        }
        SyntheticResult(
            label,
            tasks,
            suite="mrtydi",
            seed=seed,
            system={"deterministic": len(levels) == 1, **system},
            subset={"keys": {"train": f"{label}{seed}"}, **({"seconds": seconds} if seconds else {})},
            identity=label,
        ).publish(folder / "scratch", folder / "results")


def say(folder: Path, *words: str) -> str:
    """Type a comparison; return stdout."""
    arguments = [*words, "--suite", "mrtydi", "--results", str(folder / "results")]
    return CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False).stdout


def advice(folder: Path, *words: str) -> list[dict[str, Any]]:
    """What is said of each open difference."""
    (comparison,) = json.loads(say(folder, *words, "--next", "--json"))["comparisons"]
    rows: list[dict[str, Any]] = comparison["next"]
    return rows


def test_time_is_that_of_further_seeds_and_tasks(tmp_path: Path) -> None:
    """A seed costs its training and all tasks, a task the scoring of all seeds; data that are there cost nothing."""
    publish(tmp_path, "a", [0.50, 0.56, 0.44, 0.50, 0.54], SECONDS)
    publish(tmp_path, "bb", [0.45, 0.50, 0.41, 0.49, 0.47], SECONDS)
    (row,) = advice(tmp_path, "a", "bb")
    assert (row["family"], {row["system"], row["other"]}) == ("pairs", {"a", "bb"})
    needs = row["needs"]
    assert row["seeds_seconds"] == pytest.approx((needs["seeds"] - 5) * 2 * (61 + 2 * 8))
    assert needs["seeds"] > 5
    if needs["tasks"] is not None:
        assert row["tasks_seconds"] == pytest.approx((needs["tasks"] - 2) * 2 * 5 * 8)
    table = say(tmp_path, "a", "bb", "--next")
    assert "what to buy next for the open differences" in table
    assert f"{row['cheapest']} in all" in table
    assert "next" not in json.loads(say(tmp_path, "a", "bb", "--json"))["comparisons"][0]


def test_what_nobody_can_say(tmp_path: Path) -> None:
    """Two seeds: first a third; without records no time; what is decided needs nothing."""
    publish(tmp_path, "a", [0.50, 0.52], SECONDS)
    publish(tmp_path, "bb", [0.49, 0.51], SECONDS)
    (row,) = advice(tmp_path, "a", "bb")
    assert (row["needs"], row["cheapest"]) == (None, "")
    assert row["reason"].startswith("fewer than 3 seeds")
    publish(tmp_path, "cccc", [0.50, 0.52, 0.46], None)
    publish(tmp_path, "ddddd", [0.46, 0.50, 0.45], None)
    (row,) = advice(tmp_path, "cccc", "ddddd")
    assert (row["seeds_seconds"], row["tasks_seconds"]) == (None, None)
    publish(tmp_path, "released", [0.53], SECONDS, encoder_config={"pooling": "mean"})
    (row,) = advice(tmp_path, "cccc", "released")
    assert row["reason"] == "released came trained, without other seeds"
    publish(tmp_path, "far", [0.1], None)
    publish(tmp_path, "farther", [0.9], None)
    assert advice(tmp_path, "far", "farther") == []
    assert "nothing, all is decided" in say(tmp_path, "far", "farther", "--next")


def test_csv_has_no_place_for_it(tmp_path: Path) -> None:
    """The error says which forms have."""
    with pytest.raises(UsageError, check=fields(found="--next with --format csv")):
        say(tmp_path, "a", "b", "--next", "--format", "csv")
