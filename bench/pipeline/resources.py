"""What stages take on a machine that need not be here: operations, hours, memory and disk.

Every number is an estimate from settings and counts alone; the constants and their sources are in `machines.toml`. All
devices share a training, and a corpus that is encoded or searched, as executors would have them. What needs no encoder
is work of one core of any machine, at the rates that stages state of themselves.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bench.core.errors import UsageError
from bench.core.messages import unknown_name
from bench.pipeline.quotas import prepared_tokens
from bench.pipeline.sizes import MASKED, EncoderSize, average, constants, encoder_size, launches, operations
from bench.pipeline.stages.encode import Encode, EncodeSample, EncodeShare
from bench.pipeline.stages.init import Init, begun_size
from bench.pipeline.stages.prepare import Prepare
from bench.pipeline.stages.rerank import Rerank
from bench.pipeline.stages.search_dense import DenseSearch
from bench.pipeline.stages.train import Train
from bench.pipeline.stages.train_cross import TrainCross
from bench.pipeline.stages.tune import Tune
from bench.retrieval.settings import CPU_TOKENS, DEVICE_TOKENS
from bench.store.stage import Stage
from bench.training.config import Pass, TrainingConfig

_ADAM = 16  # bytes a weight, with gradient and moments, in float32
_WORD, _SENTENCE = 68, 0.56  # bytes of a tokenizer for each word, and of places of sentences for each token: measured
_ACTIVATION_BYTES = 34  # a token, layer and unit of width in 16 bits: Korthikanti et al. 2022, no attention


Bound = Literal["", "arithmetic", "launches", "tokenizer"]
"""What work waits for most of all; empty where nobody has counted that."""


@dataclass(frozen=True)
class Devices:
    """Devices of one kind."""

    name: str
    count: int

    def rate(self, precision: str) -> float:
        """Return the operations a second that encoders reach on all of them where nothing waits for launches.

        `full` is float32 without TF32, and `half` bfloat16 after training, where a processor has another rate for it.
        A processor's rates were measured; of a GPU's, a share is reached that was measured on another one.
        """
        rates = constants()["devices"][self.name]
        kind = next(name for name in (precision, *("bfloat16",) * (precision == "half"), "full") if name in rates)
        return float(self.count * rates[kind] * (1.0 if self.name == "cpu" else constants()["reached"][kind]))

    def hours(self, flops: float, precision: str, launched: float, words: float = 0.0) -> tuple[float, Bound]:
        """Return the hours of work, and what it waits for: of what goes on side by side, the slowest.

        Args:
            flops: operations in all.
            precision: as of `rate`.
            launched: operations that are sent to GPUs, by a processor for each GPU.
            words: seconds of the tokenizer.
        """
        sent = launched * constants()["launches"]["seconds"] / self.count
        seconds: dict[Bound, float] = {"arithmetic": flops / self.rate(precision), "launches": sent, "tokenizer": words}
        bound = max(seconds, key=seconds.__getitem__)
        return seconds[bound] / 3600, bound if seconds[bound] else ""

    def launches(self, batch: Pass, shape: EncoderSize, chunk: int | None = None) -> float:
        """Return how many operations they are sent for a pass; a processor computes them itself."""
        return 0.0 if self.name == "cpu" else launches(batch, shape, chunk)

    def some(self, count: int) -> "Devices":
        """Return so many of them, but all cores of a processor, which share any work."""
        return self if self.name == "cpu" else Devices(self.name, count)


@dataclass(frozen=True)
class Estimate:
    """What one stage takes; 0 where nothing is known."""

    stage: str
    title: str
    system: str = ""  # label of the system that it is for, where it is for one
    work: Literal["devices", "core"] = "core"  # whose hours they are: of all devices at work, or of one core
    flops: float = 0.0
    tokens: float = 0.0
    hours: float = 0.0
    launches: float = 0.0  # operations that are sent to GPUs
    bound: Bound = ""  # by what the hours are
    memory: float = 0.0  # bytes on each device
    main: float = 0.0  # bytes of main memory
    disk: float = 0.0  # bytes that it leaves
    parts: float = 0.0  # bytes on disk besides, until it is done


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
    """Yield what each of the stages takes; shares of a corpus are counted with the whole."""
    begun: set[str] = set()  # kinds of work that have loaded what they need
    for stage in stages:
        if isinstance(stage, EncodeShare):
            continue
        estimate = _on_devices(stage, on) or (_prepared(stage) if isinstance(stage, Prepare) else _worked(stage, begun))
        yield replace(
            estimate,
            system=system_of(stage),
            main=stage.resources.memory * (1 << 30),
            disk=stage.disk or estimate.disk,
            parts=stage.parts,
        )


def system_of(stage: Stage) -> str:
    """Return the label of the system that a stage is for, or its method; empty where systems share it."""
    for holder in (stage, getattr(stage, "index", None)):
        method = getattr(holder, "method", "")
        if name := getattr(holder, "system_label", "") or getattr(method, "name", method):
            return str(name)
    return ""


def _on_devices(stage: Stage, on: Devices) -> Estimate | None:
    """Return what a stage takes that trains an encoder or computes with one; None for other work."""
    if isinstance(stage, Train) and isinstance(stage.config, TrainingConfig):
        return _training_estimate(stage, stage.config.passes(average("sentence"), average("document")), on)
    if isinstance(stage, Tune | TrainCross):
        return _training_estimate(stage, [(1.0, _training_pass(stage))], on)
    if isinstance(stage, Encode | Rerank):
        return _read(stage, on)
    return _searched(stage, on) if isinstance(stage, DenseSearch) else None


def _worked(stage: Stage, begun: set[str]) -> Estimate:
    """Return what a core takes for a stage, with what the first of its kind loads; no hours where nobody knows.

    `begun` are the kinds that have been loaded, and gets this one.
    """
    cost = stage.cost
    seconds = cost.work / cost.rate + cost.start * (cost.kind not in begun) if cost.units else 0.0
    begun.add(cost.kind)
    disk = _saved(_shape(stage)) if isinstance(stage, Init) else 0.0
    return Estimate(stage.name, stage.title, hours=seconds / 3600, disk=disk)


def _saved(shape: EncoderSize) -> float:
    """Return the bytes of an encoder's folder: its weights, and its tokenizer."""
    return 4 * shape.all_weights + _WORD * shape.vocabulary


def _prepared(stage: Prepare) -> Estimate:
    """Return what shards take; of a corpus without a name nothing is known."""
    text = constants()["text"]
    if stage.named is None:
        short = stage.backbone is None and stage.settings.vocabulary <= 1 << 16
        disk = ((2 if short else 4) + _SENTENCE) * 1e6 * stage.cost.units / text["token"]
        return replace(_worked(stage, set()), disk=disk)
    prepared = prepared_tokens(stage.named, stage.settings.quota)
    seconds = prepared.packed / text["unpacked"] + prepared.read / text["parsed"] + prepared.written / text["encoded"]
    return Estimate(stage.name, stage.title, tokens=prepared.written, hours=seconds / 3600, disk=4 * prepared.written)


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
    launched = sum(share * on.launches(batch_pass, shape, chunk) for share, batch_pass in passes)
    batches = (budget.steps or 0) * getattr(config, "accumulate", 1) * stage.compute.processes
    batches = batches or getattr(budget, "tokens", 0) / batch or (getattr(budget, "flops", 0) or 0) / (flops or 1)
    batches *= getattr(stage, "spends", 1.0)  # what lies between two points of a training, or after the last
    at_once = min(max(batch_pass.tokens for _, batch_pass in passes), chunk or math.inf)
    bits = 1 if config.precision == "bfloat16" else 2
    masked = sum(
        6 * MASKED * batch_pass.tokens * shape.vocabulary for _, batch_pass in passes if batch_pass.masked
    )  # logits, and a copy
    hours, bound = on.hours(batches * flops, config.precision, batches * launched)
    return Estimate(
        stage.name,
        stage.title,
        work="devices",
        flops=batches * flops,
        tokens=batches * batch,
        hours=hours,
        launches=batches * launched,
        bound=bound,
        memory=_ADAM * shape.all_weights + bits * _ACTIVATION_BYTES * at_once * shape.layers * shape.width + masked,
        disk=_saved(shape),
    )


def _read(stage: Encode | Rerank, on: Devices) -> Estimate:
    """Return what forward passes over texts take, or the tokenizer where it is slower; corpora are shared out."""
    on, on_cpu, dtype = on.some(len(stage.shares) or 1), on.name == "cpu", "float32"
    shape, texts, length = _shape(stage), _count(stage), average("pair")
    if isinstance(stage, Encode):
        encoder_config, dtype = stage.encoder_config, stage.encoder_config.dtype
        most = encoder_config.query_length if stage.role == "query" else encoder_config.passage_length
        length = average("sentence" if isinstance(stage, EncodeSample) else stage.role, most)
    tokens, kind, size = texts * length, *(("half", 2) if dtype == "bfloat16" else ("full", 4))
    at_once = getattr(stage, "batch_tokens", None) or (CPU_TOKENS if on_cpu else DEVICE_TOKENS)
    calls = Pass(tokens, length, learns=False, calls=math.ceil(tokens / at_once))
    flops, launched = operations(calls, shape), on.launches(calls, shape)
    words = tokens / (constants()["text"]["tokenised"] * on.count * (1 if on_cpu else stage.compute.threads))
    memory = 4 * shape.all_weights + size * at_once * (shape.inner + 5 * shape.width)  # activations of one layer
    hours, bound = on.hours(flops, kind, launched, words if flops else 0.0)
    row = Estimate(stage.name, stage.title, work="devices", flops=flops, tokens=tokens, hours=hours, memory=memory)
    return replace(row, launches=launched, bound=bound)


def _searched(stage: DenseSearch, on: Devices) -> Estimate | None:
    """Return what an exact search takes: products, and for each block of queries a pass over all vectors.

    None of lists that nobody has read.
    """
    corpora = [
        stage_input
        for stage_input in stage.passages.chain()
        if isinstance(stage_input, Encode) and not isinstance(stage_input, EncodeSample)
    ]
    if not corpora or getattr(stage.subset, "candidates", None):
        return None
    speeds, questions, devices = constants()["search"], _count(stage), on.some(stage.workers)
    values = _count(corpora[-1]) * _shape(corpora[-1]).width
    flops, passes = 2 * questions * values, math.ceil(questions / speeds["queries"])
    plain = stage.similarity == "dot" or (stage.similarity == "cos" and corpora[-1].encoder_config.normalise)
    moved = 4 * values * passes / devices.count / speeds["sent" if plain else "scaled"]
    hours = (flops / devices.rate("full") + moved) / 3600
    memory = min(4 * values, 3 * speeds["block"])
    return Estimate(stage.name, stage.title, work="devices", flops=flops, hours=hours, memory=memory)


def _count(stage: Stage) -> float:
    """Return how many texts, questions or pairs there are; 0 where nobody has counted them."""
    return stage.cost.units if stage.cost.units > 1 else 0.0


def _shape(stage: Stage) -> EncoderSize:
    """Return the shape of the encoder that a stage trains or computes with."""
    if isinstance(stage, Rerank) and stage.trained:
        return _shape(stage.trained)
    size = None if isinstance(stage, Rerank) else begun_size(stage)
    return size or encoder_size(str(getattr(stage, "backbone", getattr(stage, "place", ""))))
