"""Several processes as one: rows gathered with gradients, gradients averaged; nothing happens in a single process.

All processes must send alike, in one order. So gradients of weights, which are sent during the backward pass, wait for
those of rows that a loss has gathered.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.nn import functional as carried

_BUCKET = 1 << 23
"""Numbers in one message: 32 MB of float32."""
_RANK_STRIDE = 100
"""Generators of two processes are 2¹⁰⁰ draws apart, so that they never meet."""

_EXCHANGES = set[object]()
"""Of gradients of gathered rows, as far as the backward pass still has to make them."""


def world_size() -> int:
    """Return the number of processes."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this process, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


def gather(rows: torch.Tensor) -> torch.Tensor:
    """Return the rows of all processes in the order of ranks.

    Gradients flow back, summed over the processes that used a row. Mean losses over own anchors with gradients averaged
    (`GradientAverage`) then equal one process on the joined batch, if every process has as many anchors; where it has
    not, multiply the loss by `weight`.

    Args:
        rows: `[n, …]`; n may differ between processes, all else must not. All processes must call this alike.

    Returns:
        `[Σ n, …]`, with gradients if the rows are floats; the rows themselves in a single process.
    """
    if world_size() == 1:
        return rows
    counts = sizes(len(rows))
    most = max(counts)
    padded = torch.cat([rows, rows.new_zeros(most - len(rows), *rows.shape[1:])])  # [most, …]
    if padded.is_floating_point():
        parts = list(carried.all_gather(_exchanging(padded).contiguous()))
    else:
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded.contiguous())
    return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])


def sizes(count: int) -> list[int]:
    """Return every process's `count`, by rank; all processes must call this alike."""
    if world_size() == 1:
        return [count]
    counts: list[int | None] = [None] * world_size()
    dist.all_gather_object(counts, count)
    return [int(count or 0) for count in counts]


def offset(count: int) -> int:
    """Return where this process's rows begin among the gathered ones.

    Args:
        count: rows of this process.
    """
    return sum(sizes(count)[: rank()])


def weight(count: int) -> float:
    """Return this process's weight, with which losses average over rows and not over processes.

    Args:
        count: rows of this process, e.g. anchors.

    Returns:
        w, so that the mean over processes of (w · mean over a process's rows) is the mean over all rows.
    """
    counts = sizes(count)
    return count * len(counts) / max(1, sum(counts))


def candidates(keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the keys of all processes, among which anchors choose, and the places of this process's own keys.

    Args:
        keys: this process's keys `[n, d]`, row i that of anchor i.

    Returns:
        Candidates `[m, d]` in the order of ranks, and places `[n]`, int64, for `info_nce`'s `positives`.
    """
    first = offset(len(keys))
    return gather(keys), torch.arange(first, first + len(keys), device=keys.device)


def all_reduce_sum(tensor: torch.Tensor) -> torch.Tensor:
    """Return the sum over processes, with gradients."""
    return tensor if world_size() == 1 else carried.all_reduce(_exchanging(tensor))


def _exchanging(rows: torch.Tensor) -> torch.Tensor:
    """Return rows that are to be sent, and remember that the backward pass will send their gradients."""
    if rows.requires_grad:
        exchange, rows = object(), rows.view_as(rows)
        _EXCHANGES.add(exchange)
        rows.register_hook(lambda _: _EXCHANGES.discard(exchange))
    return rows


def rank_slice(count: int) -> slice:
    """Return which of `count` things that all processes drew alike are this one's: as many for each."""
    per_rank = count // world_size()
    return slice(rank() * per_rank, (rank() + 1) * per_rank)


def broadcast_rng(rng: np.random.Generator) -> None:
    """Give all processes the generator of the first, so that they draw alike."""
    if world_size() == 1:
        return
    states = [rng.bit_generator.state]
    dist.broadcast_object_list(states)
    rng.bit_generator.state = states[0]


def advance_rng(rng: np.random.Generator) -> None:
    """Let each process draw for itself from a generator that all had alike; the first one's goes on as it was."""
    if rank():
        rng.bit_generator.advance(rank() << _RANK_STRIDE)  # type: ignore[attr-defined]  # PCG64, numpy's default


def seed_step(seed: int, step: int) -> None:
    """Seed dropout of a step and process, whatever was drawn before: no checkpoint has the generators of all."""
    if world_size() > 1:
        seeds = np.random.SeedSequence([seed, step, rank()]).generate_state(1, np.uint64)
        torch.manual_seed(int(seeds[0]))


def sums(values: Sequence[float]) -> list[float]:
    """Return the sum over processes of each of some numbers; whole ones are exact up to 2⁵³."""
    if world_size() == 1:
        return list(values)
    added = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(added)
    return [float(value) for value in added]


def unlike(tensors: Mapping[str, torch.Tensor]) -> list[str]:
    """Return the names of tensors whose bytes are not the same in all processes; none in a single process."""
    if world_size() == 1:
        return []
    checksums = {name: sha256(_bytes(tensor)).hexdigest() for name, tensor in tensors.items()}
    of_all: list[dict[str, str]] = [{} for _ in range(world_size())]
    dist.all_gather_object(of_all, checksums)
    return [name for name, checksum in checksums.items() if any(digests.get(name) != checksum for digests in of_all)]


def _bytes(tensor: torch.Tensor) -> memoryview:
    return tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data


def union(flags: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the bits that are set in any process."""
    if world_size() == 1:
        return flags
    joined = torch.from_numpy(flags.copy())
    dist.all_reduce(joined, dist.ReduceOp.BOR)
    return joined.numpy()


class GradientAverage:
    """Averages the gradients of weights over processes, in buckets that are sent while others are still computed.

    `weights` are in the order of the forward pass; buckets go from the last to the first, and those with a weight that
    some process had no gradient of before go at the end. In a process without it the gradient counts as zero; a weight
    without one in all processes keeps none.
    """

    def __init__(self, weights: Iterable[nn.Parameter]) -> None:
        self._weights = [weight for weight in weights if weight.requires_grad]
        self._buckets = _buckets(self._weights[::-1])
        self._late: set[nn.Parameter] = set()  # that some process had no gradient of before: the same in all processes
        self._waiting: deque[list[nn.Parameter]] | None = None  # buckets, while a backward pass sends them
        self._missing: set[nn.Parameter] = set()  # whose gradients may still grow in it
        self._sent: list[_Message] = []
        for weight in self._weights if world_size() > 1 else ():
            weight.register_post_accumulate_grad_hook(self._send_ready)

    def backward(self, loss: torch.Tensor, *, last: bool = True) -> None:
        """Add the gradients of a loss; with the `last` one of a step, send them while others are made, and average."""
        if last and world_size() > 1:
            self._waiting, self._missing = self._ordered(), set(self._weights)
        loss.backward()
        if last:
            self.average()

    @torch.no_grad()
    def average(self) -> None:
        """Average the gradients that are there, in place."""
        if world_size() == 1:
            return
        present = [weight.grad is not None for weight in self._weights]
        for bucket in self._ordered() if self._waiting is None else self._waiting:
            self._send(bucket)
        for message in self._sent:
            message.arrive()
        for weight, count in zip(self._weights, sums(present), strict=True):
            if count < world_size():
                self._late.add(weight)
            if not count:
                weight.grad = None
        self._waiting, self._missing, self._sent = None, set(), []
        _EXCHANGES.clear()

    def _ordered(self) -> deque[list[nn.Parameter]]:
        return deque(sorted(self._buckets, key=lambda bucket: not self._late.isdisjoint(bucket)))

    @torch.no_grad()
    def _send_ready(self, weight: nn.Parameter) -> None:
        """Send the buckets that are next and whole, unless the backward pass has something else to send."""
        self._missing.discard(weight)
        while self._waiting and not _EXCHANGES and self._missing.isdisjoint(self._waiting[0]):
            self._send(self._waiting.popleft())

    def _send(self, bucket: list[nn.Parameter]) -> None:
        for weight in bucket:
            weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
        self._sent.append(_Message([weight.grad for weight in bucket if weight.grad is not None]))


def _buckets(weights: Iterable[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Return the weights in groups of one type that are sent together."""
    buckets: list[list[nn.Parameter]] = []
    for weight in weights:
        if (
            not buckets
            or buckets[-1][0].dtype != weight.dtype
            or sum(map(torch.numel, (*buckets[-1], weight))) > _BUCKET
        ):
            buckets.append([])
        buckets[-1].append(weight)
    return buckets


class _Message:
    """Tensors of one type on their way to be averaged over processes, in place."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        lone = len(tensors) == 1 and tensors[0].is_contiguous()  # such as a whole vocabulary, not to be copied
        self._tensors = tensors
        self._flat = tensors[0].view(-1) if lone else torch.cat([tensor.reshape(-1) for tensor in tensors])
        self._work: Any = dist.all_reduce(self._flat, async_op=True)

    def arrive(self) -> None:
        """Wait for it."""
        self._work.wait()
        means = self._flat.div_(world_size()).split([tensor.numel() for tensor in self._tensors])
        for tensor, mean in zip(self._tensors, means, strict=True):
            tensor.copy_(mean.view_as(tensor))


def average_statistics(modules: nn.Module) -> None:
    """Average the running statistics of batch normalisation over processes, in place, so that all go on alike."""
    buffers = modules.named_buffers() if world_size() > 1 else ()
    if statistics := [buffer for name, buffer in buffers if name.rpartition(".")[2] in ("running_mean", "running_var")]:
        _Message(statistics).arrive()
