"""Specs 11 in small: what the paper prints as `fail` diverges and the log says so; what is healthy raises no alarm.

A multilayer perceptron on fresh pairs of vectors, no text, a bank of 256 rows.
"""

import math
from typing import Any

import pytest
import torch
from torch import nn

from bench.training.banks import TaggedBank
from bench.training.heads import Projection
from bench.training.probes import collapse_metrics, signs
from methods.ccp.head import ViewsHead
from methods.ccp.loss import ccp_loss, softmax_mass

WIDTH, BANK = 32, 256


def trained(
    norm: Any, *, l2: bool = True, temperature: float = 0.1, pairs: int = 16, correlation: float = 0.8, steps: int = 250
) -> dict[str, float]:
    """Train by Adam; return the mean loss of the last 20 steps, and the rest of the last one, as `signs` wants them."""
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, WIDTH))
    head = ViewsHead(Projection(WIDTH, norm="none" if norm == "none" else "batch"), norm)
    bank, tags = TaggedBank(BANK, WIDTH, 1), torch.zeros(2 * pairs).long()
    optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-3)
    windows, views = torch.arange(pairs).repeat(2), torch.arange(2).repeat_interleave(pairs)
    losses = []
    for _ in range(steps):
        common, *noises = torch.randn(3, pairs, WIDTH)
        first, second = head(
            *(encoder(correlation**0.5 * common + (1 - correlation) ** 0.5 * noise) for noise in noises)
        )
        z = torch.cat([first, second])
        rows, marks = bank.ordered()
        output = ccp_loss(z, windows, tags, temperature=temperature, bank=rows, bank_languages=marks, l2_norm=l2)
        optimiser.zero_grad()
        output.loss.backward()
        optimiser.step()
        bank.push(z.detach(), tags)
        losses.append(float(output.loss.detach()))
    shares = softmax_mass(output.logits, 2 * pairs, views, tags, torch.arange(2 * pairs))
    measured = collapse_metrics(first.detach(), second.detach())
    return {**shares, **measured, "loss": sum(losses[-20:]) / 20, "first_loss": losses[0]}


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.001, 0.01, 0.1, 1.0])
def test_without_unit_length_and_normalisation_it_diverges(temperature: float) -> None:
    """The row `fail` of table 5 at each temperature: the loss is thousands of times its first value."""
    values = trained("none", l2=False, temperature=temperature)
    assert values["loss"] > 1000 * max(1.0, values["first_loss"])
    assert any(sentence.startswith("the training diverges") for sentence in signs(values))


@pytest.mark.parametrize("norm", ["asym", "none", "train"])
def test_with_unit_length_it_is_healthy(norm: str) -> None:
    """Pairs are told apart far above chance, below chance's loss, and nothing is said."""
    values = trained(norm)
    assert values["loss"] < math.log(2 * 16 - 1 + BANK) - 1
    assert values["accuracy"] > 0.4
    assert signs(values) == []


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["asym", "none", "train"])
def test_of_noise_nothing_is_learnt(norm: str) -> None:
    """Independent pairs: loss and masses stay at chance, log(2N − 1 + b), so no statistics give the pairs away."""
    values = trained(norm, correlation=0.0, pairs=8, steps=400)
    candidates = 2 * 8 - 1 + BANK
    assert values["loss"] == pytest.approx(math.log(candidates), abs=0.3)
    assert values["in_batch_mass"] == pytest.approx(15 / candidates, abs=0.05)
    assert values["other_view_mass"] == pytest.approx(8 / candidates, abs=0.04)
