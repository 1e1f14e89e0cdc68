"""Results → boards: one table a suite, setting and kind of data, with the paired tests that every column rests on.

A row is a system; its seeds are inside it, averaged per query before anything is tested. All statistics of a board come
from one matrix of paired tests, corrected together, so that its columns cannot contradict each other.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.core.errors import StoreError
from bench.core.files import digest
from bench.core.messages import bare
from bench.core.publications import tokens_note
from bench.evaluation.measures.aggregate import mean
from bench.evaluation.results.format import About
from bench.evaluation.results.read import Result
from bench.evaluation.significance.families import LEVEL, Comparison
from bench.evaluation.significance.ranks import ordered
from bench.evaluation.significance.tasks import AcrossTasks, across_tasks
from leaderboard.records import NEAR, Records, State
from leaderboard.site.statistics import Statistics, statistics
from leaderboard.site.systems import Cost, Stratum, System, averaged, command, cost, grouped, of_seeds, weights

__all__ = ["LEVEL", "Board", "Row", "TaskColumn", "boards"]

_KINDS = ("official", "mini", "local")
"""In the order of the site; worlds other than the default one (`mini-few-names`) follow `mini`."""
COPY = "the same numbers throughout"
"""In notes on rows that may be copies of each other."""
_SAME = 1e-6  # an average that differs by less from what its members give is made of them


@dataclass(frozen=True)
class TaskColumn:
    """A task of the table."""

    task: str
    name: str  # without `mini/` (or its like) and the suite's name
    queries: int  # judged ones, of all legs


@dataclass(frozen=True)
class Row:
    """A system on a board; numbers are fractions of the board's measure, means over its seeds."""

    name: str  # its label, with the hash behind where two systems bear one label
    system: About
    seeds: tuple[int, ...]
    tasks: Mapping[str, float]  # value by task id
    averages: Mapping[str, float]  # value by the average's name
    measures: Mapping[str, float]  # the headline in every measure
    score: float | None  # the headline; None for a system that lacks a task of it, which then has no rank
    command: str
    libraries: Mapping[str, str]  # versions that can have changed its numbers
    low: float | None = None  # lower end of the 95 % interval over queries; None without a test
    high: float | None = None  # its upper end
    ranks: tuple[int, int] | None = None  # first and last place that the tests leave open; None without a test
    tied: bool = False  # not significantly worse than the best
    letters: str = ""
    state: State = State.RUN_HERE
    of_seeds: tuple[float, ...] = ()
    by_measure: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True)
class Board:
    """A table of systems."""

    suite: str  # canonical name
    title: str
    version: str
    setting: str
    data: str  # `official`, `mini` (`mini-few-names` and the like) or `local`
    measure: str  # of all numbers but `Row.measures`
    headline: str  # what the score is the average of, or the name of the only task
    whole: bool  # the headline is an average of the suite's own, so every task it needs was run
    columns: tuple[TaskColumn, ...]
    averages: tuple[str, ...]  # names of the suite's averages that a row has
    rows: tuple[Row, ...]  # systems with a score, best first
    unranked: tuple[Row, ...]  # incomplete and unverified ones, by name
    best_against: Mapping[str, Comparison]  # the best row's comparison with each other, by name
    pairs: int  # how many pairs were tested
    untested: str  # why there are no tests, empty where there are
    notes: tuple[str, ...]
    card: str  # protocol card, Markdown
    stands_for: str = ""  # the benchmark that the suite is a substitute for, empty for a benchmark itself
    tests: Statistics = field(default_factory=Statistics)  # of every two systems, on the headline and on each task
    across: Mapping[str, AcrossTasks] = field(default_factory=dict)  # of ranked rows, were other tasks drawn
    systems: Mapping[str, System] = field(default_factory=dict)  # the results of each row, by its name

    @property
    def every(self) -> tuple[Row, ...]:
        """All rows: ranked ones, then the others."""
        return self.rows + self.unranked

    @property
    def queries(self) -> int:
        """Judged queries of all columns."""
        return sum(column.queries for column in self.columns)

    @property
    def best(self) -> list[str]:
        """Names of the rows in the best group, best first."""
        return [row.name for row in self.rows if row.tied]


def boards(results: Iterable[Result], cache: Path | None = None, records: Records = NEAR) -> list[Board]:
    """Build a board for every suite, setting and kind of data: official data first, benchmarks before substitutes.

    The folder `cache` keeps what the statistical tests found. Raises `StoreError` for a damaged bundle, and for results
    that must not share a table (another version of the suite, other queries).
    """
    return _in_order(_board(results, cache, records) for results in _groups(results))


def _groups(results: Iterable[Result]) -> list[list[Result]]:
    groups: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for result in results:
        kept = result.tested()
        if kept.content.tasks:
            groups[kept.content.data, kept.content.suite.name, kept.content.setting].append(kept)
    return list(groups.values())


def _in_order(found: Iterable[Board]) -> list[Board]:
    kinds = {name: place for place, name in enumerate(_KINDS)}
    return sorted(
        found,
        key=lambda one: (kinds[one.data.partition("-")[0]], one.data, bool(one.stands_for), one.suite, one.setting),
    )


def _board(results: Sequence[Result], cache: Path | None, records: Records) -> Board:
    """Build the board of results that share suite, setting and kind of data.

    Suite, tasks, averages and tests are those of the systems that were verified, where there are any.
    """
    systems, notes = grouped(results, records)
    trusted = [one for one in systems if one.state.verified]
    trusted, first = trusted or systems, (trusted or systems)[0].first
    suite = first.content.suite
    for result in (result for one in trusted for result in one.results):
        if result.content.suite.version != suite.version:
            raise StoreError(
                where=f"{first.path} and {result.path}",
                found=f"versions {suite.version} and {result.content.suite.version} of suite {suite.name}",
                expected="one version",
                hint="rerun the older result or remove its folder",
            )
    legs = next(iter(first.content.tasks.values()))
    measure = suite.primary or next(iter(next(iter(legs.values())).measures))  # the one named first is the headline
    columns = _columns(trusted, measure, suite.name)
    if not columns:
        raise StoreError(where=first.path, found=f"no task with a {measure}", expected="the suite's headline measure")
    named = [tuple(one.name for one in system.first.content.averages if measure in one.measures) for system in trusted]
    averages = max(named, key=len)
    whole = bool(averages)
    headline = averages[0] if whole else columns[0].name if len(columns) == 1 else f"Mean of {len(columns)} tasks"
    rows = [_row(one, columns, averages, measure) for one in systems]
    complete = [row for row in rows if row.score is not None and row.state.verified]
    complete.sort(key=lambda row: (-(row.score or 0), row.name))
    unranked = [row for row in rows if row.score is None or not row.state.verified]
    by_name = {one.name: one for one in systems}
    tasks = [column.task for column in columns]
    shares = weights(by_name[complete[0].name], tasks, headline if whole else "") if complete else {}
    untested = _untested(complete, by_name, shares, headline, measure)
    ranked = [row.name for row in complete]
    checked = [one for one in systems if one.state.verified]
    tried = {} if untested else shares
    found = statistics(checked, ranked, tried, tasks, measure, cache) if checked else Statistics()
    tested, best_against = _tested(complete, found)
    drawn = {row.name: {leg: by_name[row.name].stratum(leg, measure) or 0.0 for leg in tried} for row in tested}
    shown = tested[0].name if tested else trusted[0].name
    return Board(
        suite=suite.name,
        title=suite.title,
        version=suite.version,
        setting=first.content.setting,
        data=first.content.data,
        measure=measure,
        headline=headline,
        whole=whole,
        columns=columns,
        averages=averages,
        rows=tuple(tested),
        unranked=tuple(sorted(unranked, key=lambda row: (not row.state.verified, row.name))),
        best_against=best_against,
        pairs=0 if untested else len(tested) * (len(tested) - 1) // 2,
        untested=untested,
        notes=(
            *notes,
            *_alike(systems),
            *dict.fromkeys(filter(None, (tokens_note((measure,), row.libraries) for row in rows))),
        ),
        card=by_name[shown].first.card,
        stands_for=max(result.content.suite.stands_for for one in trusted for result in one.results),
        tests=found,
        across=across_tasks(drawn, tried),
        systems=by_name,
    )


def _alike(systems: Sequence[System]) -> Iterator[str]:
    """Name systems, and seeds of a system, that have the same numbers throughout, as copies of one run would."""
    first: dict[str, str] = {}
    for one in systems:
        numbers = [
            digest({task: {leg: part.measures for leg, part in legs.items()} for task, legs in tasks.items()})
            for tasks in (result.content.tasks for result in one.results)
        ]
        if len(set(numbers)) < len(numbers):
            seeds = ", ".join(str(result.content.seed) for result in one.results)
            yield f"{one.name}: of seeds {seeds}, some have {COPY}, as copies of one run would."
        other = first.setdefault(numbers[0], one.name)
        if other != one.name:
            yield f"{one.name} has {COPY} as {other}, as a copy of its run would."


def _columns(systems: Sequence[System], measure: str, suite: str) -> tuple[TaskColumn, ...]:
    found = {}
    for one in systems:
        for task, legs in one.first.content.tasks.items():
            if one.has(task, measure):
                name = bare(task).removeprefix(f"{suite}/")
                found[task] = TaskColumn(task, name, sum(leg.queries for leg in legs.values()))
    return tuple(found[task] for task in sorted(found))


def _row(one: System, columns: Sequence[TaskColumn], averages: Sequence[str], measure: str) -> Row:
    tasks = {column.task: one.task(column.task, measure) for column in columns if one.has(column.task, measure)}
    named = {name: found for name in averages if (found := averaged(one, name)) and measure in found}
    headline: Mapping[str, float] = {}
    if averages:
        headline = named.get(averages[0], {})
    elif len(tasks) == len(columns):
        names = next(iter(next(iter(one.first.content.tasks.values())).values())).measures
        shared = [name for name in names if all(one.has(column.task, name) for column in columns)]
        headline = {name: mean(one.task(column.task, name) for column in columns) for name in shared}
    legs = [leg for parts in one.first.content.tasks.values() for leg in parts.values()]
    libraries = {name: version for leg in legs for name, version in leg.libraries.items()}
    every = dict.fromkeys(name for leg in legs for name in leg.measures)
    by_measure = {  # a task where a leg lacks a measure is left out of it
        name: {column.task: one.task(column.task, name) for column in columns if one.has(column.task, name)}
        for name in every
    }
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
        state=one.state,
        of_seeds=of_seeds(one, averages[0] if averages else "", list(tasks), measure) if headline else (),
        by_measure=by_measure,
        cost=cost(one.results),
    )


def _tested(rows: Sequence[Row], found: Statistics) -> tuple[list[Row], dict[str, Comparison]]:
    """Return the ranked rows with intervals, rank intervals, letters and ties, all from one family of tests."""
    names, ranks = [row.name for row in rows], found.ranks
    pairs = zip(ranks.pairs(), ranks.table["difference"].tolist(), ranks.decided.tolist(), strict=True)
    better = {pair if difference > 0 else pair[::-1] for pair, difference, decided in pairs if decided}
    order = ordered(names, better)
    ranked = []
    for row in rows:
        low, high = found.intervals.get(row.name, (None, None))
        one = replace(row, low=None if low is None else max(0.0, low), high=None if high is None else min(1.0, high))
        if len(ranks.table["p"]):
            letters = order.letters.get(row.name, "")
            one = replace(one, ranks=order.ranks[row.name], letters=letters, tied=row.name in order.best)
        ranked.append(one)
    return ranked, {other: ranks.comparison(names[0], other) for other in names[1:] if ranks.has(names[0], other)}


def _untested(
    rows: Sequence[Row], systems: Mapping[str, System], shares: Mapping[Stratum, float], average: str, measure: str
) -> str:
    """Return why the headline cannot be tested, or an empty string; its parts must add up to it."""
    if not rows:
        return "no verified system has every task"
    for row in rows:
        held = {stratum: systems[row.name].stratum(stratum, measure) for stratum in shares}
        whole = sum(shares[stratum] * (value or 0.0) for stratum, value in held.items())
        if None in held.values() or abs(whole - (row.score or 0)) > _SAME:
            return f"these results do not say which tasks {average} averages"
    return ""
