"""Contrastive losses by hand, and what they refuse (golden values: tests/golden)."""

import math
from typing import Any, Literal

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from bench.training.losses import info_nce, paired_info_nce, similarities
from tests.conftest import present


def vectors(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_hand(logits: torch.Tensor, places: list[int]) -> list[float]:
    """−log softmax at the places, in plain loops."""
    losses = []
    for row, place in zip(logits.tolist(), places, strict=True):
        losses.append(math.log(sum(math.exp(value) for value in row)) - row[place])
    return losses


def test_negatives_and_label_smoothing() -> None:
    """A queue adds candidates to queries alone; smoothing as in torch's cross-entropy, but not with forbidden keys."""
    queries, keys, queue = vectors(3, 4), vectors(3, 4, seed=1), vectors(5, 4, seed=2)
    forth = by_hand(torch.cat([queries @ keys.T, queries @ queue.T], 1) / 0.5, [0, 1, 2])
    back = by_hand(keys @ queries.T / 0.5, [0, 1, 2])
    forward = info_nce(queries, keys, temperature=0.5, negatives=queue, reduction="none")
    both = info_nce(queries, keys, temperature=0.5, negatives=queue, symmetric=True, reduction="none")
    assert forward.tolist() == pytest.approx(forth, abs=1e-12)
    assert both.tolist() == pytest.approx([(a + b) / 2 for a, b in zip(forth, back, strict=True)], abs=1e-12)
    queries, keys = vectors(4, 3), vectors(4, 3, seed=1)
    logits, places = queries @ keys.T, torch.arange(4)
    expected = [torch.nn.functional.cross_entropy(scores, places, label_smoothing=0.2) for scores in (logits, logits.T)]
    assert float(info_nce(queries, keys, label_smoothing=0.2)) == pytest.approx(float(expected[0]), abs=1e-12)
    symmetric = info_nce(queries, keys, label_smoothing=0.2, symmetric=True)
    assert float(symmetric) == pytest.approx(float(sum(expected)) / 2, abs=1e-12)
    with pytest.raises(ValueError, match=r"label smoothing 0\.2 with forbidden keys"):
        info_nce(queries, keys, label_smoothing=0.2, forbidden=torch.zeros(4, 4, dtype=torch.bool))


def test_forbidden_keys_and_the_order_of_keys_count_nothing() -> None:
    """The loss is that without the key, and without gradient; in any order; the sum is n times the mean."""
    queries, keys = vectors(2, 3), vectors(3, 3, seed=1).requires_grad_()
    forbidden = torch.tensor([[False, False, True], [False, False, True]])
    loss = info_nce(queries, keys, forbidden=forbidden)
    assert float(loss.detach()) == pytest.approx(float(info_nce(queries, keys[:2].detach())), abs=1e-12)
    loss.backward()
    assert keys.grad is not None
    assert keys.grad[2].tolist() == [0, 0, 0]
    assert torch.isfinite(keys.grad).all()
    queries, keys = vectors(4, 3), vectors(6, 3, seed=1)
    order = torch.tensor([3, 5, 0, 1, 4, 2])
    places = torch.argsort(order)[:4]
    first, second = info_nce(queries, keys), info_nce(queries, keys[order], places)
    assert float(first) == pytest.approx(float(second), abs=1e-12)
    assert float(info_nce(queries, keys, reduction="sum")) == pytest.approx(4 * float(first), abs=1e-12)


def test_gradients_reach_both_sides_and_are_right() -> None:
    """Against finite differences, for both similarities and both directions."""
    for similarity in ("dot", "cos"):
        inputs = (vectors(3, 4).requires_grad_(), vectors(3, 4, seed=1).requires_grad_())

        def loss(queries: torch.Tensor, keys: torch.Tensor, similarity: Any = similarity) -> torch.Tensor:
            return info_nce(queries, keys, temperature=0.3, similarity=similarity, symmetric=True)

        assert torch.autograd.gradcheck(loss, inputs)
        loss(*inputs).backward()
        assert all(tensor.grad is not None and float(tensor.grad.abs().min()) > 0 for tensor in inputs)


def test_extreme_rows() -> None:
    """Logits of 300 / 0.01 are beyond float16; zeros have a finite gradient; rows without partner are refused."""
    rows = torch.tensor([[300.0, 0.0], [0.0, 300.0]], dtype=torch.float16)
    assert similarities(rows, rows).dtype == torch.float32
    assert float(info_nce(rows, rows, temperature=0.01)) == 0
    queries = torch.zeros(1, 3, requires_grad=True)
    similarities(queries, torch.ones(2, 3), "cos").sum().backward()
    assert torch.isfinite(present(queries.grad)).all()
    for lone in (vectors(3, 2), vectors(0, 2)):
        with pytest.raises(ValueError, match=r"expected \[2n, d\]"):
            paired_info_nce(lone)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keys": vectors(3, 5)}, r"queries \[3, 4\] and keys \[3, 5\]"),
        ({"keys": vectors(2, 4)}, "3 queries and 2 keys"),
        ({"positives": torch.tensor([0, 1])}, r"positives \[2\] for 3 queries, expected \[3\]"),
        ({"positives": torch.tensor([0, 1, 3])}, "positives 0 to 3, expected 0 to 2"),
        ({"positives": torch.tensor([0, 1, -1])}, "positives -1 to 1"),
        ({"positives": torch.tensor([0, 1, 1]), "symmetric": True}, "2 keys for 3 queries, expected one each"),
        ({"temperature": 0.0}, "temperature 0.0, expected a number > 0"),
        ({"similarity": "l2"}, "similarity 'l2', expected dot or cos"),
        ({"reduction": "max"}, "reduction 'max'"),
        ({"negatives": vectors(3, 5)}, r"keys \[3, 5\]"),
        ({"forbidden": torch.zeros(3, 2, dtype=torch.bool)}, r"forbidden \[3, 2\] of torch.bool, expected \[3, 3\]"),
        ({"forbidden": torch.eye(3, dtype=torch.bool)}, "a positive among the forbidden keys"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    """Both sizes are named."""
    arguments: dict[str, Any] = {"queries": vectors(3, 4), "keys": vectors(3, 4, seed=1), **change}
    with pytest.raises(ValueError, match=message):
        info_nce(**arguments)


@pytest.mark.parametrize("similarity", ["dot", "cos"])
def test_similarities_are_never_rounded_to_tf32(similarity: Literal["dot", "cos"]) -> None:
    """All three products of a training that may round; their bytes are those of plain autograd."""
    seen = []

    class Products(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function is torch.ops.aten.mm.default:
                seen.append(torch.get_float32_matmul_precision())
            return function(*args, **(kwargs or {}))

    generator = torch.Generator().manual_seed(0)
    rows = [torch.randn(size, 48, generator=generator, requires_grad=True) for size in (33, 65)]
    unit = rows if similarity == "dot" else [functional.normalize(part, dim=1, eps=1e-12) for part in rows]
    plain = unit[0] @ unit[1].T
    expected = torch.autograd.grad(plain.logsumexp(1).sum(), rows)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")  # as `tensor_cores` on CUDA
    try:
        with Products():  # type: ignore[no-untyped-call]  # torch types none
            product = similarities(rows[0], rows[1], similarity)
            gradients = torch.autograd.grad(product.logsumexp(1).sum(), rows)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
    assert seen == ["highest"] * 3
    assert torch.equal(product, plain)
    for gradient, of_plain in zip(gradients, expected, strict=True):
        assert torch.equal(gradient, of_plain)
