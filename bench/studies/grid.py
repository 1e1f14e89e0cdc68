"""Grids of settings: cells that are run once through the pipeline, and read out as trials, a table or a curve.

A study is a grid and a read-out (`bench.evaluation.grid`). `bench sweep` draws cells from a search space and reads
their scores on dev questions; `bench ablate` runs the cells of a preset and lays them out next to a paper's numbers;
`bench few-shot` varies the number of training pairs and draws a curve. What cells have in common is made once, since
the store shares it.

On a few-shot curve systems are fine-tuned on none, on some and on all of the pairs that a regime's recipe names. A
number of pairs is a run of its own with `tune.shots`; 0 is the regime `unsupervised`. A system that the regime does not
tune (BM25) is a level line.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from bench.config.request import Request
from bench.core.errors import UsageError
from bench.evaluation.grid import Grid, GridRun
from bench.evaluation.results import Published, headline
from bench.evaluation.svg import Chart, Point, Series
from bench.evaluation.tables import Table, plain_columns
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.plan import Plan
from bench.pipeline.run import Outcome, plan_for_run, run
from bench.plugins import Plugins
from bench.store.graph import Listener
from bench.store.store import Store
from bench.studies.headings import note, source
from bench.types import REGIMES

Progress = Callable[[Plan], AbstractContextManager[Listener]]
"""A plan → what shows its progress, for a `with`."""
ALL = "all"
"""All pairs that there are, in place of a number."""
NONE = "0"
"""No pair: the encoder as it was pretrained."""
REGIME = "few-shot"
"""The regime if none is named."""
SHOTS = "tune.shots"
"""The setting that the grid varies."""


def run_requests(
    requests: Mapping[str, Request], plugins: Plugins, store: Store, progress: Progress
) -> Iterator[tuple[str, Outcome]]:
    """Run the requests of a grid one after the other.

    Each is planned when its turn comes, since those before it have made what they share. Plan all of them first
    (`bench.pipeline.plan.plan`) where one that cannot run should cost no work.

    Args:
        requests: by the name of the cell.
        plugins: what is installed.
        store: where stages are kept.
        progress: plan → what shows its progress.

    Yields:
        The name of a cell and its finished run.
    """
    for name, request in requests.items():
        ready = plan_for_run(request, plugins, store)
        with progress(ready) as listener:
            yield name, run(request, plugins, store, listener, ready)


def finished(outcome: Outcome) -> Iterator[tuple[ExperimentCell, Published | None, str]]:
    """Yield every system, task and seed of a finished run with its result, or with None and why it has none."""
    reasons = {id(failure.cell): failure.reason for failure in outcome.failed}
    published = iter(outcome.published)
    for cell in outcome.plan.cells:
        reason = reasons.get(id(cell), "")
        yield cell, None if reason else next(published), reason


@dataclass(frozen=True)
class CurveValue:
    """The value of a system with a number of pairs and a seed."""

    system: str  # its label
    shots: str  # the number as it was typed, or `all`
    pairs: float  # that the last fine-tuning had, the mean over tasks; 0 where nothing was tuned
    seed: int  # of pretraining, sampling pairs and fine-tuning
    value: float  # the measure, a fraction
    queries: int  # that it is over


@dataclass(frozen=True)
class Curve:
    """Systems by numbers of training pairs.

    Attributes:
        suite: its name.
        regime: the regime whose pairs are used.
        data: `official`, `mini` and its like, or `local`.
        profile: its name.
        where: a task, an average, or the mean of some tasks, which it names or counts.
        measure: the suite's headline measure.
        note: why the numbers are comparable with no published ones; empty if they are.
        values: by number, system and seed.
    """

    suite: str
    regime: str
    data: str
    profile: str
    where: str
    measure: str
    note: str
    values: tuple[CurveValue, ...]

    @property
    def grid(self) -> Grid:
        """Systems by numbers of pairs and seeds."""
        return Grid(tuple(GridRun(point.system, point.shots, point.seed, point.value) for point in self.values))

    @property
    def stem(self) -> str:
        """A file's name that no other suite, regime or choice of tasks has: `beir-scifact-few-shot`."""
        parts = (self.suite,) if self.suite not in self.where else ()
        return re.sub(r"[^A-Za-z0-9._]+", "-", "-".join((*parts, self.where, self.regime)))

    def pairs(self, shots: str) -> float:
        """Return how many pairs a number means: the mean over what was tuned."""
        return fmean(point.pairs for point in self.values if point.shots == shots)

    def chart(self) -> Chart:
        """Say how the curve is drawn: percent by pairs, seeds as faint points, level lines for what cannot be tuned."""
        lines = []
        for system in self.grid.systems:
            points = [point for point in self.values if point.system == system]
            by_pairs: dict[float, dict[int, float]] = defaultdict(dict)  # 40 and `all` are one point where there are 40
            for point in points:
                by_pairs[self.pairs(point.shots)][point.seed] = 100 * point.value
            tuned = any(point.shots != NONE for point in points)
            series = tuple(Point(x, tuple(by_seed.values())) for x, by_seed in by_pairs.items())
            lines.append(Series(system if tuned else f"{system} (not tuned)", series, level=not tuned))
        seeds = f"mean of {self.grid.seeds} seeds, each a faint point" if self.grid.seeds > 1 else "one seed"
        summary = f"{self.values[0].queries:,} queries; {seeds}; profile {self.profile}."
        title = f"{self.where} · {self.regime} · {self.data} data"
        x = "training pairs (linear up to the first number, then logarithmic)"
        notes = (summary, f"{self.note}.") if self.note else (summary,)
        return Chart(title, notes, x, f"{self.measure}, percent", tuple(lines))

    def table(self) -> Table:
        """Lay out a row a system, a column a number of pairs."""
        title = f"{self.where} · {self.regime} · {self.data} data · {self.measure}, percent, by training pairs"
        seeds = f"means of {self.grid.seeds} seeds" if self.grid.seeds > 1 else ""
        caption = " · ".join(filter(None, (title, f"{self.values[0].queries:,} queries", seeds, self.note)))
        return self.grid.by_system(caption, lambda shots: f"{ALL} ({self.pairs(ALL):,.0f})" if shots == ALL else shots)

    def records(self) -> Table:
        """Lay out the numbers behind the curve: a row a value."""
        names = ("suite", "where", "regime", "data", "profile", "measure", "note")
        fields = [getattr(self, name) for name in names]
        rows = tuple((*fields, *asdict(point).values()) for point in self.values)
        return Table("", plain_columns(*names, *CurveValue.__dataclass_fields__), rows)


def numbers(text: str) -> tuple[str, ...]:
    """Parse `100,300,all`: ascending, `all` last, each once. Raises `UsageError` where none is to be tuned on.

    >>> numbers("300, 0, all, 100")
    ('0', '100', '300', 'all')
    """
    parts = {part.strip().lower() for part in text.split(",") if part.strip()}
    invalid = sorted(part for part in parts - {ALL} if not (part.isascii() and part.isdigit()))
    counts = sorted({int(part) for part in parts - {ALL} - {*invalid}})
    if invalid or not (parts & {ALL} or any(counts)):
        raise UsageError(
            found=f"--shots {text!r}",
            expected="numbers of pairs, comma-separated, and all for as many as there are: --shots 0,100,300,all",
        )
    return (*map(str, counts), *([ALL] if ALL in parts else []))


def requests(request: Request, shots: Sequence[str]) -> dict[str, Request]:
    """Return the request for every number of pairs.

    Results of 0 and `all` pairs are those of plain runs and lie where theirs do; those of other numbers lie next to
    them (`results-shots/100`), since a result of the regime is one of all its pairs.

    Args:
        request: what the command line says.
        shots: as `numbers` returns them.

    Raises:
        UsageError: several regimes, one that tunes nothing, or `--set tune.shots`.
    """
    (regime, *more) = request.regimes or (REGIME,)
    if more or regime == REGIMES[0]:
        raise UsageError(
            found=f"--regime {','.join(request.regimes)}",
            expected="one that tunes an encoder",
            hint=f"type e.g. --regime {REGIME}",
        )
    if any(text.partition("=")[0].strip() == SHOTS for text in request.sets):
        raise UsageError(found=f"--set {SHOTS} with --shots", expected="one of them", hint=f"leave --set {SHOTS} out")
    root = request.results.resolve()
    by_number = {}
    for number in shots:
        value = "" if number == ALL else number  # over the number of a settings file too
        tuned = replace(request, regimes=(regime,), sets=(*request.sets, f"{SHOTS}={value}"))
        if number == NONE:
            tuned = replace(request, regimes=REGIMES[:1])
        elif number != ALL:
            tuned = replace(tuned, results=root.parent / f"{root.name}-shots" / number)
        by_number[number] = tuned
    return by_number


def drawable(plans: Mapping[str, Plan]) -> None:
    """Check before any work that plans, by number of pairs, make one curve.

    Raises:
        UsageError: nothing is tuned, several suites or kinds of data, or tasks without training pairs.
    """
    tuned = [plan for number, plan in plans.items() if number != NONE]
    if not any(plan.cells for plan in tuned):
        reasons = dict.fromkeys(
            f"{item.system} on {item.suite}: {item.reason}" for plan in tuned for item in plan.refused
        )
        raise UsageError(
            "found nothing to tune, expected a method and a task with training pairs; " + "; ".join(reasons)
        )
    kinds = {f"{cell.suite.name} ({cell.data} data)" for plan in plans.values() for cell in plan.cells}
    if len(kinds) > 1:
        raise UsageError(found=", ".join(sorted(kinds)), expected="tasks of one suite and kind", hint="draw them apart")
    with_pairs = {task.id for plan in tuned for cell in plan.cells for task in cell.tasks}
    without = sorted({task.id for plan in plans.values() for cell in plan.cells for task in cell.tasks} - with_pairs)
    if without:
        raise UsageError(
            f"found no training pairs of {', '.join(without)}, expected some of every task; name other tasks: --task "
            + ",".join(sorted(with_pairs))
        )


def curve(outcomes: Mapping[str, Outcome]) -> Curve:
    """Read finished runs, by number of pairs, out as a curve. Raises `UsageError` if every training failed."""
    values, where = [], ""
    for shots, outcome in outcomes.items():
        for cell, result, _ in finished(outcome):
            if result is None:
                continue
            tasks = {task.id: result.content["tasks"][task.id] for task in cell.tasks}
            where, value = headline(tasks, cell.suite.macros, cell.suite.primary)
            where = source(where, tasks, cell.suite)
            queries = sum(subset["queries"] for subsets in tasks.values() for subset in subsets.values())
            values.append(CurveValue(cell.system.label, shots, _tuning_pairs(tasks), cell.seed, value, queries))
    if not values:
        reasons = dict.fromkeys(failure.reason for outcome in outcomes.values() for failure in outcome.failed)
        raise UsageError(f"found no value to draw: every training run failed: {'; '.join(reasons)}")
    plans = [outcome.plan for number, outcome in outcomes.items() if number != NONE and outcome.plan.cells]
    profile, first = plans[0].profile.name, plans[0].cells[0]
    suite, measure, why = first.suite.name, first.suite.primary, note(first.suite, first.data, profile)
    return Curve(suite, first.regime, first.data, profile, where, measure, why, tuple(values))


def _tuning_pairs(tasks: Mapping[str, Mapping[str, Any]]) -> float:
    """Return how many pairs the last fine-tuning before a task's test had, the mean over tasks."""
    counts = []
    for subset in (subset for subsets in tasks.values() for subset in subsets.values()):
        pairs = [part["pairs"] for stage, part in subset["metadata"].items() if stage.partition("-")[0] == "pairs"]
        counts.append(pairs[-1] if pairs else 0)
    return fmean(counts)
