"""The one loop: views → forward → loss → step, until the budget is spent; logged, probed, resumable.

A training that is killed at any moment and started again writes the same bytes as one that is not (on a processor, with
the same number of threads): weights, optimiser, generators, data order and log go through every checkpoint. Only the
metadata says how long it took.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar, cast

import numpy as np
import torch
from torch import nn

from bench.core.encoder_config import TrainingJob
from bench.core.errors import UsageError
from bench.core.files import atomic
from bench.core.workspace import Workspace
from bench.data.corpora.shards import Shards
from bench.training import checkpoint
from bench.training.banks import Ring
from bench.training.batches import BatchSource
from bench.training.checkpoint import WeightSelection
from bench.training.config import COLLAPSED, ENCODER, LOG, LoopConfig, Spent, TrainingConfig
from bench.training.determinism import rng_state, seed_everything, set_rng_state
from bench.training.distributed import (
    GradientAverage,
    average_statistics,
    broadcast_rng,
    rank,
    seed_step,
    sums,
    union,
    unlike,
    world_size,
)
from bench.training.encoder import TrainableEncoder, Vocabulary
from bench.training.meter import Costs, Meter
from bench.training.optimisation import Asam, TailAverage, adamw, clip, tensor_cores, warm_up_and_decay
from bench.training.probes import AT_START, COLLAPSE, evaluate_probes, in_float64, signs
from bench.types import Json


class Trainable(Protocol):
    """What the loop trains: a `bench.training.encoder.TrainableEncoder`, or a cross-encoder."""

    @property
    def model(self) -> nn.Module:
        """The weights that are trained and exported."""

    @property
    def device(self) -> torch.device:
        """Where the weights are."""

    @property
    def meter(self) -> Meter:
        """Counts what is computed; `tokens` are the unit of budget and progress."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The ids that have embeddings; None: all."""

    def save(self, folder: Path) -> None:
        """Write the model to a folder."""


ModelT = TypeVar("ModelT", bound=Trainable)
B = TypeVar("B", bound=Sized)
Values = Mapping[str, float]
Loss = Callable[[ModelT, B], tuple[torch.Tensor, Values | Callable[[], Values]]]
"""(model, batch) → a scalar to minimise, and further values to log, or what computes them: called on logged steps.

Values that the device has computed belong into the latter: reading them at every step would wait for it.
"""


def logged(loss: torch.Tensor, name: str) -> tuple[torch.Tensor, Callable[[], Values]]:
    """Return a loss and what makes its value under a name, as a `Loss` returns them."""
    value = loss.detach()
    return loss, lambda: {name: float(value)}


Probe = Callable[[], Mapping[str, float]]
"""Further measurements of a method at each probe; names as in `bench.training.probes.SIGNS` are judged."""

Facts = Mapping[str, Json]
"""What a training reports about itself, as `fit` returns it."""

_JUDGED, _IN_A_ROW = 10, 2  # times in a training, where it is to stop once it is collapsed; and how often it must be
_CHECKPOINT_PAUSE = 20  # a checkpoint that took t seconds is followed by none for 20·t

ConfigT = TypeVar("ConfigT", bound=TrainingConfig)


class CorpusTrainer(Generic[ConfigT]):
    """Base of a method's trainer (`bench.core.encoder_config.Trainer`); a subclass defines `train_on`.

    Example:
        >>> class Trainer(CorpusTrainer[DenseConfig]):
        ...     def train_on(self, encoder, corpus, job, work):
        ...         source = SentencePairs(corpus, self.config, job.seed, two_sentences)
        ...         return fit(self.loss, source, encoder, self.config, job, work)
        ...
        ...     def loss(self, encode, pairs):
        ...         left, right = encode.encode_views(pairs)  # each [n, d]
        ...         return info_nce(left, right, temperature=self.config.temperature), {}
    """

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Facts:
        """Train from `start` on `shards`; see `bench.core.encoder_config.Trainer`."""
        corpus = Shards(shards)
        return self.train_on(TrainableEncoder.begin(start, corpus, self.config, job), corpus, job, work)

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Train an encoder on a corpus: create batches, modules and loss, and return what `fit` does."""
        raise NotImplementedError


def fit(
    loss: Loss[ModelT, B],
    source: BatchSource[B],
    encoder: ModelT,
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
    folder: str = ENCODER,
    log_fields: Sequence[str] | None = None,
    clipped: Sequence[nn.Parameter] | None = None,
    spent: Spent | None = None,
    unit: Literal["tokens", "pairs"] = "tokens",
) -> dict[str, Json]:
    """Train an encoder; write `encoder/` and `log.jsonl`.

    Args:
        loss: the method's idea: (encoder, batch) → a scalar, and values to log.
        source: its batches.
        encoder: what is trained and exported.
        config: optimiser, accumulation, log and checkpoints.
        job: the budget (the step that spends it is the last), the seed, and where to stop on the way.
        work: where everything is written; `work.advance` counts progress in `unit`.
        modules: what the loss trains or keeps besides the encoder: heads, banks (as buffers), a momentum copy (without
            gradients), whatever it needs to know of earlier batches (a buffer); checkpointed, never exported.
        after_step: called with the step's number (from 1) after each change of the weights, however many batches it
            accumulates.
        probe: called, with gradients and dropout off, whenever held-out pairs are probed.
        asam_rho: ρ of ASAM, which computes each loss twice, so that it must not change its own buffers.
        selection: which weights are written, and when to stop; default: the last weights, at the end.
        section: the settings' name in messages.
        folder: name of the folder that the model is written to.
        log_fields: names of what a line of the log holds, in this order, from the first step on; default: everything,
            after a line of the start.
        clipped: weights whose gradients are clipped, in the order in which their norms are summed; default: all, in the
            optimiser's order.
        spent: is set, before each step's batches are drawn, to how much of the budget is spent.
        unit: what `work.advance` counts.

    Returns:
        tokens, distinct_tokens, flops, passes, steps, pairs, loss (of the last step), warnings (signs of collapse),
        without_gradient (trainable weights that never had one), vocabulary, seconds, device_seconds, peak_memory_bytes,
        tokens_per_second; selection, where there is one; averaged_steps, where weights are averaged (`train.average`);
        spent (share of the budget), where the job stops on the way; stopped (share, step, why; None at the end), where
        `config.stop_when` is `collapsed`.

    Raises:
        UsageError: the loss or the gradient is no longer finite.
    """
    extra = {} if modules is None else {"method": modules.to(encoder.device)}
    averages = isinstance(config, TrainingConfig) and config.average > 0
    tail = TailAverage(encoder.model) if averages else None
    if tail is not None:
        extra["average"] = tail
    trained = nn.ModuleDict({"encoder": encoder.model, **extra})
    training = _TrainingLoop(
        loss=loss,
        source=source,
        encoder=encoder,
        config=config,
        job=job,
        work=work,
        modules=trained,
        after_step=after_step,
        probe=probe,
        selection=selection,
        section=section,
        folder=folder,
        log_fields=log_fields,
        clipped=clipped,
        clock=spent,
        unit=unit,
        tail=tail,
        asam=None if asam_rho is None else Asam(trained, asam_rho),
    )
    with tensor_cores(encoder.device):
        training.resume()
        while not (training.over or training.pauses):
            training.step()
        return training.finish()


@dataclass
class _Progress:
    """How far a training is; all of it goes through checkpoints as JSON."""

    step: int = 0
    pairs: int = 0  # or documents, or sequences
    loss: float = 0.0  # of the last step
    first: float | None = None  # loss
    start: dict[str, float] = field(default_factory=dict)  # what held-out documents showed before the first step
    warnings: int = 0  # signs of collapse
    sums: dict[str, list[float]] = field(default_factory=dict)  # since the last line: name → total, batches that had it
    log: list[str] = field(default_factory=list)  # names of the finished pieces
    seconds: float = 0.0  # earlier attempts included
    device_seconds: float = 0.0  # of the processor, all threads together, or of the GPU
    meter: dict[str, float] = field(default_factory=dict)
    before: float = 0.0  # share of the budget that was spent before the last step
    collapsed: int = 0  # looks in a row that showed vectors on one point


@dataclass
class _TrainingLoop(Generic[ModelT, B]):
    """One training between its first step (or checkpoint) and its end; arguments are those of `fit`."""

    loss: Loss[ModelT, B]
    source: BatchSource[B]
    encoder: ModelT
    config: LoopConfig
    job: TrainingJob
    work: Workspace
    modules: nn.ModuleDict  # the encoder and the method's
    after_step: Callable[[int], None] | None
    probe: Probe | None
    selection: WeightSelection | None
    section: str
    folder: str
    log_fields: Sequence[str] | None
    clipped: Sequence[nn.Parameter] | None
    clock: Spent | None
    unit: Literal["tokens", "pairs"]
    tail: TailAverage | None
    asam: Asam | None

    def __post_init__(self) -> None:
        """Create optimiser and generators; `resume` decides where they start."""
        self.optimiser = adamw(self.modules, self.config)
        groups = self.optimiser.param_groups
        self.weights = self.clipped or [weight for group in groups for weight in group["params"]]
        self.gradients = GradientAverage(self.modules.parameters())
        trainable = {name: weight for name, weight in self.modules.named_parameters() if weight.requires_grad}
        self.params_without_grad = trainable  # so far
        self.held_out = self.source.held_out()
        self.rng = np.random.default_rng([self.job.seed, 1])
        self.progress = _Progress()
        self.lines: list[str] = []  # of the log, since the last checkpoint
        self.costs = Costs(self.encoder.device)
        self.saved = (0, time.monotonic())  # tokens and moment of the last checkpoint
        self.save_seconds = 0.0  # that it took to write
        self.saves = False  # a checkpoint follows this step
        self.collapsed = ""  # why it ends before its budget does
        self.prefetched: list[B] = []  # batches of the next step, drawn while the device computes
        self.last_metrics: Callable[[], Values] | None = None  # of the last batch, until the step is known to be logged

    @property
    def tokens(self) -> int:
        """Tokens so far."""
        return self.encoder.meter.tokens

    @property
    def reached(self) -> int:
        """Progress so far, in `unit`."""
        return self.progress.pairs if self.unit == "pairs" else self.tokens

    @property
    def spent(self) -> float:
        """Share of the budget, from 0."""
        if self.job.steps is not None:
            return self.progress.step / self.job.steps
        if self.job.flops is not None:
            return self.encoder.meter.flops / self.job.flops
        return self.tokens / self.job.tokens

    @property
    def over(self) -> bool:
        """Whether the budget is spent, the weights have stopped to improve, or they are collapsed."""
        until, cool = self.job.until, self.job.cool
        branches = until is None or cool is None or self.progress.before >= until  # every branch has a step at least
        stopped = bool(self.collapsed) or (self.selection is not None and self.selection.stopped)
        return stopped or (self.spent >= self.job.end and branches)

    @property
    def judges(self) -> bool:
        """Whether this step is one after which a collapsed training ends."""
        return self.config.stop_when == COLLAPSED and int(_JUDGED * self.spent) > int(_JUDGED * self.progress.before)

    @property
    def pauses(self) -> bool:
        """Whether the training stops here on its way: a checkpoint is left, and what comes later is as without it."""
        until = self.job.until
        return until is not None and self.job.cool is None and self.spent >= until

    @property
    def rate(self) -> float:
        """The learning rate of the next step: up and down over the budget, and on a branch that cools down to its 0."""
        job, place, cooled = self.job, self.spent, 1.0
        total = 1.0 if job.steps is None else float(job.steps)  # steps are counted as the papers count them
        if job.until is not None and job.cool is not None and place >= job.until:
            place, cooled = job.until, max(0.0, job.end - place) / (job.end - job.until)
        return self.config.learning_rate * warm_up_and_decay(place * total, self.config.warm_up * total, total) * cooled

    @property
    def logs(self) -> bool:
        """Whether this step ends with a line of the log."""
        step, config = self.progress.step, self.config
        return self.over or self.judges or step % config.log_every == 0 or step % config.probe_every == 0

    @property
    def selects(self) -> bool:
        """Whether the weights are evaluated after this step."""
        return self.selection is not None and self.selection.due(self.progress.step, self.spent / self.job.end)

    def resume(self) -> None:
        """Go on from the newest checkpoint, or start."""
        seed_everything(self.job.seed)
        self.modules.train()
        newest = checkpoint.newest(self.work.parts)
        if newest is None:
            if self.log_fields is None:
                self._write({"step": 0, "tokens": 0}, probe=True)
            return
        tensors, state = newest
        checkpoint.restore(self.modules, self.optimiser, tensors)
        self.source.restore(state["source"])
        self.source.shards.see(tensors["seen"].numpy())
        self.rng.bit_generator.state = state["rng"]
        set_rng_state(state["chance"], self.encoder.device)
        self.progress = _Progress(**state["progress"])
        self.params_without_grad = {name: self.params_without_grad[name] for name in state["untouched"]}
        if self.selection is not None:
            self.selection.restore(state["selection"])
        for name, value in self.progress.meter.items():
            setattr(self.encoder.meter, name, value)
        self.costs = Costs(self.encoder.device, self.progress.seconds, self.progress.device_seconds)
        self.saved = (self.tokens, time.monotonic())
        self.work.advance(self.reached)

    def step(self) -> None:
        """Take one step: accumulate, clip, update, select, log, save."""
        config, progress, before, reached = self.config, self.progress, replace(self.encoder.meter), self.reached
        rate, progress.before = self.rate, self.spent
        batches, self.prefetched = self.prefetched or self._draw(), []
        progress.step += 1
        seed_step(self.job.seed, progress.step)
        losses, ascent = self._gradients(batches), list[torch.Tensor]()
        if self.asam is not None:
            self.asam.perturb()
            ascent = self._gradients(batches, log=False)
            self.asam.restore()
        self._synchronise(before, sum(map(len, batches)))
        # Nothing beyond a step that may be the last may be drawn, or seen.
        stop_prefetch = self.saves or self.over or self.selects or self.judges
        if not stop_prefetch:
            self.prefetched = self._draw()
        progress.loss = self._read(losses, ascent, clip(self.weights, config.clip))
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        if self.after_step is not None:
            self.after_step(progress.step)
        if self.tail is not None and self.spent > 1 - cast(TrainingConfig, self.config).average:
            self.tail.add()
        progress.first = progress.loss if progress.first is None else progress.first
        line = {"step": progress.step, "tokens": self.tokens}
        if self.selection is not None and self.selects:
            value = self._finite(self.selection.evaluate(progress.step, self.modules, self.work.parts), "measure")
            self._write({**line, **self.selection.line(value)}, probe=False)
        if self.logs:
            means = {name: total / count for name, (total, count) in sorted(progress.sums.items())}
            progress.sums = {}
            probes = self.over or self.judges or progress.step % config.probe_every == 0
            self._write({**line, "learning_rate": rate, **means}, probe=probes)
        if self.saves and not self.over:  # after the last step the result itself is written
            self._save()
        self.work.advance(self.reached - reached)

    def _draw(self) -> list[B]:
        """Draw the batches of a step; all processes draw from the generator of the first."""
        batches = []
        if self.clock is not None:
            self.clock.share = self.spent
        for _ in range(self.config.accumulate):
            broadcast_rng(self.rng)
            batches.append(self.source.batch(self.rng))
        return batches

    def _gradients(self, batches: Sequence[B], *, log: bool = True) -> list[torch.Tensor]:
        """Compute the gradients of some batches anew, averaged over them and over processes; return their losses.

        Nothing is read from the device meanwhile, so that it is given the next work while it does the last.
        """
        losses: list[torch.Tensor] = []
        self.optimiser.zero_grad(set_to_none=True)
        for batch in batches:
            loss, metrics = self.loss(self.encoder, batch)
            losses.append(loss.detach())
            last = len(losses) == len(batches)
            self.gradients.backward(loss / len(batches), last=last)
            if not log:
                continue
            if isinstance(metrics, Mapping):
                self._sum(metrics)
            elif last:  # whether the budget is spent is known when all processes have counted their tokens
                self.last_metrics = metrics
            elif self.logs or self.selects:  # after which a training may be over, which ends in a line of the log
                self._sum(metrics())
        average_statistics(self.modules)
        return losses

    def _read(self, losses: Sequence[torch.Tensor], ascent: Sequence[torch.Tensor], norm: torch.Tensor) -> float:
        """Read what a step has computed, in one transfer, and sum it up for the log; return the mean loss.

        Weights that have a gradient come off `params_without_grad`. Raises `UsageError` where a loss or the norm of
        the gradient is not finite.
        """
        gradients = {name: weight.grad for name, weight in self.params_without_grad.items() if weight.grad is not None}
        largest = torch._foreach_norm(list(gradients.values()), float("inf")) if gradients else ()
        values: list[float] = in_float64(torch.stack([*losses, *ascent, norm, *largest]).detach()).tolist()
        means, (length, *reached) = values[: len(losses) + len(ascent)], values[len(losses) + len(ascent) :]
        for value in means:
            self._finite(value, "loss")
        self._finite(length, "gradient")
        means = [value / world_size() for value in sums(means)]
        first, second = means[: len(losses)], means[len(losses) :]
        metrics, self.last_metrics = self.last_metrics, None
        if metrics is not None and (self.logs or self.selects):
            self._sum(metrics())
        for value in first:
            self._sum({"loss": value})
        if second:
            self._sum({"ascent_loss": math.fsum(second) / len(second)})
        self._sum({"gradient_norm": length})
        for name, nonzero in zip(gradients, reached, strict=True):
            if nonzero:
                del self.params_without_grad[name]
        return sum(first) / len(first)

    def _synchronise(self, before: Meter, units: int) -> None:
        """Count what all processes did in this step, and let the first one's clock decide whether it is saved.

        A checkpoint is due by tokens, or by seconds, of which writing may take a twentieth, and where it pauses.
        """
        meter, (tokens, moment), often = self.encoder.meter, self.saved, self.config.checkpoint_tokens
        pause = max(self.config.checkpoint_seconds, _CHECKPOINT_PAUSE * self.save_seconds)
        since = before.tokens - tokens + (self.tokens - before.tokens) * world_size()  # others did about as much
        due = time.monotonic() - moment >= pause or (often is not None and since >= often)
        counts = [getattr(meter, count.name) - getattr(before, count.name) for count in fields(meter)]
        *counts, pairs, saves = sums([*counts, units, due and not rank()])
        if world_size() > 1:
            for count, value in zip(fields(meter), counts, strict=True):
                setattr(meter, count.name, type(getattr(meter, count.name))(getattr(before, count.name) + value))
        self.progress.pairs += int(pairs)
        self.saves = bool(saves) or self.pauses

    def _finite(self, value: float, quantity: str) -> float:
        """Return a number; raise `UsageError` if it is not finite."""
        if not math.isfinite(value):
            config, section = self.config, self.section
            softer = f"{section}.temperature (it is {config.temperature}) or " if config.temperature < 1 else ""
            raise UsageError(
                f"the {quantity} of training step {self.progress.step} is {value}; lower {section}.learning_rate (it "
                f"is {config.learning_rate}), or raise {softer}{section}.warm_up, and run again"
            )
        return value

    def _sum(self, values: Mapping[str, float]) -> None:
        """Add to what the next line of the log averages; a batch need not have every value."""
        for name, value in values.items():
            total, count = self.progress.sums.get(name, (0.0, 0))
            self.progress.sums[name] = [total + float(value), count + 1]

    def _write(self, line: dict[str, Any], *, probe: bool) -> None:
        """Add a line to the log, with probes if they are due; the first has the source's notes."""
        progress = self.progress
        if notes := list(getattr(self.source, "notes", ())) if line["step"] == 0 else []:
            line["notes"] = notes
            progress.warnings += len(notes)
        if probe and (self.held_out or self.probe):
            encoder = cast(TrainableEncoder, self.encoder)  # only encoders have held-out pairs
            measured = evaluate_probes(encoder, self.held_out, self.probe)
            line["probe"] = {name: checkpoint.short(value) for name, value in measured.items()}
            if line["step"] == 0:
                progress.start = {f"first_{name}": measured[name] for name in AT_START if name in measured}
            first = progress.start | ({} if progress.first is None else {"first_loss": progress.first})
            place = {"step": float(line["step"]), "spent": self.spent}
            warm = self.spent > self.config.warm_up  # random weights look collapsed, and are not
            numbers = {name: value for name, value in line.items() if isinstance(value, float)}
            values = {**numbers, **place, **first, **measured}
            line["warnings"] = signs(values) if warm else []
            if warm and self.judges:
                self.collapsed = self._judged(signs(values, COLLAPSE))
            progress.warnings += len(line["warnings"])
        line = line if self.log_fields is None else {name: line[name] for name in self.log_fields}
        self.lines.append(checkpoint.log_line(line))
        self.work.log(line)

    def _judged(self, collapse: Sequence[str]) -> str:
        """Return why the training ends here, empty where it goes on: what the first process saw holds for all."""
        (seen,) = sums([bool(collapse) and not rank()])
        self.progress.collapsed = self.progress.collapsed + 1 if seen else 0
        return "; ".join(collapse) or "collapsed" if self.progress.collapsed >= _IN_A_ROW else ""

    def _save(self) -> None:
        """Write a checkpoint: the first process does so, for all. Raises `UsageError` for a bank of its own alone."""
        progress, began = self.progress, time.monotonic()
        if banks := unlike({name: bank.rows for name, bank in self.modules.named_modules() if isinstance(bank, Ring)}):
            raise UsageError(
                where=f"training on {world_size()} processes, step {progress.step}",
                found=f"banks that differ between processes: {', '.join(banks)}",
                expected="the same in all, since checkpoints hold those of the first",
                hint="keep what bench.training.gather returns",
            )
        coverage = torch.from_numpy(union(self.source.shards.seen()))
        if rank():
            return
        progress.seconds, progress.device_seconds = self.costs.spent()
        progress.meter = asdict(self.encoder.meter)
        name = f"log-{progress.step:010d}.jsonl"
        self.work.parts.write(name, "".join(self.lines).encode())
        progress.log.append(name)
        self.lines.clear()
        state: dict[str, Json] = {
            "source": self.source.state(),
            "rng": self.rng.bit_generator.state,
            "chance": rng_state(self.encoder.device),
            "progress": asdict(progress),
            "untouched": sorted(self.params_without_grad),
            "log": [*progress.log, *(() if self.selection is None else self.selection.part)],  # files that it needs
            **({} if self.selection is None else {"selection": self.selection.state()}),
        }
        tensors = checkpoint.tensors_of(self.modules, self.optimiser)
        tensors["seen"] = coverage
        if self.encoder.vocabulary is not None:  # which ids the rows of the embeddings are
            tensors["vocabulary"] = torch.from_numpy(self.encoder.vocabulary.ids)
        checkpoint.save(self.work.parts, progress.step, tensors, state)
        if self.selection is not None:
            self.selection.pin(self.work.parts)
        self.saved = (self.tokens, time.monotonic())
        self.save_seconds = self.saved[1] - began

    def finish(self) -> dict[str, Json]:
        """Write model and log; return the metadata."""
        progress, meter, vocabulary = self.progress, self.encoder.meter, self.encoder.vocabulary
        costs = self.costs.metadata()
        self.source.shards.see(union(self.source.shards.seen()))
        (costs["device_seconds"],) = sums([costs["device_seconds"]])
        if self.selection is not None:
            self.selection.put_back(self.modules, self.work.parts)
        if self.tail is not None:
            self.tail.put_back()
        self.encoder.save(self.work.out / self.folder)
        with atomic(self.work.out / LOG) as stream:
            for name in progress.log:
                stream.write((self.work.parts.folder / name).read_bytes())
            stream.write("".join(self.lines).encode())
        return {
            "tokens": meter.tokens,
            "distinct_tokens": self.source.shards.distinct_tokens,
            "flops": meter.flops,
            "passes": meter.passes,
            "steps": progress.step,
            "pairs": progress.pairs,
            "loss": progress.loss,
            "warnings": progress.warnings,
            "without_gradient": sorted(self.params_without_grad),
            "vocabulary": None if vocabulary is None else {"kept": len(vocabulary.ids), "total": len(vocabulary.small)},
            **costs,
            "tokens_per_second": round(meter.tokens / max(costs["seconds"], 1e-3)),
            **({} if self.selection is None else {"selection": self.selection.metadata()}),
            **({} if self.job.until is None else {"spent": self.spent}),
            **({} if self.tail is None else {"averaged_steps": int(self.tail.count)}),
            **({"stopped": self.stopped} if self.config.stop_when == COLLAPSED else {}),
        }

    @property
    def stopped(self) -> Json:
        """Where and why the training ended before its budget did."""
        step = self.progress.step
        return {"share": round(self.spent, 4), "step": step, "why": self.collapsed} if self.collapsed else None
