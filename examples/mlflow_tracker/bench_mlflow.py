"""Trainings in MLflow, set up by its own variables (`$MLFLOW_TRACKING_URI`, `$MLFLOW_EXPERIMENT_NAME`).

Under `--offline` runs are written to `mlflow.db` here; `mlflow ui --backend-store-uri sqlite:///mlflow.db` shows them.
"""

import os
from collections.abc import Mapping
from typing import Any

import bench

RUNS: dict[str, Any] = {}
"""Client and id of a run, by key of the stage."""


@bench.hookimpl
def bench_step(stage: Mapping[str, Any], step: Mapping[str, Any]) -> None:
    """Log every number of a line."""
    if stage["key"] not in RUNS:
        from mlflow import MlflowClient

        client = MlflowClient("sqlite:///mlflow.db" if bench.is_offline() else None)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "retrieval-bench")
        experiment = client.get_experiment_by_name(name)
        place = experiment.experiment_id if experiment else client.create_experiment(name)
        tags = {"stage": stage["stage"], "key": stage["key"]}
        RUNS[stage["key"]] = client, client.create_run(place, run_name=stage["title"], tags=tags).info.run_id
    client, run = RUNS[stage["key"]]
    for name, value in {**step, **step.get("probe", {})}.items():
        if isinstance(value, int | float) and name != "step":
            client.log_metric(run, name, value, step=step["step"])


@bench.hookimpl
def bench_stage_finished(stage: Mapping[str, Any], outcome: Mapping[str, Any]) -> None:
    """End the run; a failed stage is a failed run."""
    if stage["key"] in RUNS:
        client, run = RUNS.pop(stage["key"])
        client.set_terminated(run, "FAILED" if outcome["state"] == "failed" else "FINISHED")
