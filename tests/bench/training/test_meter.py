"""What a training has spent: against counts by hand, and against torch's own counter."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertModel

from bench.retrieval.packed import enable, first_position, forward, pack
from bench.training.meter import Meter, forward_flops
from tests.conftest import tiny

WIDTH, LAYERS = 64, 2
BLOCK = 4 * (WIDTH * WIDTH + WIDTH) + (WIDTH * 256 + 256) + (256 * WIDTH + WIDTH) + 2 * 2 * WIDTH
"""Weights of a block: attention, feed-forward layers four times as wide, two LayerNorms."""


@pytest.fixture
def model() -> BertModel:
    torch.manual_seed(0)
    sizes = tiny(WIDTH, LAYERS, vocab_size=50, intermediate_size=256)
    config = BertConfig(**sizes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    encoder = BertModel(config, add_pooling_layer=False)
    enable(encoder)
    return encoder


def test_a_forward_pass_by_hand(model: BertModel) -> None:
    """Two operations a weight and token, four times layers · width · length² for attention; embeddings cost none."""
    packed = pack([[1, 2, 3], [4, 5], [6, 7, 8]], first_position(model))
    expected = 2 * LAYERS * BLOCK * 8 + 4 * LAYERS * WIDTH * (9 + 4 + 9)
    assert forward_flops(model, packed) == expected


@pytest.mark.parametrize("lengths", [[16] * 6, [3, 40, 7, 40], [100]])
def test_torch_counts_about_the_same(model: BertModel, lengths: list[int]) -> None:
    """Forward, and forward with backward, within 4 % (we count biases and LayerNorms, torch products alone)."""
    sequences = [[(7 * at) % 50 for at in range(length)] for length in lengths]
    packed = pack(sequences, first_position(model))
    plain = sdpa_kernel(SDPBackend.MATH)  # the counter knows products, not the processor's fused attention
    with plain, torch.no_grad(), FlopCounterMode(display=False) as forward_counter:
        forward(model, packed)
    assert forward_flops(model, packed) == pytest.approx(forward_counter.get_total_flops(), rel=0.04)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        forward(model, packed).sum().backward()
    meter = Meter()
    meter.encoded(model, packed, gradients=True)
    assert meter.flops == pytest.approx(counter.get_total_flops(), rel=0.04)


def test_passes_heads_and_rests(model: BertModel) -> None:
    """One forward without gradients, three with, four computed again; a head's multiply-adds count six times."""
    packed = pack([[1, 2, 3], [4, 5]], first_position(model))
    forward_pass = forward_flops(model, packed)
    for gradients, recomputed, times in ((False, False, 1), (True, False, 3), (True, True, 4)):
        meter = Meter()
        meter.encoded(model, packed, gradients=gradients, recomputed=recomputed)
        assert (meter.tokens, meter.passes, meter.flops) == (5, 1, times * forward_pass)
    meter = Meter()
    meter.multiplied(100)
    assert meter.flops == 600
    with meter.resting():
        meter.multiplied(50)
        meter.tokens += 7
    assert (meter.tokens, meter.flops) == (0, 600)
