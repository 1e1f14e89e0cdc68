"""Schedule (golden values: tests/golden); groups of the optimiser; clipping; where ASAM climbs to and back from."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from bench.core.encoder_config import TrainingJob
from bench.core.workspace import Parts, Workspace
from bench.data.corpora.shards import Shards
from bench.training.batches import PairBatch
from bench.training.config import TrainingConfig
from bench.training.determinism import reproducible
from bench.training.encoder import TrainableEncoder
from bench.training.loop import fit
from bench.training.optimisation import Asam, adamw, clip, warm_up_and_decay
from bench.training.views import SentencePairs, two_sentences


@pytest.mark.parametrize("scale", [1.0, 5000.0, 3e9])
def test_the_schedule_is_the_same_in_any_unit(scale: float) -> None:
    """Shares, steps or tokens: the peak is where the warm-up ends, or at once without; beyond the end it stays 0."""
    at = [warm_up_and_decay(share * scale, 0.2 * scale, scale) for share in (0.1, 0.2, 0.6, 1.0, 1.1)]
    assert at == pytest.approx([0.5, 1.0, 0.5, 0.0, 0.0], abs=1e-12)
    assert warm_up_and_decay(0, 0, scale) == 1


def test_only_matrices_decay_and_clipping_keeps_the_direction() -> None:
    """Biases and normalisation do not; the norm over all weights is returned as it was, and bounded."""
    modules = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3), nn.Linear(3, 2))
    modules[2].requires_grad_(requires_grad=False)
    optimiser = adamw(modules, TrainingConfig(weight_decay=0.1, beta2=0.98, epsilon=1e-6))
    decay = {
        tuple(weight.shape): group["weight_decay"] for group in optimiser.param_groups for weight in group["params"]
    }
    assert decay == {(3, 3): 0.1, (3,): 0.0}
    assert sum(len(group["params"]) for group in optimiser.param_groups) == 4
    assert {(group["betas"], group["eps"]) for group in optimiser.param_groups} == {((0.9, 0.98), 1e-6)}
    with pytest.raises(ValueError, match="no trainable weight"):
        adamw(modules[2], TrainingConfig())
    weights = [nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))]
    for weight, value in zip(weights, (3.0, 4.0), strict=True):
        weight.grad = torch.tensor([value])
    assert clip(weights, None) == pytest.approx(5)
    assert [float(weight.grad) for weight in weights if weight.grad is not None] == [3, 4]
    assert clip(weights, 1.0) == pytest.approx(5)
    assert [float(weight.grad) for weight in weights if weight.grad is not None] == pytest.approx([0.6, 0.8], abs=1e-5)


def layer() -> nn.Linear:
    """Weights (3, −4), bias 2, gradients (0.5, 0.25) and −2, in float64."""
    linear = nn.Linear(2, 1).double()
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[3.0, -4.0]]))
        linear.bias.fill_(2.0)
    linear.weight.grad = torch.tensor([[0.5, 0.25]], dtype=torch.float64)
    linear.bias.grad = torch.tensor([-2.0], dtype=torch.float64)
    return linear


def test_it_climbs_by_the_sizes_of_weights_and_comes_back() -> None:
    """`ρ·T²g / ‖Tg‖`, T = |w| + η or 1 for biases, by hand; back to the same bits; without gradients nothing moves."""
    linear = layer()
    Asam(linear, rho=0.5, eta=1.0).perturb()
    # T = (4, 5) and 1; Tg = (2, 1.25) and −2; ‖Tg‖² = 4 + 1.5625 + 4 = 9.5625; T²g = (8, 6.25) and −2
    step = 0.5 / math.sqrt(9.5625)
    np.testing.assert_allclose(linear.weight.detach().numpy(), [[3 + 8 * step, -4 + 6.25 * step]], atol=1e-12)
    np.testing.assert_allclose(linear.bias.detach().numpy(), [2 - 2 * step], atol=1e-12)
    linear = layer().float()
    before = [weight.detach().clone() for weight in linear.parameters()]
    asam = Asam(linear, rho=0.3)
    asam.perturb()
    linear.weight.grad = torch.tensor([[7.0, 8.0]])
    asam.restore()
    assert all(torch.equal(old, new) for old, new in zip(before, linear.parameters(), strict=True))
    assert linear.weight.grad.tolist() == [[7.0, 8.0]]
    linear.weight.grad, linear.bias.grad = None, torch.zeros(1)
    asam.perturb()  # a missing gradient and zeros: no division by 0
    assert all(torch.equal(old, new) for old, new in zip(before, linear.parameters(), strict=True))


class Bend(nn.Module):
    """A weight that is seen at every pass."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([2.0, -1.0]))
        self.seen: list[list[float]] = []


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_step_climbs_once_for_all_its_batches(tmp_path: Path, corpus: Path, start: Path, accumulate: int) -> None:
    """All batches at the weights, then the same ones at the one place above them; the log tells both losses."""
    config = TrainingConfig(pairs=4, accumulate=accumulate, learning_rate=1e-3, log_every=1, clip=None, warm_up=0.0)
    bend = Bend()
    sizes: list[int] = []

    def loss(encode: TrainableEncoder, pairs: PairBatch) -> tuple[torch.Tensor, Mapping[str, float]]:
        bend.seen.append(bend.weight.detach().tolist())
        sizes.append(int(sum(map(int, pairs.documents))))
        value = (bend.weight**2).sum() * (1 + len(sizes) % accumulate)  # other gradients for other batches
        return value + 0 * encode(pairs.left).sum(), {"told": 1.0}

    (tmp_path / "out").mkdir()
    job = TrainingJob(tokens=0, seed=1, device="cpu", threads=1, steps=2)
    with reproducible(job):
        source = SentencePairs(Shards(corpus), config, 1, two_sentences)
        encoder = TrainableEncoder.load(start, "cpu")
        work = Workspace(tmp_path / "out", Parts(tmp_path / "parts"))
        metadata = fit(loss, source, encoder, config, job, work, modules=bend, asam_rho=0.5)
    assert metadata["steps"] == 2
    assert metadata["pairs"] == 2 * 4 * accumulate
    assert metadata["passes"] == 2 * 2 * accumulate
    first, above = bend.seen[:accumulate], bend.seen[accumulate : 2 * accumulate]
    assert sizes[:accumulate] == sizes[accumulate : 2 * accumulate]
    assert first == [[2.0, -1.0]] * accumulate
    weight = np.array([2.0, -1.0])
    gradient, size = weight, np.abs(weight) + 0.01  # the gradient's own length cancels
    expected = weight + 0.5 * size**2 * gradient / np.linalg.norm(size * gradient)
    np.testing.assert_allclose(above, [expected] * accumulate, rtol=1e-5)
    np.testing.assert_allclose(bend.seen[2 * accumulate], weight, atol=2e-3)  # back, and one small step further down
    lines = (tmp_path / "out/log.jsonl").read_text(encoding="utf-8")
    assert '"ascent_loss"' in lines
    assert lines.count('"told": 1.0') == 2
