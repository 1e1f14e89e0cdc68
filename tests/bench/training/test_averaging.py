"""The mean of the last steps' weights: what is exported is it, resumed or not; nothing else of a training changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from bench.config.layers import identity
from bench.training.config import TrainingConfig
from tests.bench.training.conftest import BUDGET

Train = Callable[..., Any]


@pytest.mark.parametrize("share", [0.4, pytest.param(1.0, marks=pytest.mark.slow)])
def test_the_exported_weights_are_the_mean_of_the_last_steps(train: Train, tmp_path: Path, share: float) -> None:
    """Of those that checkpoints hold after each step; log and cost are those of a training without."""
    kept: dict[int, dict[str, torch.Tensor]] = {}

    def keep(step: int) -> None:
        if step > 1:  # the checkpoint of the step before is written by now
            path = tmp_path / "plain" / "parts" / f"checkpoint-{step - 1:010d}.safetensors"
            prefix = "weights/encoder."
            kept[step - 1] = {
                name.removeprefix(prefix): tensor for name, tensor in load_file(path).items() if name.startswith(prefix)
            }

    plain = train("plain", log_every=1, checkpoint_tokens=1, after_step=keep)
    steps = plain.metadata["steps"]
    kept[steps] = load_file(plain.out / "encoder/model.safetensors")
    counted = [line["step"] for line in plain.log[1:] if line["tokens"] / BUDGET > 1 - share]
    assert len(counted) == (steps if share == 1 else pytest.approx(0.4 * steps, abs=1))
    averaged = train("averaged", log_every=1, checkpoint_tokens=1, average=share)
    for name, tensor in load_file(averaged.out / "encoder/model.safetensors").items():
        mean = torch.stack([kept[step][name] for step in counted]).mean(0)
        torch.testing.assert_close(tensor, mean, rtol=0, atol=1e-6)
    assert averaged.log == plain.log
    assert averaged.metadata["averaged_steps"] == len(counted)
    assert "averaged_steps" not in plain.metadata


def test_a_killed_one_goes_on_with_its_mean(train: Train) -> None:
    """Killed within the share that is averaged: the same bytes."""
    whole = train("whole", average=0.6)

    def kill(step: int) -> None:
        if step == whole.metadata["steps"] - 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train("killed", average=0.6, after_step=kill)
    assert train("killed", average=0.6).files() == whole.files()


def test_it_is_in_a_key_where_it_is_on() -> None:
    """A setting that came late: what was trained without it has the key that it had."""
    assert "average" not in identity(TrainingConfig())
    assert identity(TrainingConfig(average=0.2)) == identity(TrainingConfig()) | {"average": 0.2}
