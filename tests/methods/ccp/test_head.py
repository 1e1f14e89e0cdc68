"""CCP's head: which view is normalised by what, with the gradients of what it says, and in turns that survive."""

import copy
from typing import Any, Literal, cast

import pytest
import torch

from bench.training.heads import BatchNorm, Projection
from methods.ccp.head import ViewsHead
from tests.conftest import present

ORDERS: tuple[Literal["eval_first", "written"], ...] = ("eval_first", "written")


def views(count: int = 6, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Two views, float64, away from zero mean and unit variance, that ask for gradients."""
    generator = torch.Generator().manual_seed(seed)
    rows = [3 * torch.randn(count, 4, dtype=torch.float64, generator=generator) + 1 for _ in range(2)]
    return rows[0].requires_grad_(), rows[1].requires_grad_()


def head_of(norm: Any = "asym", order: Any = "eval_first", **changed: Any) -> ViewsHead:
    """A head with running statistics of earlier batches, in float64."""
    torch.manual_seed(5)
    project = Projection(4, norm="none" if norm == "none" else "batch", **changed).double()
    head = ViewsHead(project, norm, order)
    if project.norm is not None:
        project.norm.running_mean.copy_(torch.tensor([0.3, -0.2, 0.1, 0.0]))
        project.norm.running_var.copy_(torch.tensor([1.5, 0.7, 2.0, 1.1]))
    return head


def statistics(head: ViewsHead) -> BatchNorm:
    """The normalisation between the two layers."""
    return present(head.project.norm)


def other_rows_matter(head: ViewsHead, view: int) -> bool:
    """Whether a row of a view, projected, depends on another row of that view (gradients, and by replacing it)."""
    inputs = views()
    copied = copy.deepcopy(head)
    projected = head(*inputs)[view]
    (gradient,) = torch.autograd.grad(projected[0].sum(), inputs[view])
    changed = [view_rows.detach().clone() for view_rows in inputs]
    changed[view][3] += 5
    moved = copied(*changed)[view][0]
    by_gradient, by_value = bool(gradient[1:].any()), not torch.equal(moved, projected[0])
    assert by_gradient == by_value
    return by_gradient


@pytest.mark.parametrize("order", ORDERS)
def test_one_view_goes_by_its_batch_in_turns(order: str) -> None:
    """Invariants 4 and 5: (batch, running), (running, batch), …; by running statistics no row knows of another."""
    head = head_of(order=order)
    turns = []
    for _ in range(4):
        turns.append([other_rows_matter(copy.deepcopy(head), view) for view in (0, 1)])
        head(*views())
    assert turns == [[True, False], [False, True]] * 2


def test_the_printed_order_lets_the_batch_in() -> None:
    """As written, the second view's statistics hold a tenth of the first view's batch; else nothing of it."""
    for order in ORDERS:
        first, second = views()
        projected = head_of(order=order)(first, second)[1]
        (gradient,) = torch.autograd.grad(projected.sum(), first, allow_unused=True)
        assert gradient is None or not gradient.any()  # statistics carry no gradient in either
        projected_double = head_of(order=order)(first * 2, second)[1]
        assert torch.equal(projected, projected_double) == (order == "eval_first")


def test_turns_survive_saving() -> None:
    """Invariant 4: the bit is a buffer, what comes next is the same; looking changes nothing; one row is refused."""
    head, restored = head_of(), head_of()
    head(*views())
    assert "turn" in dict(head.named_buffers())
    restored.load_state_dict(head.state_dict())
    for projected, expected in zip(restored(*views(seed=1)), head(*views(seed=1)), strict=True):
        assert torch.equal(projected, expected)
    before = {name: value.clone() for name, value in head.state_dict().items()}
    head.still(views()[0])
    assert all(torch.equal(value, before[name]) for name, value in head.state_dict().items())
    lone = views(1)
    with pytest.raises(ValueError, match="found 1 row, expected at least 2"):
        head_of()(*lone)
    assert len(head_of("none")(*lone)[0]) == 1


@pytest.mark.parametrize("order", ORDERS)
def test_a_batch_updates_the_statistics_once(order: str) -> None:
    """Invariant 6: by the mean and unbiased variance of one view."""
    head = head_of(order=order)
    norm = statistics(head)
    for step in range(3):
        first, second = views(seed=step)
        mean, variance = norm.running_mean.clone(), norm.running_var.clone()
        head(first, second)
        rows = head.project.first((first, second)[step % 2]).detach()
        torch.testing.assert_close(norm.running_mean, 0.9 * mean + 0.1 * rows.mean(0), check_dtype=False)
        torch.testing.assert_close(norm.running_var, 0.9 * variance + 0.1 * rows.var(0), check_dtype=False)
        assert int(norm.num_batches_tracked) == step + 1


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("turn", [0, 1])
def test_gradients_are_those_of_the_statistics_used(order: str, turn: int) -> None:
    """Specs 4.6: an update in place after the pass must not change its gradient (checked by differences, float64)."""
    start = head_of(order=order)
    start.turn.fill_(turn)

    def both(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return torch.cat(copy.deepcopy(start)(first, second))  # begins at the same statistics each time

    still = both(*(rows.detach() for rows in views()))
    assert still.shape == (12, 4)
    first, second = views()
    if order == "eval_first" or turn:  # as written, at turn 0, statistics come from the other view without a gradient
        assert torch.autograd.gradcheck(both, (first, second))
        return
    frozen = first.detach()
    assert torch.autograd.gradcheck(lambda rows: both(frozen, rows), (second,))


def test_plain_statistics_leak_and_match_pytorch() -> None:
    """Specs 11: rows know of each other in both views with plain statistics alone, those of PyTorch's layer."""
    assert all(other_rows_matter(head_of("train"), view) for view in (0, 1))
    assert not any(other_rows_matter(head_of("none"), view) for view in (0, 1))
    head = head_of("train")
    theirs = torch.nn.BatchNorm1d(4).double()
    theirs.load_state_dict(statistics(head).state_dict())
    rows = views()[0]
    ours = statistics(head)(rows)
    expected = theirs(rows)
    torch.testing.assert_close(ours, expected)
    weights = torch.arange(24, dtype=torch.float64).reshape(6, 4).sin()
    gradients = [torch.autograd.grad((normalised * weights).sum(), rows)[0] for normalised in (ours, expected)]
    torch.testing.assert_close(*gradients)
    torch.testing.assert_close(statistics(head).running_var, theirs.running_var)


def test_shuffled_statistics_are_those_of_mixed_halves() -> None:
    """Each half of the mixed rows is normalised by itself, and rows come back to their places."""
    head = head_of("shuffle")
    first, second = (view.detach() for view in views())
    torch.manual_seed(3)
    projected = torch.cat(head(first, second))
    torch.manual_seed(3)
    order = torch.randperm(12)
    rows = head.project.first(torch.cat([first, second])).detach()
    norm = statistics(head)
    for half in order.split(6):
        scaled = (rows[half] - rows[half].mean(0)) / (rows[half].var(0, correction=0) + norm.eps).sqrt()
        torch.testing.assert_close(projected[half], head.project.second(scaled.relu()))


def test_switches_of_the_head() -> None:
    """No bias, another activation, a second normalisation without scale: by hand."""
    head = head_of("train", activation="tanh", bias=False, final_norm=True)
    project = head.project
    weights = {"first.weight", "second.weight", "norm.weight", "norm.bias"}
    assert set(dict(project.named_parameters())) == weights
    first, second = (view.detach() for view in views())
    projected = head(first, second)[0]
    rows = first @ project.first.weight.T
    rows = torch.tanh((rows - rows.mean(0)) / (rows.var(0, correction=0) + 1e-5).sqrt()) @ project.second.weight.T
    expected = (rows - rows.mean(0)) / (rows.var(0, correction=0) + 1e-5).sqrt()
    torch.testing.assert_close(cast("torch.Tensor", projected), expected)
