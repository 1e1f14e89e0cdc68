"""What becomes of weights step by step: the optimiser, its schedule, and the mean of the last steps' weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from bench.training.config import LoopConfig

_LEAST = 1e-16  # of a norm, so that gradients of 0 move nothing


def warm_up_and_decay(position: float, warm_up: float, total: float) -> float:
    """Return the share of the peak learning rate, linear from 0 up to `warm_up` and down to 0 at `total`."""
    if position < warm_up:
        return position / warm_up
    return 0.0 if position >= total else (total - position) / (total - warm_up)


def adamw(modules: nn.Module, config: LoopConfig) -> torch.optim.AdamW:
    """Return AdamW over all trainable weights, with weight decay for those of two dimensions and more.

    Raises `ValueError` where nothing is trainable.
    """
    weights = [weight for weight in modules.parameters() if weight.requires_grad]
    if not weights:
        raise ValueError("found no trainable weight, expected at least one")
    groups = [
        {"params": [weight for weight in weights if weight.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [weight for weight in weights if weight.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=0.0,  # set at every step
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        fused=True,
    )


def tensor_cores(device: torch.device) -> AbstractContextManager[None]:
    """Let products of float32 on CUDA be rounded to TF32 (an eighth of the time) while the block runs."""
    return _matmul_precision("high") if device.type == "cuda" else nullcontext()


def full_float32() -> AbstractContextManager[None]:
    """Keep products of float32 from being rounded to TF32 while the block runs, within `tensor_cores` too."""
    return _matmul_precision("highest") if torch.get_float32_matmul_precision() != "highest" else nullcontext()


@contextmanager
def _matmul_precision(precision: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class _Product(torch.autograd.Function):
    """`a @ b.T`, and its gradients, in full float32; both with the bytes of plain autograd."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(a, b)
        with full_float32():
            return a @ b.T

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        a, b = ctx.saved_tensors
        first, second = ctx.needs_input_grad
        with full_float32():
            return gradient @ b if first else None, gradient.T @ a if second else None


def inner_products(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return all inner products of rows `[n, d]` and `[m, d]`, `[n, m]`, never by TF32, gradients neither.

    Its ten bits of a product are .06 of a logit at a temperature of .001.
    """
    product: torch.Tensor = _Product.apply(a, b)  # type: ignore[no-untyped-call]  # torch types none
    return product


def clip(weights: Iterable[nn.Parameter], bound: float | None) -> torch.Tensor:
    """Scale gradients so that their common norm is at most `bound`; return the norm before that, a scalar."""
    return nn.utils.clip_grad_norm_(list(weights), float("inf") if bound is None else bound)


class Asam:
    """Adaptive sharpness-aware minimisation: the gradient is taken where the loss is highest near the weights.

    A step is: gradient, `perturb`, gradient there, `restore`, then any optimiser's own. `rho` is how far, in units of
    the weights' sizes, to which `eta` is added. Source: Kwon et al. 2021 (ASAM), algorithm 1; as in its code biases are
    not scaled.
    """

    def __init__(self, modules: nn.Module, rho: float, eta: float = 0.01) -> None:
        self._weights = [(name, weight) for name, weight in modules.named_parameters() if weight.requires_grad]
        self._rho, self._eta = rho, eta
        self._moved: list[torch.Tensor] = []
        self._before: list[torch.Tensor] = []  # what they were, in the same order

    @torch.no_grad()
    def perturb(self) -> None:
        """Move weights by `ρ·T²g / ‖Tg‖`, T the sizes `|w| + η`; all processes must have averaged gradients."""
        present = [(name, weight) for name, weight in self._weights if weight.grad is not None]
        if not present:
            return
        self._moved = [weight for _, weight in present]
        self._before = _copies(self._moved)
        steps = _copies([weight.grad for weight in self._moved if weight.grad is not None])  # g
        scaled = [at for at, (name, _) in enumerate(present) if "weight" in name]  # of all others T is 1
        if sizes := [self._before[at] for at in scaled]:
            sizes = list(torch._foreach_abs(sizes))
            torch._foreach_add_(sizes, self._eta)
            torch._foreach_mul_([steps[at] for at in scaled], sizes)  # T·g
        length = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(steps))) + _LEAST
        if sizes:
            torch._foreach_mul_([steps[at] for at in scaled], sizes)
        torch._foreach_mul_(steps, self._rho / length)
        torch._foreach_add_(self._moved, steps, alpha=1)

    @torch.no_grad()
    def restore(self) -> None:
        """Put the weights back, bit for bit; their gradients stay."""
        if self._moved:
            torch._foreach_copy_(self._moved, self._before)
        self._moved, self._before = [], []


class TailAverage(nn.Module):
    """A running mean of a model's weights, as buffers, which checkpoints keep: one more copy of the model in memory.

    Late weights of a training scatter around something better than each of them, which a learning rate that falls to 0
    and their mean find alike.

    Source: Polyak 1990 and Ruppert 1988, both of them as named in Polyak and Juditsky 1992 (SIAM J. Control and
    Optimization 30:4); for the latest checkpoints, of one an epoch, Kaddour 2022 (LAWA, arXiv 2209.14981).
    """

    count: torch.Tensor

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._weights: list[torch.Tensor] = [*model.parameters()]
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        for number, weight in enumerate(self._weights):
            self.register_buffer(f"mean{number}", torch.zeros_like(weight, requires_grad=False))

    @torch.no_grad()
    def add(self) -> None:
        """Let the weights as they are now into the mean."""
        self.count += 1
        torch._foreach_lerp_(self._means(), self._weights, 1 / int(self.count))

    @torch.no_grad()
    def put_back(self) -> None:
        """Give the model the mean, where there is one."""
        if int(self.count):
            torch._foreach_copy_(self._weights, self._means())

    def _means(self) -> list[torch.Tensor]:
        return [self.get_buffer(f"mean{number}") for number in range(len(self._weights))]


def _copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return list(torch._foreach_mul([tensor.detach() for tensor in tensors], 1.0))
