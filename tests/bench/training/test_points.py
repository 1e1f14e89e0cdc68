"""Points on the way of a training: stopping changes nothing that comes later, and a branch cools down to 0."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench.core.workspace import Parts
from bench.training import checkpoint
from tests.bench.training.conftest import BUDGET

Train = Callable[..., Any]


def killer(step: int) -> Callable[[int], None]:
    """Return a hook that raises after a step."""

    def after(at: int) -> None:
        if at == step:
            raise InterruptedError

    return after


@pytest.mark.parametrize("often", [pytest.param(1, marks=pytest.mark.slow), None])
def test_a_training_that_stops_on_its_way_ends_with_the_same_bytes(train: Train, often: int | None) -> None:
    """At every point, killed between two of them too; and a point has the bytes that it has alone."""
    expected = train("whole", checkpoint_tokens=often)
    points = {}
    for share in (0.25, 0.5):
        points[share] = train("stops", until=share, checkpoint_tokens=often)
        assert share * BUDGET <= points[share].metadata["tokens"] < share * BUDGET + 12 * 8
        assert points[share].metadata["spent"] == points[share].metadata["tokens"] / BUDGET
        points[share] = points[share].files()
    with pytest.raises(InterruptedError):
        train("stops", until=0.75, checkpoint_tokens=often, after_step=killer(9))
    train("stops", until=0.75, checkpoint_tokens=often)
    went_on = train("stops", checkpoint_tokens=often)
    assert went_on.files() == expected.files()
    assert "spent" not in went_on.metadata
    for share, files in points.items():
        assert train(f"alone{share}", until=share, checkpoint_tokens=often).files() == files
    assert len({files["encoder/model.safetensors"] for files in (*points.values(), expected.files())}) == 3


def test_a_point_repeated_where_it_was_reached_takes_no_step(train: Train) -> None:
    """Its checkpoint is the one of its step, and not past it; a step later it is."""
    first = train("one", until=0.5)
    steps: list[int] = []
    assert train("one", until=0.5, after_step=steps.append).files() == first.files()
    assert steps == []
    assert not checkpoint.is_past(Parts(first.parts), 0.5)
    assert checkpoint.is_past(Parts(first.parts), 0.4)
    train("one", until=0.75)
    assert checkpoint.is_past(Parts(first.parts), 0.5)
    assert not checkpoint.is_past(Parts(first.parts.with_name("none")), 0.0)


def test_the_log_of_a_point_is_the_beginning_of_the_whole(train: Train, whole: Any) -> None:
    """Nothing is logged or probed for it."""
    all_of_it = (whole.out / "log.jsonl").read_text()
    beginning = (train("point", until=0.5).out / "log.jsonl").read_text()
    assert all_of_it.startswith(beginning)
    assert 0 < len(beginning) < len(all_of_it)


@pytest.mark.parametrize(
    "budget", [{"tokens": BUDGET}, pytest.param({"tokens": 1, "flops": 5e7}, marks=pytest.mark.slow)]
)
def test_a_branch_cools_down(train: Train, budget: dict[str, Any]) -> None:
    """From the rate at the point to about 0 over a fifth more, whatever the budget is counted in."""
    log = train("whole", log_every=1, warm_up=0.0, **budget).log[1:]
    cooled = train("cooled", until=0.5, cool=0.4, log_every=1, warm_up=0.0, **budget)
    assert 0.7 <= cooled.metadata["spent"] < 0.8
    rates = [line["learning_rate"] for line in cooled.log[1:]]
    before = len([line for line in log if line["learning_rate"] >= 0.5 * log[0]["learning_rate"]])
    assert rates[:before] == [line["learning_rate"] for line in log[:before]]
    falling = np.array(rates[before:])
    assert len(falling) >= 2
    assert np.all(np.diff(falling) < 0)
    steepness = -np.diff(falling)  # 0.5 of the peak over 0.2 of the budget, where the training takes 1 over all of it
    usual = -np.diff([line["learning_rate"] for line in log[: before - 1]])
    assert 1.9 < np.mean(steepness) / np.mean(usual) < 3.2
    assert falling[-1] < 0.5 * falling[0]


def test_a_branch_from_a_copied_checkpoint_is_the_branch_itself(train: Train, whole: Any) -> None:
    """Also killed on its way; and the training that it left goes on as if there were none."""
    alone = train("alone", until=0.5, cool=0.2)
    assert alone.metadata["spent"] >= 0.6
    point = train("stops", until=0.5)
    branch = Parts(point.parts.parent.with_name("branch") / "parts")
    checkpoint.copy(Parts(point.parts), branch)
    with pytest.raises(InterruptedError):
        train("branch", until=0.5, cool=0.2, after_step=killer(alone.metadata["steps"] - 1))
    assert train("branch", until=0.5, cool=0.2).files() == alone.files()
    assert train("stops").files() == whole.files()


def test_a_branch_that_a_step_overshoots_has_one_all_the_same(train: Train) -> None:
    """Its rate is 0, so that its weights are those of the point, whether it is branched off or made alone."""
    point = train("stops", until=0.5)
    checkpoint.copy(Parts(point.parts), Parts(point.parts.parent.with_name("branch") / "parts"))
    branch, alone = (train(name, until=0.5, cool=1e-6) for name in ("branch", "alone"))
    assert branch.files() == alone.files()
    assert branch.metadata["steps"] == point.metadata["steps"] + 1
    assert branch.files()["encoder/model.safetensors"] == point.files()["encoder/model.safetensors"]


def test_a_copy_needs_a_checkpoint(train: Train) -> None:
    """Nothing is copied of a training that has none."""
    parts = Parts(train("none", tokens=20, checkpoint_tokens=None).parts)
    with pytest.raises(FileNotFoundError):
        checkpoint.copy(parts, Parts(parts.folder.with_name("other")))
