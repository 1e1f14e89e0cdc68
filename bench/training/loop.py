"""The one loop: views → forward → loss → step, until the budget is spent; logged, probed, resumable.

A training that is killed at any moment and begun again writes the same bytes as one that is not (on a processor, with
the same number of threads): weights, optimiser, generators, data order and log go through every checkpoint. What time
it took is in the facts alone.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import nn

from bench.core.contract import TrainingJob
from bench.core.errors import UsageError
from bench.core.files import atomic
from bench.core.workspace import Workspace
from bench.data.corpora.shards import Shards
from bench.training import checkpoint
from bench.training.batches import BatchSource
from bench.training.checkpoint import WeightSelection
from bench.training.config import ENCODER, LOG, LoopConfig, TrainingConfig
from bench.training.determinism import rng_state, seed_everything, set_rng_state
from bench.training.distributed import (
    GradientAverage,
    average_statistics,
    broadcast_rng,
    rank,
    seed_step,
    sums,
    union,
    world_size,
)
from bench.training.encoder import TrainableEncoder
from bench.training.meter import Costs, Meter
from bench.training.optimisation import Asam, adamw, clip, tensor_cores, warm_up_and_decay
from bench.training.probes import evaluate_probes, signs
from bench.types import Json

B = TypeVar("B", bound=Sized)
Values = Mapping[str, float]
Loss = Callable[[TrainableEncoder, B], tuple[torch.Tensor, Values | Callable[[], Values]]]
"""(encoder, batch) → a scalar to minimise, and further values to log, or what makes them: called on logged steps."""

Probe = Callable[[], Mapping[str, float]]
"""Further measurements of a method at each probe; names as in `bench.training.probes.SIGNS` are judged."""

Facts = Mapping[str, Json]
"""What a training says of itself, as `fit` returns it."""

_CHECKPOINTS = 20  # times as long as a checkpoint took, the next one is not written

ConfigT = TypeVar("ConfigT", bound=TrainingConfig)


class CorpusTrainer(Generic[ConfigT]):
    """Base of a method's trainer (`bench.core.contract.Trainer`); a subclass says in `train_on` what is learnt."""

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Facts:
        """Train from `start` on `shards`; see `bench.core.contract.Trainer`."""
        corpus = Shards(shards)
        return self.train_on(TrainableEncoder.begin(start, corpus, self.config, job), corpus, job, work)

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Train an encoder on a corpus: make batches, modules and loss, and return what `fit` does."""
        raise NotImplementedError


def fit(
    loss: Loss[B],
    source: BatchSource[B],
    encoder: TrainableEncoder,
    config: LoopConfig,
    job: TrainingJob,
    work: Workspace,
    *,
    modules: nn.Module | None = None,
    after_step: Callable[[int], None] | None = None,
    probe: Probe | None = None,
    asam_rho: float | None = None,
    selection: WeightSelection | None = None,
    section: str = "method",
) -> dict[str, Json]:
    """Train an encoder; write `encoder/` and `log.jsonl`.

    `loss` is the method's idea, `source` its batches, `config` has optimiser, accumulation, log and checkpoints, `job`
    the budget (the step that spends it is the last) and the seed. `modules` are what the loss trains or keeps besides
    the encoder: heads, banks (as buffers), a momentum copy (without gradients), whatever it needs to know of earlier
    batches (a buffer); checkpointed, never exported. `after_step` gets the step's number (from 1) after each change of
    the weights, however many batches it accumulates; `probe` is called, gradients and dropout off, whenever held-out
    pairs are probed. `asam_rho` is ρ of ASAM, which takes each loss twice, so that it must not change its own buffers;
    `selection` says which weights are written (None: the last), and when to stop; `section` is the settings' name in
    messages.

    Returns tokens, distinct_tokens, flops, passes, steps, pairs, loss (of the last step), warnings (signs of collapse),
    without_gradient (trainable weights that never got one), vocabulary, seconds, device_seconds, peak_memory_bytes,
    tokens_per_second; selection, where there is one. Raises `UsageError`: the loss or the gradient is not finite any
    more.
    """
    own = {} if modules is None else {"method": modules.to(encoder.device)}
    every = nn.ModuleDict({"encoder": encoder.model, **own})
    training = _TrainingLoop(
        loss=loss,
        source=source,
        encoder=encoder,
        config=config,
        job=job,
        work=work,
        modules=every,
        after_step=after_step,
        probe=probe,
        selection=selection,
        section=section,
        asam=None if asam_rho is None else Asam(every, asam_rho),
    )
    with tensor_cores(encoder.device):
        training.resume()
        while not training.over:
            training.step()
        return training.finish()


@dataclass
class _Progress:
    """How far a training is; all of it goes through checkpoints as JSON."""

    step: int = 0
    pairs: int = 0  # or documents, or sequences
    loss: float = 0.0  # of the last step
    first: float | None = None  # loss
    warnings: int = 0  # signs of collapse
    sums: dict[str, list[float]] = field(default_factory=dict)  # since the last line: name → total, batches that had it
    log: list[str] = field(default_factory=list)  # names of the finished pieces
    seconds: float = 0.0  # earlier attempts included
    device_seconds: float = 0.0  # of the processor, all threads together, or of the GPU
    meter: dict[str, float] = field(default_factory=dict)


@dataclass
class _TrainingLoop(Generic[B]):
    """One training between its first step (or checkpoint) and its end; arguments are those of `fit`."""

    loss: Loss[B]
    source: BatchSource[B]
    encoder: TrainableEncoder
    config: LoopConfig
    job: TrainingJob
    work: Workspace
    modules: nn.ModuleDict  # the encoder and the method's
    after_step: Callable[[int], None] | None
    probe: Probe | None
    selection: WeightSelection | None
    section: str
    asam: Asam | None

    def __post_init__(self) -> None:
        """Make optimiser and generators; `resume` decides where they begin."""
        self.optimiser = adamw(self.modules, self.config)
        self.weights = [weight for group in self.optimiser.param_groups for weight in group["params"]]
        self.gradients = GradientAverage(self.modules.parameters())
        self.untouched = {name: weight for name, weight in self.modules.named_parameters() if weight.requires_grad}
        self.held = self.source.held_out()
        self.rng = np.random.default_rng([self.job.seed, 1])
        self.at = _Progress()
        self.lines: list[str] = []  # of the log, since the last checkpoint
        self.costs = Costs(self.encoder.device)
        self.saved = (0, time.monotonic())  # tokens and moment of the last checkpoint
        self.took = 0.0  # seconds to write it
        self.saves = False  # a checkpoint after this step
        self.ahead: list[B] = []  # batches of the next step, drawn while the device computes

    @property
    def tokens(self) -> int:
        """Seen so far."""
        return self.encoder.meter.tokens

    @property
    def spent(self) -> float:
        """Share of the budget, from 0."""
        if self.job.steps is not None:
            return self.at.step / self.job.steps
        if self.job.flops is not None:
            return self.encoder.meter.flops / self.job.flops
        return self.tokens / self.job.tokens

    @property
    def over(self) -> bool:
        """Whether the budget is spent, or nothing better is to be expected."""
        return self.spent >= 1 or (self.selection is not None and self.selection.stopped)

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        whole = 1.0 if self.job.steps is None else float(self.job.steps)  # steps are counted as the papers count them
        config = self.config
        return config.learning_rate * warm_up_and_decay(self.spent * whole, config.warm_up * whole, whole)

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
        self.source.restore(state["source"])
        self.source.shards.see(tensors["seen"].numpy())
        self.rng.bit_generator.state = state["rng"]
        set_rng_state(state["chance"], self.encoder.device)
        self.at = _Progress(**state["progress"])
        self.untouched = {name: self.untouched[name] for name in state["untouched"]}
        if self.selection is not None:
            self.selection.restore(state["selection"])
        for name, value in self.at.meter.items():
            setattr(self.encoder.meter, name, value)
        self.costs = Costs(self.encoder.device, self.at.seconds, self.at.device_seconds)
        self.saved = (self.tokens, time.monotonic())
        self.work.advance(self.tokens)

    def step(self) -> None:
        """Make one step: accumulate, clip, update, log."""
        config, before, rate = self.config, replace(self.encoder.meter), self.rate
        self.at.step += 1
        seed_step(self.job.seed, self.at.step)
        batches, self.ahead = self.ahead or self._drawn(), []
        losses = self._gradients(batches)
        if self.asam is not None:
            self.asam.perturb()
            self._sum({"ascent_loss": math.fsum(self._gradients(batches, log=False)) / len(batches)})
            self.asam.restore()
        self._join(before, sum(map(len, batches)))
        if not self._draws_end():
            self.ahead = self._drawn()
        self._sum({"gradient_norm": self._finite(clip(self.weights, config.clip), "gradient")})
        self._touch()
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        if self.after_step is not None:
            self.after_step(self.at.step)
        self.at.loss = sum(losses) / len(losses)
        self.at.first = self.at.loss if self.at.first is None else self.at.first
        self._select()
        self._log(rate)
        self._checkpoint()
        self.work.advance(self.tokens - before.tokens)

    def _join(self, before: Meter, units: int) -> None:
        """Count what all processes did in this step; the first one's clock says whether a checkpoint is due."""
        meter, due = self.encoder.meter, self._due() and not rank()
        spent = [getattr(meter, one.name) - getattr(before, one.name) for one in fields(meter)]
        *spent, pairs, saves = sums([*spent, units, due])
        if world_size() > 1:
            for one, value in zip(fields(meter), spent, strict=True):
                setattr(meter, one.name, type(getattr(meter, one.name))(getattr(before, one.name) + value))
        self.at.pairs += int(pairs)
        self.saves = bool(saves)

    def _gradients(self, batches: Sequence[B], *, log: bool = True) -> list[float]:
        """Compute the gradients of some batches anew, averaged over them and over processes; return their losses."""
        losses = []
        self.optimiser.zero_grad(set_to_none=True)
        for batch in batches:
            loss, metrics = self.loss(self.encoder, batch)
            losses.append(self._finite(float(loss.detach()), "loss"))
            self.gradients.backward(loss / len(batches), last=len(losses) == len(batches))
            if log:
                self._sum(metrics if isinstance(metrics, Mapping) else metrics() if self._logs() else {})
        average_statistics(self.modules)
        losses = [value / world_size() for value in sums(losses)]
        for value in losses if log else ():
            self._sum({"loss": value})
        return losses

    def _drawn(self) -> list[B]:
        """Draw the batches of a step; all processes choose alike what they are of."""
        batches = []
        for _ in range(self.config.accumulate):
            broadcast_rng(self.rng)
            batches.append(self.source.batch(self.rng))
        return batches

    def _draws_end(self) -> bool:
        """Return whether this step may be the last, or is saved: then nothing beyond it may be drawn, or seen."""
        ends = self.selection is not None and self.selection.due(self.at.step, self.spent)
        return self.saves or self.over or ends

    def _touch(self) -> None:
        """Take the weights that have a gradient from those that never got one; the device is asked once for all."""
        waiting = {name: weight.grad for name, weight in self.untouched.items() if weight.grad is not None}
        if waiting:
            touched = torch.stack([gradient.any() for gradient in waiting.values()]).tolist()
            for name in (name for name, some in zip(waiting, touched, strict=True) if some):
                del self.untouched[name]

    def _select(self) -> None:
        if self.selection is None or not self.selection.due(self.at.step, self.spent):
            return
        value = self._finite(self.selection.evaluate(self.at.step, self.modules, self.work.parts), "measure")
        self._write({"step": self.at.step, "tokens": self.tokens, **self.selection.line(value)}, probe=False)

    def finish(self) -> dict[str, Json]:
        """Write encoder and log; return the facts."""
        at, meter, kept, costs = self.at, self.encoder.meter, self.encoder.vocabulary, self.costs.facts()
        self.source.shards.see(union(self.source.shards.seen()))
        (costs["device_seconds"],) = sums([costs["device_seconds"]])
        if self.selection is not None:
            self.selection.put_back(self.modules, self.work.parts)
        self.encoder.save(self.work.out / ENCODER)
        with atomic(self.work.out / LOG) as stream:
            for name in at.log:
                stream.write((self.work.parts.folder / name).read_bytes())
            stream.write("".join(self.lines).encode())
        return {
            "tokens": meter.tokens,
            "distinct_tokens": self.source.shards.distinct_tokens,
            "flops": meter.flops,
            "passes": meter.passes,
            "steps": at.step,
            "pairs": at.pairs,
            "loss": at.loss,
            "warnings": at.warnings,
            "without_gradient": sorted(self.untouched),
            "vocabulary": None if kept is None else {"kept": len(kept.kept), "of": len(kept.small)},
            **costs,
            "tokens_per_second": round(meter.tokens / max(costs["seconds"], 1e-3)),
            **({} if self.selection is None else {"selection": self.selection.facts()}),
        }

    def _finite(self, value: float, what: str) -> float:
        """Return a number; stop where it is none any more."""
        if not math.isfinite(value):
            raise UsageError(
                f"the {what} of training step {self.at.step} is {value}; lower {self.section}.learning_rate (it is "
                f"{self.config.learning_rate}), or raise {self.section}.temperature (it is {self.config.temperature}) "
                f"or {self.section}.warm_up, and run again"
            )
        return value

    def _sum(self, values: Mapping[str, float]) -> None:
        """Add to what the next line of the log averages; a batch need not have every value."""
        for name, value in values.items():
            total, count = self.at.sums.get(name, (0.0, 0))
            self.at.sums[name] = [total + float(value), count + 1]

    def _logs(self) -> bool:
        return self.over or not (self.at.step % self.config.log_every and self.at.step % self.config.probe_every)

    def _log(self, rate: float) -> None:
        at = self.at
        probe = self.over or at.step % self.config.probe_every == 0
        if self._logs():
            means = {name: total / count for name, (total, count) in sorted(at.sums.items())}
            at.sums = {}
            self._write({"step": at.step, "tokens": self.tokens, "learning_rate": rate, **means}, probe)

    def _write(self, line: dict[str, Any], probe: bool) -> None:
        """Add a line to the log, with a look at the held-out pairs if one is due; the first has the source's notes."""
        if notes := list(getattr(self.source, "notes", ())) if line["step"] == 0 else []:
            line["notes"] = notes
            self.at.warnings += len(notes)
        if probe and (self.held or self.probe):
            found = evaluate_probes(self.encoder, self.held, self.probe)
            line["probe"] = {name: checkpoint.short(value) for name, value in found.items()}
            first = {} if self.at.first is None else {"first_loss": self.at.first}
            warm = self.spent > self.config.warm_up  # random weights look collapsed, and are not
            numbers = {name: value for name, value in line.items() if isinstance(value, float)}
            line["warnings"] = signs({**numbers, **first, **found}) if warm else []
            self.at.warnings += len(line["warnings"])
        self.lines.append(checkpoint.log_line(line))
        self.work.log(line)

    def _due(self) -> bool:
        """Return whether it is time for a checkpoint: by tokens, or by seconds, a twentieth of which it may take."""
        tokens, moment = self.saved
        often = self.config.checkpoint_tokens
        seconds = max(self.config.checkpoint_seconds, _CHECKPOINTS * self.took)
        return time.monotonic() - moment >= seconds or (often is not None and self.tokens - tokens >= often)

    def _checkpoint(self) -> None:
        """Save if it is time; never after the last step, when the result itself is written."""
        at, began = self.at, time.monotonic()
        if not self.saves or self.over:
            return
        seen = torch.from_numpy(union(self.source.shards.seen()))
        if rank():  # the first process writes for all
            return
        at.seconds, at.device_seconds = self.costs.spent()
        at.meter = asdict(self.encoder.meter)
        name = f"log-{at.step:010d}.jsonl"
        self.work.parts.write(name, "".join(self.lines).encode())
        at.log.append(name)
        self.lines.clear()
        state: dict[str, Json] = {
            "source": self.source.state(),
            "rng": self.rng.bit_generator.state,
            "chance": rng_state(self.encoder.device),
            "progress": asdict(at),
            "untouched": sorted(self.untouched),
            "log": [*at.log, *(() if self.selection is None else self.selection.part)],  # files that it leans on
            **({} if self.selection is None else {"selection": self.selection.state()}),
        }
        tensors = checkpoint.tensors_of(self.modules, self.optimiser)
        tensors["seen"] = seen
        if self.encoder.vocabulary is not None:  # which ids the rows of the embeddings are
            tensors["vocabulary"] = torch.from_numpy(self.encoder.vocabulary.kept)
        checkpoint.save(self.work.parts, at.step, tensors, state)
        if self.selection is not None:
            self.selection.pin(self.work.parts)
        self.saved = (self.tokens, time.monotonic())
        self.took = self.saved[1] - began
