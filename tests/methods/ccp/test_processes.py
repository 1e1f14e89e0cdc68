"""Two processes on half batches do what one does on the joined batch: loss, gradients, bank (float64)."""

from typing import Any

import pytest
import torch

from bench.training.distributed import GradientAverage, rank, weight, world_size
from methods.ccp.trainer import CcpModules, CcpTrainer
from tests.conftest import TwoProcesses, cases, present
from tests.methods.ccp.conftest import config_of

Step = dict[str, Any]
CUT = 4  # of seven pairs: processes need not have as many
LANGUAGES = torch.tensor([0, 1, 0, 1, 1, 0, 0])


def trainer_of(sets: list[str]) -> tuple[CcpTrainer, CcpModules]:
    """Build a trainer and its modules, in float64, weights always the same."""
    config = config_of(*sets)
    torch.manual_seed(0)
    return CcpTrainer(config), CcpModules(config, 4, 2, None).double()


def step(first: torch.Tensor, second: torch.Tensor, sets: list[str]) -> Step:
    """Project, hold against all, push; twice. Return loss, gradients and bank of this process."""
    trainer, modules = trainer_of(sets)
    assert modules.head is not None
    assert modules.bank is not None
    mine = slice(None) if world_size() == 1 else slice(CUT) if rank() == 0 else slice(CUT, None)
    tags, losses = LANGUAGES[mine], []
    for _ in range(2):
        queries, keys = modules.head(first[mine], second[mine])
        contrast, _ = trainer.contrast(modules.bank, queries, keys, tags)
        loss = contrast.loss * weight(len(contrast.terms))
        loss.backward()
        losses.append(loss.detach())
        trainer.push(modules.bank, queries, keys, tags)
    GradientAverage(modules.parameters()).average()
    rows, marks = modules.bank.ordered()
    return {
        "losses": torch.stack(losses),
        "gradients": [weight.grad for weight in modules.parameters()],
        "rows": rows,
        "marks": marks,
        "mean": torch.zeros(1) if modules.head.project.norm is None else modules.head.project.norm.running_mean,
    }


def views() -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors of seven pairs, float64."""
    generator = torch.Generator().manual_seed(2)
    first, second = torch.randn(2, 7, 4, dtype=torch.float64, generator=generator)
    return first, second


JOINED: list[list[str]] = cases("two-processes-are-one")
NOT_GATHERED = ["gather_negatives=false"]


def steps() -> dict[str, Step]:
    """Carry out the step with all settings, in this process."""
    return {",".join(sets): step(*views(), sets) for sets in ([], NOT_GATHERED, *JOINED)}


@pytest.fixture(scope="module")
def both(two_processes: TwoProcesses) -> list[dict[str, Step]]:
    """What each of two processes computes, by settings."""
    return two_processes(steps)


@pytest.mark.parametrize("sets", JOINED, ids=",".join)
def test_two_processes_are_one(both: list[dict[str, Step]], sets: list[str]) -> None:
    """Means of losses and gradients, statistics, and the bank's rows (the same on both, in rank order)."""
    first_view, second_view = views()
    first, second = (results[",".join(sets)] for results in both)
    joined = step(first_view, second_view, sets)
    torch.testing.assert_close((first["losses"] + second["losses"]) / 2, joined["losses"], rtol=0, atol=1e-9)
    for mine, expected in zip(first["gradients"], joined["gradients"], strict=True):
        torch.testing.assert_close(mine, expected, rtol=0, atol=1e-9)
    assert torch.equal(first["rows"], second["rows"])
    assert torch.equal(first["marks"], second["marks"])
    rows, expected = (
        result["rows"][result["rows"][:, 0].argsort()] for result in (first, joined)
    )  # ranks come one by one
    torch.testing.assert_close(rows, expected, rtol=0, atol=1e-9)
    torch.testing.assert_close(first["mean"], joined["mean"], rtol=0, atol=1e-9)


def test_statistics_are_each_process_s_own(both: list[dict[str, Step]]) -> None:
    """Without `head.sync_bn`, as one process that normalises the halves by themselves."""
    first_view, second_view = views()
    results = [computed[""] for computed in both]
    for result, mine in zip(results, (slice(CUT), slice(CUT, None)), strict=True):
        head = present(trainer_of([])[1].head)
        for _ in range(2):
            head(first_view[mine], second_view[mine])
        torch.testing.assert_close(result["mean"], present(head.project.norm).running_mean, rtol=0, atol=1e-12)
    assert not torch.allclose(results[0]["mean"], results[1]["mean"])


def test_a_process_meets_its_own_windows_where_they_are_not_gathered(both: list[dict[str, Step]]) -> None:
    """While the bank is empty: the loss of the half alone, weighed by its share of the windows."""
    first_view, second_view = views()
    results = [computed[",".join(NOT_GATHERED)] for computed in both]
    for result, mine in zip(results, (slice(CUT), slice(CUT, None)), strict=True):
        trainer, modules = trainer_of(NOT_GATHERED)
        head = present(modules.head)
        queries, keys = head(first_view[mine], second_view[mine])
        alone, _ = trainer.contrast(None, queries, keys, LANGUAGES[mine])
        share = 2 * len(first_view[mine]) / len(first_view)
        torch.testing.assert_close(result["losses"][0], alone.loss.detach() * share, rtol=0, atol=1e-12)
    assert torch.equal(results[0]["rows"], results[1]["rows"])  # the bank has the rows of both
    assert len(results[0]["rows"]) == 2 * 2 * len(first_view)
