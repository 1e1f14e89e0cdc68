"""train: start + prepared corpus → encoder, held to what a trainer promises."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.dense import Trainer, TrainingJob
from bench.stages.exported import hold, mind_device
from bench.training import ENCODER
from bench.types import Json
from bench.workspace import Workspace

VERSION = 3


def run(work: Workspace, trainer: Trainer, start: Path, shards: Path, job: TrainingJob) -> Mapping[str, Json]:
    """Let the trainer write `encoder/` and `log.jsonl`, under the job's seed, threads and deterministic algorithms.

    Args:
        work: where to.
        trainer: of the method.
        start: the encoder before training.
        shards: the prepared corpus.
        job: budget, seed, device, threads.

    Raises:
        UsageError: the device is not there, or the training ran into numbers that are none.
        PluginError: what the trainer wrote is not what it promised.
    """
    from bench.training.determinism import reproducible

    mind_device(job.device)
    with reproducible(job):
        facts = trainer.train(start, shards, job, work)
    hold(work.out, [(ENCODER, start)])
    return facts
