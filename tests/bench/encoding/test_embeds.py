"""Embeddings in place of ids: those of the ids change nothing, others count, packed and padded alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from transformers import PreTrainedModel

from bench.encoding.packed import enable, first_position, forward, pack

SEQUENCES = [[2, 10, 11, 12, 3], [2, 20, 3], [2, 30, 31, 3]]


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "modernbert", "deberta-v2"])
def test_the_embeddings_of_the_ids_give_the_same_states(build: Callable[[str], PreTrainedModel], family: str) -> None:
    """Every row, to 1e-6; the last of these families runs padded."""
    model = build(family)
    packed_runs = enable(model)
    assert packed_runs == (family != "deberta-v2")
    packed = pack(SEQUENCES, first_position(model))
    with torch.no_grad():
        embeds = model.get_input_embeddings()(packed.ids)
        expected, found = forward(model, packed), forward(model, packed, embeds=embeds)
        other = forward(model, packed, embeds=embeds.roll(1, 0))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert not torch.allclose(other, expected, atol=1e-2)


@pytest.mark.parametrize("family", ["bert", "deberta-v2"])
def test_gradients_reach_them(build: Callable[[str], PreTrainedModel], family: str) -> None:
    """Those of the sequence that is looked at alone."""
    model = build(family)
    enable(model)
    packed = pack(SEQUENCES, first_position(model))
    embeds = model.get_input_embeddings()(packed.ids).detach().requires_grad_()
    start = int(packed.starts[1])
    forward(model, packed, embeds=embeds)[start].square().sum().backward()
    assert embeds.grad is not None
    touched = embeds.grad.abs().sum(1).nonzero()[:, 0].tolist()
    assert touched == [start, start + 1, start + 2]
