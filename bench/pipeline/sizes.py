"""Encoders as far as their cost goes: shapes, operations of a pass, average texts; constants are in `machines.toml`."""

import json
import math
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bench.core.machine import bfloat16_speed
from bench.retrieval.backbones import scratch
from bench.training.config import Pass, Precision

MASKED = 0.15  # of the tokens are predicted by masked prediction: XLM-R, as BERT
_LEARNT = 3  # times the operations of a forward pass
_PROBED = 512  # rows and columns of the matrices that say how fast this processor is
_SHAPE = ("num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size")


@dataclass(frozen=True)
class EncoderSize:
    """An encoder, as far as its cost goes; 0 where nothing is known."""

    layers: int
    width: int
    inner: int
    vocabulary: int

    @property
    def all_weights(self) -> float:
        """All weights, the embeddings included."""
        return self.weights + self.vocabulary * self.width

    @property
    def weights(self) -> float:
        """Those that every token is multiplied by: attention, both layers after it, two normalisations."""
        attention, forward = 4 * self.width * (self.width + 1), 2 * self.width * self.inner + self.inner + self.width
        return self.layers * (attention + forward + 4 * self.width)


@cache
def constants() -> Mapping[str, Any]:
    """Return the constants."""
    return tomllib.loads(files("bench.pipeline").joinpath("machines.toml").read_text(encoding="utf-8"))


@cache
def core_rate(work: Literal["learning", "reading"]) -> float:
    """Return the operations a second that encoders reach on one core here, after a probe of some milliseconds."""
    matrix, took = np.ones((_PROBED, _PROBED), np.float32), list[float]()
    for _ in range(6):
        began = time.process_time()
        matrix @ matrix
        took.append(time.process_time() - began)  # of all threads
    return float(constants()["probe"][work] * 2 * _PROBED**3 / max(1e-6, min(took)))


def in_precision(kind: str, precision: Precision) -> str:
    """Return what work of a kind is called in a precision: its rate is another one than in float32."""
    return kind if precision == "float32" else f"{kind} in {precision}"


def _gain(work: str, precision: Precision, shape: EncoderSize | None, device: str) -> float:
    """Return how many times as fast as in float32 an encoder of a shape works in a precision.

    On this processor products gain what a probe says (`bench.core.machine.bfloat16_speed`), all else nothing; of an
    unknown shape they are half of the time. 1 on other devices.
    """
    if precision == "float32" or device != "cpu":
        return 1.0
    besides = float(constants()["probe"]["besides"][work])
    rest = besides / max(besides, shape.width) if shape and shape.width else 0.5
    return 1 / (rest + (1 - rest) / bfloat16_speed())


learning_gain, reading_gain = partial(_gain, "learning"), partial(_gain, "reading")
"""Of a training, and of a forward pass alone."""


@cache
def encoder_size(place: str, vocabulary: int = 0) -> EncoderSize:
    """Return the shape of a backbone: as it is named, as the constants or its own folder have it; else nothing."""
    if shape := scratch(place):
        return EncoderSize(shape.layers, shape.width, 4 * shape.width, vocabulary)
    with suppress(OSError, ValueError, KeyError, TypeError, ArithmeticError, RuntimeError):
        config = json.loads((Path(place).expanduser() / "config.json").read_bytes())
        return EncoderSize(*(int(config[name]) for name in _SHAPE))
    return EncoderSize(*constants()["backbones"].get(place.partition("@")[0], (0, 0, 0, 0)))


def average(of: str, most: float | None = None) -> float:
    """Return the average tokens of a text as far as it is read."""
    return min(float(constants()["average"][of]), most or math.inf)


def operations(batch: Pass, shape: EncoderSize, chunk: int | None = None) -> float:
    """Return the operations of a pass (`bench.training.meter`), and of masked prediction where the batch has it."""
    forward = batch.tokens * (2 * shape.weights + 4 * shape.layers * shape.width * batch.length)
    forward += 2 * batch.heads * shape.width**2
    recomputed = 1 if chunk and batch.learns else 0
    head = 2 * MASKED * batch.tokens * shape.width * (shape.width + shape.vocabulary) if batch.masked else 0.0
    return float((forward + head) * ((_LEARNT if batch.learns else 1) + recomputed))


def launches(batch: Pass, shape: EncoderSize, chunk: int | None = None) -> float:
    """Return about how many operations a GPU is sent for a pass: so many a layer and call, and some besides.

    With chunks, each is a call of its own and goes forward a second time.
    """
    counts = constants()["launches"]
    if not batch.learns or not shape.layers:
        return float(batch.calls * shape.layers * counts["reading"])
    calls, layer = batch.calls, counts["learning"]
    if chunk:
        calls, layer = max(calls, math.ceil(batch.tokens / chunk)), layer + counts["reading"]
    besides = batch.layers * counts["learning"] + bool(batch.calls) * counts["besides"]
    return float(calls * shape.layers * layer + besides)


def reading(length: float, shape: EncoderSize | None) -> float:
    """Return the operations of reading a text, with those that its tokenizer has time for; 0 where nothing is known."""
    words = length * core_rate("reading") / constants()["text"]["tokenised"]
    return operations(Pass(length, length, learns=False), shape) + words if shape and shape.layers else 0.0


def learning(passes: Sequence[tuple[float, Pass]], shape: EncoderSize | None, chunk: int | None) -> float:
    """Return the operations of a training for each token that it reads; 0 where nothing is known."""
    if not shape or not shape.layers:
        return 0.0
    total = sum(share * operations(batch, shape, chunk) for share, batch in passes)
    return total / sum(share * batch.tokens for share, batch in passes)
