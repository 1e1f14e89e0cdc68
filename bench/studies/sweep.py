"""Sweeps: every method gets as many trials on dev questions, over its own search space, and all trials are recorded.

The first trial is always the settings as they are without a sweep. The others are sampled uniformly (Bergstra and
Bengio 2012, "Random Search for Hyper-Parameter Optimization"), one after the other from one seeded generator, so that
eight trials are the first eight of sixteen; a small finite space is sampled without replacement. The highest score
wins, the first of equal ones.

A training that collapses is stopped, and its trial counts as failed, as one does whose loss is no number: unless
`--stop-when` says otherwise, `train.stop_when=collapsed` is fixed in all trials of the methods that it can stop. All
trainings come first, so that nothing is encoded by one that failed.
"""

from __future__ import annotations

import math
import random
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice, product
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any, get_args

from bench.config.fields import LayerValue, build, leaves_of
from bench.config.layers import dump
from bench.config.layers import identity as identity_of
from bench.config.profiles import DEFAULT, profile
from bench.config.request import Request
from bench.config.spaces import Choice, LogUniform, Space, parse_space
from bench.core.errors import StoreError, UsageError
from bench.core.files import digest, explain, write_bytes, write_sealed
from bench.core.messages import bare, literal, shown
from bench.evaluation.results import headline
from bench.evaluation.tables import Column, Table, duration, percent
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.graph import SubsetStages
from bench.pipeline.plan import Plan, plan
from bench.pipeline.run import Failure, at_work, execute, refuse_unready
from bench.pipeline.settings import STOP, variants
from bench.plugins import Owned, Plugins
from bench.store.graph import Listener, closure
from bench.store.stage import Stage
from bench.store.store import Store
from bench.studies.dev_questions import is_test_folder, require_dev, require_one
from bench.training.config import NEVER, StopWhen
from bench.types import GridCell, Method, Preset, Suite

SCHEMA = "retrieval-bench/sweep/1"
SPLIT = "dev"
RULE = "highest average of the suite's headline measure on dev, the first of equal ones"
_PRESET = "sweep"
_DIGITS = 4
_MAX_COMBINATIONS = 100_000
"""Spaces of up to so many combinations are listed, so that none is sampled twice."""
_MOST_DRAWS = 100  # for each trial, until a method takes one
_SHARED_STAGES = ("validate", "read", "prepare", "init")
"""Stages that rest on no setting of a method."""

Values = Mapping[str, Any]
"""Settings of a method by key, without the prefix `method.`."""


@dataclass(frozen=True)
class Trial:
    """One choice of settings and its scores on dev questions."""

    number: int  # from 0, which is the settings as they are without a sweep
    values: Values  # the sampled ones; empty for trial 0
    score: float | None  # average on dev, a fraction; None where the training failed
    tasks: Mapping[str, float]  # the value on every task
    seconds: float  # of the stages that rest on these settings, as long as they took when they ran
    keys: Mapping[str, Mapping[str, str]]  # of the artefacts, by task (and subset) and stage
    failed: str = ""  # why it has no score, in a sentence; empty where it has one


def draw(
    space: Mapping[str, Space],
    defaults: Values,
    trials: int,
    seed: int,
    accepts: Callable[[Values], bool] = lambda _: True,
) -> list[dict[str, Any]]:
    """Sample the trials of a method.

    Args:
        space: what is searched, by key.
        defaults: the values without a sweep.
        trials: how many at most; fewer are returned where the space has fewer combinations.
        seed: the same one always samples the same trials, and fewer trials are the first ones of more.
        accepts: whether a method takes settings; others are drawn in the place of those that it does not.

    Returns:
        Settings by key, the first of them empty, which stands for the defaults.
    """
    rng = random.Random(seed)  # noqa: S311 (nothing secret)
    choices = {key: axis.values for key, axis in sorted(space.items()) if isinstance(axis, Choice)}
    if len(choices) == len(space) and math.prod(map(len, choices.values())) <= _MAX_COMBINATIONS:
        cells = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
        changed = [cell for cell in cells if any(cell[key] != defaults.get(key) for key in cell) and accepts(cell)]
        return [{}, *rng.sample(changed, min(len(changed), trials - 1))]
    samples = ({key: _sample(space[key], rng) for key in sorted(space)} for _ in range(_MOST_DRAWS * trials))
    return [{}, *islice(filter(accepts, samples), trials - 1)]


def _sample(space: Space, rng: random.Random) -> Any:
    """Sample one value; numbers have four significant digits, so that a file and a table print them in full."""
    if isinstance(space, Choice):
        return rng.choice(space.values)
    if isinstance(space, LogUniform):
        number = math.exp(rng.uniform(math.log(space.low), math.log(space.high)))
    else:
        number = rng.uniform(space.low, space.high)
    return min(max(float(f"{number:.{_DIGITS}g}"), space.low), space.high)


def best(trials: Sequence[Trial]) -> Trial:
    """Choose by `RULE` among trials of which one has a score at least."""
    scored = [trial for trial in trials if trial.score is not None]
    return max(scored, key=lambda trial: (trial.score, -trial.number))


@dataclass(frozen=True)
class Sweep:
    """The trials of one method, in the order in which they were sampled."""

    method: str
    trials: tuple[Trial, ...]
    chosen: int  # the number of the best one
    config: Path  # the settings file for `bench run --config`
    record: Path  # the sealed file of all trials

    def table(self, suite: Suite) -> Table:
        """Lay out one row a trial, the chosen one marked."""

        def setting(trial: Trial, key: str) -> str:
            return shown(trial.values[key]) if key in trial.values else "as it is"

        columns = (
            Column("trial", "", False, value=lambda trial: f"{trial.number}{' *' * (trial.number == self.chosen)}"),
            *(
                Column(key, number=True, value=lambda trial, key=key: setting(trial, key))  # type: ignore[misc]
                for key in dict.fromkeys(key for trial in self.trials for key in trial.values)
            ),
            Column(
                "score",
                f"{suite.primary} on dev, percent",
                True,
                value=lambda trial: "failed" if trial.score is None else percent(trial.score),
            ),
            Column("time", "", True, value=lambda trial: duration(trial.seconds)),
        )
        return Table.from_items(f"{self.method} on {suite.name}", columns, self.trials)


@dataclass(frozen=True)
class SweepPlan:
    """A sweep before anything has run."""

    request: Request
    plan: Plan  # of all trials of all methods
    bases: Mapping[str, BaseSettings]  # of the methods, by name
    draws: Mapping[str, Sequence[Values]]  # the trials by method
    suite: Suite  # as it is; the plan holds its dev tasks
    trials: int  # how many were asked for
    warnings: tuple[str, ...]  # sentences for people


def prepare(request: Request, trials: int, plugins: Plugins, store: Store, space: Sequence[str] = ()) -> SweepPlan:
    """Sample the trials and plan all of them at once, so that they share whatever rests on none of their settings.

    Args:
        request: of one suite, regime and seed, which also samples the trials.
        trials: how many for each method.
        plugins: what is installed.
        store: where stages are kept.
        space: what settings are drawn from in place of the methods' own spaces, or besides: `learning_rate=2e-5..5e-4`.

    Raises:
        UsageError: several suites, regimes or seeds, no dev questions, a grid as preset, a space of no setting or of
            values that a method does not take; and as `plan` does.
    """
    suite = _one_suite(request, plugins)
    bases = {base.method.name: base for base in _base_settings(request, plugins)}
    spaces = list(map(parse_space, space))
    if repeated := next((key for key, count in Counter(key for key, _ in spaces).items() if count > 1), None):
        raise UsageError(found=f"--space {repeated} twice", expected="one space for a setting")
    bases = _with_spaces(bases, dict(spaces))
    if any(base.stops == "default" for base in bases.values()):
        request = replace(request, sets=(*request.sets, f"{STOP}=collapsed"))
    draws, methods, warnings = {}, {}, []
    for name, base in bases.items():
        draws[name] = draw(base.space, base.values, trials, request.seed, base.accepts)
        if len(draws[name]) < trials:
            kind = "combinations" if base.space else "settings to search"
            warnings.append(f"{name}: {len(draws[name])} instead of {trials} trials, for it has no more {kind}")
        cells = tuple(GridCell(str(number), values) for number, values in enumerate(draws[name]))
        preset = Preset(base.preset, "bench sweep", "", cells, suite=suite.name)
        methods[name] = replace(base.method, presets={_PRESET: preset})
    # Plugins with the suite's dev questions in place of its test, and with the trials as a preset of each method.
    load: Callable[..., Any] = suite.dev or suite.load
    dev = replace(suite, load=load, task_names=suite.dev_names or suite.task_names)
    owners = {name: replace(owned, value=methods.get(name, owned.value)) for name, owned in plugins.methods.items()}
    suites: dict[str, Owned[Suite]] = {**plugins.suites, suite.name: replace(plugins.suites[suite.name], value=dev)}
    on_dev = replace(plugins, methods=MappingProxyType(owners), suites=MappingProxyType(suites))
    grid = replace(request, methods=tuple(draws), suites=(suite.name,), preset=_PRESET, label=None)
    ready = plan(grid, on_dev, store)
    _refuse_several(ready)
    without = dict.fromkeys(
        f"{cell.system.partition('@')[0]} is not swept on {cell.suite}: {cell.reason}" for cell in ready.refused
    )
    if not ready.cells:
        raise UsageError(found="nothing to sweep", expected="a method on dev questions", hint="; ".join(without))
    warnings += without
    return SweepPlan(request, ready, bases, draws, suite, trials, (*warnings, *ready.warnings))


def _refuse_several(ready: Plan) -> None:
    """Raise `UsageError` where a trial is several systems, or one that has no place in the grid of trials."""
    trials = [cell for cell in ready.cells if not cell.system.untrained]
    counted = Counter((cell.system.method.name, cell.system.grid and cell.system.grid.cell) for cell in trials)
    several = [
        cell.system.label
        for cell in trials
        if cell.system.grid is None or counted[cell.system.method.name, cell.system.grid.cell] > 1
    ]
    if several:
        raise UsageError(
            found=f"trials that are several systems, or none as trained ({', '.join(several[:3])}, …)",
            expected="one each",
            hint="leave --rerank, --readout, post.kind and curve.points out",
        )


def run(
    ready: SweepPlan, plugins: Plugins, store: Store, listener: Listener, out: Path
) -> tuple[list[Sweep], dict[str, str]]:
    """Run all trials, choose, and write a settings file and a record for each method below `out`.

    Returns:
        The sweeps, and why others came to nothing, by method: all their trials failed.

    Raises:
        StoreError: a file cannot be written.
        UsageError: all trials of all methods failed; and as `bench.pipeline.run.refuse_unready` and stages do.
    """
    refuse_unready(ready.plan, store, out, "--out")
    with at_work(ready.plan, store):
        failed = {id(failure.cell): failure.reason for failure in _execute(ready.plan, plugins, store, listener)}
        by_method = _read_trials(ready, failed, store)
    sweeps, without = list[Sweep](), dict[str, str]()
    for name, trials in by_method.items():
        if all(trial.failed for _, trial in trials):
            without[name] = f"all {len(trials)} trials failed; the first one said: {trials[0][1].failed}"
        else:
            sweeps.append(_keep(ready, trials, out))
    if not sweeps:
        raise UsageError("; ".join(f"{name}: {reason}" for name, reason in without.items()))
    return sweeps, without


def _read_trials(
    ready: SweepPlan, failed: Mapping[int, str], store: Store
) -> dict[str, list[tuple[ExperimentCell, Trial]]]:
    """Read the trials of all methods, by method; `failed` says why cells came to nothing, by their identity."""
    by_method: dict[str, list[tuple[ExperimentCell, Trial]]] = {}
    for cell, subsets in zip(ready.plan.cells, ready.plan.subsets, strict=True):
        if cell.system.grid is None:  # the start of a training, which every run brings along
            continue
        trial = _read_trial(cell, subsets, ready, store, failed.get(id(cell), ""))
        by_method.setdefault(cell.system.method.name, []).append((cell, trial))
    return by_method


def _execute(todo: Plan, plugins: Plugins, store: Store, listener: Listener) -> list[Failure]:
    """Run all trainings, and then what rests on none that failed; return the trials that did."""
    rests_on = [{item.key: item for item in closure([subset.score for subset in subsets])} for subsets in todo.subsets]
    trained = [[item for item in items.values() if item.name == "train"] for items in rests_on]
    before = {item.key for item in closure([item for items in trained for item in items])}
    first = replace(todo, steps=tuple(step for step in todo.steps if step.stage.key in before))
    failed = {id(failure.cell): failure for failure in execute(first, plugins, store, listener)}
    for cell, items in zip(todo.cells, trained, strict=True):
        if id(cell) not in failed and (reason := _stopped([*items], store)) and cell.system.grid is not None:
            failed[id(cell)] = Failure(cell, reason)
    wanted = {
        key for cell, items in zip(todo.cells, rests_on, strict=True) if id(cell) not in failed for key in items
    } - before
    execute(
        replace(todo, steps=tuple(step for step in todo.steps if step.stage.key in wanted)), plugins, store, listener
    )
    return [*failed.values()]


def _stopped(trainings: Sequence[Stage], store: Store) -> str:
    """Return where and why a training ended before its budget did, empty where none has."""
    for item in trainings:
        stored = store.open(item)
        if stored is not None and (stop := stored.metadata.get("stopped")):
            return f"stopped at {100 * stop['share']:.3g} % of its budget: {stop['why']}"
    return ""


def _one_suite(request: Request, plugins: Plugins) -> Suite:
    """Return the suite of a sweep, which has dev questions; refuse the test part of a folder of the user's."""
    options = {"suite": request.suites, "regime": request.regimes, "seed": request.seeds}
    require_one(options, "a sweep chooses settings for one")
    if not request.methods or not request.suites:
        missing = "--method NAME" if not request.methods else "--suite NAME"
        raise UsageError(f"a sweep needs methods and a suite; type {missing}")
    suite = plugins.suite(request.suites[0])
    require_dev(suite, plugins, "settings chosen on the test would make its numbers worthless")
    dev_tasks = {name for data in suite.data for name in (suite.dev_names or suite.task_names)(data)}
    for name in request.tasks:
        folder = name.rpartition(":")[0]
        if bare(name).removeprefix(f"{suite.name}/") not in dev_tasks and is_test_folder(name, suite):
            raise UsageError(
                f"found --task {name}, whose test part a sweep must not see; name another part, e.g. "
                f"--task {folder or name}:dev"
            )
    return suite


@dataclass(frozen=True)
class BaseSettings:
    """The settings of a method before its trials, by key."""

    method: Method
    preset: Values  # of profile and preset
    values: Values  # of every key without a sweep
    fixed: Values  # by `--set` or a file
    harness_values: Values  # of the harness, by a file or `--set`: key → value
    stops: str  # what says when its training stops (`default`, `--set`, …); empty where nothing can
    typed: Mapping[str, Space] = field(default_factory=dict)  # spaces that the user names

    @property
    def space(self) -> dict[str, Space]:
        """What is searched: the method's space without what the user has fixed, and the spaces that the user names."""
        return {key: space for key, space in {**self.method.space, **self.typed}.items() if key not in self.fixed}

    def accepts(self, values: Values) -> bool:
        """Return whether the method takes a trial's settings: a rule between several may refuse some."""
        return not self.faults(values)

    def faults(self, values: Values, origin: str = "") -> list[str]:
        """Return why the method does not take a trial's settings, which come from `origin`."""
        rows = [LayerValue(key, value, origin) for key, value in {**self.values, **values}.items()]
        return build(self.method.config, rows)[1]

    def typed_value(self, key: str, value: Any) -> Any:
        """Return a typed value, nothing for `none` where the setting takes nothing and no such text."""
        is_nothing = value == "none" and not self.accepts({key: value}) and self.accepts({key: None})
        return None if is_nothing else value

    def is_whole(self, key: str) -> bool:
        """Return whether a setting is a whole number, or one or nothing."""
        kinds = {*get_args(annotation := leaves_of(self.method.config)[key].annotation)} or {annotation}
        return int in kinds and float not in kinds


def _with_spaces(bases: Mapping[str, BaseSettings], typed: Mapping[str, Space]) -> dict[str, BaseSettings]:
    """Return settings with the spaces that the user names, each of the methods that have its key.

    Raises:
        UsageError: a key that no method has, one that is fixed as well, or values that a method does not take.
    """
    searched: dict[str, dict[str, Space]] = {name: {} for name in bases}
    for key, typed_space in typed.items():
        having = {name: base for name, base in bases.items() if key in base.values}
        if not having:
            known = dict.fromkeys(key for base in bases.values() for key in base.values)
            of = ", ".join(bases)
            raise UsageError(found=f"--space {key}", expected=f"a setting of {of}", hint=", ".join(sorted(known)))
        for name, base in having.items():
            if key in base.fixed:
                raise UsageError(found=f"--space {key} and --set method.{key}", expected="one of them")
            space = typed_space
            if isinstance(typed_space, Choice):
                space = Choice(tuple(base.typed_value(key, value) for value in typed_space.values))
            elif base.is_whole(key):
                ends = f"{typed_space.low:g},{typed_space.high:g}"
                raise UsageError(
                    found=f"a range of {key}, a whole number",
                    expected=f"its values: --space {key}={ends}, with those between them that are to be tried",
                )
            searched[name][key] = space
            values = space.values if isinstance(space, Choice) else (space.low, space.high)
            for value in values:
                if faults := base.faults({key: value}, "--space"):
                    raise UsageError(
                        found=f"--space {key} with {value}",
                        expected=f"values of {name}",
                        hint=f"{faults[0]}; bench show {name}",
                    )
    return {name: replace(base, typed=searched[name]) for name, base in bases.items()}


def _base_settings(request: Request, plugins: Plugins) -> list[BaseSettings]:
    """Resolve the settings of every method without a sweep. Raises `UsageError` for an unknown preset or a grid."""
    methods = list({method.name: method for method in map(plugins.method, request.methods)}.values())
    preset = request.preset.rpartition("/")[2] if request.preset else None
    systems = variants(request, methods, preset, profile(request.profile or DEFAULT))
    if len(systems) > len(methods):
        raise UsageError(f"found --preset {request.preset}, which is a grid; name one cell: {request.preset}=CELL")
    bases = []
    for system in systems:
        rows = [row for row in system.resolved.rows() if row.key.startswith("method.")]
        values = {row.key.removeprefix("method."): row.value for row in rows}
        fixed = {row.key.removeprefix("method.") for row in rows if row.typed}
        default = {row.key.removeprefix("method.") for row in rows if row.origin == "default"}
        of_preset = {key: value for key, value in values.items() if key not in fixed | default}
        stops = next((row.origin for row in system.resolved.shared_rows(system.method.config) if row.key == STOP), "")
        held = {key: values[key] for key in values if key in fixed}
        harness_values = {
            row.key: row.value
            for row in system.resolved.rows()
            if not row.key.startswith("method.") and row.key != STOP and row.typed
        }
        bases.append(BaseSettings(system.method, of_preset, values, held, harness_values, stops))
    return bases


def _read_trial(
    cell: ExperimentCell, subsets: Sequence[SubsetStages], ready: SweepPlan, store: Store, failed: str
) -> Trial:
    """Read a trial's scores and times from the store."""
    assert cell.system.grid is not None  # noqa: S101 (for the type checker)
    number, measure = int(cell.system.grid.cell), ready.suite.primary
    values = ready.draws[cell.system.method.name][number]
    keys = {
        f"{subset.task.id}/{subset.subset.name}".rstrip("/"): {
            name: stage.key for name, stage in subset.by_name.items()
        }
        for subset in subsets
    }
    if failed:
        return Trial(number, values, None, {}, 0.0, keys, failed)
    tasks: dict[str, dict[str, Any]] = {}
    seconds: dict[str, float] = {}
    for subset in subsets:
        artefact = store.open(subset.score)
        if artefact is None:
            raise StoreError(f"the scores of {subset.score.title} vanished from {store.root}; type the command again")
        tasks.setdefault(subset.task.id, {})[subset.subset.name] = {"measures": artefact.metadata["measures"]}
        for stage in subset.stages:
            stored = store.open(stage)
            if stored is not None and stage.name not in _SHARED_STAGES:
                seconds[stage.key] = stored.seconds
    _, score = headline(
        {name.removesuffix(f"@{SPLIT}"): task for name, task in tasks.items()}, ready.suite.macros, measure
    )
    means = {name: fmean(subset["measures"][measure] for subset in task.values()) for name, task in tasks.items()}
    return Trial(number, values, score, means, round(sum(seconds.values()), 3), keys)


def _keep(ready: SweepPlan, cells: Sequence[tuple[ExperimentCell, Trial]], out: Path) -> Sweep:
    """Choose the best trial of a method, and write its settings file and the record of all trials."""
    trials = [trial for _, trial in cells]
    winner = best(trials)
    cell = next(cell for cell, trial in cells if trial is winner)
    system, suite = cell.system, ready.suite
    name, folder, seed = system.method.name, out / suite.name, ready.plan.experiment.seed
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "method": {"name": name, "version": system.method.version},
        "suite": {"name": suite.name, "version": suite.version},
        "data": cell.data,
        "regime": cell.regime,
        "split": SPLIT,
        "tasks": [task.id for task in cell.tasks],
        "measure": suite.primary,
        "rule": RULE,
        "seed": seed,
        "asked": ready.trials,
        "space": {
            key: {"kind": type(space).__name__, **asdict(space)} for key, space in ready.bases[name].space.items()
        },
        "fixed": dict(ready.bases[name].fixed),
        "preset": ready.request.preset,
        "choices": {key: value for key, value in system.choices.items() if key != "config"},
        "trials": [
            {key: value for key, value in asdict(trial).items() if key != "failed" or value} for trial in trials
        ],
        "chosen": winner.number,
        "config": dump(system.resolved.method),
    }
    tuning = {
        "method": name,
        "config": digest(identity_of(system.resolved.method)),
        "trials": len(trials),
        "seed": seed,
        "suite": suite.name,
        "data": cell.data,
        "split": SPLIT,
        "rule": RULE,
        "record": digest(record),
    }
    sweep = Sweep(name, tuple(trials), winner.number, folder / f"{name}.toml", folder / f"{name}.json")
    try:
        write_sealed(sweep.record, record)
        write_bytes(sweep.config, _toml(ready, sweep, tuning, system.resolved.run.train.stop_when).encode())
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {explain(error)}; the trials are kept, type it again") from error
    return sweep


def _toml(ready: SweepPlan, sweep: Sweep, tuning: Values, stop_when: StopWhen) -> str:
    """Return the chosen settings as a file for `--config`, with what the user has fixed and how they were chosen."""
    base, winner = ready.bases[sweep.method], sweep.trials[sweep.chosen]
    values = {**base.fixed, **winner.values}
    of_request = ready.request
    typed = {
        "method": sweep.method,
        "suite": ready.suite.name,
        "task": ",".join(name.removesuffix(f"@{SPLIT}").removesuffix(f":{SPLIT}") for name in of_request.tasks),
        "regime": ",".join(of_request.regimes),
        **{name: getattr(of_request, name) for name in ("profile", "data", "preset")},
        **({name: getattr(of_request, name) for name in ("backbone", "corpus")} if base.method.trains else {}),
        "config": str(sweep.config),
    }
    command = ["bench", "run", *(word for name, text in typed.items() if text for word in (f"--{name}", text))]
    nothing = {f"method.{key}": value for key, value in values.items() if value is None}  # TOML has no null
    for key, value in {**base.harness_values, **nothing}.items():
        command += ["--set", f"{key}={'' if value is None else literal(value)}"]
    of_trials = f"{winner.number} of {len(sweep.trials)} (counted from 0)"
    lines = [
        f"# Trial {of_trials} on dev questions: {winner.score:.4f}; see {sweep.record.name}.",
        f"# To use it: {shlex.join(command)}",
        "",
        "[method]",
        *(f"{key} = {literal(value)}" for key, value in values.items() if value is not None),
        "",
        *(("[train]", f'stop_when = "{stop_when}"', "") if stop_when != NEVER else ()),
        "[tuning]",
        *(f"{key} = {literal(value)}" for key, value in tuning.items()),
    ]
    return "\n".join(lines) + "\n"
