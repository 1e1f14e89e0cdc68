"""Which weights are kept: the best by the measure, over kills, and how long a training waits for better ones."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import nn

from bench.core.workspace import Parts
from bench.training.checkpoint import WeightSelection


class Walk:
    """A training whose weight is the number of its step, measured by a list."""

    def __init__(self, folder: Path, values: Sequence[float], patience: int | None = None) -> None:
        self.modules = nn.ParameterDict({"weight": nn.Parameter(torch.zeros(2))})
        self.modules.register_buffer("steps", torch.zeros(()))
        self.values, self.step, self.parts = values, 0, Parts(folder)
        self.selection = WeightSelection("dev", lambda: self.values[self.step - 1], interval=1, patience=patience)

    def go(self, checkpoints: bool = False) -> None:
        """Make a step and evaluate it."""
        self.step += 1
        with torch.no_grad():
            self.modules["weight"].fill_(self.step)
            self.modules.get_buffer("steps").fill_(self.step)
        self.selection.evaluate(self.step, self.modules, self.parts)
        if checkpoints:
            self.selection.pin(self.parts)

    def best(self) -> tuple[float, float]:
        """Put the best weights back; return one, and the buffer."""
        self.selection.put_back(self.modules, self.parts)
        return float(self.modules["weight"][1].detach()), float(self.modules.get_buffer("steps"))


@pytest.mark.parametrize(
    ("values", "best"), [([3.0, 1.0, 2.0], 2), ([1.0, 1.0, 1.0], 1), ([3.0, 2.0, 1.0], 3), ([5.0], 1)]
)
def test_the_lowest_is_put_back(tmp_path: Path, values: list[float], best: int) -> None:
    """Weights and buffers of the step that had it; of equal ones the first."""
    walk = Walk(tmp_path, values)
    for _ in values:
        walk.go()
    assert walk.best() == (best, best)
    expected = {"rule": "dev", "value": min(values), "step": best, "evaluations": len(values), "stopped": False}
    assert walk.selection.metadata() == expected


def test_it_stops_after_its_patience_and_knows_what_is_due(tmp_path: Path) -> None:
    """After two evaluations without a better one; due every so many steps from a share on, and at the last step."""
    walk = Walk(tmp_path, [3.0, 4.0, 2.0, 2.0, 5.0], patience=2)
    stopped = []
    for _ in walk.values:
        walk.go()
        stopped.append(walk.selection.stopped)
    assert stopped == [False, False, False, False, True]
    selection = WeightSelection("dev", lambda: 0.0, interval=4, begin=0.5)
    assert [step for step in range(1, 22) if selection.due(step, step / 21)] == [12, 16, 20, 21]


def test_parts_are_kept_as_long_as_a_checkpoint_leans_on_them(tmp_path: Path) -> None:
    """The two last checkpoints' and the best; without a checkpoint the best alone."""

    def best_steps(folder: Path) -> list[int]:
        return sorted(int(path.stem.removeprefix("best-")) for path in folder.glob("best-*.safetensors"))

    bare = Walk(tmp_path / "bare", [4.0, 3.0, 2.0])
    for _ in bare.values:
        bare.go()
    assert best_steps(tmp_path / "bare") == [3]
    saved = Walk(tmp_path / "saved", [9.0, 8.0, 7.0, 6.0])
    for expected in ([1], [1, 2], [2, 3], [3, 4]):
        saved.go(checkpoints=True)
        assert best_steps(tmp_path / "saved") == expected
    assert len(list((tmp_path / "saved").glob("*.sha256"))) == 2


def test_state_goes_on_if_the_weights_are_there(tmp_path: Path) -> None:
    """Another one that takes the state has the best weights and the patience; changed weights are refused."""
    walk = Walk(tmp_path, [1.0, 2.0, 3.0, 4.0], patience=2)
    walk.go()
    walk.go(checkpoints=True)
    restored = Walk(tmp_path, walk.values, patience=2)
    restored.selection.restore(walk.selection.state())
    restored.step = walk.step
    assert restored.selection.state() == walk.selection.state()
    restored.go()
    assert restored.selection.stopped
    assert restored.best() == (1, 1)
    (tmp_path / walk.selection.part[0]).write_bytes(b"no")
    with pytest.raises(FileNotFoundError, match="best-0000000001"):
        walk.best()
