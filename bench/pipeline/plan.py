"""The plan: every stage that an experiment takes, compared with what the store has."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.config.layers import log_settings
from bench.config.profiles import Profile
from bench.config.request import Request
from bench.core.errors import UsageError
from bench.core.network import offline
from bench.evaluation.tables import duration
from bench.pipeline.cells import Cell, NotApplicable, prompt_warnings
from bench.pipeline.experiment import Experiment
from bench.pipeline.graph import LegStages
from bench.pipeline.stages.prepare import Prepare
from bench.pipeline.stages.train import Train
from bench.plugins import Plugins
from bench.store.graph import Step, closure, steps
from bench.store.stage import Stage
from bench.store.store import Store


@dataclass(frozen=True, repr=False)
class Plan:
    """What would run, and for what."""

    experiment: Experiment
    legs: tuple[tuple[LegStages, ...], ...]  # for each of its cells, the legs with their stages
    steps: tuple[Step, ...]  # every stage in the order of work
    again: tuple[Stage, ...] = ()  # trainings that are made again though the store holds them
    warnings: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of the experiment."""
        return self.experiment.cells

    @property
    def refused(self) -> tuple[NotApplicable, ...]:
        """What does not apply."""
        return self.experiment.refused

    @property
    def profile(self) -> Profile:
        """The size."""
        return self.experiment.profile

    @property
    def seconds(self) -> float:
        """Estimated seconds of work left."""
        return sum(step.seconds for step in self.steps)

    def __repr__(self) -> str:
        """Say how much would run."""
        runs = sum(step.runs for step in self.steps)
        titles = ", ".join(dict.fromkeys(f"{cell.system.label} on {cell.suite.name}" for cell in self.cells))
        return f"Plan of {titles}: {runs} of {len(self.steps)} stages to run, {duration(self.seconds)}"


def plan(request: Request, plugins: Plugins, store: Store) -> Plan:
    """Return the plan of a request; raises as `Experiment.resolve` does, and where an input file cannot be read."""
    with offline(request.offline):
        experiment = Experiment.resolve(request, plugins, store)
        legs = tuple(tuple(cell.legs(experiment.graph)) for cell in experiment.cells)
        targets = [leg.score for cell in legs for leg in cell]
        unlike = _logged_otherwise(targets, store)
        again = tuple(stage for stage, _ in unlike) if experiment.again else ()
        todo = tuple(steps(targets, store, [stage.key for stage in again]))
        lacks = [f"{error}; without them `bench run` does not begin" for error in lacking(todo)]
        prompts = prompt_warnings(experiment.cells, [owned.value for owned in plugins.methods.values()])
        logs = [] if again else [sentence for _, sentence in unlike]
        warnings = (*experiment.warnings, *_shallow(legs), *prompts, *logs, *lacks)
        return Plan(experiment, legs, todo, again, warnings)


def _logged_otherwise(targets: Sequence[Stage], store: Store) -> list[tuple[Train, str]]:
    """Return the stored trainings whose log was made by other settings, each with a sentence."""
    sentences = []
    for stage in closure(targets):
        if not isinstance(stage, Train) or not (settings := log_settings(stage.config)):
            continue
        stored = {row["key"]: row["value"] for row in store.provenance(stage).get("settings", ())}
        names = {f"method.{name}": value for name, value in settings.items()}
        unlike = {name: stored[name] for name, value in names.items() if name in stored and stored[name] != value}
        if unlike:
            stored_log = ", ".join(f"{name}={value}" for name, value in unlike.items())
            typed = ", ".join(str(names[name]) for name in unlike)
            sentence = f"{stage.title} is stored with a log by {stored_log}, not {typed}; its weights are the same"
            sentences.append((stage, f"{sentence}; type --again to train it again"))
    return sentences


def lacking(todo: Sequence[Step]) -> list[UsageError]:
    """Return the errors for named corpora that are to be prepared and whose files are not there."""
    stages = [step.stage for step in todo if step.runs]
    corpora = {stage.named.text: stage.named for stage in stages if isinstance(stage, Prepare) and stage.named}
    return [error for corpus in corpora.values() if (error := corpus.missing_error())]


def _shallow(legs: Sequence[Sequence[LegStages]]) -> list[str]:
    """Return warnings of searches that end before the deepest cut of a measure."""
    warnings = {
        f"search.k={leg.k} is shallower than the deepest measure of {leg.task.id} (cut {leg.depth}): "
        f"measures below that depth count only {leg.k} documents"
        for cell in legs
        for leg in cell
        if leg.depth is not None and leg.k < leg.depth
    }
    return sorted(warnings)
