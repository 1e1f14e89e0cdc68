"""Trainings in Weights & Biases, set up by its own variables (`$WANDB_PROJECT`, …).

Under `--offline` runs are written to this machine alone; `wandb sync` sends them later, if you want that.
"""

import os
from collections.abc import Mapping
from typing import Any

import bench

RUNS: dict[str, Any] = {}
"""By key of the stage."""


@bench.hookimpl
def bench_step(stage: Mapping[str, Any], step: Mapping[str, Any]) -> None:
    """Log every number of a line."""
    if stage["key"] not in RUNS:
        import wandb

        RUNS[stage["key"]] = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "retrieval-bench"),
            name=stage["title"],
            config={"stage": stage["stage"], "key": stage["key"], **stage["identity"]},
            mode="offline" if bench.is_offline() else None,
            reinit="create_new",
        )
    numbers = {name: value for name, value in step.items() if isinstance(value, int | float)}
    RUNS[stage["key"]].log({**numbers, **step.get("probe", {})}, step=step["step"])


@bench.hookimpl
def bench_stage_finished(stage: Mapping[str, Any], outcome: Mapping[str, Any]) -> None:
    """End the run; a failed stage is a failed run."""
    if stage["key"] in RUNS:
        RUNS.pop(stage["key"]).finish(exit_code=int(outcome["state"] == "failed"))
