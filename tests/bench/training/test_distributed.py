"""Several processes as one: two gloo processes against the joined rows in one."""

import socket
from datetime import timedelta
from threading import Thread
from typing import Any
from unittest.mock import patch

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

from bench.core.errors import UsageError
from bench.core.machine import Launch
from bench.core.workspace import noop
from bench.training import distributed, launched
from bench.training.banks import Ring
from bench.training.distributed import (
    GradientAverage,
    all_reduce_sum,
    gather,
    offset,
    rank,
    sizes,
    sums,
    unlike,
    weight,
    world_size,
)
from tests.conftest import TwoProcesses

ROWS = [[1.0, -2.0], [0.5, 3.0], [-1.0, 0.25], [2.0, 2.0], [0.0, -0.5]]
CUT = 2  # the first process has two rows, the second three


def rank_rows(rows: torch.Tensor) -> torch.Tensor:
    return rows[:CUT] if rank() == 0 else rows[CUT:]


def averaged(rows: torch.Tensor) -> list[torch.Tensor | None]:
    """Average the gradients of a weight that both have, one that the first alone has, and one that none has."""
    weights = [nn.Parameter(torch.ones(2, dtype=torch.float64)) for _ in range(3)]
    (rank_rows(rows).mean(0) * weights[0]).sum().backward()
    if rank() == 0:
        (weights[1] * 4).sum().backward()
    GradientAverage(weights).average()
    return [weight.grad for weight in weights]


def gathered(rows: torch.Tensor, numbers: torch.Tensor, factors: torch.Tensor) -> dict[str, Any]:
    """Gather floats and numbers; take each process's loss of all rows, with its own factors, back to its own."""
    mine = rank_rows(rows).clone().requires_grad_()
    all_rows = gather(mine)
    (all_rows.square() * factors[rank()]).sum().backward()
    return {
        "every": all_rows.detach(),
        "numbers": gather(rank_rows(numbers)),
        "offset": offset(len(mine)),
        "sizes": sizes(len(mine)),
        "grad": mine.grad,
        "weight": weight(len(mine)),
        "total": all_reduce_sum(torch.tensor(float(len(mine)))),
        "averaged": averaged(rows),
    }


def test_unequal_rows_are_gathered_in_order_with_their_gradients(two_processes: TwoProcesses) -> None:
    """Two and three rows: both see all five; gradients of a row are summed, of a weight averaged."""
    rows, numbers = torch.tensor(ROWS, dtype=torch.float64), torch.arange(5) * 10
    factors = torch.tensor([1.0, 10.0], dtype=torch.float64)
    results = two_processes(gathered, rows, numbers, factors)
    for result in results:
        torch.testing.assert_close(result["every"], rows, rtol=0, atol=0)
        assert result["numbers"].tolist() == [0, 10, 20, 30, 40]
        assert result["sizes"] == [2, 3]
        assert float(result["total"]) == 5
    assert [result["offset"] for result in results] == [0, 2]
    torch.testing.assert_close(torch.cat([result["grad"] for result in results]), 2 * rows * 11, rtol=0, atol=1e-12)
    assert [result["weight"] for result in results] == [2 * 2 / 5, 3 * 2 / 5]
    for first, second, third in (result["averaged"] for result in results):
        torch.testing.assert_close(first, (rows[:CUT].mean(0) + rows[CUT:].mean(0)) / 2, rtol=0, atol=1e-15)
        assert second.tolist() == [2.0, 2.0]
        assert third is None


def trained(sent_early: bool) -> tuple[list[torch.Tensor], list[str]]:
    """Make three steps of two batches; return the weights, and what the last one did, in order.

    Of six layers, a message each, 0 is read twice, 1 computed again, 3 read in one process, 4 in none, 5 once gathered.
    """
    torch.manual_seed(0)
    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(6))
    weights, events, send = list(layers.parameters()), list[str](), dist.all_reduce
    weights[0].register_post_accumulate_grad_hook(lambda _: events.append("first layer"))

    def sending(tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
        events.extend(["sent"] * ("async_op" in options))
        return send(tensor, *args, **options)

    with patch.object(distributed, "_BUCKET", 20), patch.object(dist, "all_reduce", sending):
        average, optimiser = GradientAverage(weights), torch.optim.AdamW(weights, lr=0.1)
        for step in range(3):
            optimiser.zero_grad()
            events.clear()
            for last in (False, True):
                chance = torch.Generator().manual_seed(100 * step + 10 * last + rank())
                hidden = layers[0](torch.randn(3, 4, generator=chance)).tanh()
                hidden = layers[2](checkpoint(layers[1], hidden, use_reentrant=False)).tanh()
                hidden.register_hook(lambda _: events.append("exchanged"))
                loss = layers[5](gather(hidden)).square().mean() + layers[0](hidden).square().mean()
                loss = loss if rank() else loss + layers[3](hidden.detach()).square().mean()
                average.backward(loss, last=last) if sent_early else loss.backward()
            for weight in () if sent_early else weights:
                gradient = torch.zeros_like(weight) if weight.grad is None else weight.grad
                (some,) = sums([weight.grad is not None])
                dist.all_reduce(gradient)
                weight.grad = gradient / 2 if some else None
            optimiser.step()
    return [weight.detach() for weight in weights], events


def differences(rows: torch.Tensor) -> list[list[str]]:
    """Put into a ring what is of one process, what is of all in an order of its own, and what is of all."""
    listed, gathered = [], gather(rank_rows(rows))
    for new in (rank_rows(rows), gathered.flip(0) if rank() else gathered, gathered):
        ring = Ring(4, 2)
        ring.push(new)
        listed.append(unlike({"bank": ring.rows, "empty": ring.rows[:0]}))
    return listed


def test_a_bank_of_one_process_s_own_rows_is_found(two_processes: TwoProcesses) -> None:
    """A checkpoint holds the first one's alone; what was gathered is the same in all, and so is a single process's."""
    rows = torch.tensor(ROWS)
    assert two_processes(differences, rows) == [[["bank"], ["bank"], []]] * 2
    assert differences(rows) == [[], [], []]


def test_gradients_are_sent_during_the_backward_pass(two_processes: TwoProcesses) -> None:
    """The very weights of sending all at the end; begun after the loss has exchanged rows, before the first layer."""
    early, late = two_processes(trained, True), two_processes(trained, False)
    for weights, events in early:
        assert events[:2] == ["exchanged", "first layer"]  # of the first batch, which is only added up
        assert events[2:] == ["exchanged", *["sent"] * 3, "first layer", *["sent"] * 3]
        assert all(map(torch.equal, weights, late[0][0]))


def test_one_process_does_nothing() -> None:
    """Nothing is copied, counted or divided."""
    rows = torch.tensor(ROWS)
    assert gather(rows) is rows
    assert all_reduce_sum(rows) is rows
    assert (world_size(), rank(), offset(5), sizes(5), weight(5), weight(0)) == (1, 0, 0, [5], 1.0, 0.0)
    lone = nn.Parameter(rows)
    GradientAverage([lone]).average()
    assert lone.grad is None


@pytest.mark.slow
def test_a_launched_process_that_fails_or_is_missing_before_all_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it raised is raised by the first, and the next training goes on; one that says nothing is named, soon."""

    def run_worker(request: dict[str, Any], rank: int, *args: Any) -> dict[str, Any]:
        if rank in request["failing"]:
            raise UsageError("no GPU here")
        args[-1]()  # it is ready
        return {"rank": rank}

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MASTER_PORT", str(free.getsockname()[1]))
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setattr(launched, "run_worker", run_worker)
    following = Thread(target=lambda: launched.ProcessGroup(Launch(1, 2, 1)).follow())
    following.start()
    leading = launched.ProcessGroup(Launch(0, 2, 0))
    for failing in ([1], [0]):
        with pytest.raises(UsageError, match="no GPU here"):
            leading.lead({"failing": failing}, noop, noop)
    assert leading.lead({"failing": []}, noop, noop) == {"rank": 0}
    leading.end()
    following.join()
    monkeypatch.setattr(launched, "_READY", timedelta(seconds=0.5))
    with pytest.raises(UsageError, match=r"process 0 of the 2 .*no sign of 1 for 0\.5 seconds"):
        leading.lead({"failing": []}, noop, noop)
