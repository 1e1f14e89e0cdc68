"""train_cross: an encoder + training pairs → a cross-encoder for `rerank`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.data.stored_pairs import Pairs
from bench.dense import TrainingJob
from bench.stages.exported import mind_device
from bench.training.cross_config import CrossConfig
from bench.types import Json
from bench.workspace import Workspace

VERSION = 2


def run(work: Workspace, start: Path, pairs: Path, config: CrossConfig, job: TrainingJob) -> Mapping[str, Json]:
    """Write `model/` and `log.jsonl`; see `bench.training.cross.fit`.

    Args:
        work: where to; advances by questions.
        start: folder of an encoder, e.g. `encoder/` of the artefact of `train`, or of a cross-encoder of one label.
        pairs: the artefact of `pairs`, or of `mine`.
        config: how.
        job: seed, device and threads.

    Raises:
        UsageError: the device is not there, or as `bench.training.cross.fit` raises.
    """
    mind_device(job.device)
    from bench.training.cross import fit

    return fit(work, start, Pairs(pairs), config, job)
