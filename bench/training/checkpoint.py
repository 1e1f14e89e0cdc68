"""The last two checkpoints and the best weights as parts: tensors in safetensors, all else in JSON, nothing pickled."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import nn

from bench.core.files import canonical
from bench.core.workspace import Parts
from bench.types import Json

_CHECKPOINTS = 2


def save(parts: Parts, step: int, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Json]) -> None:
    """Write a checkpoint, the JSON last, then drop all but the last two. No two tensors may share memory."""
    name = _name(step)
    on_cpu = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
    parts.write(f"{name}.safetensors", safetensors.torch.save(on_cpu))
    parts.write(f"{name}.json", canonical(state))
    for old in _steps(parts)[_CHECKPOINTS:]:
        for suffix in (".json", ".safetensors"):  # the JSON first: without it the other file is ignored
            for end in ("", ".sha256"):
                (parts.folder / f"{_name(old)}{suffix}{end}").unlink(missing_ok=True)


def short(value: float) -> float:
    """Return a number with six digits, which are enough for a reader."""
    return float(f"{value:.6g}")


def log_line(values: Mapping[str, Any]) -> str:
    """Return a line of a training's log."""
    shown = {name: short(value) if isinstance(value, float) else value for name, value in values.items()}
    return json.dumps(shown, ensure_ascii=False, allow_nan=False) + "\n"


def newest(parts: Parts) -> tuple[dict[str, torch.Tensor], dict[str, Any]] | None:
    """Return tensors and state of the newest checkpoint that is whole, or None."""
    whole = _newest(parts)
    return None if whole is None else (safetensors.torch.load_file(whole[0]), whole[1])


def is_past(parts: Parts, until: float) -> bool:
    """Return whether a training has gone on, at its newest checkpoint, from the step that spent a share of its budget.

    Checkpoints of earlier versions do not say, and count as past.
    """
    whole = _newest(parts)
    return whole is not None and float(whole[1]["progress"].get("before", until)) >= until


def copy(parts: Parts, to: Parts) -> None:
    """Copy the newest checkpoint that is whole, with the parts that it needs; the JSON, which makes it one, last.

    Raises `FileNotFoundError` where there is none.
    """
    whole = _newest(parts)
    if whole is None:
        raise FileNotFoundError(parts.folder)
    tensors, state = whole
    for name in (*state["log"], tensors.name, tensors.with_suffix(".json").name):
        to.write(name, (parts.folder / name).read_bytes())


def _newest(parts: Parts) -> tuple[Path, dict[str, Any]] | None:
    """Return the tensors' file and the state of the newest checkpoint that is whole."""
    for step in _steps(parts):
        tensors, state = parts.done(f"{_name(step)}.safetensors"), parts.done(f"{_name(step)}.json")
        if tensors and state:
            loaded = json.loads(state.read_bytes())
            if all(parts.done(name) for name in loaded["log"]):
                return tensors, loaded
    return None


def tensors_of(modules: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Return all weights, buffers and the optimiser's memory by name, without buffers that are no state."""
    names: dict[torch.Tensor, str] = {weight: name for name, weight in modules.named_parameters()}
    tensors: dict[str, torch.Tensor] = {f"weights/{name}": weight for weight, name in names.items()}
    tensors |= {f"buffers/{name}": buffer for name, buffer in _buffers(modules).items()}
    for weight, memory in optimiser.state.items():
        tensors |= {f"optimiser/{names[weight]}/{key}": value for key, value in memory.items()}
    return tensors


def restore(modules: nn.Module, optimiser: torch.optim.Optimizer, tensors: Mapping[str, torch.Tensor]) -> None:
    """Put back what `tensors_of` returned, in place; `KeyError` where a weight or buffer is not among the tensors."""
    with torch.no_grad():
        for name, weight in modules.named_parameters():
            weight.copy_(tensors[f"weights/{name}"])
        for name, buffer in _buffers(modules).items():
            buffer.copy_(tensors[f"buffers/{name}"])
    memory: dict[str, dict[str, torch.Tensor]] = {}  # of each weight, by its name
    for key, tensor in tensors.items():
        if key.startswith("optimiser/"):
            name, _, kind = key.removeprefix("optimiser/").rpartition("/")
            memory.setdefault(name, {})[kind] = tensor
    names = {weight: name for name, weight in modules.named_parameters()}
    weights = [names[weight] for group in optimiser.param_groups for weight in group["params"]]
    fresh = optimiser.state_dict()
    fresh["state"] = {at: memory[name] for at, name in enumerate(weights) if name in memory}
    optimiser.load_state_dict(fresh)


def _name(step: int) -> str:
    return f"checkpoint-{step:010d}"


def _steps(parts: Parts) -> list[int]:
    """Return the steps of the checkpoints that lie there, the newest first."""
    names = parts.folder.glob("checkpoint-*.json")
    return sorted((int(path.stem.removeprefix("checkpoint-")) for path in names), reverse=True)


class WeightSelection:
    """Keeps the best weights of a training in a part, and decides when it has waited long enough for better ones.

    The `measure`, called by `rule` in logs, is better lower; it is taken every `interval` steps and at the last,
    after the share `begin` of the training, which stops after `patience` (None: never) evaluations without a better
    one.
    """

    def __init__(
        self,
        rule: str,
        measure: Callable[[], float],
        *,
        interval: int,
        patience: int | None = None,
        begin: float = 0.0,
    ) -> None:
        self._rule, self._measure = rule, measure
        self._interval, self._patience, self._begin = interval, patience, begin
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
        """Name of the part with the best weights, if anything was evaluated yet."""
        return () if self._value is None else (_best(self._step),)

    def due(self, step: int, spent: float) -> bool:
        """Return whether to evaluate after a step, numbered from 1, when a share of the budget is spent."""
        return spent >= 1 or (step % self._interval == 0 and spent >= self._begin)

    def evaluate(self, step: int, modules: nn.Module, parts: Parts) -> float:
        """Measure, and write the weights to a part where they are the best so far; equally good later ones are not."""
        value = self._measure()
        self._evaluations += 1
        if self._value is None or value < self._value:
            self._value, self._step, self._waiting = value, step, 0
            on_cpu = {
                name: tensor.detach().cpu().contiguous() for name, tensor in _weights_and_buffers(modules).items()
            }
            parts.write(_best(step), safetensors.torch.save(on_cpu))
            self._tidy(parts)
        else:
            self._waiting += 1
        return value

    def put_back(self, modules: nn.Module, parts: Parts) -> None:
        """Give the modules the best weights; `FileNotFoundError` where their part was removed or changed."""
        for name in self.part:
            path = parts.done(name)
            if path is None:
                raise FileNotFoundError(parts.folder / name)
            best = safetensors.torch.load_file(path)
            with torch.no_grad():
                for key, tensor in _weights_and_buffers(modules).items():
                    tensor.copy_(best[key])

    def pin(self, parts: Parts) -> None:
        """Keep the best weights until two further checkpoints are written; call it after each."""
        self._pinned = [*self._pinned[-1:], *self.part]
        self._tidy(parts)

    def state(self) -> dict[str, Json]:
        """Return what `restore` needs to go on."""
        return {"value": self._value, "step": self._step, "evaluations": self._evaluations, "waiting": self._waiting}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._value, self._step = state["value"], state["step"]
        self._evaluations, self._waiting = state["evaluations"], state["waiting"]
        self._pinned = list(self.part)

    def metadata(self) -> dict[str, Json]:
        """Return rule, best value, the step that had it, evaluations, and whether the training stopped early."""
        value = None if self._value is None else short(self._value)
        counts = {"step": self._step, "evaluations": self._evaluations}
        return {"rule": self._rule, "value": value, **counts, "stopped": self.stopped}

    def line(self, value: float) -> dict[str, float]:
        """Return the fields of an evaluation in the log."""
        return {self._rule: value, "best_step": self._step}

    def _tidy(self, parts: Parts) -> None:
        """Remove the weights that no checkpoint needs any more."""
        in_use = {*self._pinned, *self.part}
        for path in parts.folder.glob(_best(None)):
            if path.name not in in_use:
                path.unlink()
                path.with_name(f"{path.name}.sha256").unlink(missing_ok=True)


def _best(step: int | None) -> str:
    """Return the name of the part with the weights after a step, or a pattern of all of them."""
    return f"best-{'*' if step is None else f'{step:010d}'}.safetensors"


def _weights_and_buffers(modules: nn.Module) -> dict[str, torch.Tensor]:
    """Return weights and buffers by name, tied ones once."""
    return {**dict(modules.named_parameters()), **_buffers(modules)}


def _buffers(modules: nn.Module) -> dict[str, torch.Tensor]:
    """Return the buffers that change: those that a module declares not to be persistent are made anew by it."""
    state = modules.state_dict(keep_vars=True)
    return {name: buffer for name, buffer in modules.named_buffers() if name in state}
