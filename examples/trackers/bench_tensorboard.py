"""Trainings in TensorBoard: `tensorboard --logdir runs`. `$TENSORBOARD_DIR` names another folder; nothing leaves it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bench

WRITERS: dict[str, Any] = {}
"""By key of the stage."""


@bench.hookimpl
def bench_step(stage: Mapping[str, Any], step: Mapping[str, Any]) -> None:
    """Add every number of a line, over tokens, so that methods with unlike batches can be compared."""
    if stage["key"] not in WRITERS:
        from torch.utils.tensorboard import SummaryWriter

        folder = Path(os.environ.get("TENSORBOARD_DIR", "runs")) / f"{stage['title']} {stage['key'][:8]}"
        WRITERS[stage["key"]] = SummaryWriter(str(folder))
    for name, value in {**step, **step.get("probe", {})}.items():
        if isinstance(value, int | float) and name != "tokens":
            WRITERS[stage["key"]].add_scalar(name, value, step["tokens"])


@bench.hookimpl
def bench_stage_finished(stage: Mapping[str, Any]) -> None:
    """Close what the stage has opened."""
    if stage["key"] in WRITERS:
        WRITERS.pop(stage["key"]).close()
