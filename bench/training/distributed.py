"""Several processes as one: rows gathered with gradients, gradients averaged; nothing happens in a single process."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.nn import functional as carried

_BUCKET = 1 << 23
"""Numbers in one message: 32 MB of float32."""
_APART = 100
"""Generators of two processes are 2¹⁰⁰ draws apart, so that they never meet."""


def world() -> int:
    """Return the number of processes."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this process, from 0."""
    return dist.get_rank() if world() > 1 else 0


def gather(rows: torch.Tensor) -> torch.Tensor:
    """Return the rows `[n, …]` of all processes in the order of ranks, `[Σ n, …]`; n may differ between processes.

    Gradients flow back, summed over the processes that used a row. Mean losses over own anchors with gradients averaged
    (`average_gradients`) then equal one process on the joined batch, if every process has as many anchors.
    """
    if world() == 1:
        return rows
    counts = sizes(len(rows))
    most = max(counts)
    padded = torch.cat([rows, rows.new_zeros(most - len(rows), *rows.shape[1:])])  # [most, …]
    if padded.is_floating_point():
        parts = list(carried.all_gather(padded.contiguous()))
    else:
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded.contiguous())
    return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])


def sizes(own: int) -> list[int]:
    """Return every process's `own`, by rank."""
    if world() == 1:
        return [own]
    found: list[int | None] = [None] * world()
    dist.all_gather_object(found, own)
    return [int(count or 0) for count in found]


def offset(own: int) -> int:
    """Return where this process's rows begin among the gathered ones."""
    return sum(sizes(own)[: rank()])


def weight(own: int) -> float:
    """Return this process's weight, so that the mean of (weight · mean over own rows) is the mean over all rows."""
    every = sizes(own)
    return own * len(every) / max(1, sum(every))


def candidates(keys: torch.Tensor, *, gathered: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the keys `[m, d]` that a process's anchors choose among, maybe of all processes, and own places `[n]`."""
    first = offset(len(keys)) if gathered else 0
    places = torch.arange(first, first + len(keys), device=keys.device)
    return (gather(keys) if gathered else keys), places


def total(tensor: torch.Tensor) -> torch.Tensor:
    """Return the sum over processes, with gradients."""
    return tensor if world() == 1 else carried.all_reduce(tensor)


def share(count: int) -> slice:
    """Return which of `count` things that all processes drew alike are this one's: as many for each."""
    own = count // world()
    return slice(rank() * own, (rank() + 1) * own)


def agree(rng: np.random.Generator) -> None:
    """Give all processes the generator of the first, so that they draw alike."""
    if world() == 1:
        return
    states = [rng.bit_generator.state]
    dist.broadcast_object_list(states)
    rng.bit_generator.state = states[0]


def part(rng: np.random.Generator) -> None:
    """Let each process draw for itself from a generator that all had alike; the first one's goes on as it was."""
    if rank():
        rng.bit_generator.advance(rank() << _APART)  # type: ignore[attr-defined]  # PCG64, numpy's default


def seed_step(seed: int, step: int) -> None:
    """Seed dropout of a step and process, whatever was drawn before: no checkpoint has the generators of all."""
    if world() > 1:
        own = np.random.SeedSequence([seed, step, rank()]).generate_state(1, np.uint64)
        torch.manual_seed(int(own[0]))


def sums(values: Sequence[float]) -> list[float]:
    """Return the sum over processes of each of some numbers; whole ones are exact up to 2⁵³."""
    if world() == 1:
        return list(values)
    added = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(added)
    return [float(value) for value in added]


def union(flags: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the bits that are set in any process."""
    if world() == 1:
        return flags
    joined = torch.from_numpy(flags.copy())
    dist.all_reduce(joined, dist.ReduceOp.BOR)
    return joined.numpy()


@torch.no_grad()
def average_gradients(weights: Iterable[nn.Parameter]) -> None:
    """Average gradients over processes, in place and in buckets; a weight without one counts as zero."""
    if world() == 1:
        return
    waiting: list[torch.Tensor] = []
    for weight in weights:
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        if waiting and (
            waiting[0].dtype != weight.grad.dtype or sum(map(torch.numel, waiting)) + weight.numel() > _BUCKET
        ):
            _average(waiting)
            waiting = []
        waiting.append(weight.grad)
    _average(waiting)


def average_statistics(modules: nn.Module) -> None:
    """Average the running statistics of batch normalisation over processes, in place, so that all go on alike."""
    if world() > 1:
        named = modules.named_buffers()
        _average([buffer for name, buffer in named if name.rpartition(".")[2] in ("running_mean", "running_var")])


def _average(gradients: Sequence[torch.Tensor]) -> None:
    """Average some tensors of one type in one message."""
    if gradients:
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        flat /= world()
        for gradient, mean in zip(gradients, flat.split([one.numel() for one in gradients]), strict=True):
            gradient.copy_(mean.view_as(gradient))
