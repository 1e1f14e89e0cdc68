"""Which cells of the grid (systems × suites × regimes × seeds) apply, and which tasks they hold."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.config.profiles import Profile
from bench.core.errors import UsageError
from bench.core.messages import bare
from bench.core.publications import mark
from bench.pipeline.fine_tunings import PLACEHOLDER, Recipes, Tuning, replaced, tunings
from bench.pipeline.graph import GraphBuilder, SubsetStages
from bench.pipeline.identity import SystemIdentity, identify
from bench.pipeline.settings import MiniConfig
from bench.pipeline.stages.score import Score
from bench.pipeline.systems.combined import TRAINED
from bench.pipeline.systems.dense import Dense
from bench.pipeline.systems.system import System
from bench.pipeline.tasks import dev_tasks
from bench.plugins import Plugins
from bench.retrieval.backbones import SCRATCH
from bench.retrieval.prompts import WantedPrompts, wanted
from bench.retrieval.readouts import says
from bench.types import REGIMES, DataRequest, FineTuneStep, Method, Suite, Task


@dataclass(frozen=True)
class ExperimentCell:
    """One result: a system on tasks of a suite, in a regime, on data of one kind, with a seed."""

    system: System  # with what precedes the test on each task
    identity: SystemIdentity
    suite: Suite
    regime: str  # how it is tuned
    data: str  # kind of the tasks
    seed: int  # of pretraining and tuning
    tasks: tuple[Task, ...]  # what it is tested on

    def subsets(self, graph: GraphBuilder) -> Iterator[SubsetStages]:
        """Yield the stages of every subset; raises as `System.ranking` does."""
        system = self.system
        for task in self.tasks:
            protocol = graph.protocol(task)
            for subset in task.subsets:
                score = Score(
                    ranking=graph.intern(system.ranking(task, subset, self.seed, graph)),
                    subset=system.read(task, subset, graph),
                    texts=graph.texts(subset.corpus) if protocol.by_answers else None,
                    suite={"name": self.suite.name, "version": self.suite.version},
                    protocol=protocol,
                    tag=system.tag,
                    system_label=system.label,
                    notes=system.notes,
                )
                yield SubsetStages(task, subset, score)


@dataclass(frozen=True)
class NotApplicable:
    """A cell that has no answer, and why."""

    system: str
    suite: str
    regime: str
    reason: str


@dataclass(frozen=True)
class Cells:
    """Sorts a grid into cells that apply and cells that do not."""

    data_request: DataRequest
    size: Profile  # whose name says whether recipes of papers hold
    seeds: Sequence[int]
    plugins: Plugins
    graph: GraphBuilder

    def select(
        self,
        systems: Sequence[System],
        tasks_of_suites: Sequence[tuple[Suite, Sequence[Task]]],
        regimes: Sequence[str],
    ) -> tuple[list[ExperimentCell], list[NotApplicable], list[str]]:
        """Return the grid of systems × suites with their tasks × regimes × seeds.

        Returns:
            The cells that apply; those that do not; warnings.

        Raises:
            UsageError: no re-ranker can be trained; a recipe or a file that is not there.
        """
        cells, refused = list[ExperimentCell](), list[NotApplicable]()
        for suite, tasks in tasks_of_suites:
            for regime in regimes:
                for system in systems:
                    applicable, reasons_against = self._cells(system, suite, regime, tasks)
                    cells += applicable
                    refused += [NotApplicable(system.label, suite.name, regime, reason) for reason in reasons_against]
        with_rerankers = {system.label for system in systems if system.reranker_training}
        if with_rerankers and not any(chain for cell in cells for chain in cell.system.recipes.reranker.values()):
            reasons = dict.fromkeys(refusal.reason for refusal in refused if refusal.system in with_rerankers)
            raise UsageError("; ".join(reasons))
        tuned = [tuning for cell in cells for chain in cell.system.recipes.encoder.values() for tuning in chain]
        warnings = [*protocol_overrides(cells), *replaced(tuned)]
        warnings += [f"{suite.name}: {mark(suite.proxy_for)}" for suite, _ in tasks_of_suites if suite.proxy_for]
        if len(self.seeds) > 1 and any(system.deterministic for system in systems):
            names = ", ".join(system.label for system in systems if system.deterministic)
            warnings.append(f"{names}: deterministic, so one seed is compared with all {len(self.seeds)}")
        return cells, refused, warnings

    def _cells(
        self, system: System, suite: Suite, regime: str, tasks: Sequence[Task]
    ) -> tuple[list[ExperimentCell], list[str]]:
        """Return the cells of a system on a suite in a regime, and why it has none or lacks tasks."""
        if reason := _reason(system, suite, regime):
            return [], [reason]
        free = [task.id for task in tasks if system.by_protocol and task.readout is None]
        reasons = [
            f"the protocol of {', '.join(free)} leaves it to the encoder how texts are read (--readout encoder)"
        ] * bool(free)
        applicable = [task for task in tasks if task.id not in free]
        stops = any(leaf.stops_by_dev for leaf in system.leaves)
        dev = dev_tasks(suite, applicable, self.data_request) if system.chooses_weight or stops else {}
        others = {task for task, questions in dev.items() if questions.id != task}
        if stops and (without := [task.id for task in applicable if task.id not in others]):
            raise _without_dev(system, without, sorted(others))
        cells, missing, identity = list[ExperimentCell](), dict[str, None](), None
        for seed in (0,) if system.deterministic else self.seeds:
            for kind in dict.fromkeys(task.data for task in applicable):
                same_kind = [task for task in applicable if task.data == kind]
                recipes = self._recipes(system, suite, regime, same_kind, dev, seed)
                trainable = tuple(
                    task for task in same_kind if task.id in recipes.encoder and task.id in recipes.reranker
                )
                missing |= dict.fromkeys(task.id for task in same_kind if task not in trainable)
                if trainable:
                    prepared = system.with_recipes(recipes)
                    identity = identity or identify(prepared, self.graph)
                    cells.append(ExperimentCell(prepared, identity, suite, regime, kind, seed, trainable))
        if missing:
            reasons.append(
                f"{', '.join(missing)}: found no training questions for regime {regime}; with pairs of your own: "
                "--set tune.data=FILE, or FOLDER:train"
            )
        return cells, reasons

    def _recipes(
        self, system: System, suite: Suite, regime: str, tasks: Sequence[Task], dev: Mapping[str, Task], seed: int
    ) -> Recipes:
        """Return what precedes the test on tasks; one that lacks training pairs is left out."""
        all_tasks, run = (*tasks, PLACEHOLDER), system.resolved.run

        def chains(owner: Suite) -> Mapping[str, tuple[Tuning, ...]]:
            by_task = tunings(
                owner, regime, all_tasks, self.data_request, system.resolved, self.size, seed, self.plugins
            )
            return {**by_task, **{questions.id: by_task[task] for task, questions in dev.items() if task in by_task}}

        nothing: Mapping[str, tuple[Tuning, ...]] = {task.id: () for task in all_tasks}
        encoder = chains(suite) if system.dense else nothing
        if system.reranker_training is None:
            return Recipes(encoder, nothing, dev)
        if not suite.recipes.get(regime) and run.tune.data:
            user_pairs = FineTuneStep(run.tune.data, None, {}, "pairs of the user's")
            suite = replace(suite, recipes={regime: {"own": (user_pairs,)}})
        return Recipes(encoder, chains(suite), dev)


def _without_dev(system: System, tasks: Sequence[str], others: Sequence[str]) -> UsageError:
    """Return the error of a training that stops by dev questions, on tasks without any."""
    with_some = f"name tasks that have some: --task {','.join(map(bare, others))}; or " if others else ""
    return UsageError(
        where=f"--stop-when flat for {system.label}",
        found=f"no questions of {', '.join(tasks)} other than those that it is scored on",
        expected="dev questions of every task of the run",
        hint=f"{with_some}leave --stop-when out",
    )


def synthetic_warnings(world: str, systems: Sequence[System], tasks: Sequence[Task]) -> list[str]:
    """Warn of systems pretrained in another world than the test's. Raises `UsageError` for a world nothing reads."""
    pretrained = [part for system in systems for part in (system.pretraining, system.post) if part]
    if world == MiniConfig().world and not pretrained:
        return []
    from bench.data.mini.settings import DEFAULT, variant, variant_of_corpus

    world_corpus = variant(world).corpus
    # dialogues are of a variant too
    corpora = sorted({variant_of_corpus(part.corpus).corpus for part in pretrained if part.of_world})
    tested = any(task.data == world_corpus for task in tasks)
    if world != DEFAULT.name and not tested and world_corpus not in corpora:
        raise UsageError(f"found mini.world={world}, but nothing in this run reads the embedded world; leave it out")
    strange = [corpus for corpus in corpora if tested and corpus != world_corpus]
    return [f"trained on {corpus}, tested in another world ({world_corpus})" for corpus in strange]


def _reason(system: System, suite: Suite, regime: str) -> str:
    """Why a cell does not apply; empty where it does."""
    if regime not in suite.regimes:
        return f"suite {suite.name} has no recipe for regime {regime} (it has: {', '.join(suite.regimes)})"
    if regime not in system.regimes:
        method = system.method
        return f"method {method.name} has nothing to tune in regime {regime} (it has: {', '.join(method.regimes)})"
    if system.reranker_training is None or suite.recipes.get(regime) or system.resolved.run.tune.data:
        return ""
    with_pairs = next((name for name in suite.recipes if suite.recipes[name]), REGIMES[1])
    return (
        f"regime {regime} of {suite.name} has no training pairs for --rerank {TRAINED}; type --regime {with_pairs}, "
        "or name pairs of your own: --set tune.data=FILE"
    )


def protocol_overrides(cells: Sequence[ExperimentCell]) -> list[str]:
    """Warn of rows that are called after the protocol and that settings read otherwise all the same."""
    warnings: dict[str, None] = {}
    for cell in cells:
        if cell.system.protocol:
            ruled = {name for task in cell.tasks if task.readout for name in says(task.readout)}
            overridden = (name for leaf in cell.system.leaves if isinstance(leaf, Dense) for name in leaf.readout)
            typed = dict.fromkeys(f"encode.{name}" for name in overridden if name in ruled)
            if typed:
                warnings[f"{cell.system.label}: {', '.join(typed)} overrides what the protocol says"] = None
    return [*warnings]


def prompt_warnings(cells: Sequence[ExperimentCell], methods: Sequence[Method]) -> list[str]:
    """Return a sentence for each system that reads texts without the prompts that its encoder wants.

    Args:
        cells: of a run.
        methods: whose presets may say what prompts an encoder wants.
    """
    sentences: dict[str, None] = {}
    for cell in cells:
        for system in cell.system.leaves:
            if not isinstance(system, Dense) or system.untrained:
                continue
            if not system.backbone or system.backbone.startswith(SCRATCH):
                continue
            if prompts := wanted(system.backbone, methods):
                missing = [prompts.missing(system.encoder_config(task)) for task in cell.tasks]
                sentences |= dict.fromkeys(_sentence(system, prompts, roles) for roles in missing if roles)
    return [*sentences]


def guess_warnings(cells: Sequence[ExperimentCell]) -> list[str]:
    """Return a sentence for each system whose model does not say how it is read, and neither does a setting."""
    sentences: dict[str, None] = {}
    for cell in cells:
        for system in (leaf for leaf in cell.system.leaves if isinstance(leaf, Dense)):
            for config in (system.encoder_config(task) for task in cell.tasks):
                if config.guess:
                    read = f"{config.pooling}, {config.similarity}, {config.passage_length} tokens"
                    name = Path(system.backbone).name
                    sentence = f"{system.label}: how {name} is read is our guess ({config.guess}): {read}"
                    sentences[f"{sentence}; type --set method.pooling={config.pooling} to make it yours"] = None
    return [*sentences]


def _sentence(system: Dense, prompts: WantedPrompts, roles: Sequence[str]) -> str:
    texts = {role: getattr(prompts, role) for role in roles}
    described = " and ".join(f"{text!r} before a {role}" for role, text in texts.items())
    # As TOML in quotation marks, for a blank at the end would be lost.
    sets = " ".join(f"--set 'encode.{role}_prompt=\"{text}\"'" for role, text in texts.items())
    return (
        f"{system.label} reads texts without the prompts that {Path(system.backbone).name} needs "
        f"({described}: {prompts.source}); if they were forgotten, type {sets}"
    )
