"""Masked language modelling, alone (mlm) and after the vector of the sentence before (cmlm)."""

import numpy as np
import pytest
import torch

from bench.training.batches import Masked, PairBatch
from bench.training.encoder import TrainableEncoder
from bench.training.mlm import MlmHead, PairsAndMasks
from methods.cmlm import CmlmConfig
from methods.cmlm.trainer import CmlmTrainer, Projections
from methods.mlm import MlmMethodConfig
from methods.mlm.trainer import MlmTrainer
from tests.methods.conftest import EncoderFor

FIRSTS, SECONDS = [[1, 10, 11, 12, 2], [1, 20, 2]], [[1, 13, 14, 2], [1, 21, 22, 2]]


def batch(firsts: list[list[int]]) -> PairsAndMasks:
    """Two pairs, the first word of each second sentence hidden."""
    masked = Masked(
        [np.array([1, 3, 14, 2]), np.array([1, 3, 22, 2])], np.arange(2), np.ones(2, np.int64), np.array([13, 21])
    )
    return PairsAndMasks(PairBatch(firsts, SECONDS, np.arange(2), ("en", "en")), masked)


@pytest.fixture
def encode(encoder_for: EncoderFor) -> TrainableEncoder:
    """The tiny encoder with embeddings large enough to tell words apart."""
    encoder = encoder_for(CmlmConfig())
    with torch.no_grad():
        encoder.embeddings.mul_(20)
    return encoder


def test_the_first_projection_is_the_vector_itself() -> None:
    """Of every vector; one projection has no layers; multiply-adds by hand."""
    vectors = torch.randn(4, 6)
    projections = Projections(6, 5)
    assert projections(vectors).shape == (4, 5, 6)
    torch.testing.assert_close(projections(vectors)[:, 0], vectors, rtol=0, atol=0)
    assert not torch.allclose(projections(vectors)[:, 1], projections(vectors)[:, 2])
    assert projections.operations(4) == 4 * (36 + 36 + 6 * 24)
    single = Projections(6, 1)
    torch.testing.assert_close(single(vectors), vectors[:, None], rtol=0, atol=0)
    assert single.operations(4) == 0


def test_the_loss_written_out(encode: TrainableEncoder) -> None:
    """The model over word vectors with the projected ones in front; the hidden token is three places further on."""
    head, projections = MlmHead.for_(encode), Projections(16, 3)
    pairs = batch(FIRSTS)
    assert pairs.masked is not None
    losses = []
    with torch.no_grad():
        for first, sequence, target in zip(FIRSTS, pairs.masked.inputs, pairs.masked.targets, strict=True):
            front = projections(encode([first]))[0]
            ids = encode.rows(np.array([2, 2, 2, *sequence]))
            words = encode.embeddings[torch.from_numpy(ids)]
            words[:3] = front
            states, packed = encode.hidden([sequence], before=front[None])
            plain = encode.model(
                inputs_embeds=words[None], position_ids=torch.arange(7)[None], bench_packed=packed
            ).last_hidden_state[0]
            torch.testing.assert_close(states, plain, rtol=0, atol=1e-6)
            logits = head(plain[4]) @ encode.embeddings.T + head.bias
            losses.append(float(logits.logsumexp(0) - logits[int(encode.rows(np.array([target]))[0])]))
        loss, _ = CmlmTrainer(CmlmConfig()).loss(head, projections, encode, pairs)
    assert float(loss) == pytest.approx(sum(losses) / 2, abs=1e-5)


def test_the_sentence_before_matters_learns_and_counts(encode: TrainableEncoder) -> None:
    """Another changes the loss, gradients reach its words; both passes count, with three places in front."""
    head, projections = MlmHead.for_(encode), Projections(16, 3)
    trainer = CmlmTrainer(CmlmConfig())
    loss, _ = trainer.loss(head, projections, encode, batch(FIRSTS))
    other_loss, _ = trainer.loss(head, projections, encode, batch([[1, 40, 41, 2], FIRSTS[1]]))
    assert abs(float(loss.detach() - other_loss.detach())) > 1e-6
    head.requires_grad_(requires_grad=False)
    vectors: list[torch.Tensor] = []
    projections.register_forward_hook(lambda _module, inputs, _output: vectors.append(inputs[0]))
    loss, _ = trainer.loss(head, projections, encode, batch(FIRSTS))
    grads = torch.autograd.grad(loss, vectors[-1])
    assert bool(grads[0].abs().sum(1).all())
    before = encode.meter.tokens, encode.meter.passes
    trainer.loss(head, projections, encode, batch(FIRSTS))
    assert (encode.meter.tokens - before[0], encode.meter.passes - before[1]) == (8 + 8 + 6, 2)


def test_the_loss_of_mlm_is_the_mean_over_hidden_tokens(encoder_for: EncoderFor) -> None:
    """Written out with the full logits of each sequence."""
    config = MlmMethodConfig()
    encode = encoder_for(config)
    head = MlmHead.for_(encode)
    masked = Masked(
        [np.array([1, 3, 11, 2]), np.array([1, 20, 3, 2])], np.array([0, 1]), np.array([1, 2]), np.array([10, 21])
    )
    losses = []
    with torch.no_grad():
        for sequence, place, target in zip(masked.inputs, masked.place, masked.targets, strict=True):
            states, packed = encode.hidden([sequence])
            logits = head(states) @ encode.embeddings.T + head.bias
            row = logits[packed.starts[0] + int(place)]
            losses.append(float(row.logsumexp(0) - row[int(encode.rows(np.array([target]))[0])]))
        loss, metrics = MlmTrainer(config).loss(head, encode, masked)
    assert float(loss) == pytest.approx(sum(losses) / 2, abs=1e-5)
    assert metrics == {"hidden": 2.0}
