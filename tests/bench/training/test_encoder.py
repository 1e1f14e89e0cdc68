"""The encoder in training: gradients, tokens, and vectors equal to those of the plain model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModel

from bench.core.errors import UsageError
from bench.training.encoder import TrainableEncoder

SENTENCES = [[1, 10, 11, 12, 2], [1, 20, 2], [1, 30, 31, 2]]


def test_gradients_reach_the_weights_from_each_view(start: Path) -> None:
    """The words of either view move, others do not."""
    encode = TrainableEncoder.load(start, "cpu")
    encode.model.eval()
    for view, word in ((0, 10), (1, 20)):
        encode.model.zero_grad()
        encode.together([[[1, 10, 2]], [[1, 20, 2]]])[view].square().sum().backward()
        grad = encode.model.get_input_embeddings().weight.grad
        assert isinstance(grad, torch.Tensor)
        assert set(grad.abs().sum(1).nonzero()[:, 0].tolist()) == {1, 2, word}


def test_vectors_are_means_of_the_plain_model(start: Path) -> None:
    """Dropout off: equal to the padded model's mean over all tokens to 1e-5, in the order given, together or alone."""
    encode = TrainableEncoder.load(start, "cpu")
    encode.model.eval()
    plain = AutoModel.from_pretrained(start, add_pooling_layer=False).eval()
    with torch.no_grad():
        found = encode(SENTENCES)
        for vector, ids in zip(found, SENTENCES, strict=True):
            expected = plain(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(0)
            assert torch.allclose(vector, expected, atol=1e-5)
        first, second = encode.together([SENTENCES[:1], SENTENCES[1:]])
    assert torch.allclose(torch.cat([first, second]), found, atol=1e-6)


def test_dropout_is_on_and_tokens_are_counted(start: Path) -> None:
    """Two passes differ; each adds its tokens, those without gradient too."""
    encode = TrainableEncoder.load(start, "cpu")
    one = encode(SENTENCES)
    with torch.no_grad():
        assert not torch.equal(one, encode(SENTENCES))
    assert encode.meter.tokens == 2 * (5 + 3 + 4)


def test_a_sequence_beyond_the_positions_is_refused(start: Path) -> None:
    """Before torch fails with an index."""
    with pytest.raises(UsageError, match=r"a sequence has 513 tokens, but .* has positions for 512"):
        TrainableEncoder.load(start, "cpu")([[1] * 513])
