"""Which cells of the grid (systems × suites × settings × seeds) apply, and which tasks they hold."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bench.config.profiles import Profile
from bench.config.request import Request
from bench.core.errors import PluginError, UsageError
from bench.core.messages import bare, canonical, did_you_mean
from bench.core.publications import mark
from bench.pipeline.dense import Dense
from bench.pipeline.fine_tunings import PLACEHOLDER, Tuning, recipe_of, replaced, tunings
from bench.pipeline.identity import SystemIdentity, identify
from bench.pipeline.joint import TRAINED
from bench.pipeline.legs import Asked, Legs, LegStages
from bench.pipeline.settings import MiniConfig, RunConfig
from bench.pipeline.stages.score import Score
from bench.pipeline.systems import System
from bench.plugins import Plugins
from bench.retrieval.readouts import says
from bench.types import SETTINGS, DataRequest, FineTuning, Leg, Suite, Task

DEV = "@dev"
"""What the name of a task ends with that stands for its dev questions."""


@dataclass(frozen=True)
class Cell:
    """One result: a system on tasks of a suite, in a setting, on data of one kind, with a seed."""

    system: System  # before it is tuned
    suite: Suite
    setting: str  # how it is tuned
    data: str  # kind of the tasks
    seed: int  # of pretraining and tuning
    tasks: tuple[Task, ...]  # what it is tested on
    # of its encoder before the test on a task, first to last, by the task's id; none where setting or system have none
    tunings: Mapping[str, tuple[Tuning, ...]] = field(default_factory=dict)
    # tasks on dev questions by the id of the task that they belong to, where the system chooses by them
    dev: Mapping[str, Task] = field(default_factory=dict)
    # what its re-ranker is trained on, first to last, by the task's id; none where it is not trained here
    taught: Mapping[str, tuple[Tuning, ...]] = field(default_factory=dict)
    # the same two on the task that stands for any, by which the system is named (`bench.pipeline.identity`)
    recipe: tuple[Tuning, ...] = ()
    reranker_recipe: tuple[Tuning, ...] = ()

    def tuned(self, task: Task) -> tuple[Tuning, ...]:
        """The tunings before a task, or before its dev questions."""
        return self.tunings.get(self._test_task_id(task), ())

    def reranker_tunings(self, task: Task) -> tuple[Tuning, ...]:
        """What the re-ranker is trained on before a task, or before its dev questions."""
        return self.taught.get(self._test_task_id(task), ())

    def identity(self, builder: Legs) -> SystemIdentity:
        """Return what its system is, fine-tunings included."""
        made_of = self.system, *self.recipe, *self.reranker_recipe
        build = partial(identify, self.system, self.recipe, self.reranker_recipe, builder)
        return builder.shared("identity", build, *made_of)

    def legs(self, builder: Legs) -> Iterator[LegStages]:
        """Yield the stages of every leg; raises as `System.searched` does."""
        for task in self.tasks:
            for leg in task.legs:
                yield self._leg(builder, task, leg)

    def _leg(self, builder: Legs, task: Task, leg: Leg) -> LegStages:
        system, run = self.system, self.system.resolved.run
        k = run.search.k or task.depth
        learnt = self.tuned(task), self.reranker_tunings(task)
        target = Asked(builder, task, leg, k, run.data.unknown_ids, self.seed, *learnt, self.dev.get(task.id))
        *before, searching = system.searched(target)
        protocol = builder.protocol(task)
        scoring = Score(
            ranking=searching,
            leg=target.read,
            texts=builder.texts(leg.corpus) if protocol.by_answers else None,
            suite={"name": self.suite.name, "version": self.suite.version},
            protocol=protocol,
            tag=system.tag,
            who=system.method.name,
            notes=system.notes,
        )
        texts = (scoring.texts,) if scoring.texts else ()
        return LegStages(task, leg, (*before, *texts, searching, scoring), k, protocol.depth)

    def _test_task_id(self, task: Task) -> str:
        """The id of a task, of dev questions that of the task that they belong to."""
        return next((test_id for test_id, dev in self.dev.items() if dev.id == task.id), task.id)


@dataclass(frozen=True)
class NotApplicable:
    """A cell that has no answer, and why."""

    system: str
    suite: str
    setting: str
    reason: str


@dataclass(frozen=True)
class Selection:
    """The grid, sorted into cells that apply and cells that do not."""

    cells: tuple[Cell, ...]
    refused: tuple[NotApplicable, ...]
    warnings: tuple[str, ...] = ()


def select(
    request: Request, systems: Sequence[System], plugins: Plugins, data: str, run: RunConfig, size: Profile
) -> Selection:
    """Resolve suites, tasks, settings and seeds into cells.

    `run` gives the language of folders of the user's, where their records do not say it or say it wrongly, and the
    embedded world; `size` says whether recipes of papers hold. Raises `UsageError` for an unknown name, a folder or
    data that is not there, and a setting that nothing in the run listens to.
    """
    suites = suites_of(request, plugins)
    settings = [_setting(name) for name in request.settings or SETTINGS[:1]]
    language, world = run.data.language, run.mini.world
    data_request = DataRequest(data, request.data_dir, request.offline, world)
    tasks = {
        suite.name: [_with_language(task, language) for task in tasks_of(suite, request.tasks, data_request)]
        for suite in suites
    }
    warnings = _check_synthetic_variants(world, systems, [task for group in tasks.values() for task in group])
    local = [task for group in tasks.values() for task in group if task.data == "local"]
    if language and not local:
        raise UsageError(f"found data.language={language}, which holds for folders of your own (--task FOLDER) only")
    cells, refused = [], []
    warnings += [sentence for task in local for sentence in _language_warnings(task, language)]
    for suite in suites:
        for setting in settings:
            for system in systems:
                reason = _reason(system, suite, setting) or _reranker_skip_reason(system, suite, setting)
                if reason:
                    refused.append(NotApplicable(system.label, suite.name, setting, reason))
                    continue
                applicable, free = _tasks_with_protocol(system, tasks[suite.name])
                refused += [NotApplicable(system.label, suite.name, setting, sentence) for sentence in free]
                dev = _dev(system, suite, applicable, data_request)
                recipe = recipe_of(suite, setting, data_request, system.resolved, size) if system.dense else ()
                reranker_recipe = _reranker_data(system, suite, setting, (PLACEHOLDER,), data_request, size, 0)[
                    PLACEHOLDER.id
                ]
                missing: dict[str, None] = {}
                for seed in request.seeds[:1] if system.deterministic else request.seeds:
                    cell_seed = 0 if system.deterministic else seed
                    for kind in dict.fromkeys(task.data for task in applicable):
                        same_kind = tuple(task for task in applicable if task.data == kind)
                        tuned: Mapping[str, tuple[Tuning, ...]] = {task.id: () for task in same_kind}
                        if system.dense:
                            tuned = tunings(suite, setting, same_kind, data_request, system.resolved, size, cell_seed)
                        taught = _reranker_data(system, suite, setting, same_kind, data_request, size, cell_seed)
                        trainable = tuple(task for task in same_kind if task.id in tuned and task.id in taught)
                        missing |= dict.fromkeys(task.id for task in same_kind if task not in trainable)
                        if trainable:
                            cells.append(
                                Cell(
                                    system,
                                    suite,
                                    setting,
                                    kind,
                                    cell_seed,
                                    trainable,
                                    tuned,
                                    dev,
                                    taught,
                                    recipe,
                                    reranker_recipe,
                                )
                            )
                if missing:
                    refused.append(
                        NotApplicable(
                            system.label, suite.name, setting, _no_training_pairs_message([*missing], setting)
                        )
                    )
    warnings += protocol_overrides(cells)
    warnings += replaced(tuning for cell in cells for chain in cell.tunings.values() for tuning in chain)
    warnings += [f"{suite.name}: {mark(suite.stands_for)}" for suite in suites if suite.stands_for]
    _require_trainable_reranker(systems, cells, refused)
    if len(request.seeds) > 1 and any(system.deterministic for system in systems):
        names = ", ".join(system.label for system in systems if system.deterministic)
        warnings.append(f"{names}: deterministic, so one seed is compared with all {len(request.seeds)}")
    return Selection(tuple(cells), tuple(refused), tuple(warnings))


def _with_language(task: Task, language: str | None) -> Task:
    """A folder of the user's in the language that the user says."""
    if language is None or task.data != "local":
        return task
    legs = (replace(leg, language=language, corpus=replace(leg.corpus, language=language)) for leg in task.legs)
    return replace(task, legs=tuple(legs))


def _check_synthetic_variants(world: str, systems: Sequence[System], tasks: Sequence[Task]) -> list[str]:
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


def _language_warnings(task: Task, language: str | None) -> Iterator[str]:
    """Tell where the language of a corpus may not be what it is taken for."""
    for leg in task.legs:
        if language is None and leg.language != leg.corpus.language:
            yield (
                f"the queries of {task.id} are in {leg.language}, its corpus is taken for {leg.corpus.language}; "
                f"if that is wrong, type --set data.language={leg.language}"
            )


def _setting(name: str) -> str:
    setting = canonical(name)
    if setting not in SETTINGS:
        raise UsageError(f"no setting {name!r}{did_you_mean(name, SETTINGS)} There are: {', '.join(SETTINGS)}.")
    return setting


def _reason(system: System, suite: Suite, setting: str) -> str:
    """Why a cell does not apply; empty where it does."""
    if setting not in suite.settings:
        return f"suite {suite.name} has no recipe for setting {setting} (it has: {', '.join(suite.settings)})"
    if setting not in system.settings:
        method = system.method
        return f"method {method.name} has nothing to tune in setting {setting} (it has: {', '.join(method.settings)})"
    return ""


def _tasks_with_protocol(system: System, tasks: Sequence[Task]) -> tuple[list[Task], list[str]]:
    """The tasks that a system is tested on, and a sentence on those whose protocol does not say how texts are read."""
    free = [task.id for task in tasks if system.by_protocol and task.readout is None]
    sentence = f"the protocol of {', '.join(free)} leaves it to the encoder how texts are read (--readout contract)"
    return [task for task in tasks if task.id not in free], [sentence] if free else []


def protocol_overrides(cells: Sequence[Cell]) -> list[str]:
    """Tell of rows that are called after the protocol and that settings read otherwise all the same."""
    warnings: dict[str, None] = {}
    for cell in cells:
        if cell.system.protocol:
            ruled = {name for task in cell.tasks if task.readout for name in says(task.readout)}
            overridden = (name for leaf in cell.system.leaves if isinstance(leaf, Dense) for name in leaf.readout)
            typed = dict.fromkeys(f"encode.{name}" for name in overridden if name in ruled)
            if typed:
                warnings[f"{cell.system.label}: {', '.join(typed)} stands over what the protocol says"] = None
    return [*warnings]


def _reranker_skip_reason(system: System, suite: Suite, setting: str) -> str:
    """Why a re-ranker cannot be trained; empty where it can, or need not."""
    if system.reranker_training is None or suite.recipes.get(setting) or system.resolved.run.tune.data:
        return ""
    return (
        f"setting {setting} of {suite.name} has no training pairs for --rerank {TRAINED}; type --regime "
        f"{next((name for name in suite.recipes if suite.recipes[name]), SETTINGS[1])}, or name pairs of your own: "
        "--set tune.data=FILE"
    )


def _reranker_data(
    system: System,
    suite: Suite,
    setting: str,
    tasks: Sequence[Task],
    data_request: DataRequest,
    size: Profile,
    seed: int,
) -> Mapping[str, tuple[Tuning, ...]]:
    """What a re-ranker is trained on by task, the setting's recipe or pairs of the user's; nothing where none is."""
    data = system.resolved.run.tune.data
    if system.reranker_training is None:
        return {task.id: () for task in tasks}
    if not suite.recipes.get(setting) and data:
        user_pairs = FineTuning(data, None, {}, "pairs of the user's")
        suite = replace(suite, recipes={setting: {"own": (user_pairs,)}})
    return tunings(suite, setting, tasks, data_request, system.resolved, size, seed)


def _require_trainable_reranker(
    systems: Sequence[System], cells: Sequence[Cell], refused: Sequence[NotApplicable]
) -> None:
    """Refuse a run none of whose re-rankers can be trained. Raises `UsageError`."""
    labels = {system.label for system in systems if system.reranker_training}
    if labels and not any(chain for cell in cells for chain in cell.taught.values()):
        raise UsageError("; ".join(dict.fromkeys(refusal.reason for refusal in refused if refusal.system in labels)))


def _no_training_pairs_message(tasks: Sequence[str], setting: str) -> str:
    """Say that the recipe of a setting has no pairs for tasks."""
    return (
        f"{', '.join(tasks)}: found no training questions for setting {setting}; with pairs of your own: "
        "--set tune.data=FILE, or FOLDER:train"
    )


def _is_folder(name: str) -> bool:
    """Tell a path from a task's name: it has a separator that no task name begins with, or a folder stands there."""
    head, colon, _ = name.rpartition(":")  # of `path/to/folder:split`
    return name.startswith((".", "/", "~")) or Path(head if colon and not Path(name).exists() else name).is_dir()


def suites_of(request: Request, plugins: Plugins) -> list[Suite]:
    """The suites of a request. Raises `UsageError` where none is named, or a task that none of them has."""
    if not request.suites:
        raise UsageError(f"no suite was named; type --suite NAME, there are: {', '.join(sorted(plugins.suites))}")
    suites = list({suite.name: suite for suite in map(plugins.suite, request.suites)}.values())
    all_known(request.tasks, suites)
    return suites


def tasks_of(suite: Suite, names: Sequence[str], data_request: DataRequest) -> list[Task]:
    """The tasks of a suite that were named, with or without its prefix, or folders; all of them if none was.

    Raises `UsageError` for data that the suite does not have, or a folder that is not there or not in its layout.
    """
    folders = [name for name in names if not _names(name, suite) and _is_folder(name)]
    suite_names = [name for name in names if _names(name, suite)]
    tasks: list[Task] = []
    places: dict[str, str] = {}
    for name in folders:
        if suite.folder is None:
            raise UsageError(f"suite {suite.name} takes no folder of your own as --task; found {name}")
        task = suite.folder(Path(name).expanduser())
        if places.setdefault(task.id, name) != name:
            both = f"{places[task.id]} and {name}"
            raise UsageError(f"found {both}, which would both be called {task.id}; rename one, or run them apart")
        tasks.append(task)
    if suite_names or not names:
        data = data_request.data
        if data not in suite.data:
            offer = f"--data {suite.data[0]}" if suite.data else "another suite"
            also = ", or a folder of your own by --task path/to/folder" if suite.folder else ""
            raise UsageError(f"suite {suite.name} has no {data} data in this release; type {offer}{also}")
        for name in suite_names:
            _of_this_data(name, data, data_request.world)
            if not _names(name, suite, data):
                available = next(kind for kind in suite.data if _names(name, suite, kind))
                raise UsageError(
                    f"found --task {name}, which {suite.name} has not in {data} data; type --data {available}"
                )
        task_names = (
            [part for name in suite_names for part in _names(name, suite, data)]
            if suite_names
            else suite.task_names(data)
        )
        tasks += [_load(suite, name, data_request) for name in task_names]
    return list({(task.data, task.id): task for task in tasks}.values())


def _of_this_data(name: str, data: str, world: str) -> None:
    """Refuse a task by its full name in mini data (`mini-few-names/mrtydi/sw`) where the run reads other data."""
    from bench.data.mini.settings import variant

    mark, read = name.removesuffix(bare(name)).rstrip("/"), variant(world).corpus if data == "mini" else data
    if mark and mark != read:
        world_name = mark.partition("-")[2] or "default"
        raise UsageError(
            f"found --task {name}, but this run reads {read} data; type --data mini --set mini.world={world_name}, or "
            f"leave {mark}/ out"
        )


def _dev(system: System, suite: Suite, tasks: Sequence[Task], data_request: DataRequest) -> dict[str, Task]:
    """Load the dev questions of tasks, where a system chooses a weight by them and the suite has some."""
    if not system.chooses_weight or suite.dev is None:
        return {}
    names = {task.id: bare(task.id).removeprefix(f"{suite.name}/") for task in tasks if task.data != "local"}
    dev_names = (suite.dev_names or suite.task_names)(data_request.data)
    return {identity: suite.dev(name, data_request) for identity, name in names.items() if name in dev_names}


def _load(suite: Suite, name: str, data_request: DataRequest) -> Task:
    """Return a task, or the dev questions of one. Raises `PluginError` for a mini task whose id does not say so."""
    bare_name, is_dev = name.removesuffix(DEV), name.endswith(DEV)
    task = suite.dev(bare_name, data_request) if is_dev and suite.dev else suite.load(bare_name, data_request)
    if data_request.data == "mini" and task.id == bare(task.id):
        raise PluginError(
            where=f"suite {suite.name}", found=f"task {task.id!r} of mini data", expected=f"the id 'mini/{task.id}'"
        )
    return task


def _names(name: str, suite: Suite, data: str | None = None) -> tuple[str, ...]:
    """The suite's tasks that a name means: itself, those below it (`cqadupstack`), or dev questions (`sw@dev`)."""
    bare_name = bare(name).removeprefix(f"{suite.name}/")
    kinds = (data,) if data else suite.data
    if bare_name.endswith(DEV):
        names = suite.dev_names or suite.task_names
        known_names = [task for kind in kinds for task in names(kind)] if suite.dev else []
        return (bare_name,) if bare_name.removesuffix(DEV) in known_names else ()
    known_names = [task for kind in kinds for task in suite.task_names(kind)]
    return tuple(dict.fromkeys(task for task in known_names if task == bare_name or task.startswith(f"{bare_name}/")))


def all_known(names: Sequence[str], suites: Sequence[Suite]) -> None:
    """Refuse a task name that no suite of the run has."""
    known_names = [name for suite in suites for kind in suite.data for name in suite.task_names(kind)]
    for name in names:
        if not any(_names(name, suite) for suite in suites) and not _is_folder(name):
            path = " There is no folder of that name either." if "/" in name else ""
            raise UsageError(
                f"no task {name!r}{did_you_mean(name, known_names)}{path} There are: {', '.join(known_names)}."
            )
