"""Rows of few shapes: packed sequences filled up to a multiple of some tokens, and passes compiled for such rows.

A GPU is sent one operation at a time, some hundred a layer. `torch.compile` makes a few of them, but anew
for every shape that it meets; so packed rows are filled up, by sequences that see only themselves and that nothing
reads. Values and gradients of all others are what they were, beyond how products of another shape round; of dropout a
longer row takes other draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch._dynamo.exc import FailOnRecompileLimitHit, TorchDynamoException
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.utils.output_capturing import maybe_install_capturing_hooks

from bench.core.errors import UsageError
from bench.retrieval.packed import Packed, by_length, forward_row, kernels, seen, uses_packed, varlen
from bench.retrieval.transfer import to_device

BACKEND = "inductor"
"""What `torch.compile` hands its graphs to."""

SHAPES = 64
"""Shapes for which one encoder's pass is compiled at most: buckets, numbers of sequences, lengths, and grad or not."""


def fill(packed: Packed, multiple: int) -> Packed:
    """Fill a row up to a multiple of some tokens, by sequences of token 0, none longer than the longest there is.

    Example:
        >>> fill(pack([[5, 6, 7], [8, 9]], 0), 8).runs  # a sequence of three tokens fills it
        ((0, 2, 1), (2, 5, 1), (5, 8, 1))
    """
    tokens = len(packed.ids)
    missing = -tokens % multiple
    if not missing:
        return packed
    whole, rest = divmod(missing, packed.longest)
    lengths = np.asarray([packed.longest] * whole + [rest] * bool(rest), np.int64)
    ends = tokens + np.cumsum(lengths)
    within = np.arange(missing) - np.repeat(ends - lengths - tokens, lengths)  # place of each token in its sequence
    runs = [(tokens, tokens + whole * packed.longest, whole)] if whole else []
    runs += [(tokens + missing - rest, tokens + missing, 1)] if rest else []
    device = packed.ids.device
    return replace(
        packed,
        ids=functional.pad(packed.ids, (0, missing)),
        positions=torch.cat([packed.positions, to_device(within, device) + packed.positions[:1]]),
        runs=(*packed.runs, *runs),
        cuts=torch.cat([packed.cuts, to_device(ends.astype(np.int32), device)]),
    )


@dataclass(frozen=True)
class FixedRow:
    """A packed row of which a compiler sees the shapes alone, so that one graph serves all rows of these shapes."""

    cuts: torch.Tensor  # as `Packed` has it, its last number repeated up to a power of two, int32
    runs: torch.Tensor  # as `Packed` has them, then rows of zeros, int64 `[longest + 2, 3]`, on the processor
    longest: int  # tokens of the longest sequence, or more: a power of two
    varlen: tuple[bool, bool]  # whether one call serves all sequences, `kernels`

    def attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scaling: float | None,
        dropout: float,
        window: int | None,
    ) -> torch.Tensor:
        """Attend within each sequence, as `Packed.attend`."""
        if self.varlen[window is not None]:
            return varlen(query, key, value, self, scaling, dropout, window)
        groups = query.shape[1] // key.shape[1]
        key, value = (tensor.repeat_interleave(groups, dim=1) if groups > 1 else tensor for tensor in (key, value))
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        seed = torch.randint(1 << 62, ()) if dropout else torch.zeros((), dtype=torch.int64)
        attended: torch.Tensor = torch.ops.bench.attention(
            query[0], key[0], value[0], self.runs, seed, scale, dropout, window or 0
        )
        return attended


class CompiledPass:
    """The forward pass of an encoder that runs packed, compiled for each shape of row that it meets.

    Args:
        model: the encoder; its weights may change, not what it is made of.

    Raises:
        UsageError: torch is older than 2.13, or about that.

    Example:
        >>> (states,) = CompiledPass(model)(fill(packed, 512), (-1,))  # [T, d]
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        limits: dict[str, Any] = {"recompile_limit": SHAPES, "isolate_recompiles": True}  # which torch does not type
        try:
            self._compiled = torch.compile(self._states, fullgraph=True, dynamic=False, backend=BACKEND, **limits)
        except TypeError as error:
            raise UsageError(
                where="train.compile",
                found=f"torch {torch.__version__}, which counts the shapes of all encoders together",
                expected="torch 2.13, with which it was tried, or a later one",
                hint="type --set train.compile=false, or: pip install -U torch",
            ) from error

    def __call__(
        self, packed: Packed, layers: Sequence[int], embeds: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, ...]:
        """Return several layers of a pass, as `forward_layers` does.

        Raises:
            UsageError: the pass cannot be compiled on this machine, or there are more than `SHAPES` shapes.
        """
        with _in_a_sentence(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The .grad attribute of a Tensor that is not a leaf")  # it asks
            states: tuple[torch.Tensor, ...] = self._compiled(*self._arguments(packed, layers, embeds))
        return states

    def _arguments(self, packed: Packed, layers: Sequence[int], embeds: torch.Tensor | None) -> tuple[Any, ...]:
        device = self._model.device
        half = torch.is_autocast_enabled(device.type)
        dtype = torch.get_autocast_dtype(device.type) if half else self._model.dtype
        row = _fixed(packed, kernels(self._model, dtype))
        maybe_install_capturing_hooks(self._model)  # under a lock, which no graph can take
        return packed.ids, packed.positions, row.cuts, row.runs, row.longest, row.varlen, tuple(layers), embeds

    def _states(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        cuts: torch.Tensor,
        runs: torch.Tensor,
        longest: int,
        varlen: tuple[bool, bool],
        layers: tuple[int, ...],
        embeds: torch.Tensor | None,
    ) -> tuple[torch.Tensor, ...]:
        return forward_row(self._model, ids, positions, FixedRow(cuts, runs, longest, varlen), layers, embeds)


def check_packed(model: PreTrainedModel) -> None:
    """Raise `UsageError` for an encoder that runs padded, of which no row can be filled up."""
    if not uses_packed(model):
        raise UsageError(
            where="train.token_bucket",
            found=f"{type(model).__name__}, which runs in padded batches",
            expected="an encoder that runs packed, such as BERT, XLM-R or ModernBERT",
            hint="leave train.token_bucket out, or take another --backbone",
        )


def _fixed(packed: Packed, varlen: tuple[bool, bool]) -> FixedRow:
    longest, sequences = _power(packed.longest), len(packed.cuts) - 1
    runs = np.zeros((longest + 2, 3), np.int64)  # there are no more lengths than that, and two runs that fill
    runs[: len(packed.runs)] = packed.runs
    cuts = functional.pad(packed.cuts, (0, _power(sequences) - sequences), value=len(packed.ids))
    return FixedRow(cuts, torch.from_numpy(runs), longest, varlen)


def _power(count: int) -> int:
    """Return the least power of two that is no smaller than a count."""
    return 1 << (count - 1).bit_length()


@contextmanager
def _in_a_sentence() -> Iterator[None]:
    """Say in a sentence that a pass cannot be compiled, in place of the compiler's own pages."""
    try:
        yield
    except FailOnRecompileLimitHit as error:
        raise UsageError(
            where="train.compile",
            found=f"rows of more than {SHAPES} shapes",
            expected=f"at most {SHAPES}, each of which is compiled",
            hint="raise --set train.token_bucket, or type --set train.compile=false",
        ) from error
    except TorchDynamoException as error:
        cause = getattr(error, "inner_exception", None) or error
        first, *_ = [line for line in str(cause).splitlines() if line.strip()] or [""]
        raise UsageError(
            where="train.compile",
            found=f"torch cannot compile the encoder's pass here: {type(cause).__name__}: {first:.300}",
            expected="an encoder and a machine for which it can: with a C++ compiler, on CUDA with Triton too",
            hint="type --set train.compile=false",
        ) from error


# Attention of a row of which only the shapes are known: what `Packed.attend` does length by length, as one operation.


@torch.library.custom_op("bench::attention", mutates_args=())
def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    runs: torch.Tensor,
    seed: torch.Tensor,
    scale: float,
    dropout: float,
    window: int,
) -> torch.Tensor:
    """Attend within each sequence, `[heads, T, width]` → `[T, heads, width]`; `seed` decides what is dropped."""
    parts, generator = [], _generator(query, seed)
    with torch.autocast(query.device.type, enabled=False):
        for q, k, v in by_length((query, key, value), _present(runs)):
            shares, factors = _shares(q, k, scale, dropout, window, generator)
            parts.append((_times(shares, factors).to(v.dtype) @ v).transpose(1, 2).flatten(0, 1))
    return torch.cat(parts)


@torch.library.custom_op("bench::attention_gradients", mutates_args=())
def _attention_gradients(
    gradient: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    runs: torch.Tensor,
    seed: torch.Tensor,
    scale: float,
    dropout: float,
    window: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of query, key and value; probabilities are computed again, and dropped again."""
    parts: tuple[list[torch.Tensor], ...] = ([], [], [])
    generator = _generator(query, seed)
    with torch.autocast(query.device.type, enabled=False):
        for q, k, v, upper in by_length((query, key, value, gradient.transpose(0, 1)), _present(runs)):
            shares, factors = _shares(q, k, scale, dropout, window, generator)
            inner = _times((upper @ v.mT).to(shares.dtype), factors)
            slope = (shares * (inner - (inner * shares).sum(-1, keepdim=True)) * scale).to(q.dtype)
            products = slope @ k, slope.mT @ q, _times(shares, factors).to(v.dtype).mT @ upper
            for part, product in zip(parts, products, strict=True):
                part.append(product.transpose(0, 1).flatten(1, 2))
    of_query, of_key, of_value = (torch.cat(part, dim=1) for part in parts)
    return of_query, of_key, of_value


def _present(runs: torch.Tensor) -> list[tuple[int, int, int]]:
    """Return the runs of a table that ends in rows of zeros."""
    return [(start, end, count) for start, end, count in runs.tolist() if count]


def _generator(like: torch.Tensor, seed: torch.Tensor) -> torch.Generator:
    return torch.Generator(like.device).manual_seed(int(seed))


def _shares(
    query: torch.Tensor, key: torch.Tensor, scale: float, dropout: float, window: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return attention's probabilities `[…, length, length]`, in float32 at least, and what dropout makes of each."""
    scores = (query @ key.mT).to(torch.promote_types(query.dtype, torch.float32)) * scale
    mask = seen(query, window or None)
    shares = (scores if mask is None else scores.masked_fill(~mask, float("-inf"))).softmax(-1)
    if not dropout:
        return shares, None
    return shares, torch.empty_like(shares).bernoulli_(1 - dropout, generator=generator).div_(1 - dropout)


def _times(tensor: torch.Tensor, factors: torch.Tensor | None) -> torch.Tensor:
    return tensor if factors is None else tensor * factors


def _saved(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:  # noqa: ARG001 (torch names it)
    ctx.save_for_backward(*inputs[:5])
    ctx.numbers = inputs[5:]


def _backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    gradients = torch.ops.bench.attention_gradients(gradient, *ctx.saved_tensors, *ctx.numbers)
    return (*gradients, None, None, None, None, None)


_attention.register_fake(lambda query, *_: query.new_empty(query.shape[1], query.shape[0], query.shape[2]))
_attention_gradients.register_fake(lambda _, *tensors: tuple(tensor.new_empty(tensor.shape) for tensor in tensors[:3]))
_attention.register_autograd(_backward, setup_context=_saved)
