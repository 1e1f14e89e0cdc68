"""Probes on matrices whose values are known, and the signs that they give."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.data.corpora.shards import Shards
from bench.training import probes
from bench.training.config import TrainingConfig
from bench.training.encoder import TrainableEncoder
from bench.training.views import SentencePairs, two_sentences

SIGNS = json.loads((Path(__file__).parents[2] / "fixtures" / "methods" / "signs.json").read_text(encoding="utf-8"))
"""Healthy values by name, and (them or their name, what is changed of them, what the sign says, a note)."""


def test_equal_rows_are_one_point() -> None:
    """Cosine 1, no deviation, no rank; ties are misses, so accuracy is 0."""
    rows = torch.tensor([[3.0, 4.0]]).repeat(5, 1)
    metrics = probes.collapse_metrics(rows, rows)
    assert metrics["cosine"] == pytest.approx(1)
    assert metrics["deviation"] == pytest.approx(0, abs=1e-9)
    assert (metrics["accuracy"], metrics["rank"], metrics["chance"]) == (0, 0, 0.2)
    (first, second) = probes.signs(metrics)
    assert "one point" in first
    assert "0.200" in first
    assert "few dimensions" in second


def test_what_is_healthy_raises_no_alarm() -> None:
    """Unit vectors of all axes (deviation √(1/d − 1/d²)), a high cosine alone, a first loss that is low by chance."""
    rows = torch.eye(4)
    metrics = probes.collapse_metrics(rows, rows)
    assert metrics["accuracy"] == 1
    assert metrics["cosine"] == pytest.approx(0)
    assert metrics["deviation"] == pytest.approx(math.sqrt(1 / 4 - 1 / 16))
    assert metrics["rank"] == pytest.approx(3)
    assert metrics["full_rank"] == 3
    assert probes.signs(metrics) == []
    rows = torch.eye(8) + 5  # the specification's false alarm
    metrics = probes.collapse_metrics(rows, rows)
    assert metrics["cosine"] > probes.COSINE
    assert metrics["accuracy"] == 1
    assert probes.signs(metrics) == []
    assert probes.signs({"loss": 5.0, "first_loss": 0.0}) == []
    (sentence,) = probes.signs({"loss": 100.0, "first_loss": 0.0})
    assert "the training diverges: loss 100" in sentence


def test_rank_cosine_and_accuracy_by_hand() -> None:
    """Singular values 3 and 1: exp(−¾ ln ¾ − ¼ ln ¼); cosines 0, 0.6, 0.8; two of three queries find their key."""
    rows = torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    expected = math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert probes.effective_rank(rows) == pytest.approx(expected)
    assert probes.effective_rank(rows + 100) == pytest.approx(expected)
    rows = torch.tensor([[2.0, 0.0], [0.0, 5.0], [0.6, 0.8]])
    assert probes.mean_cosine(rows) == pytest.approx((0 + 0.6 + 0.8) / 3)
    queries = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]])
    keys = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, -1.0]])
    assert probes.accuracy(queries, keys) == pytest.approx(2 / 3)


def test_measuring_leaves_no_trace(corpus: Path, start: Path) -> None:
    """Same values twice although the model has dropout; training mode, tokens and chance stay as they were."""
    encoder = TrainableEncoder.load(start, "cpu")
    held_out = SentencePairs(Shards(corpus), TrainingConfig(probe_pairs=4), 1, two_sentences).held_out()
    before, encoder.meter.tokens = torch.get_rng_state(), 7
    first = probes.evaluate_probes(encoder, held_out)
    assert probes.evaluate_probes(encoder, held_out) == first
    encoder.model.eval()
    halves = [probes.accuracy(*encoder.encode_views(pairs.halves or ())) for pairs in held_out]
    encoder.model.train()
    encoder.meter.tokens = 7
    assert first["document_accuracy"] == pytest.approx(sum(halves) / len(halves))
    assert encoder.meter.tokens == 7
    assert encoder.model.training
    assert torch.equal(torch.get_rng_state(), before)
    assert not any(weight.grad is not None for weight in encoder.model.parameters())


class OnMps(torch.Tensor):
    """In place of a tensor on a device without float64."""

    device = torch.device("mps")

    def double(self, *args: Any) -> torch.Tensor:
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")

    def cpu(self, *args: Any) -> torch.Tensor:
        return self.as_subclass(torch.Tensor)


@pytest.mark.parametrize("function", [probes.mean_cosine, probes.deviation, probes.effective_rank])
def test_values_are_measured_in_float64(function: Callable[[torch.Tensor], float]) -> None:
    """Long vectors in bfloat16 do not overflow; those on a device without float64 have the same value."""
    rows = torch.eye(4, dtype=torch.bfloat16) * 1e30
    assert math.isfinite(function(rows))
    vectors = torch.randn(4, 3)
    assert function(vectors.as_subclass(OnMps)) == function(vectors)


@pytest.mark.parametrize(("healthy", "changed", "sentence", "note"), SIGNS["cases"])
def test_signs(healthy: str | dict[str, float], changed: dict[str, float], sentence: str, note: str) -> None:
    """Each value shows by itself; healthy ones say nothing."""
    values = SIGNS["healthy"][healthy] if isinstance(healthy, str) else healthy
    assert probes.signs(values) == []
    warnings = probes.signs({**values, **changed})
    assert len(warnings) == bool(sentence)
    assert all(sentence in warning for warning in warnings)
