"""BERT's pooler: the vectors that transformers makes with it, packed; and who has none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.core.encoder_config import EncoderConfig
from bench.core.errors import UsageError
from bench.retrieval.backbones import load_encoder
from bench.retrieval.encoder import load
from bench.retrieval.packed import first_position, forward, load_model, pack, pool, uses_packed
from bench.types import Item
from tests.bench.retrieval.conftest import Build


@pytest.mark.parametrize("family", ["bert", "xlm-roberta"])
def test_packed_is_what_transformers_gives(
    tmp_path: Path, build: Build, sequences: list[list[int]], family: str
) -> None:
    """The pooler's output of each sequence alone, values to 1e-5, and a gradient for its weights."""
    original = build(family)
    run: Callable[[torch.Tensor], Any] = original
    original.save_pretrained(tmp_path)
    model = load_model(tmp_path, pooler=True)
    assert uses_packed(model)
    pooler, packed = model.pooler, pack(sequences, first_position(model))
    assert isinstance(pooler, torch.nn.Module)
    pooled = pool(forward(model, packed), packed, "pooler", pooler)
    with torch.no_grad():
        expected = torch.cat([run(torch.tensor([ids])).pooler_output for ids in sequences])
    torch.testing.assert_close(pooled, expected, atol=1e-5, rtol=0)
    pooled.sum().backward()
    gradients = [weights.grad for weights in pooler.parameters()]
    assert len(gradients) == 2
    assert all(gradient is not None and gradient.abs().sum() > 0 for gradient in gradients)


def test_nothing_to_pool_with(tmp_path: Path, build: Build) -> None:
    """ModernBERT has no pooler, and the message says so; pooling by a pooler without one is a fault of the caller."""
    build("modernbert").save_pretrained(tmp_path)
    with pytest.raises(UsageError, match=r"found ModernBertModel, which has no pooler like BERT's .* cls or mean"):
        load_encoder(tmp_path, "own")
    packed = pack([[1, 2]], 0)
    with pytest.raises(ValueError, match="expected cls, mean or last, or pooler with the model's pooler"):
        pool(torch.zeros(2, 3), packed, "pooler")


def test_half_precision_gives_float32_vectors(folder: Path) -> None:
    """The layer runs in the encoder config's precision; what comes out is float32, near what full precision gives."""
    exact = load(folder, encoder_config=EncoderConfig(pooling="pooler", query_length=20, passage_length=20))
    rough = load(
        folder, encoder_config=EncoderConfig(pooling="pooler", query_length=20, passage_length=20, dtype="bfloat16")
    )
    items = [Item("a", "a quick fox"), Item("b", "dog")]
    exact_vectors, rough_vectors = exact.encode(items, "query"), rough.encode(items, "query")
    assert exact_vectors.dtype == rough_vectors.dtype == "float32"
    assert 0 < abs(exact_vectors - rough_vectors).max() < 0.1
