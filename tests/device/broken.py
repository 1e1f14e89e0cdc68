"""SimCSE with one line that a GPU must not meet, for each thing that the device's tests assert."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from bench.training import fit, info_nce
from methods.simcse.trainer import SentencesTwice, SimcseTrainer

Vectors = torch.Tensor


@torch.library.custom_op("bench_tests::many", mutates_args=())
def many(rows: torch.Tensor) -> torch.Tensor:
    """An operation by one name that does many."""
    total = rows
    for _ in range(800):
        total = total * 1.0  # broken: launches-by-one-name
    return total


def mixed(rows: Vectors) -> Vectors:
    return rows + torch.zeros(len(rows), 1)  # broken: mixed


def read(rows: Vectors) -> Vectors:
    return rows if float(rows.detach().sum()) > -1e9 else -rows  # broken: read


def read_for_a_size(rows: Vectors) -> Vectors:
    return rows[rows.isfinite().all(1)]  # broken: read-for-a-size


def copy(rows: Vectors) -> Vectors:
    return rows[torch.arange(len(rows)).to(rows.device)]  # broken: copy


def copy_of_numbers(rows: Vectors) -> Vectors:
    return rows * torch.tensor([1.0] * len(rows), device=rows.device)[:, None]  # broken: copy-of-numbers


def launches(rows: Vectors) -> Vectors:
    for _ in range(400):
        rows = rows * 1.0  # broken: launches
    return rows


def launches_by_one_name(rows: Vectors) -> Vectors:
    ones: Vectors = many(rows.detach())
    return rows + ones * 0.0


def after_step(name: str, model: torch.nn.Module) -> None:
    weights = [weight.detach() for weight in model.parameters()]
    if name == "optimiser":
        for weight in weights:
            weight.mul_(1.0)  # broken: optimiser
    if name == "second-read":
        weights[0].sum().item()  # broken: second-read


IN_THE_LOSS: dict[str, Callable[[Vectors], Vectors]] = {
    "mixed": mixed,
    "read": read,
    "read-for-a-size": read_for_a_size,
    "copy": copy,
    "copy-of-numbers": copy_of_numbers,
    "launches": launches,
    "launches-by-one-name": launches_by_one_name,
}
LINES = (*IN_THE_LOSS, "optimiser", "second-read")


class BrokenTrainer(SimcseTrainer):
    """SimCSE with a broken line."""

    line = ""

    def train_on(self, encoder: Any, corpus: Any, job: Any, work: Any) -> Any:
        sentences = SentencesTwice(corpus, self.config, job.seed)
        after = partial(after_step, self.line, encoder.model)
        return fit(self.value, sentences, encoder, self.config, job, work, after_step=lambda _: after())

    def value(self, encode: Any, pairs: Any) -> Any:
        first, second = encode.encode_views(pairs)
        change: Callable[[Vectors], Vectors] = IN_THE_LOSS.get(self.line, lambda rows: rows)
        return info_nce(change(first), second, temperature=0.1, similarity="cos"), {}


def trainer(config: Any, line: str) -> BrokenTrainer:
    """Return a trainer with one broken line."""
    made = BrokenTrainer(config)
    made.line = line
    return made
