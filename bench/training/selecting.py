"""Which of the weights that a training goes through are kept: the last, or the best by a measure on held-out pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import safetensors.torch
import torch
from torch import nn

from bench.types import Json
from bench.workspace import Parts


class Selection:
    """Keeps the best weights of a training in a part, and says when it has waited long enough for better ones.

    Args:
        rule: name of the measure, as logs and facts call it.
        measure: the measure now, the lower the better; called with the training as it is.
        every: steps between two evaluations; the last step is evaluated whenever it comes.
        patience: evaluations in a row without a better one after which the training stops; None: never.
        begin: share of the training before which nothing is evaluated.
    """

    def __init__(
        self,
        rule: str,
        measure: Callable[[], float],
        *,
        every: int,
        patience: int | None = None,
        begin: float = 0.0,
    ) -> None:
        self._rule, self._measure = rule, measure
        self._every, self._patience, self._begin = every, patience, begin
        self._value: float | None = None  # the best one
        self._step = 0  # that had it
        self._evaluations = self._waiting = 0
        self._pinned: list[str] = []  # parts that the last two checkpoints lean on

    @property
    def stopped(self) -> bool:
        """Whether the training has waited long enough."""
        return self._patience is not None and self._waiting >= self._patience

    @property
    def part(self) -> tuple[str, ...]:
        """Name of the part with the best weights; none where nothing was evaluated yet."""
        return () if self._value is None else (_name(self._step),)

    def due(self, step: int, spent: float) -> bool:
        """Tell whether to evaluate after a step.

        Args:
            step: its number, from 1.
            spent: share of the budget, 1 after the last step.
        """
        return spent >= 1 or (step % self._every == 0 and spent >= self._begin)

    def evaluate(self, step: int, modules: nn.Module, parts: Parts) -> float:
        """Measure, and write the weights to a part where they are the best so far; equally good later ones are not.

        Args:
            step: the number of the step that was made.
            modules: all that is trained.
            parts: where to.
        """
        value = self._measure()
        self._evaluations += 1
        if self._value is None or value < self._value:
            self._value, self._step, self._waiting = value, step, 0
            whole = {name: tensor.detach().cpu().contiguous() for name, tensor in _tensors(modules).items()}
            parts.write(_name(step), safetensors.torch.save(whole))
            self._tidy(parts)
        else:
            self._waiting += 1
        return value

    def put_back(self, modules: nn.Module, parts: Parts) -> None:
        """Give the modules the best weights.

        Raises:
            FileNotFoundError: somebody removed or changed the part.
        """
        for name in self.part:
            path = parts.done(name)
            if path is None:
                raise FileNotFoundError(parts.folder / name)
            kept = safetensors.torch.load_file(path)
            with torch.no_grad():
                for key, tensor in _tensors(modules).items():
                    tensor.copy_(kept[key])

    def pin(self, parts: Parts) -> None:
        """Keep the best weights until two further checkpoints are written; call it after each."""
        self._pinned = [*self._pinned[-1:], *self.part]
        self._tidy(parts)

    def state(self) -> dict[str, Json]:
        """Return what `restore` needs to go on."""
        return {
            "value": self._value,
            "step": self._step,
            "evaluations": self._evaluations,
            "waiting": self._waiting,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._value, self._step = state["value"], state["step"]
        self._evaluations, self._waiting = state["evaluations"], state["waiting"]
        self._pinned = list(self.part)

    def facts(self) -> dict[str, Json]:
        """Return rule, best value, the step that had it, evaluations, and whether the training stopped early."""
        best = None if self._value is None else float(f"{self._value:.6g}")
        return {
            "rule": self._rule,
            "value": best,
            "step": self._step,
            "evaluations": self._evaluations,
            "stopped": self.stopped,
        }

    def line(self, value: float) -> dict[str, float]:
        """Return what the log says of an evaluation."""
        return {self._rule: value, "best_step": self._step}

    def _tidy(self, parts: Parts) -> None:
        """Remove weights that nobody needs any more."""
        needed = {*self._pinned, *self.part}
        for path in parts.folder.glob(_name(None)):
            if path.name not in needed:
                path.unlink()
                path.with_name(f"{path.name}.sha256").unlink(missing_ok=True)


def _name(step: int | None) -> str:
    """Name of the part with the weights after a step; of any one."""
    return f"best-{'*' if step is None else f'{step:010d}'}.safetensors"


def _tensors(modules: nn.Module) -> dict[str, torch.Tensor]:
    """Weights and buffers by name, tied ones once."""
    return {**dict(modules.named_parameters()), **dict(modules.named_buffers())}
