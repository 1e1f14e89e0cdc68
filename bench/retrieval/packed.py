"""Padding-free execution of Hugging Face encoders: sequences laid end to end in one row, attention kept apart.

Conventions: T tokens of n sequences lie in one row, sorted by length (ties: in the order given), so sequences of
equal length lie together: a *run*. Attention is called once a run, or once for all where CUDA has a kernel for it.
What comes out of `pool` is in the order in which the sequences were given. Nothing is padded, and a sequence's values
do not depend on its neighbours beyond rounding (1e-5 in float32).

`transformers` lets an attention function and its mask be registered by name, so one function serves every architecture
that uses that interface; all others run padded, in sorted batches (`enable` decides, by trying).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from bench.core.records import Pooling
from bench.retrieval.backbones import load_encoder
from bench.retrieval.transfer import to_device

_DEVICES = ("cuda",)  # for which torch has kernels of sequences of any lengths
_HALF = (torch.float16, torch.bfloat16)

PACKED = "bench_packed"
"""Name under which the attention is registered with transformers."""

Ids = Sequence[int] | npt.NDArray[np.integer[Any]]
"""Token ids of one sequence, special tokens included."""


@dataclass(frozen=True)
class Packed:
    """Sequences laid end to end."""

    ids: torch.Tensor  # token ids, int64 `[T]`
    positions: torch.Tensor  # position ids, int64 `[T]`; they begin anew with every sequence
    # (first row, end row, number of sequences) of sequences of equal length, shortest first
    runs: tuple[tuple[int, int, int], ...]
    # row of the first token of each sequence in the order given, int64 `[n]`; token j of sequence i is in row
    # `starts[i] + j`
    starts: torch.Tensor
    first_rows: npt.NDArray[np.int64]  # `starts` on the processor, of which indices can be made without waiting
    places: torch.Tensor  # place of each sequence, in the order given, among the sorted ones, int64 `[n]`
    cuts: torch.Tensor  # row at which each sorted sequence begins, and T, int32 `[n + 1]`

    @property
    def tokens(self) -> list[int]:
        """Tokens of each run; `split` by these has one gradient, where slices have one of all tokens each."""
        return [end - start for start, end, _ in self.runs]

    @property
    def lengths(self) -> list[int]:
        """Tokens of each sequence, shortest first."""
        return [(end - start) // count for start, end, count in self.runs for _ in range(count)]

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return max((end - start) // count for start, end, count in self.runs)

    def to(self, device: torch.device | str) -> Packed:
        """Return the same on another device."""
        names = ("ids", "positions", "starts", "places", "cuts")
        moved: dict[str, Any] = {name: to_device(getattr(self, name), torch.device(device)) for name in names}
        return replace(self, **moved)

    def attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scaling: float | None,
        dropout: float,
        window: int | None,
    ) -> torch.Tensor:
        """Attend within each sequence, `[1, heads, T, width]` → `[T, heads, width]`."""
        shape = (query.shape[1], key.shape[1], query.shape[-1])
        attention = varlen if _kernel(query.device, query.dtype, shape, window is not None) else _by_runs
        return attention(query, key, value, self, scaling, dropout, window)


class Layout(Protocol):
    """What attention knows of a packed row: a `Packed`, or one of which a compiler knows the shapes alone."""

    @property
    def cuts(self) -> torch.Tensor:
        """Row at which each sequence begins, and T, int32 `[n + 1]`."""

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence, or more."""

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


def pack(sequences: Sequence[Ids], first_position: int) -> Packed:
    """Lay sequences end to end, on the processor.

    Args:
        sequences: token ids of n sequences, special tokens included.
        first_position: the position id of a first token (`first_position`).

    Raises:
        ValueError: there is no sequence, or one has no token.

    Example:
        >>> pack([[5, 6, 7], [8, 9]], 0).ids.tolist()  # the shorter one first
        [8, 9, 5, 6, 7]
    """
    lengths = np.asarray([len(sequence) for sequence in sequences], np.int64)
    if not lengths.size or not lengths.all():
        raise ValueError(f"found lengths {lengths.tolist()}, expected at least one sequence, none empty")
    order = np.argsort(lengths, kind="stable")
    cuts = np.concatenate([[0], np.cumsum(lengths[order])])
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    ids = np.concatenate([np.asarray(sequences[at], np.int64) for at in order.tolist()])
    positions = np.arange(len(ids)) - np.repeat(cuts[:-1], lengths[order]) + first_position
    _, firsts, counts = np.unique(lengths[order], return_index=True, return_counts=True)
    runs = tuple(
        (int(cuts[first]), int(cuts[first + count]), int(count)) for first, count in zip(firsts, counts, strict=True)
    )
    return Packed(
        ids=torch.from_numpy(ids),
        positions=torch.from_numpy(positions),
        runs=runs,
        starts=torch.from_numpy(cuts[places]),
        first_rows=cuts[places],
        places=torch.from_numpy(places),
        cuts=torch.from_numpy(cuts.astype(np.int32)),
    )


def budget(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Cut sequences into batches.

    Args:
        lengths: tokens of each sequence.
        tokens: of a batch at the most, counted as if padded; a longer sequence is alone in one.

    Returns:
        The indices of the sequences of each batch, shortest first.

    Raises:
        ValueError: fewer than 1 token.

    Example:
        >>> budget([9, 2, 3], 6)
        [[1, 2], [0]]
    """
    if tokens < 1:
        raise ValueError(f"found a budget of {tokens} tokens, expected at least 1")
    batches: list[list[int]] = []
    for at in np.argsort(np.asarray(lengths, np.int64), kind="stable").tolist():
        if batches and (len(batches[-1]) + 1) * lengths[at] <= tokens:
            batches[-1].append(at)
        else:
            batches.append([at])
    return batches


def forward(
    model: PreTrainedModel, packed: Packed, layer: int = -1, *, embeds: torch.Tensor | None = None
) -> torch.Tensor:
    """Run an encoder over packed sequences, with gradients where they are on.

    Args:
        model: an encoder of transformers; it runs packed where `enable` found that it can, else padded.
        packed: n sequences of T tokens, on the model's device.
        layer: which hidden states to return: −1 the last, 0 the embedding output, i the output of block i.
        embeds: `[T, d]`, rows as in `packed`: take the place of the token embeddings; positions are added.

    Returns:
        Hidden states `[T, d]`, rows as in `packed`.
    """
    return forward_layers(model, packed, (layer,), embeds=embeds)[0]


def forward_layers(
    model: PreTrainedModel, packed: Packed, layers: Sequence[int], *, embeds: torch.Tensor | None = None
) -> tuple[torch.Tensor, ...]:
    """Return several layers of one pass, each as `forward` returns one."""
    if not uses_packed(model):
        return _padded(model, packed, layers, embeds)
    return forward_row(model, packed.ids, packed.positions, packed, layers, embeds)


def forward_row(
    model: PreTrainedModel,
    ids: torch.Tensor,
    positions: torch.Tensor,
    layout: Layout,
    layers: Sequence[int],
    embeds: torch.Tensor | None,
) -> tuple[torch.Tensor, ...]:
    """Return several layers `[T, d]` of a model that runs packed, of ids `[T]` or of `embeds` `[T, d]`."""
    output = model(
        **({"input_ids": ids[None]} if embeds is None else {"inputs_embeds": embeds[None]}),
        position_ids=positions[None],
        output_hidden_states=any(layer != -1 for layer in layers),
        bench_packed=layout,  # handed through by every architecture of the interface, down to `_attention`
    )
    return tuple(_layer(output, layer)[0] for layer in layers)


def pool(hidden: torch.Tensor, packed: Packed, pooling: Pooling, pooler: torch.nn.Module | None = None) -> torch.Tensor:
    """Pool hidden states to one vector a sequence.

    Args:
        hidden: states of all tokens, `[T, d]`, rows as in `packed`.
        packed: the sequences.
        pooling: `cls` takes the first token's state, `mean` the mean of all tokens' (special ones too),
            `mean-but-first` that of all others' (of a single token its own), `pooler` the first one's through `pooler`,
            `last` the last token's state.
        pooler: the model's own, for that pooling.

    Returns:
        Vectors `[n, d]` in the order in which the sequences were given, float32 (float64 for float64).

    Raises:
        ValueError: another pooling, or no pooler where it is needed.
    """
    if pooling == "cls":
        return wide(hidden[packed.starts])
    if pooling == "last":
        return wide(hidden[packed.cuts[1:].long() - 1])[packed.places]
    if pooling == "pooler" and pooler is not None:
        pooled: torch.Tensor = pooler(hidden[packed.starts][:, None])  # a pooler reads the first of a row of states
        return wide(pooled)
    if pooling not in ("mean", "mean-but-first"):
        raise ValueError(f"found pooling {pooling!r}, expected cls, mean or last, or pooler with the model's pooler")
    if hidden.device.type in _DEVICES and pooling == "mean":  # where a call for each length costs more than its sums
        lengths = packed.cuts.diff().long()
        return torch.segment_reduce(wide(hidden), "mean", lengths=lengths, unsafe=True)[packed.places]
    first = int(pooling == "mean-but-first")
    runs = [
        wide(states).reshape(count, -1, hidden.shape[1])
        for states, (_, _, count) in zip(hidden.split(packed.tokens), packed.runs, strict=True)
    ]
    return torch.cat([states[:, min(first, states.shape[1] - 1) :].mean(1) for states in runs])[packed.places]


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """Return half precision as float32, anything else as it is."""
    return tensor.float() if tensor.dtype in _HALF else tensor


def first_position(model: PreTrainedModel) -> int:
    """Position id of a sequence's first token: 0; where positions have a padding id (RoBERTa, MPNet), that + 1."""
    positions = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(positions, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1


def longest(model: PreTrainedModel) -> int | None:
    """Tokens of the longest sequence that the model has positions for; None where it sets no bound."""
    bound = getattr(model.config, "max_position_embeddings", None)
    return None if bound is None or bound < 1 else int(bound) - first_position(model)


def load_model(folder: Path, device: torch.device | str = "cpu", *, pooler: bool = False) -> PreTrainedModel:
    """Load an encoder in evaluation mode, packed where it can, maybe with its pooler; raises as `load_encoder`."""
    model = load_encoder(folder, "own" if pooler else "none")
    torch.nn.Module.to(model, device)  # transformers' own `to` adds nothing here, and is typed wrongly
    enable(model)
    model.train(False)
    return model


def enable(model: PreTrainedModel) -> bool:
    """Let a model run packed if its architecture can; return whether it does.

    It is tried on two short sequences and must give the values that it gives alone, since whether an architecture
    honours position ids or has a mask of its own is documented nowhere. Otherwise `forward` pads.
    """
    before = model.config._attn_implementation  # transformers has no public reading of it
    if not getattr(model, "_supports_attention_backend", False):
        return False
    training = model.training
    model.train(False)
    with torch.no_grad():
        probes = _probes(model)
        singles = [model(input_ids=ids[None], attention_mask=torch.ones_like(ids)[None])[0][0] for ids in probes]
        model.set_attn_implementation(PACKED)
        packed = pack([ids.numpy(force=True) for ids in probes], first_position(model)).to(model.device)
        try:
            actual, expected = forward(model, packed), torch.cat(singles)
            # Compared by the mean, since trained encoders have a few very large values.
            agrees = actual.shape == expected.shape and bool(
                (actual - expected).abs().mean() <= 1e-4 * expected.abs().mean()
            )
        except (TypeError, RuntimeError, IndexError):  # it does not take packed sequences at all
            agrees = False
    if not agrees:
        model.set_attn_implementation(before)
    model.train(training)
    return agrees


def uses_packed(model: PreTrainedModel) -> bool:
    """Return whether a model runs packed (`enable`) or padded."""
    return bool(model.config._attn_implementation == PACKED)


def _probes(model: PreTrainedModel) -> list[torch.Tensor]:
    """Two sequences, the longer one beyond the model's sliding window if it has one."""
    config = model.config
    window = getattr(config, "sliding_window", None) or 0
    pad = getattr(config, "pad_token_id", None)
    ids = [at for at in range(config.vocab_size) if at != pad]
    size = min(window + 5, longest(model) or window + 5)
    return [torch.tensor([ids[(7 * at + 3) % len(ids)] for at in range(n)]).to(model.device) for n in (2, size)]


def _padded(
    model: PreTrainedModel, packed: Packed, layers: Sequence[int], embeds: torch.Tensor | None
) -> tuple[torch.Tensor, ...]:
    """Run padded batches, none larger than the packed row."""
    lengths, end = packed.lengths, 0
    hidden: list[list[torch.Tensor]] = [[] for _ in layers]
    for batch in budget(lengths, len(packed.ids)):  # already sorted: a batch is a slice
        name, source, filler = (
            ("input_ids", packed.ids, model.config.pad_token_id or 0)
            if embeds is None
            else ("inputs_embeds", embeds, 0)
        )
        sizes = [lengths[at] for at in batch]
        start, end = end, end + sum(sizes)
        inputs, real, places = padded(source[start:end], sizes, filler)
        inner = any(layer != -1 for layer in layers)
        output = model(**{name: inputs}, attention_mask=real.long(), output_hidden_states=inner)
        for states, layer in zip(hidden, layers, strict=True):
            states.append(_layer(output, layer).flatten(0, 1)[places])
    return tuple(torch.cat(states) for states in hidden)


def padded(
    rows: torch.Tensor, lengths: Sequence[int], filler: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pad sequences that lie end to end, in one operation, however many they are.

    Args:
        rows: `[T, …]`, those of n sequences one after the other.
        lengths: rows of each sequence, T together; l is the largest.
        filler: what follows a shorter sequence.

    Returns:
        The padded rows `[n, l, …]`; which of them are real, bool `[n, l]`; and the places `[T]` of `rows` among the
        n·l padded ones.
    """
    sizes = np.asarray(lengths, np.int64)
    real = np.arange(sizes.max()) < sizes[:, None]
    places = to_device(np.flatnonzero(real), rows.device)
    flat = rows.new_full((real.size, *rows.shape[1:]), filler).index_copy(0, places, rows)
    return flat.unflatten(0, real.shape), to_device(real, rows.device), places


def _layer(output: Any, layer: int) -> torch.Tensor:
    states: torch.Tensor = output.last_hidden_state if layer == -1 else output.hidden_states[layer]
    return states


def _attention(
    _module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    bench_packed: Layout | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attend within each sequence, `[1, heads, T, width]` → `[1, T, heads, width]`, and no weights.

    A token sees those nearer than `sliding_window`, on both sides. Raises `RuntimeError` outside of `forward`.
    """
    if bench_packed is None:
        raise RuntimeError("the model is set to packed attention: call bench.retrieval.packed.forward, not the model")
    window = sliding_window if sliding_window is not None and sliding_window < bench_packed.longest else None
    return bench_packed.attend(query, key, value, scaling, dropout, window)[None], None


def _by_runs(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    packed: Packed,
    scaling: float | None,
    dropout: float,
    window: int | None,
) -> torch.Tensor:
    """One call for all sequences of a length; `[T, heads, width]`."""
    parts = []
    for q, k, v in by_length((query[0], key[0], value[0]), packed.runs):
        part = functional.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=seen(q, window),
            dropout_p=dropout,
            scale=scaling,
            enable_gqa=query.shape[1] != key.shape[1],
        )
        parts.append(part.transpose(1, 2).flatten(0, 1))  # [tokens of the run, heads, width]
    return torch.cat(parts)


def by_length(
    tensors: Sequence[torch.Tensor], runs: Sequence[tuple[int, int, int]]
) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield, for each run, what tensors `[heads, T, width]` have of it, each `[count, heads, length, width]`."""
    tokens = [end - start for start, end, _ in runs]
    for *parts, (_, _, count) in zip(*(tensor.split(tokens, dim=1) for tensor in tensors), runs, strict=True):
        yield tuple(part.reshape(part.shape[0], count, -1, part.shape[2]).transpose(0, 1) for part in parts)


def seen(query: torch.Tensor, window: int | None) -> torch.Tensor | None:
    """Return which token of a sequence sees which, `[length, length]`, for `[…, length, width]`; None where all do."""
    length = query.shape[-2]
    if window is None or length <= window:
        return None
    at = torch.arange(length, device=query.device)
    return (at[:, None] - at[None]).abs() < window


@cache
def _kernel(device: torch.device, dtype: torch.dtype, shape: tuple[int, int, int], windowed: bool) -> bool:
    """Return whether one call on CUDA serves all sequences of (heads, heads of keys, width), by trying it on two.

    It must give the values and gradients of calls for each length, and drop what it should.
    """
    if device.type not in _DEVICES or (windowed and dtype not in _HALF):
        return False
    heads, of_keys, width = shape
    window = 2 if windowed else None

    def tried(attend: Callable[..., torch.Tensor], dropout: float) -> list[torch.Tensor]:
        packed, rng = pack([[0] * 3, [0] * 5], 0).to(device), torch.Generator().manual_seed(0)
        query, key, value = (
            torch.randn(1, count, 8, width, generator=rng).to(device, dtype).requires_grad_()
            for count in (heads, of_keys, of_keys)
        )
        attended = attend(query, key, value, packed, None, dropout, window)
        attended.float().square().sum().backward()
        return [attended, *(present.grad for present in (query, key, value) if present.grad is not None)]

    gradients = torch.inference_mode(False), torch.enable_grad()  # an encoder that is not trained calls in neither
    with gradients[0], gradients[1], torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            dropped, results = tried(varlen, 0.5), tried(varlen, 0.0)
        except (RuntimeError, ValueError, TypeError, NotImplementedError):  # torch names no error for what it lacks
            return False
        expected = tried(_by_runs, 0.0)
    return not torch.equal(dropped[0], results[0]) and all(
        torch.allclose(*pair, atol=0.05) for pair in zip(map(wide, results), map(wide, expected), strict=True)
    )


def kernels(model: PreTrainedModel, dtype: torch.dtype) -> tuple[bool, bool]:
    """Return whether one call serves a model's attention in a type in a graph, without a window and with one.

    Only in half precision: torch 2.13 cannot trace the gradient of its kernel for float32.
    """
    config = model.config
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    shape = (heads, getattr(config, "num_key_value_heads", None) or heads, width)
    plain, windowed = (dtype in _HALF and _kernel(model.device, dtype, shape, window) for window in (False, True))
    return plain, windowed


def varlen(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    packed: Layout,
    scaling: float | None,
    dropout: float,
    window: int | None,
) -> torch.Tensor:
    """All sequences in one call, where `_kernel` says so; `[T, heads, width]`.

    Both kernels lie behind `scaled_dot_product_attention` too. Torch's public function for sequences of any lengths
    (`torch.nn.attention.varlen`) calls the first, but knows no dropout, and no float32.
    """
    q, k, v = (tensor[0].transpose(0, 1).contiguous() for tensor in (query, key, value))
    cuts, longest = packed.cuts, packed.longest
    if query.dtype in _HALF:
        reach = -1 if window is None else window - 1  # tokens on either side
        attended: torch.Tensor = torch.ops.aten._flash_attention_forward(
            q, k, v, cuts, cuts, longest, longest, dropout, False, False,
            scale=scaling, window_size_left=reach, window_size_right=reach,
        )[0]  # fmt: skip
        return attended
    k, v = (tensor.repeat_interleave(q.shape[1] // tensor.shape[1], dim=1) for tensor in (k, v))
    rows: torch.Tensor = torch.ops.aten._efficient_attention_forward(
        q[None], k[None], v[None], None, cuts, cuts, longest, longest, dropout, 0,
        compute_log_sumexp=torch.is_grad_enabled(), scale=scaling,
    )[0]  # fmt: skip
    return rows[0]


AttentionInterface.register(PACKED, _attention)
AttentionMaskInterface.register(PACKED, lambda *_, **__: None)


@contextmanager
def on_threads(count: int | None) -> Iterator[None]:
    """Set torch's threads (None leaves them) and put them back: sums over other numbers of threads round otherwise."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
