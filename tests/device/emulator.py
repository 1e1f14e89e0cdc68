"""A GPU by emulation: a device of its own, whose tensors hold real values on the processor and keep CUDA's rules.

Torch lets a back end be written in Python. Tensors here claim to lie on `emu:0`; every operation that torch dispatches
for them is run on the processor and written into a `Ledger`, with the line of ours that asked for it:

- a *launch*: an operation that CUDA would run as at least one kernel. Views and allocations are none. An operation
  that is not torch's counts as what its reference dispatches, so nothing is saved by giving a loop a name.
- a *read*: the processor waits for a value or for a size that depends on values (`item`, `tolist`, `cpu`, `nonzero`,
  indexing by a mask, `unique`).
- a *copy* to the device that blocks: from memory that is not pinned, or not asked to be asynchronous.
- a *mixed device*: an operation with tensors of both raises, as on CUDA, single numbers excepted.

The back end is the whole process's, so tests run it in a process of their own (`tests.device.steps`). It has no
streams: it tells how often the processor asks and waits, and nothing of how fast a card would be.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.utils import _foreach_utils, backend_registration
from torch.utils._python_dispatch import TorchDispatchMode

HOOK = "_setup_privateuseone_for_python_backend"
DEVICE = "emu"
ROOT = Path(__file__).resolve().parents[2]

aten = torch.ops.aten

_ALLOCATIONS = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "set_"}
_ASKS = {"is_same_size", "_fused_sdp_choice", "_has_same_storage_numel", "lift_fresh", "_unsafe_view", "record_stream"}
_READS = {
    "_local_scalar_dense": "item",
    "is_nonzero": "bool",
    "equal": "equal",
    "nonzero": "nonzero",
    "masked_select": "masked_select",
    "_unique2": "unique",
    "unique_dim": "unique",
    "unique_consecutive": "unique",
    "bincount": "bincount",
}
_COPIES = {aten._to_copy.default, aten.copy_.default, aten.copy.default}
_INDEXED = {
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
    aten._unsafe_index.Tensor,
}


_PINNED = "pinned_by_the_emulator"


class Entry(NamedTuple):
    """What happened, and where."""

    kind: str  # `launch`, `read`, `copy` (one that blocks) or `asynchronous copy`
    operation: str
    line: str  # `path:number`, of ours


class Ledger:
    """What was dispatched since the last `take`."""

    def __init__(self) -> None:
        self.entries: Counter[Entry] = Counter()

    def add(self, kind: str, operation: str) -> None:
        self.entries[Entry(kind, operation, line())] += 1

    def take(self) -> Counter[Entry]:
        """Return the entries, and begin anew."""
        entries, self.entries = self.entries, Counter()
        return entries


LEDGER = Ledger()


class Chance:
    """The device's own generator: what is drawn there leaves the processor's as it is."""

    def __init__(self) -> None:
        self.state = torch.Generator().manual_seed(0).get_state()

    @contextmanager
    def drawn(self) -> Iterator[None]:
        before = torch.get_rng_state()
        torch.set_rng_state(self.state)
        try:
            yield
        finally:
            self.state = torch.get_rng_state()
            torch.set_rng_state(before)


_CHANCE = Chance()


class MixedDeviceError(RuntimeError):
    """An operation with tensors of the device and of the processor."""


@cache
def _ours(path: str) -> str:
    """Return the path of a file of ours below the root, of any other file nothing."""
    if not path.startswith(str(ROOT)) or "site-packages" in path or path == __file__:
        return ""
    return Path(path).relative_to(ROOT).as_posix()


def line() -> str:
    """Return the innermost line of ours that is being executed."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if path := _ours(frame.f_code.co_filename):
            return f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere:0"


class Emulated(torch.Tensor):
    """A tensor on the emulated device; `held` has its values."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Emulated:
        made: Emulated = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device(DEVICE, 0),
        )
        made.held = inner
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def __repr__(self, **_: object) -> str:  # type: ignore[override]
        """Show the values."""
        return f"Emulated({self.held!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Copy the values."""
        copied: Any = Emulated(self.held.detach().clone())
        if isinstance(self, torch.nn.Parameter):
            copied = torch.nn.Parameter(copied, self.requires_grad)
        memo[id(self)] = copied
        return copied

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run an operation."""
        return _run(func, args, kwargs or {})


class _Factories(TorchDispatchMode):
    """Sees to operations that no emulated tensor takes part in, such as `torch.zeros(…, device=…)`."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _named(kwargs.get("device")) or any(isinstance(value, Emulated) for value in _leaves((args, kwargs))):
            return _run(func, args, kwargs)
        return func(*args, **kwargs)


def _leaves(value: Any) -> Iterator[Any]:
    """Yield what lists, tuples and dicts hold; torch's own `tree_flatten` takes half the time of a step here."""
    if isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, dict):
        yield from _leaves([*value.values()])
    else:
        yield value


def _mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """Return the same lists, tuples and dicts with every leaf changed."""
    if isinstance(value, list | tuple):
        parts = [_mapped(change, part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, dict):
        return {key: _mapped(change, part) for key, part in value.items()}
    return change(value)


def _named(device: Any) -> bool:
    return device is not None and torch.device(device).type == DEVICE


def _inner(value: Any) -> Any:
    return value.held if isinstance(value, Emulated) else value


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operation on the processor, by CUDA's rules."""
    tensors = [value for value in _leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
    ours = [tensor for tensor in tensors if isinstance(tensor, Emulated)]
    name = func.overloadpacket.__name__
    if func.namespace not in ("aten", "prims", "prim"):  # counted by what its reference dispatches
        return func._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *args, **kwargs)
    _refuse_mixed(func, name, args, ours, tensors)
    target = kwargs.get("device")
    lands = _named(target) if target is not None else bool(ours)
    if func is aten.copy_.default:
        lands = isinstance(args[0], Emulated)
    _note(func, name, args, kwargs, ours, lands)
    plain = {key: value for key, value in kwargs.items() if key not in ("pin_memory", "non_blocking")}
    if _named(target):
        plain["device"] = torch.device("cpu")
    kernel = _KERNELS.get(name, func)
    inner_args, inner_kwargs = _mapped(_inner, (args, plain))
    if func is aten.copy_.default:
        inner_args = inner_args[:2]
    draws = lands and torch.Tag.nondeterministic_seeded in func.tags
    with _CHANCE.drawn() if draws else contextlib.nullcontext():
        result = kernel(*inner_args, **inner_kwargs)
    same = {id(tensor.held): tensor for tensor in ours}  # what is changed in place stays the same tensor

    def wrapped(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or isinstance(value, Emulated):
            return value
        return same[id(value)] if id(value) in same else Emulated(value) if lands else value

    return _mapped(wrapped, result)


def _refuse_mixed(func: Any, name: str, args: Any, ours: Sequence[Any], tensors: Sequence[Any]) -> None:
    if not ours or len(ours) == len(tensors) or func in _COPIES:
        return
    others = [tensor for tensor in tensors if not isinstance(tensor, Emulated) and tensor.dim() > 0]
    if func in _INDEXED and isinstance(args[0], Emulated):  # CUDA takes indices from the processor, and copies them
        places = [index for index in args[1] if index is not None and not isinstance(index, Emulated)]
        for _ in places:
            LEDGER.add("copy", "index")
        others = [tensor for tensor in others if not any(tensor is place for place in places)]
    if others:
        raise MixedDeviceError(f"{line()}: found tensors of {DEVICE}:0 and of the processor in {name}, expected one")


def _note(func: Any, name: str, args: Any, kwargs: dict[str, Any], ours: Sequence[Any], lands: bool) -> None:
    """Write down what an operation asks of the device."""
    if func in _COPIES:
        source = args[1] if func is not aten._to_copy.default else args[0]
        source_here = isinstance(source, Emulated)
        if source_here and not lands:
            LEDGER.add("read", "copy to the processor")
            return
        if lands and not source_here:
            if source.dim() == 0 and func is aten.copy_.default:  # a number travels with the launch
                LEDGER.add("launch", name)
                return
            waits = not (kwargs.get("non_blocking") or (len(args) > 2 and args[2])) or not _pinned(source)
            LEDGER.add("copy" if waits else "asynchronous copy", name)
            return
    if name in _READS and ours:
        LEDGER.add("read", _READS[name])
        return
    if name == "repeat_interleave" and ours and kwargs.get("output_size") is None:
        LEDGER.add("read", "repeat_interleave")
    if func in _INDEXED and any(index is not None and index.dtype == torch.bool for index in args[1]):
        fills = len(args) > 2 and args[2].numel() == 1  # CUDA fills by a mask without counting
        if not fills:
            LEDGER.add("read", "index by a mask")
    if lands and name not in _ALLOCATIONS | _ASKS and not _is_view(func):
        LEDGER.add("launch", name)


@cache
def _is_view(func: Any) -> bool:
    return any(value.alias_info is not None and not value.alias_info.is_write for value in func._schema.returns)


def _pinned(tensor: torch.Tensor) -> bool:
    return getattr(tensor, _PINNED, False)


# Attention of sequences of any lengths, as CUDA's kernels compute it.


def _attended(q: Any, k: Any, v: Any, cuts: Any, dropout: float, scale: float | None, reach: int, seed: Any) -> Any:
    """Yield, for each sequence, its rows, probabilities `[heads, n, n]`, dropout's factors, and q, k, v in float32."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    generator = torch.Generator().manual_seed(int(seed))
    edges = cuts.tolist()
    for start, end in pairwise(edges):
        rows = slice(start, end)
        mine = [tensor[rows].float().transpose(0, 1) for tensor in (q, k, v)]  # each [heads, n, width]
        scores = mine[0] @ mine[1].transpose(1, 2) * scale
        if reach >= 0:
            at = torch.arange(end - start)
            scores = scores.masked_fill((at[:, None] - at[None]).abs() > reach, float("-inf"))
        kept = torch.rand(scores.shape, generator=generator) >= dropout
        yield rows, scores.softmax(-1), kept / (1 - dropout), mine, scale


def _forward(q: Any, k: Any, v: Any, cuts: Any, dropout: float, scale: float | None, reach: int = -1) -> Any:
    seed = torch.randint(1 << 40, ())
    parts = [
        (shares * factors @ mine[2]).transpose(0, 1)
        for _, shares, factors, mine, _ in _attended(q, k, v, cuts, dropout, scale, reach, seed)
    ]
    return torch.cat(parts).to(q.dtype), seed


def _backward(
    grad: Any, q: Any, k: Any, v: Any, cuts: Any, dropout: float, scale: float | None, reach: int, seed: Any
) -> Any:
    gradients = tuple(torch.zeros_like(tensor) for tensor in (q, k, v))
    for rows, shares, factors, (queries, keys, values), size in _attended(q, k, v, cuts, dropout, scale, reach, seed):
        upper = grad[rows].float().transpose(0, 1)
        inner = upper @ values.transpose(1, 2) * factors
        slope = shares * (inner - (inner * shares).sum(-1, keepdim=True)) * size
        parts = (slope @ keys, slope.transpose(1, 2) @ queries, (shares * factors).transpose(1, 2) @ upper)
        for gradient, part in zip(gradients, parts, strict=True):
            gradient[rows] = part.transpose(0, 1).to(gradient.dtype)
    return gradients


def _flash(q: Any, k: Any, v: Any, cuts: Any, _k: Any, _m: int, _n: int, dropout: float, *_: Any, **more: Any) -> Any:
    attended, seed = _forward(q, k, v, cuts, dropout, more.get("scale"), more.get("window_size_left") or -1)
    sums = torch.zeros(q.shape[1], q.shape[0])
    return attended, sums, seed, torch.zeros(()), torch.zeros(0)


def _flash_back(grad: Any, q: Any, k: Any, v: Any, _o: Any, _s: Any, cuts: Any, *rest: Any, **more: Any) -> Any:
    _, _, _, dropout, _, seed, *_ = rest
    reach = more.get("window_size_left")
    return _backward(grad, q, k, v, cuts, dropout, more.get("scale"), -1 if reach is None else reach, seed)


def _efficient(
    q: Any, k: Any, v: Any, _b: Any, cuts: Any, _k: Any, m: int, n: int, dropout: float, *_: Any, **more: Any
) -> Any:
    attended, seed = _forward(q[0], k[0], v[0], cuts, dropout, more.get("scale"))
    return attended[None], torch.zeros(1, q.shape[2], q.shape[1]), seed, torch.zeros((), dtype=torch.int64), m, n


def _efficient_back(grad: Any, q: Any, k: Any, v: Any, _b: Any, _o: Any, cuts: Any, *rest: Any, **more: Any) -> Any:
    _, _, _, _, dropout, seed, *_ = rest
    parts = _backward(grad[0], q[0], k[0], v[0], cuts, dropout, more.get("scale"), -1, seed)
    return (*(part[None] for part in parts), torch.zeros(0))


_KERNELS: dict[str, Callable[..., Any]] = {
    "_flash_attention_forward": _flash,
    "_flash_attention_backward": _flash_back,
    "_efficient_attention_forward": _efficient,
    "_efficient_attention_backward": _efficient_back,
}


# What torch expects of a back end's module, and half precision in `torch.autocast`.


_Dummy: Any = getattr(backend_registration, "_DummyBackendModule", object)  # `install` says what torch lacks


class _Module(_Dummy):  # type: ignore[misc]
    """What `torch.emu` is."""

    _initialized = True  # by which `torch.utils.checkpoint` tells whether a device has a generator to be kept

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    def get_rng_state(self, *_: Any) -> torch.Tensor:
        return _CHANCE.state.clone()

    def set_rng_state(self, state: torch.Tensor, *_: Any) -> None:
        _CHANCE.state = state.clone()

    def manual_seed_all(self, seed: int) -> None:
        _CHANCE.state = torch.Generator().manual_seed(seed).get_state()

    def device(self, _: Any) -> Any:
        return contextlib.nullcontext()

    def manual_seed(self, seed: int) -> None:
        self.manual_seed_all(seed)


_HALF = ("linear", "matmul", "mm", "bmm", "addmm", "scaled_dot_product_attention")
_WIDE = ("layer_norm", "cross_entropy_loss")
_KEEP: list[torch.library.Library] = []  # registrations live as long as their library


def install() -> None:
    """Give this process the device. Raises `RuntimeError` where torch lacks the hook for back ends in Python."""
    setup = getattr(backend_registration, HOOK, None)
    if setup is None:
        raise RuntimeError(f"found torch {torch.__version__} without torch.utils.backend_registration.{HOOK}")
    if _KEEP:
        return
    setup(DEVICE, _Module())
    through = torch.library.Library("_", "IMPL")
    through.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    half = torch.library.Library("aten", "IMPL")
    for names, dtype in ((_HALF, None), (_WIDE, torch.float32)):
        for name in names:
            half.impl(name, _cast(getattr(aten, name).default, dtype), "AutocastPrivateUse1")
    for name, kernel in (
        ("empty_strided", _empty_strided),
        ("empty.memory_format", _empty),
        ("_copy_from", _copy_from),
    ):
        half.impl(name, kernel, "PrivateUse1")
    _KEEP.extend((through, half))


# Where torch makes a tensor of Python numbers (`torch.tensor`, an index that is a list) it asks no mode, but these.


def _empty_strided(size: Any, stride: Any, *, dtype: Any = None, **_: Any) -> torch.Tensor:
    return Emulated(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))


def _empty(size: Any, *, dtype: Any = None, **_: Any) -> torch.Tensor:
    return Emulated(torch.empty(size, dtype=dtype, device="cpu"))


def _copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    if isinstance(target, Emulated):
        LEDGER.add("launch" if source.dim() == 0 else "copy", "of Python numbers")
    _inner(target).copy_(_inner(source))
    return target


def _cast(operation: Any, wide: torch.dtype | None) -> Callable[..., Any]:
    """Return an operation that casts its arguments to autocast's type, or to a wide one."""
    autocast: Any = getattr(torch._C.DispatchKey, "AutocastPrivateUse1")  # noqa: B009 (torch does not type it)
    key = torch._C.DispatchKeySet(autocast)

    def run(*args: Any, **kwargs: Any) -> Any:
        dtype = wide or torch.get_autocast_dtype(DEVICE)

        def cast(value: Any) -> Any:
            fits = isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float64
            return value.to(dtype) if fits and value.device.type == DEVICE else value

        with torch._C._ExcludeDispatchKeyGuard(key):
            return operation(*_mapped(cast, args), **_mapped(cast, kwargs))

    return run


@contextmanager
def emulated() -> Iterator[Ledger]:
    """Make the device usable while the block runs, and yield what was dispatched."""
    from unittest.mock import patch

    tensor = torch.Tensor
    without_gradients: Callable[[], Any] = torch.no_grad
    numpy, tolist, storage = tensor.numpy, tensor.tolist, tensor.untyped_storage
    array: Callable[..., Any] = tensor.__array__

    def to_numpy(self: torch.Tensor, *, force: bool = False) -> Any:
        if not isinstance(self, Emulated):
            return numpy(self, force=force)
        if not force:
            raise TypeError(f"{line()}: can't convert {DEVICE}:0 device type tensor to numpy")
        LEDGER.add("read", "numpy")
        return numpy(self.held.detach().clone())

    def to_list(self: torch.Tensor) -> Any:
        if isinstance(self, Emulated):
            LEDGER.add("read", "tolist")
        return tolist(_inner(self).detach())

    def to_array(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, Emulated):
            raise TypeError(f"{line()}: can't convert {DEVICE}:0 device type tensor to numpy")
        return array(self, *args, **kwargs)

    def pin(self: torch.Tensor, *_: Any) -> torch.Tensor:
        pinned = self.clone()
        setattr(pinned, _PINNED, True)
        return pinned

    def untyped_storage(self: torch.Tensor) -> Any:
        return storage(_inner(self))

    def inference_mode(mode: bool = True) -> Any:
        return without_gradients() if mode else contextlib.nullcontext()  # such tensors cannot be wrapped

    install()
    factories: Callable[[], Any] = _Factories
    one_thread: Callable[[bool], Any] = torch.autograd.set_multithreading_enabled  # so that `line` sees who asked
    with (
        patch.object(tensor, "numpy", to_numpy),
        patch.object(tensor, "tolist", to_list),
        patch.object(tensor, "__array__", to_array),
        patch.object(tensor, "pin_memory", pin),
        patch.object(tensor, "untyped_storage", untyped_storage),
        patch.object(torch, "inference_mode", inference_mode),
        patch.object(_foreach_utils, "_foreach_supported_types", [tensor, Emulated]),
        one_thread(False),
        factories(),
    ):
        LEDGER.take()
        yield LEDGER
