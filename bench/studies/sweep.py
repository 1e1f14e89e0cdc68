"""Sweeps: every method gets as many trials on dev questions, over its own search space, and all trials are recorded.

The first trial is always the settings as they are without a sweep. The others are drawn plainly at random (Bergstra and
Bengio 2012), one after the other from one seeded generator, so that eight trials are the first eight of sixteen; a
space of few values is drawn from without repeats. The highest score wins, the first of equal ones.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

from bench.config.grids import is_default_layer
from bench.config.layers import dump
from bench.config.layers import identity as decisive
from bench.config.profiles import DEFAULT, profile
from bench.config.request import Request
from bench.config.spaces import Choice, LogUniform, Space
from bench.core.errors import StoreError, UsageError
from bench.core.files import digest, explain, write_bytes, write_sealed
from bench.core.messages import bare, shown
from bench.evaluation.grid import Grid, GridRun
from bench.evaluation.results import headline
from bench.evaluation.tables import Column, Table, duration, percent
from bench.pipeline.legs import LegStages
from bench.pipeline.plan import Plan, plan
from bench.pipeline.run import carry_out
from bench.pipeline.selection import Cell
from bench.pipeline.settings import variants
from bench.plugins import Owned, Plugins
from bench.store.graph import Listener
from bench.store.store import Store
from bench.types import GridCell, Method, Preset, Suite

SCHEMA = "retrieval-bench/sweep/1"
SPLIT = "dev"
_PRESET = "sweep"
RULE = "highest average of the suite's headline measure on dev, the first of equal ones"
_DIGITS = 4
_FINITE = 100_000
"""Spaces of up to so many combinations are listed, so that none is drawn twice."""

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Trial:
    """One choice of settings."""

    number: int  # from 0, which is the settings as they are without a sweep
    values: Values  # what was drawn, by config key
    score: float | None  # average on dev, a fraction; None where the training failed
    tasks: Mapping[str, float]  # its value on every task
    seconds: float  # of the stages that rest on these settings, as long as they took when they ran
    keys: Mapping[str, Mapping[str, str]]  # of the artefacts, by task (and leg) and stage
    failed: str = ""  # why it has no score, in a sentence; empty where it has one


def draw(space: Mapping[str, Space], defaults: Values, trials: int, seed: int) -> list[dict[str, Any]]:
    """Draw at most so many trials of a method; fewer where the space has fewer combinations.

    Space and defaults (the values without a sweep) are by config key, and so is what is returned; the first trial is
    empty, which is the defaults. The same seed always draws the same trials, and fewer trials are the first ones of
    more.
    """
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    names = sorted(space)
    choices = [one.values for name in names if isinstance(one := space[name], Choice)]
    finite = len(choices) == len(names) and math.prod(map(len, choices)) <= _FINITE
    if finite:
        others = [dict(zip(names, values, strict=True)) for values in product(*choices)] if names else []
        others = [one for one in others if any(one[name] != defaults.get(name) for name in names)]
        return [{}, *chance.sample(others, min(len(others), trials - 1))] if others else [{}]
    return [{}, *({name: _value(space[name], chance) for name in names} for _ in range(trials - 1))]


def _value(space: Space, chance: random.Random) -> Any:
    """Draw one value; numbers have four significant digits, so that a file and a table say them as they were."""
    if isinstance(space, Choice):
        return chance.choice(space.values)
    if isinstance(space, LogUniform):
        number = math.exp(chance.uniform(math.log(space.low), math.log(space.high)))
    else:
        number = chance.uniform(space.low, space.high)
    return min(max(float(f"{number:.{_DIGITS}g}"), space.low), space.high)


def best(trials: Sequence[Trial]) -> Trial:
    """Choose by the rule. Raises `UsageError` where no trial has a score."""
    scored = [trial for trial in trials if trial.score is not None]
    if not scored:
        raise UsageError(f"all {len(trials)} trials failed; the first one said: {trials[0].failed}")
    return max(scored, key=lambda trial: (trial.score, -trial.number))


@dataclass(frozen=True)
class Sweep:
    """What came of the trials of one method, in the order in which they were drawn."""

    method: str
    trials: tuple[Trial, ...]
    chosen: int  # the number of the best one
    config: Path  # the settings file for `bench run --config`
    record: Path  # the sealed file of all trials

    def table(self, suite: Suite) -> Table:
        """One row a trial, the chosen one marked."""

        def drawn(trial: Trial, key: str) -> str:
            return shown(trial.values[key]) if key in trial.values else "as it is"

        trials = {str(trial.number): trial for trial in self.trials}
        grid = Grid(tuple(GridRun(self.method, name, 0, one.score, one.failed) for name, one in trials.items()))
        columns = (
            Column("trial", "", False, value=lambda name: f"{name} *" if int(name) == self.chosen else name),
            *(
                Column(key, number=True, value=lambda name, key=key: drawn(trials[name], key))  # type: ignore[misc]
                for key in dict.fromkeys(key for trial in self.trials for key in trial.values)
            ),
            Column(
                "score",
                f"{suite.primary} on dev, percent",
                True,
                value=lambda name: "failed" if (mean := grid.mean(name)) is None else percent(mean),
            ),
            Column("time", "", True, value=lambda name: duration(trials[name].seconds)),
        )
        return grid.by_cell(f"{self.method} on {suite.name}", *columns)


@dataclass(frozen=True)
class Ready:
    """A sweep before anything has run."""

    request: Request
    plan: Plan  # of all trials of all methods
    bases: Mapping[str, _Base]  # the methods before their trials, by name
    draws: Mapping[str, Sequence[Values]]  # the trials by method
    suite: Suite  # as it is; the plan holds its dev tasks
    trials: int  # that were asked for
    warnings: tuple[str, ...]  # sentences for people


def prepare(request: Request, trials: int, plugins: Plugins, store: Store) -> Ready:
    """Draw the trials and plan all of them at once, so that they share whatever rests on none of their settings.

    Of one suite, setting and seed, which also draws the trials. Raises `UsageError` for several, or no dev questions.
    """
    suite = _suite(request, plugins)
    bases = {base.method.name: base for base in _bases(request, plugins)}
    draws, wide, warnings = {}, {}, []
    for name, base in bases.items():
        draws[name] = draw(base.space, base.values, trials, request.seed)
        if len(draws[name]) < trials:
            what = "combinations" if base.space else "settings to search"
            warnings.append(f"{name}: {len(draws[name])} instead of {trials} trials, for it has no more {what}")
        wide[name] = base.with_trials(draws[name], suite.name)
    asked = replace(request, methods=tuple(draws), suites=(suite.name,), preset=_PRESET, label=None)
    ready = plan(asked, _on_dev(plugins, suite, wide), store)
    return Ready(request, ready, bases, draws, suite, trials, (*warnings, *ready.warnings))


def run(ready: Ready, plugins: Plugins, store: Store, listener: Listener, out: Path) -> list[Sweep]:
    """Run all trials, choose, write a settings file and a record a method. Raises `StoreError`, `UsageError`."""
    todo = ready.plan
    failed = {id(one.cell): one.reason for one in carry_out(todo, plugins, store, listener)}
    found: dict[str, list[tuple[Cell, Trial]]] = {}
    for cell, legs in zip(todo.cells, todo.legs, strict=True):
        grid = cell.system.grid
        if grid is None:  # the start of a training, which every run brings along
            continue
        drawn = ready.draws[cell.system.method.name]
        trial = _trial(int(grid.cell), drawn, legs, ready.suite, store, failed.get(id(cell), ""))
        found.setdefault(cell.system.method.name, []).append((cell, trial))
    return [_keep(ready, trials, out) for trials in found.values()]


def _suite(request: Request, plugins: Plugins) -> Suite:
    """Return the one suite of a sweep, which has dev questions; refuse the test part of a folder of the user's."""
    many = {"--suite": request.suites, "--setting": request.settings, "--seed": request.seeds}
    for option, values in many.items():
        if len(values) > 1:
            raise UsageError(f"found {option} {','.join(map(str, values))}; a sweep chooses settings for one, name one")
    if not request.methods or not request.suites:
        missing = "--method NAME" if not request.methods else "--suite NAME"
        raise UsageError(f"a sweep needs methods and a suite; type {missing}")
    suite = plugins.suite(request.suites[0])
    if suite.dev is None:
        others = sorted(name for name, owned in plugins.suites.items() if owned.value.dev)
        raise UsageError(
            f"suite {suite.name} has no questions besides its test, and settings chosen on the test would make its "
            f"numbers worthless; suites with dev questions: {', '.join(others) or 'none'}"
        )
    known = {name for data in suite.data for name in (suite.dev_names or suite.task_names)(data)}
    for name in request.tasks:
        folder, colon, split = name.rpartition(":")
        own = bare(name).removeprefix(f"{suite.name}/") in known or not Path(folder or name).is_dir()
        if suite.folder and not own and (not colon or split == "test"):
            raise UsageError(
                f"found --task {name}, whose test part a sweep must not see; name another part, e.g. "
                f"--task {folder or name}:dev"
            )
    return suite


@dataclass(frozen=True)
class _Base:
    """A method before its trials; values are by config key."""

    method: Method
    preset: Values  # values of profile and preset
    values: Values  # of every key without a sweep
    mine: Values  # what the user has fixed by `--set` or a file; it leaves the search space

    @property
    def space(self) -> dict[str, Space]:
        return {key: one for key, one in self.method.space.items() if key not in self.mine}

    def with_trials(self, draws: Sequence[Values], suite: str) -> Method:
        cells = tuple(GridCell(str(number), values) for number, values in enumerate(draws))
        return replace(self.method, presets={_PRESET: Preset(self.preset, "bench sweep", "", cells, suite=suite)})


def _bases(request: Request, plugins: Plugins) -> list[_Base]:
    """Resolve the settings of every method without a sweep. Raises `UsageError` for an unknown preset or a grid."""
    methods = list({one.name: one for one in map(plugins.method, request.methods)}.values())
    preset = request.preset.rpartition("/")[2] if request.preset else None
    ready = variants(request, methods, preset, profile(request.profile or DEFAULT))
    if len(ready) > len(methods):
        raise UsageError(f"found --preset {request.preset}, which is a grid; name one cell: {request.preset}=CELL")
    found = []
    for one in ready:
        rows = {row.key.removeprefix("method."): row for row in one.resolved.rows() if row.key.startswith("method.")}
        mine = {key: row.value for key, row in rows.items() if not is_default_layer(row)}
        base = {key: row.value for key, row in rows.items() if row.origin != "default" and is_default_layer(row)}
        found.append(_Base(one.method, base, {key: row.value for key, row in rows.items()}, mine))
    return found


def _on_dev(plugins: Plugins, suite: Suite, methods: Mapping[str, Method]) -> Plugins:
    """The same plugins, with the suite's dev questions in the place of its test, and methods in the place of theirs."""
    load: Callable[..., Any] = suite.dev or suite.load
    names = suite.dev_names or suite.task_names
    dev = replace(suite, load=load, task_names=names)
    shelf = {name: replace(owned, value=methods.get(name, owned.value)) for name, owned in plugins.methods.items()}
    suites: dict[str, Owned[Suite]] = {**plugins.suites, suite.name: replace(plugins.suites[suite.name], value=dev)}
    return replace(plugins, methods=MappingProxyType(shelf), suites=MappingProxyType(suites))


def _trial(
    number: int, draws: Sequence[Values], legs: Sequence[LegStages], suite: Suite, store: Store, failed: str
) -> Trial:
    keys = {
        leg.task.id + (f"/{leg.leg.name}" if leg.leg.name else ""): {
            stage: item.key for stage, item in leg.by_name.items()
        }
        for leg in legs
    }
    if failed:
        return Trial(number, draws[number], None, {}, 0.0, keys, failed)
    tasks: dict[str, dict[str, Any]] = {}
    seconds: dict[str, float] = {}
    for leg in legs:
        artefact = store.open(leg.score)
        if artefact is None:
            raise StoreError(f"the scores of {leg.score.title} vanished from {store.root}; type the command again")
        tasks.setdefault(leg.task.id, {})[leg.leg.name] = {"measures": artefact.facts["measures"]}
        for item in leg.stages:
            made = store.open(item)
            if made is not None and item.name not in _SHARED:
                seconds[item.key] = made.seconds
    plain = {name.removesuffix(f"@{SPLIT}"): one for name, one in tasks.items()}
    _, score = headline(plain, suite.macros, suite.primary)
    values = {name: fmean(leg["measures"][suite.primary] for leg in one.values()) for name, one in tasks.items()}
    return Trial(number, draws[number], score, values, round(sum(seconds.values()), 3), keys)


_SHARED = ("validate", "read", "prepare", "init")
"""Stages that rest on no setting of a method."""


def _keep(ready: Ready, found: Sequence[tuple[Cell, Trial]], out: Path) -> Sweep:
    trials = [trial for _, trial in found]
    winner = best(trials)
    cell = next(cell for cell, trial in found if trial is winner)
    system, suite = cell.system, ready.suite
    name, folder = system.method.name, out / suite.name
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "method": {"name": name, "version": system.method.version},
        "suite": {"name": suite.name, "version": suite.version},
        "data": cell.data,
        "setting": cell.setting,
        "split": SPLIT,
        "tasks": [task.id for task in cell.tasks],
        "measure": suite.primary,
        "rule": RULE,
        "seed": ready.plan.experiment.seed,
        "asked": ready.trials,
        "space": {key: {"kind": type(one).__name__, **asdict(one)} for key, one in ready.bases[name].space.items()},
        "fixed": dict(ready.bases[name].mine),
        "preset": ready.request.preset,
        "choices": {key: value for key, value in system.choices.items() if key != "config"},
        "trials": [{key: one for key, one in asdict(trial).items() if key != "failed" or one} for trial in trials],
        "chosen": winner.number,
        "config": dump(system.resolved.method),
    }
    tuning = {
        "method": name,
        "config": digest(decisive(system.resolved.method)),
        "trials": len(trials),
        "seed": ready.plan.experiment.seed,
        "suite": suite.name,
        "data": cell.data,
        "split": SPLIT,
        "rule": RULE,
        "record": digest(record),
    }
    toml = _toml(ready, name, winner, len(trials), tuning)
    try:
        write_sealed(folder / f"{name}.json", record)
        write_bytes(folder / f"{name}.toml", toml.encode())
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {explain(error)}; the trials are kept, type it again") from error
    return Sweep(name, tuple(trials), winner.number, folder / f"{name}.toml", folder / f"{name}.json")


def _toml(ready: Ready, name: str, winner: Trial, trials: int, tuning: Values) -> str:
    """The settings as a file for `--config`, and how they were chosen; what the user has fixed is in it too."""
    values = {**ready.bases[name].mine, **winner.values}
    command = ["bench run", f"--method {name}", f"--suite {ready.suite.name}", "--config FILE"]
    if ready.bases[name].preset:
        command.append(f"--preset {ready.request.preset}")
    command += [f"--set method.{key}=" for key, value in values.items() if value is None]  # TOML has no nothing
    lines = [
        f"# Trial {winner.number} of {trials} (counted from 0) on dev questions: {winner.score:.4f}; see {name}.json.",
        f"# To use it: {' '.join(command)}",
        "",
        "[method]",
        *(f"{key} = {shown(value)}" for key, value in values.items() if value is not None),
        "",
        "[tuning]",
        *(f"{key} = {shown(value)}" for key, value in tuning.items()),
    ]
    return "\n".join(lines) + "\n"
