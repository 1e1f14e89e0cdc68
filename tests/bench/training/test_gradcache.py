"""Activations thrown away and computed again give the gradient of the whole batch, with dropout on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.retrieval.packed import budget
from bench.training.encoder import TrainableEncoder
from bench.training.losses import info_nce

ROWS = [np.array([1, *range(5, 5 + length), 2]) for length in (3, 9, 4, 4, 11, 2, 7, 5)]


@pytest.fixture
def encode(start: Path) -> TrainableEncoder:
    """The tiny encoder in float64, dropout on."""
    loaded = TrainableEncoder.load(start, "cpu")
    loaded.model.double()
    assert loaded.model.config.hidden_dropout_prob > 0
    return loaded


def gradients(encode: TrainableEncoder, make: Callable[[TrainableEncoder], torch.Tensor]) -> list[torch.Tensor]:
    """Return the gradient of every weight that has one, dropout seeded."""
    encode.model.zero_grad()
    torch.manual_seed(3)
    make(encode).backward()
    return [weight.grad.clone() for weight in encode.model.parameters() if weight.grad is not None]


def by_hand(encode: TrainableEncoder, chunk_tokens: int, loss: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """The loss of vectors made chunk by chunk, all activations kept: the same dropout, no cache."""
    batches = budget([len(row) for row in ROWS], chunk_tokens)
    vectors: dict[int, torch.Tensor] = {}
    for batch in batches:
        vectors |= dict(zip(batch, encode([ROWS[at] for at in batch]), strict=True))
    return loss(torch.stack([vectors[at] for at in range(len(ROWS))]))


def in_batch(vectors: torch.Tensor) -> torch.Tensor:
    """A loss in which every row matters to every other one."""
    return info_nce(vectors[::2], vectors[1::2], temperature=0.2, similarity="cos", symmetric=True)


@pytest.mark.parametrize("chunk_tokens", [5, 20, 30, 1000])
def test_the_gradient_is_that_of_the_whole_batch(encode: TrainableEncoder, chunk_tokens: int) -> None:
    """1e-10 in float64, chunks of one sequence, of some and of all."""
    chunked = replace(encode, chunk_tokens=chunk_tokens)
    found = gradients(chunked, lambda one: in_batch(one(ROWS)))
    expected = gradients(encode, lambda one: by_hand(one, chunk_tokens, in_batch))
    assert len(found) == len(expected) > 10
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=0)
    assert max(float(one.abs().max()) for one in found) > 1e-3


def test_without_dropout_chunks_change_nothing(encode: TrainableEncoder) -> None:
    """Then the plain batch is the reference, order of rows included."""
    encode.model.eval()
    found = gradients(replace(encode, chunk_tokens=12), lambda one: in_batch(one(ROWS)))
    expected = gradients(encode, lambda one: in_batch(one(ROWS)))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=0)


def test_layers_are_those_of_one_pass_chunked_or_not(encode: TrainableEncoder) -> None:
    """Early and last states in the packed order, with their gradients; a pass is counted once in tokens."""
    encode.model.eval()

    def value(one: TrainableEncoder) -> torch.Tensor:
        (early, late), packed = one.layers(ROWS, (1, -1))
        weights = torch.arange(1, len(early) + 1, dtype=torch.float64)[:, None]
        assert len(early) == len(packed.ids) == sum(map(len, ROWS))
        return (weights * early.square()).mean() + (late * weights.sqrt() * torch.linspace(-1, 1, 16)).square().mean()

    found = gradients(replace(encode, chunk_tokens=12), value)
    expected = gradients(encode, value)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=0)
    (early, late), packed = encode.layers(ROWS, (1, -1))
    for layer, states in ((1, early), (-1, late)):
        alone, same = encode.hidden(ROWS, layer)
        assert torch.equal(states, alone)
        assert torch.equal(packed.starts, same.starts)
    before = encode.meter.tokens
    replace(encode, chunk_tokens=12).layers(ROWS, (1, -1))
    assert encode.meter.tokens - before == sum(map(len, ROWS))
