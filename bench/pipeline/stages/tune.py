"""tune: encoder + training pairs → tuned encoder, or two, held to what every training is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.core.encoder_config import Role
from bench.core.workspace import Workspace
from bench.pipeline import memory
from bench.pipeline.compute import LIBRARIES, Compute, several
from bench.pipeline.sizes import average, in_precision, learning_gain
from bench.pipeline.stages.exported import check_device, validate_encoders
from bench.pipeline.stages.init import EncoderStage, begun_size
from bench.pipeline.stages.mine import Mine
from bench.pipeline.stages.pairs import StorePairs
from bench.store.stage import ENVIRONMENT, NOT_IN_KEY, OPTIONAL, Cost, Resources
from bench.training.config import ENCODER, PASSAGES
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Json


@dataclass(frozen=True, kw_only=True)
class Tune(EncoderStage):
    """Encoder + training pairs → tuned encoder, or two."""

    name, code, libraries = "tune", 2, LIBRARIES
    unit = "pairs"
    start: EncoderStage  # the encoder before
    pairs: StorePairs | Mine  # what is learnt from, as stored or mined
    dev: StorePairs | None = field(default=None, metadata=OPTIONAL)  # None: a share of `pairs` is held out
    config: FineTuningConfig  # how; what was mined is in the pairs
    seed: int
    compute: Compute = field(metadata=ENVIRONMENT)  # but for the number of processes, which is a choice
    label: str = field(metadata=NOT_IN_KEY)

    title = property(lambda self: self.label)
    origin = property(lambda self: self.start.origin)
    untied = property(lambda self: not self.config.tied)

    @property
    def cost(self) -> Cost:
        queries = self.config.questions(self.pairs.cost.units, self.compute.processes, own_dev=self.dev is not None)
        rate = 150.0 * learning_gain(self.config.precision, None, self.compute.device)
        return Cost(in_precision(f"tune {self.origin}", self.config.precision), queries, rate, start=2.0)

    def encoder(self, folder: Path, role: Role = "query") -> Path:
        untied = role == "passage" and (folder / PASSAGES).is_dir()
        return folder / (PASSAGES if untied else ENCODER)

    @property
    def resources(self) -> Resources:
        """Weights with what an optimizer keeps of each, and the activations of a batch."""
        config = self.config
        query, passage = average("query", config.query_tokens), average("passage", config.passage_tokens)
        tokens = config.pairs * (query + (1 + config.hard_negatives) * passage)
        return memory.learning(begun_size(self), tokens, self.compute.training)

    def choices(self) -> dict[str, Json]:
        return several(super().choices(), self.compute)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write `encoder/`, `passages/` where questions and passages have an encoder each, and `log.jsonl`.

        Under the job's seed, threads and deterministic algorithms. Facts: `bench.training.fine_tuning.fine_tune`.

        Raises:
            UsageError: the device is not there, there are too few pairs, a start with two encoders is to become one, or
                the training ran into numbers that are none.
            PluginError: what was written is not as promised.
        """
        from bench.training.determinism import reproducible
        from bench.training.fine_tuning import fine_tune
        from bench.training.processes import train_on_several

        start, passages = (self.start.encoder(folders["start"], role) for role in ("query", "passage"))
        second, job = None if passages == start else passages, self.compute.job(self.seed)
        check_device(job.device)
        given = {"start": start, "pairs": folders["pairs"], "passages": second, "dev": folders.get("dev")}
        there = {name: path for name, path in given.items() if path is not None}
        if self.compute.processes > 1:
            metadata = train_on_several(None, self.config, there, job, space, self.compute.processes)
        else:
            with reproducible(job):
                metadata = fine_tune(space, config=self.config, job=job, **there)
        encoders = [(ENCODER, start)]
        if not self.config.tied:
            encoders.append((PASSAGES, passages))
        validate_encoders(space.out, encoders)
        return {**metadata, "hardware": self.compute.hardware()}
