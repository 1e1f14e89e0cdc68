"""tune: encoder + training pairs → tuned encoder, or two, held to what every training is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.dense import TrainingJob
from bench.stages.exported import hold, mind_device
from bench.training import ENCODER, PASSAGES
from bench.tune import TuneConfig
from bench.types import Json
from bench.workspace import Workspace

VERSION = 2


def run(
    work: Workspace,
    start: Path,
    pairs: Path,
    config: TuneConfig,
    job: TrainingJob,
    passages: Path | None = None,
    dev: Path | None = None,
) -> Mapping[str, Json]:
    """Write `encoder/`, `passages/` where questions and passages have an encoder each, and `log.jsonl`.

    Under the job's seed, threads and deterministic algorithms; `bench.training.tuning.tune` says what comes back.

    Args:
        work: where to; advances by tokens.
        start: the folder of the encoder before, of questions where there were two.
        pairs: training pairs (`bench.stages.pairs`).
        config: how.
        job: seed, device, threads; its budget is not looked at: the config has one.
        passages: the folder of the encoder of passages before, where there were two.
        dev: held-out pairs, where the data have some of their own; None: a share of `pairs` is held out.

    Raises:
        UsageError: the device is not there, there are too few pairs, a start with two encoders is to become one, or
            the training ran into numbers that are none.
        PluginError: what was written is not as promised.
    """
    from bench.training.determinism import reproducible
    from bench.training.tuning import tune

    mind_device(job.device)
    with reproducible(job):
        facts = tune(work, start, pairs, config, job, passages=passages, dev=dev)
    encoders = [(ENCODER, start)]
    if not config.tied:
        encoders.append((PASSAGES, passages or start))
    hold(work.out, encoders)
    return facts
