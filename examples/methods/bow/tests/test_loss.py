"""The bag and its loss, worked out on paper."""

import math
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from bench_bow import BowConfig
from bench_bow.trainer import BowTrainer, bag_loss, bags
from torch import nn

from bench.training import Masked, Spent


class Head(nn.Module):
    """A prediction head that changes nothing."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(count))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows


def test_a_bag_has_each_word_once_as_it_was() -> None:
    """Hidden ones come back, special ones are left out, whether a text has them or they hide something."""
    masked = Masked([np.array([1, 3, 11, 11, 2]), np.array([1, 9, 3, 2])], *map(np.array, ([0, 1], [1, 2], [10, 9])))
    assert bags(masked, frozenset({1, 2, 3})) == [[10, 11], [9]]


def test_the_loss_of_two_bags() -> None:
    """Chances 1/8, 2/8, 5/8 and a third each: the mean over words within a text, then over texts; none is no word."""
    logits = torch.tensor([[0.0, math.log(2), math.log(5)], [7.0, 7.0, 7.0]])
    first, second = -(math.log(2 / 8) + math.log(5 / 8)) / 2, math.log(3)
    assert float(bag_loss(logits, [[1, 2], [0]])) == pytest.approx((first + second) / 2, abs=1e-6)
    assert float(bag_loss(logits, [[1, 2], []])) == pytest.approx(first / 2, abs=1e-6)


@pytest.mark.parametrize(("share", "scale"), [(0.0, 1.0), (0.5, 0.55), (1.0, 0.1)])
def test_the_sum_with_its_falling_weight(share: float, scale: float) -> None:
    """One text, [CLS] and a hidden 2: a vector whose chances are 1/8, 2/8, 5/8, a token whose are 1/2, 1/4, 1/4."""
    states = torch.tensor([[0.0, math.log(2), math.log(5)], [math.log(2), 0.0, 0.0]])
    packed = SimpleNamespace(first_rows=np.array([0]), starts=torch.tensor([0]))
    encode = SimpleNamespace(
        hidden=lambda _inputs, _layer: (states, packed),
        rows=lambda ids: ids,
        device=torch.device("cpu"),
        embeddings=torch.eye(3),
        meter=SimpleNamespace(multiplied=lambda _: None),
        autocast=nullcontext,
    )
    masked = Masked([np.array([0, 1])], np.array([0]), np.array([1]), np.array([2]))
    loss, values = BowTrainer(BowConfig()).loss(Head(3), frozenset({0, 1}), Spent(share), encode, masked)
    hidden, bag = math.log(4), math.log(8 / 5)
    assert float(loss.detach()) == pytest.approx(hidden + scale * bag, abs=1e-5)
    assert values() == pytest.approx({"mlm_loss": hidden, "bow_loss": bag, "bow_weight": scale}, abs=1e-5)
