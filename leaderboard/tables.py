"""Results → boards: one table a suite, setting and kind of data, with the paired tests that every column rests on.

A row is a system; its seeds are inside it, averaged per query before anything is tested. All statistics of a board come
from one matrix of paired tests, corrected together (Holm), so that its columns cannot contradict each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.errors import StoreError
from bench.scoring.aggregate import mean
from bench.scoring.significance import Comparison, holm, interval, pairwise
from bench.wording import bare
from leaderboard.commands import command
from leaderboard.read import About, Average, FloatArray, Result
from leaderboard.text import plural

LEVEL = 0.05
SEED = 0
_KINDS = ("official", "mini", "local")
"""In the order of the site; other worlds than the default one (`mini-few-names`) stand behind `mini`."""
_SAME = 1e-6  # an average that differs by less from what its members give is made of them

Stratum = tuple[str, str]
"""A task and its leg: where queries are resampled and signs flipped."""


@dataclass(frozen=True)
class Column:
    """A task of the table.

    Args:
        task: canonical id.
        name: without `mini/` (or its like) and the suite's name.
        queries: judged ones, of all legs.
    """

    task: str
    name: str
    queries: int


@dataclass(frozen=True)
class Row:
    """A system on a board; numbers are fractions of the board's measure, means over its seeds.

    Args:
        name: its label, with the hash behind where two systems bear one label.
        system: as its results describe it.
        seeds: that are averaged.
        tasks: value by task id.
        averages: value by the average's name.
        measures: the headline in every measure.
        score: the headline; None for a system that lacks a task of it, which then has no rank.
        low: lower end of the 95 % interval over queries; None without a test.
        high: its upper end.
        ranks: first and last place that the tests leave open; None without a test.
        tied: not significantly worse than the best.
        command: what to type to get the row again.
        libraries: versions that can have changed its numbers.
    """

    name: str
    system: About
    seeds: tuple[int, ...]
    tasks: Mapping[str, float]
    averages: Mapping[str, float]
    measures: Mapping[str, float]
    score: float | None
    command: str
    libraries: Mapping[str, str]
    low: float | None = None
    high: float | None = None
    ranks: tuple[int, int] | None = None
    tied: bool = False


@dataclass(frozen=True)
class Board:
    """A table of systems.

    Args:
        suite: canonical name.
        title: of the suite.
        version: of the suite.
        setting: how encoders were tuned.
        data: `official`, `mini` (`mini-few-names` and the like) or `local`.
        measure: of all numbers but `Row.measures`.
        headline: what the score is the average of, or the name of the only task.
        whole: the headline is an average of the suite's own, so every task it needs was run.
        columns: tasks.
        averages: names of the suite's averages that a row has.
        rows: systems with a score, best first.
        incomplete: the others, by name.
        best_against: the best row's comparison with each other, by name, and Holm's p.
        pairs: how many pairs were tested.
        untested: why there are no tests, empty where there are.
        notes: what a reader must know.
        card: protocol card, Markdown.
        stands_for: the benchmark that the suite is a substitute for, empty for a benchmark itself.
    """

    suite: str
    title: str
    version: str
    setting: str
    data: str
    measure: str
    headline: str
    whole: bool
    columns: tuple[Column, ...]
    averages: tuple[str, ...]
    rows: tuple[Row, ...]
    incomplete: tuple[Row, ...]
    best_against: Mapping[str, tuple[Comparison, float]]
    pairs: int
    untested: str
    notes: tuple[str, ...]
    card: str
    stands_for: str = ""

    @property
    def queries(self) -> int:
        """Judged queries of all columns."""
        return sum(column.queries for column in self.columns)

    @property
    def best(self) -> list[str]:
        """Names of the rows in the best group, best first."""
        return [row.name for row in self.rows if row.tied]


@dataclass(frozen=True)
class _System:
    """Results of one system, one a seed, all with the same tasks."""

    name: str
    results: tuple[Result, ...]

    @property
    def first(self) -> Result:
        return self.results[0]

    def average(self, name: str) -> Average | None:
        """The average of that name as the first seed has it; all seeds have the same tasks, so the same averages."""
        return next((average for average in self.first.content.averages if average.name == name), None)

    def has(self, task: str, measure: str) -> bool:
        """Whether all its legs of a task have a measure."""
        legs = [result.content.tasks.get(task) for result in self.results]
        return all(parts and all(measure in leg.measures for leg in parts.values()) for parts in legs)

    def task(self, task: str, measure: str) -> float:
        """Mean over seeds of the mean over legs."""
        return mean(
            mean(leg.measures[measure] for leg in result.content.tasks[task].values()) for result in self.results
        )


def boards(results: Iterable[Result]) -> list[Board]:
    """Make a board for every suite, setting and kind of data: official data first, and benchmarks before substitutes.

    Raises:
        StoreError: results that must not stand in one table (another version of the suite, other queries), or a
            damaged bundle.
    """
    groups: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for result in results:
        about = result.content.tested()
        if about.tasks:
            groups[about.data, about.suite.name, about.setting].append(replace(result, content=about))
    made = [_board(results) for results in groups.values()]
    return sorted(made, key=_place)


def _place(board: Board) -> tuple[int, str, bool, str, str]:
    """Where a board stands among the others."""
    kind = _KINDS.index(board.data.partition("-")[0])
    return kind, board.data, bool(board.stands_for), board.suite, board.setting


def _board(results: Sequence[Result]) -> Board:
    """Make the board of results that share suite, setting and kind of data."""
    suite = results[0].content.suite
    for result in results:
        if result.content.suite.version != suite.version:
            raise StoreError(
                f"{results[0].path} and {result.path}: found versions {suite.version} and "
                f"{result.content.suite.version} of suite {suite.name}, expected one; run the older again or take its "
                "folder away"
            )
    systems, notes = _systems(results)
    measure = suite.primary or _first_measure(results[0])
    columns = _columns(systems, measure, suite.name)
    if not columns:
        raise StoreError(f"{results[0].path}: found no task with a {measure}, expected the suite's headline measure")
    named = [tuple(one.name for one in system.first.content.averages if measure in one.measures) for system in systems]
    averages = max(named, key=len)
    whole = bool(averages)
    headline = averages[0] if whole else columns[0].name if len(columns) == 1 else f"Mean of {len(columns)} tasks"
    rows = [_row(one, columns, averages, measure) for one in systems]
    complete = sorted((row for row in rows if row.score is not None), key=lambda row: (-(row.score or 0), row.name))
    by_name = {one.name: one for one in systems}
    tested, best_against, untested = _tested(complete, by_name, columns, headline if whole else "", measure)
    shown = tested[0].name if tested else systems[0].name
    return Board(
        suite=suite.name,
        title=suite.title,
        version=suite.version,
        setting=results[0].content.setting,
        data=results[0].content.data,
        measure=measure,
        headline=headline,
        whole=whole,
        columns=columns,
        averages=averages,
        rows=tuple(tested),
        incomplete=tuple(sorted((row for row in rows if row.score is None), key=lambda row: row.name)),
        best_against=best_against,
        pairs=0 if untested else len(tested) * (len(tested) - 1) // 2,
        untested=untested,
        notes=tuple(notes),
        card=by_name[shown].first.card,
        stands_for=max(result.content.suite.stands_for for result in results),
    )


def _first_measure(result: Result) -> str:
    """The measure that a suite's tasks name first, which is their headline."""
    legs = next(iter(result.content.tasks.values()))
    return next(iter(next(iter(legs.values())).measures))


def _systems(results: Sequence[Result]) -> tuple[list[_System], list[str]]:
    """Group results by system; of seeds that ran other tasks only those with the most are kept, and a note says so."""
    groups: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        groups[result.content.system.label, result.content.system.hash].append(result)
    labels = [label for label, _ in groups]
    found, notes = [], []
    for (label, digest), group in sorted(groups.items()):
        name = label if labels.count(label) == 1 else f"{label} ({digest[:8]})"
        group.sort(key=lambda result: (result.content.seed, str(result.path)))
        seeds = [result.content.seed for result in group]
        if len(set(seeds)) < len(seeds):
            raise StoreError(
                f"{group[0].path.parent.parent}: found two results of {label} with one seed, expected one; "
                "take one of their folders away"
            )
        most = set(max(group, key=lambda result: len(result.content.tasks)).content.tasks)
        kept = [result for result in group if set(result.content.tasks) == most]
        left = [str(result.content.seed) for result in group if result not in kept]
        if left:
            notes.append(f"{name}: seed {', '.join(left)} lacks tasks that other seeds have, and is left out.")
        found.append(_System(name, tuple(kept)))
    return found, notes


def _columns(systems: Sequence[_System], measure: str, suite: str) -> tuple[Column, ...]:
    """List the tasks that a system has."""
    found = {}
    for one in systems:
        for task, legs in one.first.content.tasks.items():
            if one.has(task, measure):
                name = bare(task).removeprefix(f"{suite}/")
                found[task] = Column(task, name, sum(leg.queries for leg in legs.values()))
    return tuple(found[task] for task in sorted(found))


def _row(one: _System, columns: Sequence[Column], averages: Sequence[str], measure: str) -> Row:
    """Make a system's row, not yet tested."""
    tasks = {column.task: one.task(column.task, measure) for column in columns if one.has(column.task, measure)}
    named = {name: found for name in averages if (found := _averaged(one, name)) and measure in found}
    headline: Mapping[str, float] = {}
    if averages:
        headline = named.get(averages[0], {})
    elif len(tasks) == len(columns):
        names = next(iter(next(iter(one.first.content.tasks.values())).values())).measures
        shared = [name for name in names if all(one.has(column.task, name) for column in columns)]
        headline = {name: mean(one.task(column.task, name) for column in columns) for name in shared}
    legs = [leg for parts in one.first.content.tasks.values() for leg in parts.values()]
    libraries = {name: version for leg in legs for name, version in leg.libraries.items()}
    return Row(
        name=one.name,
        system=one.first.content.system,
        seeds=tuple(result.content.seed for result in one.results),
        tasks=tasks,
        averages={name: values[measure] for name, values in named.items()},
        measures=headline,
        score=headline.get(measure),
        command=command([result.content for result in one.results], whole=bool(averages) and averages[0] in named),
        libraries=dict(sorted(libraries.items())),
    )


def _averaged(one: _System, name: str) -> dict[str, float]:
    """An average's value in every measure, mean over seeds; empty where the system has none of that name."""
    first = one.average(name)
    found = [average for result in one.results for average in result.content.averages if average.name == name]
    if first is None or len(found) < len(one.results):
        return {}
    shared = [measure for measure in first.measures if all(measure in average.measures for average in found)]
    return {measure: mean(average.measures[measure] for average in found) for measure in shared}


def _tested(
    rows: Sequence[Row], systems: Mapping[str, _System], columns: Sequence[Column], average: str, measure: str
) -> tuple[list[Row], dict[str, tuple[Comparison, float]], str]:
    """Give the ranked rows intervals, rank intervals and ties; say why where that cannot be done."""
    if not rows:
        return [], {}, "no system has every task"
    weights = _weights(systems[rows[0].name], columns, average)
    values = _values([systems[row.name] for row in rows], weights, measure)
    for row in rows:
        whole = sum(weights[stratum] * float(array.mean()) for stratum, array in values[row.name].items())
        if values[row.name].keys() != weights.keys() or abs(whole - (row.score or 0)) > _SAME:
            return list(rows), {}, f"these results do not say which tasks {average} is made of"
    named = {name: {"\t".join(stratum): array for stratum, array in of.items()} for name, of in values.items()}
    shares = {"\t".join(stratum): weight for stratum, weight in weights.items()}
    found = pairwise(named, SEED, shares)
    corrected = dict(zip(found, holm([one.p_randomisation for one in found.values()]), strict=True))
    clear = {pair for pair, chance in corrected.items() if chance < LEVEL and found[pair].difference != 0}
    better = {pair if found[pair].difference > 0 else pair[::-1] for pair in clear}
    best = rows[0].name
    ranked = []
    for row in rows:
        enough = min(map(len, named[row.name].values())) > 1  # one query has no spread to resample
        low, high = interval(named[row.name], SEED, shares) if enough else (None, None)
        ranked.append(replace(row, low=low, high=high))
        if len(rows) > 1:
            above = sum((other.name, row.name) in better for other in rows)
            below = sum((row.name, other.name) in better for other in rows)
            ranks = (1 + above, len(rows) - below)
            ranked[-1] = replace(ranked[-1], ranks=ranks, tied=(best, row.name) not in better)
    against = {pair[1]: (found[pair], corrected[pair]) for pair in found if pair[0] == best}
    return ranked, against, ""


def _weights(one: _System, columns: Sequence[Column], average: str) -> dict[Stratum, float]:
    """Say what part each leg of each task has in the headline; all parts sum to one.

    Where the result does not name an average's members, all its tasks count alike; whether that is so is for the caller
    to see from the value.
    """
    told = one.average(average)
    tasks = one.first.content.tasks
    full = {bare(task): task for task in tasks}
    members = told.members if told and told.members else [bare(column.task) for column in columns]
    found: dict[Stratum, float] = defaultdict(float)
    todo = [(members, 1.0)]
    while todo:
        group, share = todo.pop()
        for member in group:
            if isinstance(member, list):
                todo.append((member, share / len(group)))
            elif (task := full.get(str(member))) is not None:
                for leg in tasks[task]:
                    found[task, leg] += share / len(group) / len(tasks[task])
    return dict(found)


def _values(
    systems: Sequence[_System], strata: Iterable[Stratum], measure: str
) -> dict[str, dict[Stratum, FloatArray]]:
    """Read per-query values, averaged over seeds, of the strata that a system has.

    Raises:
        StoreError: two results hold other queries for the same task.
    """
    found: dict[str, dict[Stratum, FloatArray]] = {one.name: {} for one in systems}
    for task, leg in strata:
        asked: tuple[tuple[str, ...], Result] | None = None
        for one in systems:
            columns = []
            for result in one.results:
                if leg not in result.content.tasks.get(task, {}):
                    continue
                queries, column = result.values(task, leg, measure)
                asked = asked or (queries, result)
                if queries != asked[0]:
                    raise StoreError(
                        f"{asked[1].path} and {result.path}: found other queries for {task} "
                        f"({plural(len(asked[0]), 'query', 'queries')} and {len(queries):,}), expected the same; run "
                        "the older again or take its folder away"
                    )
                columns.append(column)
            if len(columns) == len(one.results):
                found[one.name][task, leg] = np.mean(columns, axis=0)
    return found
