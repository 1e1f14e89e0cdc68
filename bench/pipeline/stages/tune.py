"""tune: encoder + training pairs → tuned encoder, or two, held to what every training is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.core.contract import Role, TrainingJob
from bench.core.workspace import Workspace
from bench.pipeline.compute import LIBRARIES, Compute
from bench.pipeline.stages.exported import check_device, validate_encoders
from bench.pipeline.stages.init import EncoderStage
from bench.pipeline.stages.mine import Mine
from bench.pipeline.stages.pairs import PAIRS, StorePairs
from bench.store.stage import IDLE, OPTIONAL, Cost
from bench.training.config import ENCODER, PASSAGES
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Json


@dataclass(frozen=True, kw_only=True)
class Tune(EncoderStage):
    """Encoder + training pairs → tuned encoder, or two.

    Args:
        start: the encoder before.
        pairs: what is learnt from, as stored or mined.
        dev: pairs that weights are chosen by; None holds out a share of `pairs`.
        config: how; what was mined is in the pairs.
        seed: of the tuning.
        compute: the machine.
        label: what people call it.
    """

    name, code, libraries = "tune", 2, LIBRARIES
    start: EncoderStage
    pairs: StorePairs | Mine
    dev: StorePairs | None = field(default=None, metadata=OPTIONAL)
    config: FineTuningConfig
    seed: int
    compute: Compute
    label: str = field(metadata=IDLE)

    @property
    def title(self) -> str:
        return self.label

    @property
    def cost(self) -> Cost:
        return Cost("tune", self.config.epochs * PAIRS, 200.0)

    @property
    def untied(self) -> bool:
        return not self.config.tied

    def encoder(self, folder: Path, role: Role = "query") -> Path:
        untied = role == "passage" and (folder / PASSAGES).is_dir()
        return folder / (PASSAGES if untied else ENCODER)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        queries, passages = (self.start.encoder(folders["start"], role) for role in ("query", "passage"))
        second = None if passages == queries else passages
        job = self.compute.job(self.seed)
        return run(space, queries, folders["pairs"], self.config, job, passages=second, dev=folders.get("dev"))


def run(
    work: Workspace,
    start: Path,
    pairs: Path,
    config: FineTuningConfig,
    job: TrainingJob,
    passages: Path | None = None,
    dev: Path | None = None,
) -> Mapping[str, Json]:
    """Write `encoder/`, `passages/` where questions and passages have an encoder each, and `log.jsonl`.

    Under the job's seed, threads and deterministic algorithms. Facts: `bench.training.fine_tuning.fine_tune`.

    Args:
        work: where to; advances by tokens.
        start: the folder of the encoder before, of questions where there were two.
        pairs: training pairs (`bench.pipeline.stages.pairs`).
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
    from bench.training.fine_tuning import fine_tune

    check_device(job.device)
    with reproducible(job):
        facts = fine_tune(work, start, pairs, config, job, passages=passages, dev=dev)
    encoders = [(ENCODER, start)]
    if not config.tied:
        encoders.append((PASSAGES, passages or start))
    validate_encoders(work.out, encoders)
    return facts
