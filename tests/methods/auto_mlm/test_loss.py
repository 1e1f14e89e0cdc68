"""Auto-MLM's losses: the invariants of eq. 6."""

import pytest
import torch
from torch.nn import functional

from methods.auto_mlm.loss import additive_margin, hinge
from tests.conftest import present


def vectors(n: int, d: int = 5, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    chance = torch.Generator().manual_seed(seed)
    both = torch.randn(2, n, d, generator=chance, dtype=torch.float64)
    return both[0], both[1]


def test_the_hinge_is_its_double_sum() -> None:
    """Written out, both signs; lengths of vectors change nothing."""
    a, u = vectors(6)
    for sign, factor in (("standard", 1), ("printed", -1)):
        terms = [
            max(
                0.0,
                factor * 0.1
                + float(functional.cosine_similarity(a[i], u[j], 0) - functional.cosine_similarity(a[i], u[i], 0)),
            )
            for i in range(6)
            for j in range(6)
            if i != j
        ]
        loss, active = hinge(3 * a, u / 7, margin=0.1, sign="standard" if factor > 0 else "printed")
        assert float(loss) == pytest.approx(sum(terms) / 6, abs=1e-12), sign
        assert active == pytest.approx(sum(term > 0 for term in terms) / 30)


def test_one_pair_has_no_loss() -> None:
    """There is no negative, nor a gradient; a candidate too few is refused, since every anchor has its own."""
    a, u = (side.requires_grad_() for side in vectors(1))
    loss, active = hinge(a, u)
    loss.backward()
    assert (float(loss.detach()), float(active)) == (0, 0)
    assert not present(a.grad).any()
    b, v = vectors(4)
    with pytest.raises(ValueError, match="found 3 candidates for 4 anchors"):
        hinge(b, v[:3])
    with pytest.raises(ValueError, match="whose own begin at 2"):
        hinge(b, v, first=2)


def test_one_point_costs_the_margin_of_every_negative() -> None:
    """(N − 1) · margin, and nothing as printed: there, collapse is an optimum; never negative."""
    for n in (2, 5, 9):
        point = torch.ones(n, 4, dtype=torch.float64)
        assert float(hinge(point, 2 * point, margin=0.1)[0]) == pytest.approx((n - 1) * 0.1, abs=1e-12)
        assert float(hinge(point, 2 * point, margin=0.1, sign="printed")[0]) == 0
        assert hinge(point, point, margin=0.1)[1] == 1
    for seed in range(5):
        a, u = vectors(8, seed=seed)
        values = [float(hinge(a, u, margin=margin)[0]) for margin in (0.0, 0.1, 0.5)]
        assert 0 <= float(hinge(a, u, margin=0.1, sign="printed")[0]) <= values[0] <= values[1] <= values[2]


def test_additive_margin_without_a_margin_is_both_cross_entropies() -> None:
    """And with one, the positive's logit alone is lower."""
    x, y = vectors(6)
    logits = 20 * functional.normalize(x, dim=1) @ functional.normalize(y, dim=1).T
    targets = torch.arange(6)
    expected = functional.cross_entropy(logits, targets) + functional.cross_entropy(logits.T, targets)
    assert float(additive_margin(x, y, margin=0.0, scale=20)) == pytest.approx(float(expected), abs=1e-12)
    lower = logits - 6 * torch.eye(6)
    expected = functional.cross_entropy(lower, targets) + functional.cross_entropy(lower.T, targets)
    assert float(additive_margin(x, y, margin=0.3, scale=20)) == pytest.approx(float(expected), abs=1e-12)
