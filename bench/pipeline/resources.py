"""What encoders take on a machine that need not be here: operations, hours, memory, disk and what is fetched.

Every number is an estimate from settings alone; the constants and their sources are in `machines.toml`. All devices
share a training, and a corpus that is encoded or searched, as executors would have them; other work has one of them.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.core.errors import UsageError
from bench.core.messages import unknown_name
from bench.data.corpora.named import fetched_bytes
from bench.pipeline.quotas import prepared_tokens
from bench.pipeline.sizes import MASKED, EncoderSize, average, constants, encoder_size, operations
from bench.pipeline.stages.encode import Encode, EncodeSample, EncodeShare
from bench.pipeline.stages.init import begun_size
from bench.pipeline.stages.prepare import Prepare
from bench.pipeline.stages.rerank import Rerank
from bench.pipeline.stages.search_dense import DenseSearch
from bench.pipeline.stages.train import Train
from bench.pipeline.stages.train_cross import TrainCross
from bench.pipeline.stages.tune import Tune
from bench.retrieval.backbones import scratch
from bench.retrieval.settings import CPU_TOKENS, DEVICE_TOKENS
from bench.store.stage import Stage
from bench.training.config import Pass, TrainingConfig

_ADAM = 16  # bytes a weight, with gradient and moments, in float32
_ACTIVATION_BYTES = 34  # a token, layer and unit of width in 16 bits: Korthikanti et al. 2022, no attention


@dataclass(frozen=True)
class Devices:
    """Devices of one kind."""

    name: str
    count: int

    def rate(self, precision: str) -> float:
        """Return the operations a second that encoders reach on all of them; `full` is float32 without TF32."""
        utilisation = constants()["utilisation"]["cpu" if self.name == "cpu" else precision]
        return float(self.count * constants()["devices"][self.name][precision] * utilisation)

    def some(self, count: int) -> "Devices":
        """Return so many of them, but all cores of a processor, which share any work."""
        return self if self.name == "cpu" else Devices(self.name, count)


@dataclass(frozen=True)
class Estimate:
    """What one stage takes; 0 where nothing is known."""

    stage: str
    title: str
    flops: float = 0.0
    tokens: float = 0.0
    hours: float = 0.0
    memory: float = 0.0  # bytes on each device
    disk: float = 0.0  # bytes that it leaves
    download: float = 0.0  # bytes fetched before
    unknown: int = 0  # files of unknown size among these


def machine(text: str) -> Devices:
    """Return the machine that a text such as `8xA100` names. Raises `UsageError` for an unknown one."""
    match = re.fullmatch(r"(?:(?P<count>[1-9]\d{0,4})x)?(?P<name>[\w-]+)", text)
    device_names = {name.lower(): name for name in constants()["devices"]}
    if match is None:
        raise UsageError(where="--devices", found=text, expected="COUNTxNAME", hint="--devices 8xA100")
    if match["name"].lower() not in device_names:
        raise unknown_name("device", match["name"], device_names.values(), where="--devices")
    return Devices(device_names[match["name"].lower()], int(match["count"] or 1))


def needs(stages: Iterable[Stage], on: Devices) -> Iterator[Estimate]:
    """Yield what those of the stages take that prepare a corpus, train an encoder, or compute with one."""
    for stage in stages:
        if isinstance(stage, Prepare):
            yield _prepared(stage)
        elif isinstance(stage, Train) and isinstance(stage.config, TrainingConfig):
            yield _training_estimate(stage, stage.config.passes(average("sentence"), average("document")), on)
        elif isinstance(stage, Tune | TrainCross):
            yield _training_estimate(stage, [(1.0, _training_pass(stage))], on)
        elif isinstance(stage, Encode | Rerank) and not isinstance(stage, EncodeShare):  # it is counted with the whole
            yield _read(stage, on)
        elif isinstance(stage, DenseSearch):
            yield _searched(stage, on)


def _prepared(stage: Prepare) -> Estimate:
    """Return what shards take; of a corpus without a name nothing is known."""
    if stage.named is None:
        return Estimate(stage.name, stage.title)
    text, prepared = constants()["text"], prepared_tokens(stage.named, stage.settings.quota)
    fetched, unknown = fetched_bytes(stage.named.parts)
    seconds = prepared.packed / text["unpacked"] + prepared.read / text["parsed"] + prepared.written / text["encoded"]
    disk, tokens = fetched + 4 * prepared.written, prepared.written
    hours = seconds / 3600
    return Estimate(stage.name, stage.title, tokens=tokens, hours=hours, disk=disk, download=fetched, unknown=unknown)


def _training_pass(stage: Tune | TrainCross) -> Pass:
    """Return the pass over a batch of questions with their passages."""
    if isinstance(stage, TrainCross):
        cross, length = stage.config, min(average("pair"), stage.config.length or math.inf)
        return Pass(cross.queries * (1 + cross.negatives) * length, length)
    config = stage.config
    query, passage = average("query", config.query_tokens), average("passage", config.passage_tokens)
    return Pass(config.pairs * (query + (1 + config.hard_negatives) * passage), passage)


def _training_estimate(stage: Train | Tune | TrainCross, passes: Sequence[tuple[float, Pass]], on: Devices) -> Estimate:
    """Return what a training takes, forward and backward, on all processes; of epochs over uncounted pairs, memory."""
    config: Any = stage.config
    shape, chunk = _shape(stage), getattr(config, "chunk_tokens", None)
    budget: Any = stage if isinstance(stage, Train) else config
    batch = sum(share * batch_pass.tokens for share, batch_pass in passes)
    flops = sum(share * operations(batch_pass, shape, chunk) for share, batch_pass in passes)
    batches = (budget.steps or 0) * getattr(config, "accumulate", 1) * stage.compute.processes
    batches = batches or getattr(budget, "tokens", 0) / batch or (getattr(budget, "flops", 0) or 0) / (flops or 1)
    at_once = min(max(batch_pass.tokens for _, batch_pass in passes), chunk or math.inf)
    bits = 1 if config.precision == "bfloat16" else 2
    masked = sum(
        6 * MASKED * batch_pass.tokens * shape.vocabulary for _, batch_pass in passes if batch_pass.masked
    )  # logits, and a copy
    return Estimate(
        stage.name,
        stage.title,
        flops=batches * flops,
        tokens=batches * batch,
        hours=batches * flops / on.rate(config.precision) / 3600,
        memory=_ADAM * shape.all_weights + bits * _ACTIVATION_BYTES * at_once * shape.layers * shape.width + masked,
        disk=4 * shape.all_weights + 12 * shape.all_weights,  # the encoder, and a checkpoint while it trains
        download=4 * shape.all_weights if isinstance(stage, Train) and not scratch(stage.start.place) else 0.0,
    )


def _read(stage: Encode | Rerank, on: Devices) -> Estimate:
    """Return what forward passes over texts take, or the tokenizer where it is slower; corpora are shared out."""
    on, on_cpu, dtype, disk = on.some(len(stage.shares) or 1), on.name == "cpu", "float32", 0.0
    shape, texts, length = _shape(stage), _count(stage), average("pair")
    if isinstance(stage, Encode):
        encoder_config, dtype, disk = stage.encoder_config, stage.encoder_config.dtype, 4 * texts * shape.width
        most = encoder_config.query_length if stage.role == "query" else encoder_config.passage_length
        length = average("sentence" if isinstance(stage, EncodeSample) else stage.role, most)
    tokens, kind, size = texts * length, *(("bfloat16", 2) if dtype == "bfloat16" else ("full", 4))
    flops = operations(Pass(tokens, length, learns=False), shape)
    words = tokens / (constants()["text"]["tokenised"] * on.count * (1 if on_cpu else stage.compute.threads))
    at_once = getattr(stage, "batch_tokens", None) or (CPU_TOKENS if on_cpu else DEVICE_TOKENS)
    memory = 4 * shape.all_weights + size * at_once * (shape.inner + 5 * shape.width)  # activations of one layer
    hours = max(flops / on.rate(kind), words) / 3600 if flops else 0.0
    return Estimate(stage.name, stage.title, flops, tokens, hours, memory, disk)


def _searched(stage: DenseSearch, on: Devices) -> Estimate:
    """Return what an exact search takes: products, and for each block of queries a pass over all vectors."""
    corpora = [
        stage_input
        for stage_input in stage.passages.chain()
        if isinstance(stage_input, Encode) and not isinstance(stage_input, EncodeSample)
    ]
    if not corpora or getattr(stage.subset, "candidates", None):  # of lists that nobody has read
        return Estimate(stage.name, stage.title)
    speeds, questions, devices = constants()["search"], _count(stage), on.some(stage.workers)
    values = _count(corpora[-1]) * _shape(corpora[-1]).width
    flops, passes = 2 * questions * values, math.ceil(questions / speeds["queries"])
    plain = stage.similarity == "dot" or (stage.similarity == "cos" and corpora[-1].encoder_config.normalise)
    moved = 4 * values * passes / devices.count / speeds["sent" if plain else "scaled"]
    hours = (flops / devices.rate("full") + moved) / 3600
    return Estimate(stage.name, stage.title, flops, hours=hours, memory=min(4 * values, 3 * speeds["block"]))


def _count(stage: Stage) -> float:
    """Return how many texts, questions or pairs there are; 0 where nobody has counted them."""
    return stage.cost.units if stage.cost.units > 1 else 0.0


def _shape(stage: Stage) -> EncoderSize:
    """Return the shape of the encoder that a stage trains or computes with."""
    if isinstance(stage, Rerank) and stage.trained:
        return _shape(stage.trained)
    size = None if isinstance(stage, Rerank) else begun_size(stage)
    return size or encoder_size(str(getattr(stage, "backbone", getattr(stage, "place", ""))))
