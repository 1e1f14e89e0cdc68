"""The encoder in training: gradients (chunked too), tokens, and vectors equal to those of the plain model."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint
from transformers import AutoModel

from bench.core.encoder_config import TrainingJob
from bench.core.errors import UsageError
from bench.retrieval import buckets
from bench.retrieval.packed import budget
from bench.training import encoder
from bench.training.cross_encoder import TrainableCrossEncoder as CrossModel
from bench.training.cross_encoder_config import CrossConfig
from bench.training.encoder import TrainableEncoder
from bench.training.losses import info_nce

SENTENCES = [[1, 10, 11, 12, 2], [1, 20, 2], [1, 30, 31, 2]]


@pytest.fixture
def encode(start: Path) -> TrainableEncoder:
    return TrainableEncoder.load(start, "cpu")


def test_vectors_are_means_of_the_plain_model(encode: TrainableEncoder, start: Path) -> None:
    """Gradients reach the words of either view; dropout off, vectors are the padded model's means to 1e-5, in order."""
    encode.model.eval()
    for view, word in ((0, 10), (1, 20)):
        encode.model.zero_grad()
        encode.encode_views([[[1, 10, 2]], [[1, 20, 2]]])[view].square().sum().backward()
        grad = encode.model.get_input_embeddings().weight.grad
        assert isinstance(grad, torch.Tensor)
        assert set(grad.abs().sum(1).nonzero()[:, 0].tolist()) == {1, 2, word}
    plain = AutoModel.from_pretrained(start, add_pooling_layer=False).eval()
    with torch.no_grad():
        vectors = encode(SENTENCES)
        for vector, ids in zip(vectors, SENTENCES, strict=True):
            expected = plain(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(0)
            assert torch.allclose(vector, expected, atol=1e-5)
        first, second = encode.encode_views([SENTENCES[:1], SENTENCES[1:]])
    assert torch.allclose(torch.cat([first, second]), vectors, atol=1e-6)


def test_dropout_is_on_and_tokens_are_counted(encode: TrainableEncoder) -> None:
    """Two passes differ and each adds its tokens, those in front too; more tokens than positions are refused."""
    vectors = encode(SENTENCES)
    with torch.no_grad():
        assert not torch.equal(vectors, encode(SENTENCES))
    assert encode.meter.tokens == 2 * (5 + 3 + 4)
    encode.hidden([[1, 10, 2], [1, 11, 12, 2]], before=torch.zeros(2, 3, 16))
    assert (encode.meter.tokens, encode.meter.passes) == (2 * (5 + 3 + 4) + 7 + 6, 3)
    with pytest.raises(UsageError, match=r"a sequence has 513 tokens, but .* has positions for 512"):
        encode([[1] * 513])


def test_words_after_what_is_in_front_are_scaled_as_the_model_scales_them(encode: TrainableEncoder) -> None:
    """Gemma multiplies by √d: with a word's own embedding in front, states are those of the whole sequence."""

    class Scaled(torch.nn.Embedding):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return super().forward(input) * 4

    scaled = Scaled(*encode.embeddings.shape)
    scaled.weight = torch.nn.Parameter(encode.embeddings.detach())
    encode.model.set_input_embeddings(scaled)
    encode.model.eval()
    expected, _ = encode.hidden([[1, 10, 2]])
    states, _ = encode.hidden([[10, 2]], before=scaled(torch.tensor([[1]])))
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-6)


# Activations thrown away and computed again give the gradient of the whole batch, with dropout on.

ROWS = [np.array([1, *range(5, 5 + length), 2]) for length in (3, 9, 4, 4, 11, 2, 7, 5)]


@pytest.fixture
def wide(start: Path) -> TrainableEncoder:
    loaded = TrainableEncoder.load(start, "cpu")
    loaded.model.double()
    assert loaded.model.config.hidden_dropout_prob > 0
    return loaded


def gradients(wide: TrainableEncoder, make: Callable[[TrainableEncoder], torch.Tensor]) -> list[torch.Tensor]:
    wide.model.zero_grad()
    torch.manual_seed(3)
    make(wide).backward()
    return [weight.grad.clone() for weight in wide.model.parameters() if weight.grad is not None]


def assert_equal(gradients: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    """Gradients agree to 1e-10, and are there."""
    assert len(gradients) == len(expected) > 10
    for gradient, expected_gradient in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, atol=1e-10, rtol=0)
    assert max(float(gradient.abs().max()) for gradient in gradients) > 1e-3


def by_hand(wide: TrainableEncoder, chunk_tokens: int, loss: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """The loss of vectors made chunk by chunk, all activations kept: the same dropout, no cache."""
    batches = budget([len(row) for row in ROWS], chunk_tokens)
    vectors: dict[int, torch.Tensor] = {}
    for batch in batches:
        vectors |= dict(zip(batch, wide([ROWS[at] for at in batch]), strict=True))
    return loss(torch.stack([vectors[at] for at in range(len(ROWS))]))


def in_batch(vectors: torch.Tensor) -> torch.Tensor:
    """A loss in which every row matters to every other one."""
    return info_nce(vectors[::2], vectors[1::2], temperature=0.2, similarity="cos", symmetric=True)


@pytest.mark.parametrize("chunk_tokens", [5, 20, 30, 1000])
def test_the_gradient_is_that_of_the_whole_batch(wide: TrainableEncoder, chunk_tokens: int) -> None:
    """1e-10 in float64, chunks of one sequence, of some and of all."""
    chunked = replace(wide, chunk_tokens=chunk_tokens)
    chunked_gradients = gradients(chunked, lambda encoder: in_batch(encoder(ROWS)))
    assert_equal(chunked_gradients, gradients(wide, lambda encoder: by_hand(encoder, chunk_tokens, in_batch)))


def test_dropout_is_the_same_on_a_device_that_torch_must_find(
    wide: TrainableEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch restores the generators of those devices on which it finds tensors, but that of the processor always."""

    def as_on_a_gpu(function: Callable[..., Any], *args: Any, use_reentrant: bool) -> Any:
        has_tensor = any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(args))
        return checkpoint(function, *args, use_reentrant=use_reentrant, preserve_rng_state=has_tensor)

    expected = gradients(wide, lambda encode: by_hand(encode, 20, in_batch))
    monkeypatch.setattr(encoder, "checkpoint", as_on_a_gpu)
    assert_equal(gradients(replace(wide, chunk_tokens=20), lambda encode: in_batch(encode(ROWS))), expected)


def test_without_dropout_chunks_change_nothing(wide: TrainableEncoder) -> None:
    """Vectors, early and last states in the packed order, and gradients; a pass is counted once in tokens."""
    wide.model.eval()
    chunked_gradients = gradients(replace(wide, chunk_tokens=12), lambda encode: in_batch(encode(ROWS)))
    assert_equal(chunked_gradients, gradients(wide, lambda encode: in_batch(encode(ROWS))))

    def value(encode: TrainableEncoder) -> torch.Tensor:
        (early, late), packed = encode.layers(ROWS, (1, -1))
        weights = torch.arange(1, len(early) + 1, dtype=torch.float64)[:, None]
        assert len(early) == len(packed.ids) == sum(map(len, ROWS))
        return (weights * early.square()).mean() + (late * weights.sqrt() * torch.linspace(-1, 1, 16)).square().mean()

    assert_equal(gradients(replace(wide, chunk_tokens=12), value), gradients(wide, value))
    (early, late), packed = wide.layers(ROWS, (1, -1))
    for layer, states in ((1, early), (-1, late)):
        expected, expected_packed = wide.hidden(ROWS, layer)
        assert torch.equal(states, expected)
        assert torch.equal(packed.starts, expected_packed.starts)
    before = wide.meter.tokens
    replace(wide, chunk_tokens=12).layers(ROWS, (1, -1))
    assert wide.meter.tokens - before == sum(map(len, ROWS))


# Passes that are filled up, and compiled: what a training computes stays what it was.

Value = Callable[[TrainableEncoder], torch.Tensor]


def of_layers(encode: TrainableEncoder) -> torch.Tensor:
    (early, late), _ = encode.layers(ROWS, (1, -1))
    return (early * late * torch.linspace(-1, 1, len(early))[:, None]).square().mean() * 10


def of_words_behind_a_vector(encode: TrainableEncoder) -> torch.Tensor:
    states, packed = encode.hidden(ROWS, before=encode(ROWS)[:, None])
    return states[packed.starts + 1].square().mean()


def of_a_decoder(encode: TrainableEncoder) -> torch.Tensor:
    states = encode.states(encode.packed(ROWS), -1, decoded=True)
    return (states[::3] @ encode.embeddings.T).logsumexp(1).mean()


VALUES: list[Value] = [lambda encode: in_batch(encode(ROWS)), of_layers, of_words_behind_a_vector, of_a_decoder]


@pytest.mark.parametrize("make", VALUES)
@pytest.mark.parametrize("chunk_tokens", [None, 12])
def test_what_fills_a_pass_changes_no_gradient(wide: TrainableEncoder, make: Value, chunk_tokens: int | None) -> None:
    """1e-10 in float64 without dropout, for whatever methods ask of an encoder; tokens and operations are the same."""
    wide.model.eval()
    filled = replace(wide, token_bucket=32, chunk_tokens=chunk_tokens)
    plain = replace(wide, chunk_tokens=chunk_tokens)
    meters = []
    results = []
    for encode in (filled, plain):
        before = replace(wide.meter)
        results.append(gradients(encode, make))
        after = wide.meter
        meters.append((after.tokens - before.tokens, after.passes - before.passes, after.flops - before.flops))
    dense = [[gradient.to_dense() for gradient in kind] for kind in results]
    assert_equal(*dense)
    assert meters[0] == meters[1]


@pytest.mark.parametrize("chunk_tokens", [5, 20, 1000])
def test_chunks_that_are_filled_give_the_gradient_of_the_whole_batch(wide: TrainableEncoder, chunk_tokens: int) -> None:
    """With dropout on: each chunk is filled up, and computed again with what was dropped of it."""
    filled = replace(wide, token_bucket=32)
    chunked_gradients = gradients(replace(filled, chunk_tokens=chunk_tokens), lambda encode: in_batch(encode(ROWS)))
    assert_equal(chunked_gradients, gradients(filled, lambda encoder: by_hand(encoder, chunk_tokens, in_batch)))
    assert not torch.equal(chunked_gradients[0], gradients(wide, lambda encode: in_batch(encode(ROWS)))[0])


@pytest.fixture
def compiled(wide: TrainableEncoder, monkeypatch: pytest.MonkeyPatch) -> TrainableEncoder:
    """The same encoder, its passes compiled by torch's back end `aot_eager`."""
    torch._dynamo.reset()
    monkeypatch.setattr(buckets, "BACKEND", "aot_eager")
    return replace(wide, token_bucket=64, compile=True)


@pytest.mark.slow
@pytest.mark.parametrize("make", VALUES)
def test_what_is_compiled_has_the_same_gradient(
    compiled: TrainableEncoder, wide: TrainableEncoder, make: Value
) -> None:
    """Without dropout that of a plain pass."""
    wide.model.eval()
    dense = [[gradient.to_dense() for gradient in gradients(encode, make)] for encode in (compiled, wide)]
    assert_equal(*dense)


@pytest.mark.slow
def test_chunks_that_are_compiled_give_the_gradient_of_the_whole_batch(compiled: TrainableEncoder) -> None:
    """With dropout on: what is computed again drops what was dropped."""
    chunked_gradients = gradients(replace(compiled, chunk_tokens=20), lambda encode: in_batch(encode(ROWS)))
    assert_equal(chunked_gradients, gradients(compiled, lambda encoder: by_hand(encoder, 20, in_batch)))


@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_a_start_with_weights_that_are_no_numbers_is_refused(tmp_path: Path, start: Path, bad: float) -> None:
    """By the tensor's name, though no text may ever look the row up; a cross-encoder's start likewise."""
    folder = shutil.copytree(start, tmp_path / "start")
    weights = load_file(folder / "model.safetensors")
    (name,) = [name for name in weights if name.endswith("word_embeddings.weight")]
    weights[name][-1, :3] = bad
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    job = TrainingJob(tokens=1, seed=0, device="cpu", threads=1)
    for load in (lambda: TrainableEncoder.load(folder, "cpu"), lambda: CrossModel.load(folder, CrossConfig(), job)):
        with pytest.raises(UsageError, match=rf"3 of the \d+ weights of [\w.]*{name} NaN or infinite"):
            load()
