"""What pretrainings take on a machine that need not be here: operations, hours, memory, disk and what is fetched.

Every number is an estimate from settings alone; the constants and their sources are in `machines.toml`.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

from bench.core.errors import UsageError
from bench.core.messages import unknown_name
from bench.data.corpora.named import fetched_bytes
from bench.pipeline.stages.prepare import Prepare
from bench.pipeline.stages.train import Train
from bench.retrieval.backbones import scratch
from bench.store.stage import Stage
from bench.training.config import Pass, TrainingConfig

_LEARNT, _ADAM = 3, 16  # times the operations of a forward pass; bytes a weight, with gradient and moments, in float32
_KEPT = 34  # bytes of activations a token, layer and unit of width in 16 bits: Korthikanti et al. 2022, no attention
_MASKED = 0.15  # of the tokens are predicted by masked prediction: XLM-R, as BERT


@dataclass(frozen=True)
class Devices:
    """Devices of one kind."""

    name: str
    count: int

    def rate(self, precision: str) -> float:
        """Return the operations a second that trainings reach on all of them."""
        used = _known()["utilisation"]["cpu" if self.name == "cpu" else precision]
        return float(self.count * _known()["devices"][self.name][precision] * used)


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


@dataclass(frozen=True)
class _EncoderSize:
    """An encoder, as far as its cost goes."""

    layers: int
    width: int
    inner: int
    vocabulary: int

    @property
    def weights(self) -> float:
        """Those that every token is multiplied by: attention, both layers after it, two normalisations."""
        attention, forward = 4 * self.width * (self.width + 1), 2 * self.width * self.inner + self.inner + self.width
        return self.layers * (attention + forward + 4 * self.width)


@cache
def _known() -> Mapping[str, Any]:
    """Return the constants."""
    return tomllib.loads(files("bench.pipeline").joinpath("machines.toml").read_text(encoding="utf-8"))


def machine(text: str) -> Devices:
    """Return the machine that a text such as `8xA100` names. Raises `UsageError` for an unknown one."""
    match = re.fullmatch(r"(?:(?P<count>[1-9]\d{0,4})x)?(?P<name>[\w-]+)", text)
    known = {name.lower(): name for name in _known()["devices"]}
    if match is None:
        raise UsageError(where="--devices", found=text, expected="COUNTxNAME", hint="--devices 8xA100")
    if match["name"].lower() not in known:
        raise unknown_name("device", match["name"], known.values(), where="--devices")
    return Devices(known[match["name"].lower()], int(match["count"] or 1))


def needs(stages: Iterable[Stage], on: Devices) -> Iterator[Estimate]:
    """Yield what the stages of pretrainings take, those of `prepare` and `train`."""
    for stage in stages:
        if isinstance(stage, Prepare):
            yield _prepared(stage)
        elif isinstance(stage, Train) and isinstance(stage.config, TrainingConfig):
            yield _trained(stage, on)


def _prepared(stage: Prepare) -> Estimate:
    """Return what shards take; of a corpus without a name nothing is known, of a mixture what its weights leave."""
    if stage.named is None:
        return Estimate(stage.name, stage.title)
    text, parts = _known()["text"], stage.named.parts
    sizes = [one.fetched_bytes()[0] * text.get(PurePosixPath(one.corpus.urls[0]).suffix, 1.0) for one in parts]
    shares = [(size, one.weight) for size, one in zip(sizes, parts, strict=True) if one.weight]
    whole = min(size / weight for size, weight in shares) * sum(w for _, w in shares) if shares else sum(sizes)
    tokens, (fetched, unknown) = whole / text["token"], fetched_bytes(parts)
    hours, disk = tokens / text["prepared"] / 3600, fetched + 4 * tokens
    return Estimate(stage.name, stage.title, tokens=tokens, hours=hours, disk=disk, download=fetched, unknown=unknown)


def _trained(stage: Train, on: Devices) -> Estimate:
    """Return what a training takes: its passes and masked prediction, forward and backward, on all processes."""
    config, shape, average = stage.config, _shape(stage), _known()["average"]
    passes = config.passes(average["sentence"], average["document"])
    batch = sum(share * one.tokens for share, one in passes)
    flops = sum(share * _operations(one, shape, config) for share, one in passes)
    batches = (stage.steps or 0) * config.accumulate * stage.compute.processes or stage.tokens / batch
    batches = batches or (stage.flops or 0.0) / flops
    whole = shape.weights + shape.vocabulary * shape.width
    at_once = min(max(one.tokens for _, one in passes), config.chunk_tokens or float("inf"))
    bits = 1 if config.precision == "bfloat16" else 2
    masked = sum(6 * _MASKED * one.tokens * shape.vocabulary for _, one in passes if one.masked)  # logits, and a copy
    return Estimate(
        stage.name,
        stage.title,
        flops=batches * flops,
        tokens=batches * batch,
        hours=batches * flops / on.rate(config.precision) / 3600,
        memory=_ADAM * whole + bits * _KEPT * at_once * shape.layers * shape.width + masked,
        disk=4 * whole + 12 * whole,  # the encoder, and a checkpoint while it trains
        download=0.0 if scratch(stage.start.place) else 4 * whole,
    )


def _operations(one: Pass, shape: _EncoderSize, config: TrainingConfig) -> float:
    """Return the operations of a pass (`bench.training.meter`), and of masked prediction where the batch has it."""
    forward = one.tokens * (2 * shape.weights + 4 * shape.layers * shape.width * one.length)
    forward += 2 * one.heads * shape.width**2
    again = 1 if config.chunk_tokens and one.learns else 0
    head = 2 * _MASKED * one.tokens * shape.width * (shape.width + shape.vocabulary) if one.masked else 0.0
    return float((forward + head) * ((_LEARNT if one.learns else 1) + again))


def _shape(stage: Train) -> _EncoderSize:
    """Return the shape of the encoder that is trained; of a backbone that nobody knows, that of XLM-R base."""
    own = scratch(stage.start.place)
    if own:
        return _EncoderSize(own.layers, own.width, 4 * own.width, stage.shards.settings.vocabulary)
    known = _known()["backbones"]
    return _EncoderSize(*known.get(stage.start.place.partition("@")[0], known["FacebookAI/xlm-roberta-base"]))
