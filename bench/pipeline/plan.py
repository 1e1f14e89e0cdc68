"""The plan: every stage that an experiment takes, compared with what the store has."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.config.layers import log_settings
from bench.config.plugin_sources import MARK
from bench.config.profiles import Profile
from bench.config.request import Request
from bench.core.errors import UsageError
from bench.core.machine import bfloat16_speed
from bench.evaluation.tables import duration
from bench.pipeline.cells import ExperimentCell, NotApplicable, guess_warnings, prompt_warnings
from bench.pipeline.experiment import Experiment
from bench.pipeline.graph import SubsetStages
from bench.pipeline.stages.encode import Encode
from bench.pipeline.stages.prepare import Prepare
from bench.pipeline.stages.train import Train
from bench.pipeline.stages.train_cross import TrainCross
from bench.pipeline.stages.tune import Tune
from bench.pipeline.variants import joined, resolve_each
from bench.plugins import Plugins
from bench.store.graph import Step, closure, steps
from bench.store.stage import Stage
from bench.store.store import Store


@dataclass(frozen=True, repr=False)
class Plan:
    """What would run, and for what."""

    experiment: Experiment
    subsets: tuple[tuple[SubsetStages, ...], ...]  # for each of its cells, the subsets with their stages
    steps: tuple[Step, ...]  # every stage in the order of work
    again: tuple[Stage, ...] = ()  # trainings that are made again though the store holds them
    warnings: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[ExperimentCell, ...]:
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
    """Return the plan of a request; raises as `resolve_each` does, and where an input file cannot be read."""
    experiments = resolve_each(request, plugins, store)
    experiment = joined(experiments)
    subsets = tuple(tuple(cell.subsets(part.graph)) for part in experiments for cell in part.cells)
    targets = [subset.score for cell in subsets for subset in cell]
    unlike = _logged_otherwise(targets, store)
    again = tuple(stage for stage, _ in unlike) if experiment.again else ()
    todo = tuple(steps(targets, store, [stage.key for stage in again]))
    shallow = {
        f"search.k={subset.k} is shallower than the deepest measure of {subset.task.id} (cut {subset.depth}): "
        f"measures below that depth count only {subset.k} documents"
        for cell in subsets
        for subset in cell
        if subset.depth is not None and subset.k < subset.depth
    }
    warnings = [
        *experiment.warnings,
        *sorted(shallow),
        *prompt_warnings(experiment.cells, [owned.value for owned in plugins.methods.values()]),
        *guess_warnings(experiment.cells),
        *(precision_warnings(todo) if experiment.executor == "local" and request.devices is None else []),
        *([] if again else [sentence for _, sentence in unlike]),
        *edited_plugins(experiment.cells, store),
        *(f"{error}; without them `bench run` does not begin" for error in missing_files(todo)),
    ]
    return Plan(experiment, subsets, todo, again, tuple(warnings))


def _logged_otherwise(targets: Sequence[Stage], store: Store) -> list[tuple[Train, str]]:
    """Return the stored trainings whose log was made by other settings, each with a sentence."""
    sentences = []
    for stage in closure(targets):
        if not isinstance(stage, Train) or not (settings := log_settings(stage.config)):
            continue
        stored = {row["key"]: row["value"] for row in store.provenance(stage).get("settings", ())}
        unlike = {key: stored[key] for key, value in settings.items() if key in stored and stored[key] != value}
        if unlike:
            stored_log = ", ".join(f"{key}={value}" for key, value in unlike.items())
            typed = ", ".join(str(settings[key]) for key in unlike)
            sentence = f"{stage.title} is stored with a log by {stored_log}, not {typed}; its weights are the same"
            sentences.append((stage, f"{sentence}; type --again to train it again"))
    return sentences


def edited_plugins(cells: Sequence[ExperimentCell], store: Store) -> list[str]:
    """Return a sentence for each method of another distribution whose sources changed since it last ran here."""
    sentences = []
    for name, version in foreign_versions(cells).items():
        last = store.last_version(name)
        if last is not None and last != version and last.rpartition(MARK)[0] == version.rpartition(MARK)[0]:
            sentences.append(
                f"the sources of {name} changed since it last ran here (version {last}, now {version}): its stages run "
                "again, and its results are another system's than before"
            )
    return sentences


def foreign_versions(cells: Sequence[ExperimentCell]) -> dict[str, str]:
    """Return the methods of other distributions that take part, with their versions."""
    systems = [system for cell in cells for system in (cell.system, *cell.system.parts)]
    methods = {system.method.name: system.method.version for system in systems if not system.parts}
    return {name: version for name, version in methods.items() if MARK in version}


def precision_warnings(todo: Sequence[Step]) -> list[str]:
    """Return a sentence where stages are to run in bfloat16 on this processor and it has no unit for it."""
    slow = [
        step.stage
        for step in todo
        if step.runs
        and isinstance(step.stage, Train | Tune | TrainCross | Encode)
        and step.stage.compute.device == "cpu"
        and _precision(step.stage) == "bfloat16"
    ]
    if not slow or (speed := bfloat16_speed()) >= 1:
        return []
    slower = (
        f"products in it take this processor {1 / speed:.1f} times as long as in float32, for it has no units for them"
    )
    typed = "--set train.precision=auto, or method.precision=auto for a model that was trained elsewhere"
    return [f"{len(slow)} stages are to run in bfloat16, and {slower}; for what suits the machine type {typed}"]


def _precision(stage: Train | Tune | TrainCross | Encode) -> str:
    return str(stage.encoder_config.dtype if isinstance(stage, Encode) else getattr(stage.config, "precision", ""))


def missing_files(todo: Sequence[Step]) -> list[UsageError]:
    """Return the errors for named corpora that are to be prepared and whose files are not there."""
    stages = [step.stage for step in todo if step.runs]
    corpora = {stage.named.text: stage.named for stage in stages if isinstance(stage, Prepare) and stage.named}
    return [error for corpus in corpora.values() if (error := corpus.missing_error())]
