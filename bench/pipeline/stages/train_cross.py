"""train_cross: an encoder + training pairs → a cross-encoder for `rerank`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.core.workspace import Workspace
from bench.pipeline import memory
from bench.pipeline.compute import LIBRARIES, Compute, several
from bench.pipeline.sizes import average, encoder_size, in_precision, learning_gain
from bench.pipeline.stages.exported import check_device
from bench.pipeline.stages.init import Init, begun_size, model_files
from bench.pipeline.stages.mine import Mine
from bench.pipeline.stages.pairs import StorePairs
from bench.store.stage import ENVIRONMENT, NOT_IN_KEY, OPTIONAL, Cost, Resources, Stage, named
from bench.training.cross_encoder_config import MODEL, CrossConfig
from bench.types import Json

_TRAINER = "bench.training.cross_encoder:CrossTrainer"


@dataclass(frozen=True, kw_only=True)
class TrainCross(Stage):
    """Encoder or cross-encoder + training pairs → cross-encoder."""

    name, code, libraries = "train_cross", 2, LIBRARIES
    unit = "questions"
    pairs: StorePairs | Mine  # what is learnt from, as stored or mined
    begun: Init | TrainCross | None = field(default=None, metadata=named("start", OPTIONAL))  # None for a backbone
    config: CrossConfig
    start: Json  # decides the backbone's weights; None where `begun` does
    revision: str | None = field(default=None, metadata=OPTIONAL)  # commit of the backbone's id; None where unknown
    seed: int
    compute: Compute = field(metadata=ENVIRONMENT)  # but for the number of processes, which is a choice
    backbone: str = field(metadata=NOT_IN_KEY)
    pairs_name: str = field(metadata=NOT_IN_KEY)  # name of the pairs

    title = property(lambda self: f"{self.backbone} on {self.pairs_name}, seed {self.seed}")

    @property
    def cost(self) -> Cost:
        a_step = self.config.queries * self.compute.processes
        questions = (self.config.steps or 0) * a_step or self.config.epochs * self.pairs.cost.units
        rate = 30.0 * learning_gain(self.config.precision, None, self.compute.device)
        return Cost(in_precision("train_cross", self.config.precision), questions, rate)

    @property
    def resources(self) -> Resources:
        """Weights with what an optimizer keeps of each, and the activations of a batch."""
        tokens = self.config.queries * (1 + self.config.negatives) * average("pair", self.config.length)
        shape = begun_size(self) or encoder_size(self.backbone)
        return memory.learning(shape if shape.layers else None, tokens, self.compute.training)

    files = property(lambda self: model_files(self.backbone, self.start))

    def choices(self) -> dict[str, Json]:
        return several(super().choices(), self.compute)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write `model/` and `log.jsonl`; see `bench.training.cross_encoder.fit`."""
        place = folders["begun"] if self.begun else located(self.backbone, self.revision)
        place = place / MODEL if isinstance(self.begun, TrainCross) else place
        job = self.compute.job(self.seed)
        check_device(job.device)
        from bench.training.cross_encoder import CrossTrainer
        from bench.training.processes import train_on_several

        given, processes = {"start": place, "pairs": folders["pairs"]}, self.compute.processes
        if processes == 1:
            metadata: Mapping[str, Json] = CrossTrainer(self.config).train(**given, job=job, work=space)
        else:
            metadata = train_on_several(_TRAINER, self.config, given, job, space, processes)
        return {**metadata, "hardware": self.compute.hardware()}


def located(model: str, commit: str | None) -> Path:
    """Return the folder of a model, fetched where it is an id. Raises `UsageError` where there is none."""
    from bench.retrieval.backbones import at_commit, locate

    return locate(at_commit(model, commit)) or Path(model)
