"""Several processes as one: two gloo processes against the joined rows in one."""

from typing import Any

import torch
from torch import nn

from bench.training.distributed import average_gradients, gather, offset, rank, sizes, total, weight, world
from tests.conftest import TwoProcesses

ROWS = [[1.0, -2.0], [0.5, 3.0], [-1.0, 0.25], [2.0, 2.0], [0.0, -0.5]]
CUT = 2  # the first process has two rows, the second three


def own(rows: torch.Tensor) -> torch.Tensor:
    """The rows of this process."""
    return rows[:CUT] if rank() == 0 else rows[CUT:]


def averaged(rows: torch.Tensor) -> list[torch.Tensor | None]:
    """Average the gradients of a weight that both have, one that the first alone has, and one that none has."""
    weights = [nn.Parameter(torch.ones(2, dtype=torch.float64)) for _ in range(3)]
    (own(rows).mean(0) * weights[0]).sum().backward()
    if rank() == 0:
        (weights[1] * 4).sum().backward()
    average_gradients(weights[:2])
    return [None if one.grad is None else one.grad for one in weights[:2]]


def gathered(rows: torch.Tensor, numbers: torch.Tensor, factors: torch.Tensor) -> dict[str, Any]:
    """Gather floats and numbers; take each process's loss of all rows, with its own factors, back to its own."""
    mine = own(rows).clone().requires_grad_()
    every = gather(mine)
    (every.square() * factors[rank()]).sum().backward()
    return {
        "every": every.detach(),
        "numbers": gather(own(numbers)),
        "offset": offset(len(mine)),
        "sizes": sizes(len(mine)),
        "grad": mine.grad,
        "weight": weight(len(mine)),
        "total": total(torch.tensor(float(len(mine)))),
        "averaged": averaged(rows),
    }


def test_unequal_rows_are_gathered_in_order_with_their_gradients(two_processes: TwoProcesses) -> None:
    """Two and three rows: both see all five; gradients of a row are summed, of a weight averaged."""
    rows, numbers = torch.tensor(ROWS, dtype=torch.float64), torch.arange(5) * 10
    factors = torch.tensor([1.0, 10.0], dtype=torch.float64)
    found = two_processes(gathered, rows, numbers, factors)
    for one in found:
        torch.testing.assert_close(one["every"], rows, rtol=0, atol=0)
        assert one["numbers"].tolist() == [0, 10, 20, 30, 40]
        assert one["sizes"] == [2, 3]
        assert float(one["total"]) == 5
    assert [one["offset"] for one in found] == [0, 2]
    torch.testing.assert_close(torch.cat([one["grad"] for one in found]), 2 * rows * 11, rtol=0, atol=1e-12)
    assert [one["weight"] for one in found] == [2 * 2 / 5, 3 * 2 / 5]
    for first, second in (one["averaged"] for one in found):
        torch.testing.assert_close(first, (rows[:CUT].mean(0) + rows[CUT:].mean(0)) / 2, rtol=0, atol=1e-15)
        assert second.tolist() == [2.0, 2.0]


def test_one_process_does_nothing() -> None:
    """Nothing is copied, counted or divided."""
    rows = torch.tensor(ROWS)
    assert gather(rows) is rows
    assert total(rows) is rows
    assert (world(), rank(), offset(5), sizes(5), weight(5), weight(0)) == (1, 0, 0, [5], 1.0, 0.0)
    lone = nn.Parameter(rows)
    average_gradients([lone])
    assert lone.grad is None
