"""train: start + prepared corpus → encoder, held to what a trainer promises."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from bench.core.encoder_config import Role, Trainer, TrainingJob
from bench.core.errors import PluginError, UsageError
from bench.core.workspace import Advance, Workspace
from bench.pipeline import memory
from bench.pipeline.compute import LIBRARIES, Compute, several
from bench.pipeline.sizes import average, core_rate, in_precision, learning, learning_gain
from bench.pipeline.stages.exported import check_device, validate_encoders
from bench.pipeline.stages.init import EncoderStage, Init, begun_size
from bench.pipeline.stages.prepare import Prepare
from bench.store.stage import ENVIRONMENT, NOT_IN_KEY, OPTIONAL, Cost, Resources, versions
from bench.training.config import COLLAPSED, ENCODER, NEVER, TrainingConfig
from bench.types import Json, Method

CODE = 4
"""Version of what trains; part of what points of a training have."""
_FLOPS_A_TOKEN = 2.5e6  # of scratch:2x128


@dataclass(frozen=True, kw_only=True)
class Train(EncoderStage):
    """Encoder before training + prepared corpus → pretrained encoder."""

    name, libraries = "train", LIBRARIES
    code: ClassVar[int | tuple[int, ...]] = CODE
    unit = "tokens"
    start: Init
    shards: Prepare
    method: str
    version: str
    config: Any
    tokens: int  # the budget; 0 where it is in operations
    flops: float | None  # the budget in operations, None where it is in tokens or steps
    steps: int | None = field(default=None, metadata=OPTIONAL)  # the budget in changes of the weights
    seed: int  # of data order, views and dropout
    compute: Compute = field(metadata=ENVIRONMENT)  # but for the number of processes, which is a choice
    plugin: Method = field(metadata=NOT_IN_KEY)
    corpus: str = field(metadata=NOT_IN_KEY)
    # the last of the points that are made on its way (`bench.pipeline.stages.train_point`), none or one
    after: tuple["Train", ...] = field(default=(), metadata=NOT_IN_KEY)

    title = property(lambda self: f"{self.method} on {self.corpus}, seed {self.seed}")
    shares = property(lambda self: self.after)
    reaches = property(lambda _: 1.0, doc="Share of the budget that the training has spent when it ends.")
    begun = property(lambda self: sum(point.reaches for point in self.after), doc="The share spent before its turn.")
    spends = property(lambda self: self.reaches - self.begun, doc="The share that it spends itself.")

    @property
    def cost(self) -> Cost:
        """By the operations of the method's passes where its config and the encoder's shape say them."""
        a_step = self.config.tokens_a_step(self.compute.processes) if self.steps else 0  # of our own configs
        is_ours = isinstance(self.config, TrainingConfig)
        passes = self.config.passes(average("sentence"), average("document")) if is_ours else ()
        shape = begun_size(self) if is_ours else None
        operations = learning(passes, shape, self.config.chunk_tokens) if is_ours else 0.0
        units = self.tokens or (self.steps or 0) * a_step or (self.flops or 0) / (operations or _FLOPS_A_TOKEN)
        units *= self.spends
        if not operations:
            return Cost(f"train {self.method} from {self.origin}", units, 1e4, start=2.0)
        device = self.compute.device.partition(":")[0]
        rate = core_rate("learning") * self.compute.threads * self.compute.processes  # for devices a rough guess
        rate *= learning_gain(self.config.precision, shape, device)
        kind = in_precision(f"train {self.method} on {device}", self.config.precision)
        return Cost(kind, units, rate, 2.0, operations)

    origin = property(lambda self: self.start.origin)

    library_versions = property(lambda self: versions(*self.libraries, *self.plugin.libraries))

    def encoder(self, folder: Path, role: Role = "query") -> Path:
        return folder / ENCODER

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        return self.trained(replace(space, advance=beyond(self.begun * self.tokens, space.advance)), folders, self.job)

    @property
    def job(self) -> TrainingJob:
        """The training, to the end of its budget."""
        return self.compute.job(self.seed, self.tokens, self.flops, self.steps)

    def trained(self, space: Workspace, folders: Mapping[str, Path], job: TrainingJob) -> Mapping[str, Json]:
        """Train into a workspace, on as many processes as there are to be; return the metadata."""
        from bench.training.processes import train_on_several

        processes = self.compute.processes
        if processes == 1:
            metadata = run(space, self.plugin.build_trainer(self.config), folders["start"], folders["shards"], job)
        else:
            metadata = train_on_several(self._trainer(), self.config, folders, job, space, processes)
            validate_encoders(space.out, [(ENCODER, folders["start"])])
        if getattr(self.config, "stop_when", NEVER) == COLLAPSED and "stopped" not in metadata:
            raise UsageError(
                where=f"--stop-when of {self.method}",
                found="a trainer that does not say whether it stopped",
                expected="one that does, as all do that train by bench.training.fit and return what it returns",
                hint="leave --stop-when out for this method",
            )
        return {**metadata, "hardware": self.compute.hardware()}

    @property
    def resources(self) -> Resources:
        """Weights with what an optimizer keeps of each, and the activations of the longest pass."""
        tokens, config = 0.0, self.config
        if isinstance(config, TrainingConfig):
            passes = config.passes(average("sentence"), average("document"))
            tokens = min(max(batch.tokens for _, batch in passes), config.chunk_tokens or math.inf)
        return memory.learning(begun_size(self), tokens, self.compute.training)

    def choices(self) -> dict[str, Json]:
        return several(super().choices(), self.compute)

    def _trainer(self) -> str:
        """Return the trainer's name, by which other processes import it."""
        door: Any = self.plugin.trainer
        name = door if isinstance(door, str) else f"{door.__module__}:{door.__qualname__}"
        if "<" in name:
            raise PluginError(
                where=f"trainer of {self.method}",
                found=f"{name}, with --processes {self.compute.processes}",
                expected="a class or function that other processes can import",
                hint="give it as package.module:Name",
            )
        return name


def beyond(tokens: float, advance: Advance) -> Advance:
    """Return what reports progress without the first tokens, which another stage has trained on."""
    left = [tokens]

    def report(units: float) -> None:
        counted, left[0] = min(units, left[0]), max(0.0, left[0] - units)
        advance(units - counted)

    return report if tokens else advance


def run(work: Workspace, trainer: Trainer, start: Path, shards: Path, job: TrainingJob) -> Mapping[str, Json]:
    """Let the trainer write `encoder/` and `log.jsonl`, under the job's seed, threads and deterministic algorithms.

    Raises:
        UsageError: the device is not there, or the training ran into numbers that are none.
        PluginError: what the trainer wrote is not what it promised.
    """
    from bench.training.determinism import reproducible

    check_device(job.device)
    with reproducible(job):
        metadata = trainer.train(start, shards, job, work)
    validate_encoders(work.out, [(ENCODER, start)])
    return metadata
