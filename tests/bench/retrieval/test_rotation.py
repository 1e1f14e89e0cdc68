"""Rotations against planted maps and plain loops (golden values: tests/golden)."""

import math
from typing import Any

import pytest
import torch

from bench.core.errors import BenchError
from bench.retrieval.rotation import dictionary, orthogonalised, procrustes, rotation
from bench.retrieval.settings import RotationConfig

TOLERANCE = 1e-9
SHORT: dict[str, Any] = {"init": "adversarial", "epochs": 2, "epoch_size": 640, "hidden": 16}


def tensor(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def near(actual: torch.Tensor, expected: Any, tolerance: float = TOLERANCE) -> None:
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), atol=tolerance, rtol=0)


def cloud(rows: int, width: int, seed: int = 0) -> torch.Tensor:
    """Random vectors that stretch differently in every direction."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(rows, width, generator=draw, dtype=torch.float64) * torch.linspace(0.5, 2, width)


def turn(width: int, size: float, seed: int = 1) -> torch.Tensor:
    """An orthogonal matrix, the farther from the identity the larger `size`."""
    draw = torch.Generator().manual_seed(seed)
    free = torch.randn(width, width, generator=draw, dtype=torch.float64)
    matrix: torch.Tensor = torch.matrix_exp(size * (free - free.T))
    return matrix


def test_parts_of_a_rotation() -> None:
    """Repeated orthogonalising, a planted map found by Procrustes, and fewer vectors than neighbours."""
    matrix = turn(4, 0.3) + 0.05 * cloud(4, 4)
    for _ in range(200):
        matrix = orthogonalised(matrix, 0.1)
    near(matrix @ matrix.T, torch.eye(4), 1e-9)
    source, planted = cloud(50, 6), turn(6, 1.5)
    near(procrustes(source, source @ planted.T), planted)
    pairs = dictionary(cloud(1, 3), cloud(1, 3), 10, 5)
    assert (pairs.source.tolist(), pairs.target.tolist()) == ([0], [0])


def by_loops(source: torch.Tensor, target: torch.Tensor, k: int) -> list[list[float]]:
    """CSLS as its formula reads."""

    def cosine(x: torch.Tensor, y: torch.Tensor) -> float:
        return float(x @ y) / math.sqrt(float(x @ x) * float(y @ y))

    def density(x: torch.Tensor, vectors: torch.Tensor) -> float:
        return math.fsum(sorted((cosine(x, y) for y in vectors), reverse=True)[:k]) / k

    return [[2 * cosine(x, y) - density(x, target) - density(y, source) for y in target] for x in source]


@pytest.mark.parametrize("cells", [1, 40, 1 << 20])
@pytest.mark.parametrize("mutual", [False, True])
def test_dictionary_by_loops(cells: int, mutual: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearest targets, the clearest first, however the scores are cut into blocks."""
    monkeypatch.setattr("bench.retrieval.rotation._CELLS", cells)
    source, target = cloud(17, 3), cloud(13, 3, seed=5)
    scores = by_loops(source, target, 4)
    pairs = []
    for row, similarities in enumerate(scores):
        best, second = sorted(similarities, reverse=True)[:2]
        at = similarities.index(best)
        back = max(range(17), key=lambda candidate: scores[candidate][at])
        if not mutual or back == row:
            pairs.append((best - second, row, at))
    pairs.sort(reverse=True)
    chosen_pairs = dictionary(source, target, 4, 9, mutual)
    assert len(pairs) >= 2
    assert chosen_pairs.source.tolist() == [row for _, row, _ in pairs[:9]]
    assert chosen_pairs.target.tolist() == [at for _, _, at in pairs[:9]]
    cosines = torch.nn.functional.cosine_similarity(source[chosen_pairs.source], target[chosen_pairs.target])
    near(chosen_pairs.cosine, cosines)
    assert chosen_pairs.quality == pytest.approx(float(cosines.mean()))


@pytest.mark.parametrize("direction", ["forward", "mutual"])
def test_equal_distributions_give_the_identity(direction: str) -> None:
    """A language turned into itself stays where it is."""
    source = cloud(200, 40)  # wide enough for every vector to be its own nearest by CSLS as well
    mixed = source[torch.randperm(200, generator=torch.Generator().manual_seed(3))]
    result = rotation(source, mixed, RotationConfig.model_validate({"dictionary": direction}))
    near(result.matrix, torch.eye(40))
    assert result.quality == pytest.approx(1)


def test_refinement_recovers_a_small_turn() -> None:
    """From the identity, without known pairs; the best map is kept, not the last one; without refinement the start."""
    source, planted = cloud(600, 12), turn(12, 0.08)
    target = (source @ planted.T)[torch.randperm(600, generator=torch.Generator().manual_seed(4))]
    result = rotation(source, target, RotationConfig())
    assert result.history["identity"] < 0.98
    near(result.matrix, planted, 1e-6)
    assert result.chosen.startswith("refinement")
    source, target = cloud(80, 4), cloud(70, 4, seed=9)
    result = rotation(source, target, RotationConfig(refinements=6))
    assert result.quality == max(result.history.values()) == result.history[result.chosen]
    assert list(result.history) == ["identity", *(f"refinement {number}" for number in range(1, 7))]
    near(result.matrix @ result.matrix.T, torch.eye(4))
    near(rotation(source, target, RotationConfig(refinements=0)).matrix, torch.eye(4))


def test_an_adversarial_start_is_repeatable() -> None:
    """Same seed, same bits; another, others; the global chance is untouched; divergence says what to set."""
    source, target = cloud(100, 4), cloud(90, 4, seed=2) @ turn(4, 0.2).T
    settings = RotationConfig(refinements=0, **SHORT)
    state = torch.get_rng_state()
    first, second = rotation(source, target, settings, 7), rotation(source, target, settings, 7)
    assert torch.equal(torch.get_rng_state(), state)
    assert first.history == second.history
    assert torch.equal(first.matrix, second.matrix)
    assert rotation(source, target, settings, 8).history != first.history
    assert list(first.history) == ["identity", "adversarial 1", "adversarial 2"]
    with pytest.raises(BenchError, match=r"diverged in epoch 1; type --set post.rotation.init=identity"):
        rotation(cloud(50, 3) * 1e30, cloud(50, 3), RotationConfig(**SHORT))


@pytest.mark.slow
def test_adversarial_start_moves_towards_the_target() -> None:
    """Two lopsided clouds, one turned by 0.5 radians: the trained map is nearer to the turn than the identity is."""
    draw = torch.Generator().manual_seed(0)
    source = torch.rand(2000, 2, generator=draw, dtype=torch.float64) ** 3 * torch.tensor([4.0, 1.0])
    source = source - source.mean(0)
    planted = turn(2, 0.0) @ tensor([[math.cos(0.5), -math.sin(0.5)], [math.sin(0.5), math.cos(0.5)]])
    target = source @ planted.T
    long = {**SHORT, "epoch_size": 6400, "hidden": 32}
    result = rotation(source, target, RotationConfig(refinements=0, beta=0.01, **long))
    assert result.chosen.startswith("adversarial")
    assert torch.linalg.norm(result.matrix - planted) < 0.6 * torch.linalg.norm(torch.eye(2) - planted)
    near(result.matrix @ result.matrix.T, torch.eye(2), 0.05)
