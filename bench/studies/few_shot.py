"""Few-shot curves: the same systems tuned on none, on some and on all of the pairs that a setting's recipe names.

A number of pairs is a run of its own with `tune.shots`; 0 is the setting `unsupervised`. The store shares what they
have in common, which is the whole pretraining. A system that the setting has nothing for (BM25) is a level line.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from bench.config.profiles import DEFAULT
from bench.config.request import Request
from bench.core.errors import UsageError
from bench.core.publications import mark
from bench.evaluation.grid import Grid, GridRun
from bench.evaluation.results import headline
from bench.evaluation.svg import Chart, Point, Series
from bench.evaluation.tables import Table, plain_columns
from bench.pipeline.plan import Plan
from bench.pipeline.run import Outcome
from bench.studies.grid import finished
from bench.types import SETTINGS

ALL = "all"
"""All pairs that there are, in place of a number."""
NONE = "0"
"""No pair: the encoder as it was pretrained."""
SETTING = "few-shot"
"""The setting where nobody says another one."""

_KEY = "tune.shots"
_FEW = 3  # tasks that a title has room for
_MADE_UP = "data of the embedded world: comparable with no published numbers"
_SMALL = f"profile {DEFAULT}: what it trains is comparable with no published numbers"


@dataclass(frozen=True)
class CurveValue:
    """What a system came to with a number of pairs and a seed."""

    system: str  # its label
    shots: str  # as asked for: a number, or `all`
    pairs: float  # that there were to learn from, the mean over tasks; 0 where nothing was tuned
    seed: int  # of pretraining, drawing pairs and tuning
    value: float  # the measure, a fraction
    queries: int  # that it is over


@dataclass(frozen=True)
class Curve:
    """Systems by numbers of training pairs."""

    suite: str
    setting: str  # whose pairs
    data: str  # `official`, `mini` and its like, or `local`
    profile: str
    where: str  # a task, an average, or the mean of some tasks, which it names or counts
    measure: str  # the suite's headline measure
    note: str  # what a reader must know; empty where the numbers are comparable with published ones
    values: tuple[CurveValue, ...]  # by number, system and seed

    @property
    def grid(self) -> Grid:
        """Systems by numbers of pairs and seeds."""
        return Grid(tuple(GridRun(one.system, one.shots, one.seed, one.value) for one in self.values))

    @property
    def stem(self) -> str:
        """A file's name that no other suite, setting or choice of tasks has: `beir-scifact-few-shot`."""
        parts = (self.suite,) if self.suite not in self.where else ()
        return re.sub(r"[^A-Za-z0-9._]+", "-", "-".join((*parts, self.where, self.setting)))

    def pairs(self, shots: str) -> float:
        """Return how many pairs there were for a number: the mean over what was tuned."""
        return fmean(one.pairs for one in self.values if one.shots == shots)

    def as_json(self) -> dict[str, Any]:
        """As `bench shots --json` prints it."""
        return {**asdict(self), "values": [asdict(one) for one in self.values]}


def numbers(text: str) -> tuple[str, ...]:
    """Read `100,300,all`: ascending, `all` last, each once. Raises `UsageError` where none is to be tuned on."""
    parts = {part.strip().lower() for part in text.split(",") if part.strip()}
    wrong = sorted(part for part in parts - {ALL} if not (part.isascii() and part.isdigit()))
    counts = sorted({int(part) for part in parts - {ALL} - {*wrong}})
    if wrong or not (parts & {ALL} or any(counts)):
        raise UsageError(
            found=f"--shots {text!r}",
            expected="numbers of pairs, comma-separated, and all for as many as there are: --shots 0,100,300,all",
        )
    return (*map(str, counts), *([ALL] if ALL in parts else []))


def requests(request: Request, shots: Sequence[str]) -> dict[str, Request]:
    """Return the request for every number of pairs (`numbers`).

    Results of 0 and `all` pairs are those of plain runs and lie where theirs do; those of other numbers lie next to
    them (`results-shots/100`), since a result of the setting is one of all its pairs. Raises `UsageError` for several
    settings, one that tunes nothing, or a number given a second time.
    """
    (setting, *others) = request.settings or (SETTING,)
    if others or setting == SETTINGS[0]:
        raise UsageError(
            found=f"--setting {','.join(request.settings)}",
            expected="one that tunes an encoder",
            hint=f"type e.g. --setting {SETTING}",
        )
    if any(one.partition("=")[0].strip() == _KEY for one in request.sets):
        raise UsageError(found=f"--set {_KEY} with --shots", expected="one of them", hint=f"leave --set {_KEY} out")
    root = request.results.resolve()
    apart = root.parent / f"{root.name}-shots"
    found = {}
    for number in shots:
        if number == NONE:
            found[number] = replace(request, settings=SETTINGS[:1])
        elif number == ALL:
            found[number] = replace(request, settings=(setting,), sets=(*request.sets, f"{_KEY}="))  # over a file's
        else:
            sets = (*request.sets, f"{_KEY}={number}")
            found[number] = replace(request, settings=(setting,), sets=sets, results=apart / number)
    return found


def drawable(plans: Mapping[str, Plan]) -> None:
    """Raise `UsageError` for plans (by number of pairs) of nothing tuned, several suites or kinds, or no pairs."""
    tuned = [plan for number, plan in plans.items() if number != NONE]
    if not any(plan.cells for plan in tuned):
        why = dict.fromkeys(f"{one.system} on {one.suite}: {one.reason}" for plan in tuned for one in plan.refused)
        raise UsageError("found nothing to tune, expected a method and a task with training pairs; " + "; ".join(why))
    kinds = {f"{cell.suite.name} ({cell.data} data)" for plan in plans.values() for cell in plan.cells}
    if len(kinds) > 1:
        raise UsageError(found=", ".join(sorted(kinds)), expected="tasks of one suite and kind", hint="draw them apart")
    learnt = {task.id for plan in tuned for cell in plan.cells for task in cell.tasks}
    rest = sorted({task.id for plan in plans.values() for cell in plan.cells for task in cell.tasks} - learnt)
    if rest:
        raise UsageError(
            f"found no training pairs of {', '.join(rest)}, expected some of every task; name other tasks: --task "
            + ",".join(sorted(learnt))
        )


def curve(outcomes: Mapping[str, Outcome]) -> Curve:
    """Lay out finished runs, by number of pairs. Raises `UsageError` if every training failed."""
    values, where = [], ""
    for shots, outcome in outcomes.items():
        for cell, done, _ in finished(outcome):
            if done is None:
                continue
            tasks = {task.id: done.content["tasks"][task.id] for task in cell.tasks}
            name, value = headline(tasks, cell.suite.macros, cell.suite.primary)
            where = name
            if name not in tasks and name not in {one.name for one in cell.suite.macros}:  # the mean of some tasks
                where = f"mean of {', '.join(tasks)}" if len(tasks) <= _FEW else f"{cell.suite.name}, {name}"
            queries = sum(leg["queries"] for legs in tasks.values() for leg in legs.values())
            values.append(CurveValue(cell.system.label, shots, _learnt(tasks), cell.seed, value, queries))
    if not values:
        reasons = dict.fromkeys(failure.reason for outcome in outcomes.values() for failure in outcome.failed)
        raise UsageError(f"found no value to draw, for every training failed: {'; '.join(reasons)}")
    some: Outcome = next(one for number, one in outcomes.items() if number != NONE and one.plan.cells)
    first = some.plan.cells[0]
    note = _SMALL if some.plan.profile.name == DEFAULT else ""
    note = mark(first.suite.stands_for) or (_MADE_UP if first.data.startswith("mini") else note)
    return Curve(
        first.suite.name,
        first.setting,
        first.data,
        some.plan.profile.name,
        where,
        first.suite.primary,
        note,
        tuple(values),
    )


def _learnt(tasks: Mapping[str, Mapping[str, Any]]) -> float:
    """How many pairs the last tuning before a task's test had, the mean over tasks."""
    counts = []
    for legs in tasks.values():
        for leg in legs.values():
            last = [facts["pairs"] for stage, facts in leg["facts"].items() if stage.partition("-")[0] == "pairs"]
            counts.append(last[-1] if last else 0)
    return fmean(counts)


def chart(found: Curve) -> Chart:
    """Say how a curve is drawn: percent by pairs, seeds as faint points, level lines for what cannot be tuned."""
    lines = []
    for system in found.grid.systems:
        by_pairs: dict[float, dict[int, float]] = defaultdict(dict)  # a number may be as many as there are: said once
        for one in found.values:
            if one.system == system:
                by_pairs[found.pairs(one.shots)][one.seed] = 100 * one.value
        points = tuple(Point(x, tuple(values.values())) for x, values in by_pairs.items())
        tuned = any(one.system == system and one.shots != NONE for one in found.values)
        lines.append(Series(system if tuned else f"{system} (not tuned)", points, level=not tuned))
    queries = found.values[0].queries
    seeds = f"mean of {found.grid.seeds} seeds, each a faint point" if found.grid.seeds > 1 else "one seed"
    about = f"{queries:,} queries; {seeds}; profile {found.profile}."
    notes = (about, f"{found.note}.") if found.note else (about,)
    title = f"{found.where} · {found.setting} · {found.data} data"
    x = "training pairs (linear up to the first number, then logarithmic)"
    return Chart(title, notes, x, f"{found.measure}, percent", tuple(lines))


def table(found: Curve) -> Table:
    """Lay a curve out: a row a system, a column a number of pairs."""
    title = f"{found.where} · {found.setting} · {found.data} data · {found.measure}, percent, by training pairs"
    seeds = f"means of {found.grid.seeds} seeds" if found.grid.seeds > 1 else ""
    caption = " · ".join(filter(None, (title, f"{found.values[0].queries:,} queries", seeds, found.note)))
    return found.grid.by_system(caption, lambda shots: f"{ALL} ({found.pairs(ALL):,.0f})" if shots == ALL else shots)


def records(found: Curve) -> Table:
    """The numbers behind a curve: a row a value."""
    names = ("suite", "where", "setting", "data", "profile", "measure", "note")
    about = [getattr(found, name) for name in names]
    rows = tuple((*about, *asdict(one).values()) for one in found.values)
    return Table("", plain_columns(*names, *CurveValue.__dataclass_fields__), rows)
