"""A dense method on trial: a planted corpus, a tiny start, and trainings of a few steps; each is made once, if asked.

Imports no torch until something is made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.core.encoder_config import Encoder, EncoderConfig, Role, TrainingJob
from bench.core.errors import BenchError
from bench.core.workspace import Advance, Parts, Workspace, noop
from bench.pipeline.settings import PrepareConfig
from bench.studies.conformance import world
from bench.studies.conformance.kit import BrokenPromiseError, NotApplicableError, expect, files, told
from bench.studies.conformance.light import MethodSubject
from bench.studies.conformance.watch import changes, global_state, writes
from bench.training.config import ENCODER, LOG
from bench.types import Item, Json

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

BACKBONE = "scratch:2x64"
STEPS = 4
"""About so many steps has a short training; every one has fewer tokens than this many batches."""
LEARN_TOKENS = 400_000
"""Tokens of the training that is to learn, where nobody says otherwise: about ten seconds of a processor's core."""
_VOCABULARY = 1200
_ATTEMPTS = 12  # of a training that is killed after every step


class Killed(BaseException):
    """A simulated kill: nothing catches it, as nothing catches SIGKILL."""


@dataclass(frozen=True)
class TrialTraining:
    """What a training left."""

    out: Path
    metadata: Mapping[str, Json]
    changed: tuple[str, ...] = ()  # global state that was another afterwards
    written: tuple[str, ...] = ()  # files that it wrote elsewhere
    # name of a parameter that an optimiser was given → whether a gradient ever reached it
    audit: Mapping[str, bool] = field(default_factory=dict)
    # tokens with which each attempt after the first began; empty where it was never killed
    kept: tuple[tuple[float, float], ...] = ()

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines of its log."""
        return [json.loads(line) for line in (self.out / LOG).read_text(encoding="utf-8").splitlines()]

    @property
    def bytes(self) -> dict[str, bytes]:
        """Every file that it wrote."""
        return files(self.out)


@dataclass
class DenseSubject(MethodSubject):
    """A method with an encoder, on trial; `learn_tokens` is the budget of the training that is to learn."""

    learn_tokens: int = LEARN_TOKENS
    failed: bool = False  # whether the short training did, which has been said then

    @cached_property
    def encoder_config(self) -> EncoderConfig:
        """How its encoder reads texts; raises what the method raises."""
        expect(self.method.encoder_config is not None, "the method has no encoder config")
        assert self.method.encoder_config is not None  # noqa: S101 (said above; for the type checker)
        config = self.config
        if self.method.trainer is None and getattr(config, "model", None) == "":  # it wants a model, and gets ours
            config = config.model_copy(update={"model": str(self._start("backbone", EncoderConfig()))})
        return self.method.encoder_config(config)

    @property
    def normalised(self) -> bool:
        """Whether vectors have length 1."""
        return self.encoder_config.normalise

    def encoder(self, role: Role, batch_tokens: int | None = None) -> Encoder:
        """Load the encoder of a role."""
        from bench.retrieval.encoder import load

        return load(self.subjects[role], "cpu", 1, self.encoder_config, batch_tokens)

    def encode(self, items: Sequence[Item], role: Role) -> npt.NDArray[np.float32]:
        """Encode as a retriever of the method does that gets the trained encoder."""
        return self.encoder(role).encode(items, role)

    @cached_property
    def shards(self) -> Path:
        """The planted corpus, prepared as every corpus is."""
        from bench.pipeline.stages import prepare

        settings = self.resolved.run.prepare.model_copy(update={"vocabulary": _VOCABULARY, "max_documents": None})
        assert isinstance(settings, PrepareConfig)  # noqa: S101 (for the type checker)
        stage = prepare.Prepare(
            backbone=None, corpus=None, settings=settings, documents=world.corpus(), corpus_name="planted"
        )
        return self._build("shards", lambda work: stage.run(work, {}))

    @cached_property
    def start(self) -> Path:
        """The encoder before training, with the method's encoder config."""
        return self._start("start", self.encoder_config)

    def _start(self, name: str, encoder_config: EncoderConfig) -> Path:
        from bench.pipeline.stages import init

        tokens = self.shards / "tokenizer"
        return self._build(name, lambda work: init.run(work, BACKBONE, tokens, encoder_config, 0))

    def _build(self, name: str, make: Any) -> Path:
        out = self.folder / name
        out.mkdir(parents=True)
        make(Workspace(out, Parts(self.folder / f"{name}-parts")))
        return out

    @cached_property
    def first_step(self) -> int:
        """Tokens of the first step: a budget of one token ends with the step that spends it."""
        tokens = self.one_step.metadata.get("tokens")
        if not isinstance(tokens, int) or tokens < 1:
            self._refuse_after_failure()
            self.failed = True
            raise BrokenPromiseError(f"the trainer's metadata holds tokens={tokens!r}, expected how many tokens it saw")
        return tokens

    @cached_property
    def one_step(self) -> TrialTraining:
        """The training of one step."""
        with self._first():
            return self.train("one-step", 1, watched=True)

    def _refuse_after_failure(self) -> None:
        """Raise `NotApplicableError` where it has been told already that the short training failed."""
        if self.failed:
            raise NotApplicableError("the short training failed, on which this rests")

    @contextmanager
    def _first(self) -> Iterator[None]:
        """Let the failure of the training on which all others rest be told once, with its place; see `train`."""
        try:
            yield
        except NotApplicableError:
            raise
        except Exception as error:
            self.failed = True
            if isinstance(error, BenchError):
                raise
            remedy = "fix it there; what depends on training is tested once this succeeds"
            raise BrokenPromiseError(told(error, self.module), hint=remedy) from error

    @property
    def budget(self) -> int:
        """Tokens of about `STEPS` steps."""
        return int((STEPS - 0.5) * self.first_step)

    @cached_property
    def short(self) -> TrialTraining:
        """A training of about `STEPS` steps."""
        budget = self.budget
        with self._first():
            return self.train("short", budget)

    @cached_property
    def long(self) -> TrialTraining:
        """The training that is to learn."""
        return self.train("long", max(self.budget, self.learn_tokens))

    def train(
        self, name: str, tokens: int, seed: int = 1, advance: Advance = noop, watched: bool = False, **changed: Any
    ) -> TrialTraining:
        """Train through the stage, which holds the trainer to its promises; training twice under one name resumes.

        The output folder below that of its `name` is a fresh one each time. With `watched` global state is compared,
        and files written elsewhere are looked for; `changed` are settings, where the method has them. Raises
        `NotApplicableError` for a method that trains nothing or whose short training has failed, `PluginError` for what
        the stage refuses.
        """
        if self.method.trainer is None:
            raise NotApplicableError("it trains nothing")
        self._refuse_after_failure()
        import shutil

        from bench.pipeline.stages import train

        shards, start = self.shards, self.start
        folder = self.folder / name
        shutil.rmtree(folder / "out", ignore_errors=True)
        (folder / "out").mkdir(parents=True)
        work = Workspace(folder / "out", Parts(folder / "parts"), advance)
        overrides = {key: value for key, value in changed.items() if key in type(self.config).model_fields}
        trainer = self.method.build_trainer(self.config.model_copy(update=overrides))
        job = TrainingJob(tokens=tokens, seed=seed, device="cpu", threads=1)
        before = global_state(torch_too=True) if watched else {}
        with writes([folder] if watched else [Path("/")]) as written:
            metadata = train.run(work, trainer, start, shards, job)
        after = global_state(torch_too=True) if watched else {}
        return TrialTraining(work.out, metadata, tuple(changes(before, after)), tuple(written))

    def killed(self) -> TrialTraining:
        """Train as `short` does, killed after every step and begun again each time."""
        reached, starts = 0.0, []
        for _ in range(_ATTEMPTS):
            reported: list[float] = []

            def advance(units: float, reported: list[float] = reported, reached: float = reached) -> None:
                reported.append(units)
                if sum(reported) > reached:
                    raise Killed

            try:
                training = self.train("killed", self.budget, advance=advance, checkpoint_tokens=1)
            except Killed:
                starts.append((reached, reported[0] if len(reported) > 1 else 0.0))
                reached = sum(reported)
                continue
            expect(bool(starts), "it never calls work.advance, so nobody sees how far it is")
            return replace(training, kept=tuple(starts[1:]))
        raise BrokenPromiseError(f"killed after every step it does not end within {_ATTEMPTS} attempts")

    def audited(self) -> TrialTraining:
        """Train as `short` does and watch which parameters of the optimisers a gradient reaches."""
        budget = self.budget  # which a training of its own finds out: it must not be watched too
        with _gradients() as audit:
            training = self.train("audited", budget)
        return replace(training, audit=dict(audit))

    def encoders(self, trained: TrialTraining) -> dict[str, Path]:
        """Return role → folder of what was trained; an untied pair has a folder for each."""
        first, second = trained.out / ENCODER, trained.out / "passage"
        return {"query": first, "passage": second if second.is_dir() else first}

    @cached_property
    def subjects(self) -> dict[str, Path]:
        """Role → folder of the encoder on trial. Raises as the short training does."""
        if self.method.trainer is None:
            return {"query": self.start, "passage": self.start}
        return self.encoders(self.short)


@contextmanager
def _gradients() -> Iterator[dict[str, bool]]:
    """Collect for every parameter that an optimiser of torch steps whether it ever had a gradient other than zero."""
    import gc

    from torch import nn
    from torch.optim import Optimizer
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    names: dict[int, str] = {}
    reached_by_name: dict[str, bool] = {}
    reached: dict[int, tuple[nn.Parameter, bool]] = {}  # with the weight itself, whose number is its own while it lives

    def name() -> None:
        for module in gc.get_objects():
            if issubclass(type(module), nn.Module):  # isinstance would touch lazy attributes of other modules
                for path, weight in module.named_parameters(type(module).__name__):
                    if len(path) > len(names.get(id(weight), "")):
                        names[id(weight)] = path

    def look(optimiser: Optimizer, *_: Any) -> None:
        weights = [weight for group in optimiser.param_groups for weight in group["params"] if weight.requires_grad]
        if any(id(weight) not in names or id(weight) not in reached for weight in weights):
            names.clear()  # of modules that are gone, whose numbers others may have now
            name()
        for weight in weights:
            reached_now = weight.grad is not None and bool(weight.grad.count_nonzero())
            reached[id(weight)] = weight, reached_now or reached.get(id(weight), (weight, False))[1]
        reached_by_name.clear()
        for weight, ever in reached.values():  # of two with one label, neither may hide the other
            label = names.get(id(weight)) or f"a parameter of shape {tuple(weight.shape)}"
            reached_by_name[label] = reached_by_name.get(label, True) and ever

    handle = register_optimizer_step_pre_hook(look)
    try:
        yield reached_by_name
    finally:
        handle.remove()
