"""The one loop: views → forward → loss → step, until the token budget is spent; logged, probed, resumable.

A training that is killed at any moment and begun again writes the same bytes as one that is not (on a processor, with
the same number of threads): weights, optimiser, generators, data order and log go through every checkpoint. What time
it took is told in the facts alone.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from bench.dense import TrainingJob
from bench.errors import UsageError
from bench.fsio import atomic
from bench.training import ENCODER, LOG, checkpoint
from bench.training.config import TrainingConfig
from bench.training.determinism import chance, seed_everything, set_chance
from bench.training.encoder import TrainableEncoder, Views
from bench.training.optimisation import adamw, clip, warm_up_and_decay
from bench.training.probes import measure, signs
from bench.training.views import ViewSource
from bench.types import Json
from bench.workspace import Workspace

Loss = Callable[[TrainableEncoder, Views], tuple[torch.Tensor, Mapping[str, float]]]
"""(encoder, views) → a scalar to descend, and what to log beside it."""


def fit(
    loss: Loss,
    views: ViewSource,
    encoder: TrainableEncoder,
    config: TrainingConfig,
    job: TrainingJob,
    work: Workspace,
    *,
    modules: nn.Module | None = None,
    after_step: Callable[[int], None] | None = None,
) -> dict[str, Json]:
    """Train an encoder; write `encoder/` and `log.jsonl`.

    Args:
        loss: the method's idea.
        views: its batches.
        encoder: what is trained, on its device already.
        config: how.
        job: budget and seed. The training ends with the step that spends the budget.
        work: where to; `advance` counts tokens.
        modules: what the loss trains or keeps beside the encoder: heads, queues (as buffers), a momentum copy (without
            gradients). Checkpointed, never exported.
        after_step: called with the step's number (from 1) after each change of the weights, once a step however many
            batches it accumulates; e.g. momentum and queues.

    Returns:
        tokens, steps, pairs, loss (of the last step), warnings (signs of collapse), seconds, tokens_per_second.

    Raises:
        UsageError: the loss or the gradient is not finite any more; the checkpoints stay.
    """
    training = _Training(loss, views, encoder, config, job, work, modules, after_step)
    training.resume()
    while training.at.tokens < job.tokens:
        training.step()
    return training.finish()


@dataclass
class _Progress:
    """How far a training is; all of it goes through checkpoints as JSON.

    Args:
        step: steps made.
        tokens: seen.
        pairs: seen.
        loss: of the last step.
        warnings: signs of collapse logged so far.
        sums: of what is logged, since the last line of the log.
        summed: steps in them.
        log: names of the finished pieces of the log.
        seconds: spent, earlier attempts included.
    """

    step: int = 0
    tokens: int = 0
    pairs: int = 0
    loss: float = 0.0
    warnings: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    summed: int = 0
    log: list[str] = field(default_factory=list)
    seconds: float = 0.0


class _Training:
    """One training between its first step (or checkpoint) and its end."""

    def __init__(
        self,
        loss: Loss,
        views: ViewSource,
        encoder: TrainableEncoder,
        config: TrainingConfig,
        job: TrainingJob,
        work: Workspace,
        modules: nn.Module | None,
        after_step: Callable[[int], None] | None,
    ) -> None:
        """Make optimiser and generators; `resume` decides where they begin."""
        self.loss, self.views, self.encoder, self.config = loss, views, encoder, config
        self.job, self.work, self.after_step = job, work, after_step
        own = {} if modules is None else {"method": modules.to(encoder.device)}
        self.modules = nn.ModuleDict({"encoder": encoder.model, **own})
        self.optimiser = adamw(self.modules, config)
        self.weights = [weight for group in self.optimiser.param_groups for weight in group["params"]]
        self.held = views.held_out()
        self.rng = np.random.default_rng([job.seed, 1])
        self.at = _Progress()
        self.lines: list[str] = []  # of the log, since the last checkpoint
        self.begun = time.monotonic()
        self.saved = (0, self.begun)  # tokens and moment of the last checkpoint

    def resume(self) -> None:
        """Go on from the newest checkpoint, or begin."""
        seed_everything(self.job.seed)
        self.modules.train()
        found = checkpoint.newest(self.work.parts)
        if found is None:
            self._write({"step": 0, "tokens": 0}, probe=True)
            return
        tensors, state = found
        checkpoint.restore(self.modules, self.optimiser, tensors)
        self.views.restore(state["views"])
        self.rng.bit_generator.state = state["rng"]
        set_chance(state["chance"], self.encoder.device)
        self.at = _Progress(**state["progress"])
        self.encoder.meter.tokens = self.at.tokens
        self.begun -= self.at.seconds
        self.saved = (self.at.tokens, time.monotonic())
        self.work.advance(self.at.tokens)

    def step(self) -> None:
        """Make one step: accumulate, clip, update, tell."""
        config, before = self.config, self.at.tokens
        rate = config.learning_rate * warm_up_and_decay(before, config.warm_up * self.job.tokens, self.job.tokens)
        values: dict[str, float] = {}
        self.at.step += 1
        self.optimiser.zero_grad(set_to_none=True)
        for _ in range(config.accumulate):
            views = self.views.batch(self.rng)
            loss, metrics = self.loss(self.encoder, views)
            self._mind(float(loss.detach()), "loss")
            (loss / config.accumulate).backward()
            self.at.pairs += len(views[0])
            for name, value in {"loss": float(loss.detach()), **metrics}.items():
                values[name] = values.get(name, 0.0) + float(value) / config.accumulate
        values["gradient_norm"] = clip(self.weights, config.clip)
        self._mind(values["gradient_norm"], "gradient")
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        if self.after_step is not None:
            self.after_step(self.at.step)
        self.at.tokens, self.at.loss = self.encoder.meter.tokens, values["loss"]
        self._log(values, rate)
        self._checkpoint()
        self.work.advance(self.at.tokens - before)

    def finish(self) -> dict[str, Json]:
        """Write encoder and log; return the facts."""
        at = self.at
        at.seconds = time.monotonic() - self.begun
        self.encoder.save(self.work.out / ENCODER)
        with atomic(self.work.out / LOG) as stream:
            for name in at.log:
                stream.write((self.work.parts.folder / name).read_bytes())
            stream.write("".join(self.lines).encode())
        return {
            "tokens": at.tokens,
            "steps": at.step,
            "pairs": at.pairs,
            "loss": at.loss,
            "warnings": at.warnings,
            "seconds": round(at.seconds, 3),
            "tokens_per_second": round(at.tokens / max(at.seconds, 1e-9)),
        }

    def _mind(self, value: float, what: str) -> None:
        """Stop where a number is none any more."""
        if not math.isfinite(value):
            raise UsageError(
                f"the {what} of training step {self.at.step} is {value}; lower method.learning_rate (it is "
                f"{self.config.learning_rate}), or raise method.temperature (it is {self.config.temperature}) or "
                "method.warm_up, and run again"
            )

    def _log(self, values: Mapping[str, float], rate: float) -> None:
        """Add a step to the sums; write a line when one is due, or when the budget is spent."""
        at, last = self.at, self.at.tokens >= self.job.tokens
        at.sums = {name: at.sums.get(name, 0.0) + value for name, value in values.items()}
        at.summed += 1
        probe = last or at.step % self.config.probe_every == 0
        if probe or at.step % self.config.log_every == 0:
            means = {name: total / at.summed for name, total in at.sums.items()}
            at.sums, at.summed = {}, 0
            self._write({"step": at.step, "tokens": at.tokens, "learning_rate": rate, **means}, probe)

    def _write(self, line: dict[str, Any], probe: bool) -> None:
        """Add a line to the log, with a look at the held-out pairs if one is due."""
        if probe and self.held:
            found = measure(self.encoder, self.held)
            line["probe"] = {name: _short(value) for name, value in found.items()}
            line["warnings"] = signs(found) if line["step"] else []  # random weights look collapsed, and are not
            self.at.warnings += len(line["warnings"])
        shown = {name: _short(value) if isinstance(value, float) else value for name, value in line.items()}
        self.lines.append(json.dumps(shown, ensure_ascii=False, allow_nan=False) + "\n")

    def _checkpoint(self) -> None:
        """Save if it is time; never after the last step, when the result itself is written."""
        at, now = self.at, time.monotonic()
        tokens, moment = self.saved
        often = self.config.checkpoint_tokens
        due = now - moment >= self.config.checkpoint_seconds or (often is not None and at.tokens - tokens >= often)
        if not due or at.tokens >= self.job.tokens:
            return
        at.seconds = now - self.begun
        name = f"log-{at.step:010d}.jsonl"
        self.work.parts.write(name, "".join(self.lines).encode())
        at.log.append(name)
        self.lines.clear()
        state: dict[str, Json] = {
            "views": self.views.state(),
            "rng": self.rng.bit_generator.state,
            "chance": chance(self.encoder.device),
            "progress": asdict(at),
            "log": list(at.log),
        }
        checkpoint.save(self.work.parts, at.step, checkpoint.tensors_of(self.modules, self.optimiser), state)
        self.saved = (at.tokens, time.monotonic())


def _short(value: float) -> float:
    """Six digits are enough for a reader."""
    return float(f"{value:.6g}")
