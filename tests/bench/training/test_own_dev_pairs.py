"""A tuning whose weights are chosen by dev pairs of the release, beside one that holds out a share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.data.stored_pairs import write_pairs
from bench.dense import TrainingJob
from bench.training.tuning import tune
from bench.tune import TuneConfig
from bench.types import Item, TrainingPair
from bench.workspace import Parts, Workspace


@pytest.fixture
def tuned(tmp_path: Path, start: Path) -> Callable[..., dict[str, Any]]:
    """Tune for two steps on 12 pairs, with so many dev pairs or none."""

    def run(dev: int | None, **values: Any) -> dict[str, Any]:
        folders = {"pairs": 12} if dev is None else {"pairs": 12, "dev": dev}
        for name, count in folders.items():
            folder = tmp_path / name
            folder.mkdir(exist_ok=True)
            write_pairs(
                folder,
                (
                    TrainingPair(Item(f"{name}-{at}", f"w{at} w{at + 1}", language="en"), (Item(f"d{at}", f"w{at}"),))
                    for at in range(count)
                ),
            )
        out = tmp_path / f"out-{len(list(tmp_path.glob('out-*')))}"
        out.mkdir()
        work = Workspace(out, Parts(out / "parts"))
        config = TuneConfig(**{"pairs": 4, "steps": 2, "selection": "dev-rank", "evaluate_every": 1, **values})
        job = TrainingJob(tokens=0, seed=1, device="cpu", threads=1)
        return tune(work, start, tmp_path / "pairs", config, job, dev=None if dev is None else tmp_path / "dev")

    return run


def test_own_dev_pairs_leave_all_pairs_to_learn_from(tuned: Callable[..., dict[str, Any]]) -> None:
    """All twelve are trained on, whatever share would be held out; the facts say by what weights were chosen."""
    facts = tuned(7, dev_share=0.5)
    assert (facts["training_pairs"], facts["dev_pairs"], facts["dev"]) == (12, 7, "own")
    assert facts["selection"]["rule"] == "dev-rank"
    assert facts["selection"]["evaluations"] == 2
    assert tuned(7, dev_most=3)["dev_pairs"] == 3


def test_without_them_a_share_is_held_out(tuned: Callable[..., dict[str, Any]]) -> None:
    """A quarter of twelve."""
    facts = tuned(None, dev_share=0.25)
    assert (facts["training_pairs"], facts["dev_pairs"], facts["dev"]) == (9, 3, "share")
