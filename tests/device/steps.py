"""Steps on the emulated device, and what they ask of it; a process of its own takes them.

    python -m tests.device.steps FOLDER CASE …

prints one JSON object: case → its steps, or the message of the error that ended it. A step of a training is the
loop's; that of encoding is a batch, that of search a block of passages.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from bench.retrieval import cross_encoder as scoring
from bench.retrieval import encoder, packed, search
from bench.training import cross_encoder, heads, loop, meter
from tests.device.emulator import DEVICE, Entry, Ledger, emulated

WARM_UP, COUNTED = 2, 3
"""Steps before those that are counted, in which kernels are tried and weights get a gradient for the first time; and
these.
"""

FORWARD, BETWEEN, OTHER = "forward and backward", "between two gradients", "after the last backward pass"
"""Parts of a step; only ASAM takes two gradients."""


@dataclass
class Step:
    """What one step asked of the device."""

    micro_batches: int = 0
    layers: float = 0.0  # of encoders that were passed: half of one for a forward pass alone
    asked: dict[str, list[list[Any]]] = field(default_factory=dict)  # part of the step → entries and how often

    def add(self, part: str, entries: Counter[Entry]) -> None:
        self.asked.setdefault(part, []).extend([[*entry, count] for entry, count in entries.items()])


class StoppedError(Exception):
    """The steps that are counted have been taken."""


class Watch:
    """Counts steps, and ends what takes them after the last that counts."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.steps = ledger, list[Step]()

    def begin(self) -> None:
        """Begin a step."""
        self.ledger.take()
        self.steps.append(Step())

    def part(self, name: str) -> None:
        """Write down what was asked since the last call."""
        self.steps[-1].add(name, self.ledger.take())

    def end(self) -> None:
        """End a step."""
        self.part(OTHER)
        if len(self.steps) == WARM_UP + COUNTED:
            raise StoppedError

    def passed(self, layers: float) -> None:
        """Count layers of an encoder."""
        if self.steps:
            self.steps[-1].layers += layers


@contextmanager
def watched(ledger: Ledger) -> Iterator[Watch]:
    """Count the steps of whatever runs."""
    watch = Watch(ledger)
    taken, made = loop._TrainingLoop.step, loop._TrainingLoop._gradients
    encoded, scored = meter.Meter.encoded, scoring.forward
    pooled, found, layer = encoder.TorchEncoder._pooled, search._torch, heads.Layer.forward
    memory: Callable[..., Any] = torch.optim.AdamW._init_group

    def step(self: Any) -> None:
        watch.begin()
        taken(self)
        watch.end()

    def gradients(self: Any, batches: Any, **options: Any) -> Any:
        watch.part(BETWEEN)
        result = made(self, batches, **options)
        watch.steps[-1].micro_batches += len(batches)
        watch.part(FORWARD)
        return result

    def counted(self: Any, model: Any, rows: Any, *, gradients: bool, recomputed: bool = False) -> None:
        watch.passed(((1 if gradients else 0.5) + (0.5 if recomputed else 0)) * model.config.num_hidden_layers)
        encoded(self, model, rows, gradients=gradients, recomputed=recomputed)

    def layered(self: Any, *arguments: Any) -> Any:
        again = torch._C._current_graph_task_id() != -1  # recomputed in a backward pass
        watch.passed(1 if torch.is_grad_enabled() and not again else 0.5)
        return layer(self, *arguments)

    def remembered(self: Any, *arguments: Any) -> Any:
        watch.part(OTHER)
        result = memory(self, *arguments)
        ledger.take()  # memory is made once, for each weight that has a gradient for the first time
        return result

    def crossed(model: Any, *arguments: Any) -> Any:
        watch.passed(model.config.num_hidden_layers)
        return scored(model, *arguments)

    def batch(self: Any, sequences: Any) -> Any:
        watch.begin()
        watch.steps[-1].micro_batches += 1
        watch.passed(0.5 * self._model.config.num_hidden_layers)
        result = pooled(self, sequences)
        watch.end()
        return result

    def block(*arguments: Any, **options: Any) -> Any:
        watch.begin()
        watch.steps[-1].micro_batches += 1
        result = found(*arguments, **options)
        watch.end()
        return result

    with (
        patch.object(loop._TrainingLoop, "step", step),
        patch.object(loop._TrainingLoop, "_gradients", gradients),
        patch.object(meter.Meter, "encoded", counted),
        patch.object(heads.Layer, "forward", layered),
        patch.object(torch.optim.AdamW, "_init_group", remembered),
        patch.object(cross_encoder, "forward", crossed),
        patch.object(encoder.TorchEncoder, "_pooled", batch),
        patch.object(search, "_torch", block),
    ):
        yield watch


@contextmanager
def on_device() -> Iterator[Ledger]:
    """Let the product take the emulated device for one with kernels for sequences of any lengths."""
    with emulated() as ledger, patch.object(packed, "_DEVICES", ("cuda", DEVICE)):
        yield ledger


def steps_of(work: Callable[[], object]) -> list[dict[str, Any]]:
    """Return the counted steps of some work."""
    with on_device() as ledger, watched(ledger) as watch:
        try:
            work()
        except StoppedError:
            return [asdict(step) for step in watch.steps[WARM_UP:]]
    raise AssertionError(f"found {len(watch.steps)} steps, expected at least {WARM_UP + COUNTED}")


def main(arguments: list[str]) -> None:
    """Take the steps of some cases, or of all."""
    from tests.device.cases import CASES

    folder, names = Path(arguments[0]), arguments[1:] or list(CASES)
    results: dict[str, Any] = {}
    for number, name in enumerate(names):
        (place := folder / str(number)).mkdir(parents=True)
        try:
            results[name] = CASES[name](place)
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
            traceback.print_exc()
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
