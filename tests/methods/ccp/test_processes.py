"""Two processes on half batches do what one does on the joined batch: loss, gradients, bank (float64)."""

from typing import Any

import pytest
import torch

from bench.training.distributed import GradientAverage, rank, world_size
from methods.ccp.trainer import CcpModules, CcpTrainer
from tests.conftest import TwoProcesses, cases, present
from tests.methods.ccp.conftest import config_of

Step = dict[str, Any]
CUT = 4  # of seven pairs: processes need not have as many
LANGUAGES = torch.tensor([0, 1, 0, 1, 1, 0, 0])


def made(sets: list[str]) -> tuple[CcpTrainer, CcpModules]:
    """Build a trainer and its modules, in float64, weights always the same."""
    config = config_of(*sets)
    torch.manual_seed(0)
    return CcpTrainer(config), CcpModules(config, 4, 2, None).double()


def step(left: torch.Tensor, right: torch.Tensor, sets: list[str]) -> Step:
    """Project, hold against all, push; twice. Return loss, gradients and bank of this process."""
    trainer, modules = made(sets)
    assert modules.head is not None
    assert modules.bank is not None
    mine = slice(None) if world_size() == 1 else slice(CUT) if rank() == 0 else slice(CUT, None)
    tags, losses = LANGUAGES[mine], []
    for _ in range(2):
        one, other = modules.head(left[mine], right[mine])
        contrast, _ = trainer.contrast(modules.bank, one, other, tags)
        loss = trainer.scaled(contrast)
        loss.backward()
        losses.append(loss.detach())
        trainer.push(modules.bank, one, other, tags)
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
    left, right = torch.randn(2, 7, 4, dtype=torch.float64, generator=generator)
    return left, right


@pytest.mark.parametrize("sets", cases("two-processes-are-one"), ids=",".join)
def test_two_processes_are_one(two_processes: TwoProcesses, sets: list[str]) -> None:
    """Means of losses and gradients, statistics, and the bank's rows (the same on both, in rank order)."""
    left, right = views()
    first, second = two_processes(step, left, right, sets)
    whole = step(left, right, sets)
    torch.testing.assert_close((first["losses"] + second["losses"]) / 2, whole["losses"], rtol=0, atol=1e-9)
    for mine, expected in zip(first["gradients"], whole["gradients"], strict=True):
        torch.testing.assert_close(mine, expected, rtol=0, atol=1e-9)
    assert torch.equal(first["rows"], second["rows"])
    assert torch.equal(first["marks"], second["marks"])
    rows, expected = (one["rows"][one["rows"][:, 0].argsort()] for one in (first, whole))  # ranks come one by one
    torch.testing.assert_close(rows, expected, rtol=0, atol=1e-9)
    torch.testing.assert_close(first["mean"], whole["mean"], rtol=0, atol=1e-9)


def test_statistics_are_each_process_s_own(two_processes: TwoProcesses) -> None:
    """Without `head.sync_bn`, as one process that normalises the halves by themselves."""
    left, right = views()
    found = two_processes(step, left, right, [])
    for one, mine in zip(found, (slice(CUT), slice(CUT, None)), strict=True):
        head = present(made([])[1].head)
        for _ in range(2):
            head(left[mine], right[mine])
        torch.testing.assert_close(one["mean"], present(head.project.norm).running_mean, rtol=0, atol=1e-12)
    assert not torch.allclose(found[0]["mean"], found[1]["mean"])


def test_ungathered_negatives_stay_at_home(two_processes: TwoProcesses) -> None:
    """With `gather_negatives=false` each process's first loss is that of its half alone."""
    left, right = views()
    sets = ["head.bn=none", "gather_negatives=false"]
    found = two_processes(step, left, right, sets)
    trainer, modules = made(sets)
    for one, mine, share in zip(found, (slice(CUT), slice(CUT, None)), (8 / 7, 6 / 7), strict=True):
        near, far = present(modules.head)(left[mine], right[mine])
        contrast, _ = trainer.contrast(None, near, far, LANGUAGES[mine])
        torch.testing.assert_close(one["losses"][0], contrast.loss.detach() * share, rtol=0, atol=1e-9)
