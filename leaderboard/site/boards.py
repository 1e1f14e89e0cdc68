"""Results → boards: one table a suite, regime and kind of data, with the paired tests that every column rests on.

A row is a system; its seeds are inside it, averaged per query before anything is tested. All statistics of a board come
from one matrix of paired tests, corrected together, so that its columns cannot contradict each other.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from bench.core.errors import StoreError
from bench.core.files import digest
from bench.core.messages import bare
from bench.core.publications import corpus_note, tokens_note
from bench.evaluation.compare.fairness import environment_warnings
from bench.evaluation.measures.evaluate import mean
from bench.evaluation.results.format import About, Subset
from bench.evaluation.results.read import Result
from bench.evaluation.significance.families import LEVEL, Comparison
from bench.evaluation.significance.ranks import ordered
from bench.evaluation.significance.tasks import FEWEST, OverTasks, Reliability, over_tasks, reliability
from bench.types import Suite
from leaderboard.records import NEAR, Records, Verification
from leaderboard.site.statistics import Statistics, statistics
from leaderboard.site.systems import (
    Cost,
    Stratum,
    System,
    command_line,
    group_systems,
    point_mark,
    refuse_unlike,
    total_cost,
)
from leaderboard.site.text import slug, suite_heading

__all__ = ["LEVEL", "Board", "Row", "TaskColumn", "boards"]

_KINDS = ("official", "mini", "local")
"""In the order of the site; worlds other than the default one (`mini-few-names`) follow `mini`."""
FIRST = "official"
"""The kind of data whose pages are at the root of the site."""
PROXIES = "substitutes/"
"""The folder, within a tree, of the pages of proxies: suites that stand in for a benchmark that cannot be had."""
COPY = "the same numbers throughout"
"""In notes on rows that may be copies of each other."""
_TOLERANCE = 1e-6  # an average that differs by less from what its members give is made of them


@dataclass(frozen=True)
class Tree:
    """The pages of one kind of data; those of proxies are apart, so that pages of the kinds never mix.

    Args:
        data: the kind of data.
        proxy_for: the benchmark that its first suite is a proxy for; empty for benchmarks themselves.
    """

    data: str
    proxy_for: str = ""

    @property
    def folder(self) -> str:
        """Folder of its pages: empty for official data, or `mini/`, `mini-few-names/`, `local/substitutes/`."""
        return f"{'' if self.data == FIRST else f'{self.data}/'}{PROXIES if self.proxy_for else ''}"

    def titled(self, name: str) -> str:
        """Return the title of a page of the tree, which all but official data name."""
        return name if self.data == FIRST else f"{name} · {self.data} data"


OFFICIAL = Tree(FIRST)


@dataclass(frozen=True)
class TaskColumn:
    """A task of the table.

    Args:
        task: its id.
        name: without `mini/` (or its like) and the suite's name.
        queries: number of judged ones, of all subsets.
    """

    task: str
    name: str
    queries: int


@dataclass(frozen=True)
class Row:
    """A system on a board; numbers are fractions of the board's measure, means over its seeds.

    Args:
        name: its label, with the hash behind where two systems have one label.
        system: what its first result says of it.
        seeds: ascending.
        tasks: value by task id.
        averages: value by the average's name.
        measures: the headline in every measure.
        score: the headline; None for a system that lacks a task of it, which then has no rank.
        command: the command that runs it.
        libraries: versions that can have changed its numbers.
        low: lower end of the 95 % interval over queries; None without a test.
        high: its upper end.
        ranks: first and last place that the tests leave open; None without a test.
        tied: whether it is not significantly worse than the best.
        letters: rows that share one do not differ significantly.
        verification: whether it is verified, and how.
        marks: what a reader must know of it: that it is collapsed, that its readout is a guess.
        collapsed: different texts had one vector, so it has no rank.
        seed_scores: the headline of each seed.
        by_measure: value by measure and task id.
        cost: of training and search.
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
    letters: str = ""
    verification: Verification = field(default_factory=Verification)
    marks: tuple[str, ...] = ()
    collapsed: bool = False
    seed_scores: tuple[float, ...] = ()
    by_measure: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    cost: Cost = field(default_factory=Cost)

    @property
    def verified(self) -> bool:
        """Whether it may be ranked."""
        return self.verification.verified

    @property
    def point(self) -> str:
        """Where on the way of its training it is, as `point_mark` says; empty for a whole one."""
        return point_mark(self.system)


@dataclass(frozen=True)
class Board:
    """A table of systems.

    Args:
        suite: its canonical name.
        title: what pages call it: its title if it was run whole, else with its tasks (`suite_heading`).
        version: its version.
        regime: how systems were tuned before the test.
        data: `official`, `mini` (`mini-few-names` and the like) or `local`.
        measure: of all numbers but `Row.measures`.
        headline: what the score is the average of, or the name of the only task.
        whole_suite: the headline is an average of the suite's own, so every task it needs was run.
        columns: the tasks.
        averages: names of the suite's averages that a row has.
        rows: verified systems with a score, best first.
        unranked: incomplete, unverified and collapsed ones, and points of trainings, by name.
        best_against: the best row's comparison with each other, by name.
        pairs: number of pairs that were tested.
        untested: why there are no tests, empty where there are.
        notes: sentences below the table.
        card: protocol card, Markdown.
        proxy_for: the benchmark that the suite is a proxy for, empty for a benchmark itself.
        tests: of every two systems, on the headline and on each task.
        over_tasks: the best row minus each other, by its name, with tasks as a sample; empty for very few tasks.
        reliability: of the order over tasks, but for systems that no training changes (BM25); None for very few systems
            or tasks.
        systems: the results of each row, by its name.
    """

    suite: str
    title: str
    version: str
    regime: str
    data: str
    measure: str
    headline: str
    whole_suite: bool
    columns: tuple[TaskColumn, ...]
    averages: tuple[str, ...]
    rows: tuple[Row, ...]
    unranked: tuple[Row, ...]
    best_against: Mapping[str, Comparison]
    pairs: int
    untested: str
    notes: tuple[str, ...]
    card: str
    proxy_for: str = ""
    tests: Statistics = field(default_factory=Statistics)
    over_tasks: Mapping[str, OverTasks] = field(default_factory=dict)
    reliability: Reliability | None = None
    systems: Mapping[str, System] = field(default_factory=dict)

    @property
    def all_rows(self) -> tuple[Row, ...]:
        """Ranked rows, then the others."""
        return self.rows + self.unranked

    @property
    def tree(self) -> Tree:
        """The tree of its pages."""
        return Tree(self.data, self.proxy_for)

    @property
    def stem(self) -> str:
        """Path of its page and files, without the ending."""
        return f"{self.tree.folder}suites/{slug(self.suite)}/{slug(self.regime)}"

    @property
    def compare_stem(self) -> str:
        """Path of the page of its pairs, without the ending."""
        return f"{self.tree.folder}compare/{slug(f'{self.suite}-{self.regime}')}"

    @property
    def queries(self) -> int:
        """Number of judged queries of all columns."""
        return sum(column.queries for column in self.columns)

    @property
    def best(self) -> list[str]:
        """Names of the rows in the best group, best first."""
        return [row.name for row in self.rows if row.tied]


def boards(
    results: Iterable[Result],
    cache: Path | None = None,
    records: Records = NEAR,
    suites: Mapping[str, Suite] = MappingProxyType({}),
    *,
    by_task: bool = True,
) -> list[Board]:
    """Build a board for every suite, regime and kind of data: official data first, benchmarks before proxies.

    Args:
        results: checked results; dev tasks are left out.
        cache: folder that keeps statistical tests from build to build.
        records: which results are verified.
        suites: of plugins, by name; without its plugin, a suite is never taken for run whole.
        by_task: also test every task by itself, which most of the time is spent on.

    Raises:
        StoreError: a bundle is damaged, or results must not share a table (another version of the suite, other
            queries).
    """
    groups: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for result in results:
        tested = result.tested()
        if tested.content.tasks:
            groups[tested.content.data, tested.content.suite.name, tested.content.regime].append(tested)
    order = {name: position for position, name in enumerate(_KINDS)}
    return sorted(
        (_board(group, cache, records, suites.get(name), by_task=by_task) for (_, name, _), group in groups.items()),
        key=lambda board: (
            order[board.data.partition("-")[0]],
            board.data,
            bool(board.proxy_for),
            board.suite,
            board.regime,
        ),
    )


def _board(
    results: Sequence[Result], cache: Path | None, records: Records, plugin: Suite | None, *, by_task: bool
) -> Board:
    """Build the board of results that share suite, regime and kind of data; the suite's plugin may be unknown.

    Suite, tasks, averages and tests are those of the verified systems, where there are any.
    """
    systems, notes = group_systems(results, records)
    refuse_unlike(systems)
    by_name = {system.name: system for system in systems}
    verified = [system for system in systems if system.verification.verified]
    deciding = verified or systems
    first = deciding[0].first
    suite = first.content.suite
    measure, columns = _measure_and_columns(deciding)
    averages = max(
        (
            tuple(average.name for average in system.first.content.averages if measure in average.measures)
            for system in deciding
        ),
        key=len,
    )
    headline = f"Mean of {len(columns)} tasks" if len(columns) > 1 else columns[0].name
    headline = averages[0] if averages else headline
    rows = [_row(system, columns, averages, measure) for system in systems]
    complete = [row for row in rows if row.score is not None and row.verified and not row.collapsed and not row.point]
    complete.sort(key=lambda row: (-(row.score or 0), row.name))
    tasks = [column.task for column in columns]
    weights: dict[Stratum, float] = {}
    if complete:
        weights = by_name[complete[0].name].headline_weights(tasks, headline if averages else "")
    untested = _untested(complete, by_name, weights, headline, measure)
    scored = {task for task, _ in weights} if weights and not untested else {*tasks}
    weights = {} if untested else weights
    names = [row.name for row in complete]
    tests = Statistics()
    if verified:
        tests = statistics(verified, names, weights, tasks, measure, cache, by_task=by_task)
    ranked = _ranked(complete, tests)
    subset_values = {
        name: {subset: by_name[name].subset_value(subset, measure) or 0.0 for subset in weights} for name in names
    }
    best_against = {
        name: tests.ranks.comparison(names[0], name) for name in names[1:] if tests.ranks.has(names[0], name)
    }
    return Board(
        suite=suite.name,
        title=suite_heading(suite, first.content.data, plugin, scored, tasks),
        version=suite.version,
        regime=first.content.regime,
        data=first.content.data,
        measure=measure,
        headline=headline,
        whole_suite=bool(averages),
        columns=columns,
        averages=averages,
        rows=tuple(ranked),
        unranked=tuple(
            sorted((row for row in rows if row not in complete), key=lambda row: (not row.verified, row.name))
        ),
        best_against=best_against,
        pairs=0 if untested else len(ranked) * (len(ranked) - 1) // 2,
        untested=untested,
        notes=(
            *notes,
            *_copies(systems),
            *(f"{sentence}." for system in systems for sentence in environment_warnings(system.side)),
            *dict.fromkeys(filter(None, (tokens_note((measure,), row.libraries) for row in rows))),
            *dict.fromkeys(filter(None, (corpus_note(subset.metadata) for subset in _subsets(systems)))),
        ),
        card=(by_name[names[0]] if names else deciding[0]).first.card,
        proxy_for=max(result.content.suite.proxy_for for system in deciding for result in system.results),
        tests=tests,
        over_tasks=_over_tasks(names, subset_values, weights, tests),
        reliability=reliability({name: subset_values[name] for name in names if not by_name[name].fixed}, weights),
        systems=by_name,
    )


def _subsets(systems: Iterable[System]) -> Iterator[Subset]:
    for system in systems:
        for result in system.results:
            for subsets in result.content.tasks.values():
                yield from subsets.values()


def _over_tasks(
    names: Sequence[str],
    subset_values: Mapping[str, Mapping[Stratum, float]],
    weights: Mapping[Stratum, float],
    tests: Statistics,
) -> dict[str, OverTasks]:
    """Compare the first of the names with each other over tasks; nothing for too few tasks to be a sample."""
    tasks = {task for task, _ in weights}
    if len(tasks) < FEWEST:
        return {}
    best, *others = names
    pairs = math.comb(len(names), 2)  # the best is chosen by its values, so every pair could be in the table
    by_name = {}
    for name in others:
        by_task = {
            task: tests.cells.comparison(best, name, task) for task in tasks if tests.cells.has(best, name, task)
        }
        by_name[name] = over_tasks(subset_values[best], subset_values[name], weights, by_task, pairs)
    return by_name


def _measure_and_columns(systems: Sequence[System]) -> tuple[str, tuple[TaskColumn, ...]]:
    """Return the suite's primary measure, by default the first, and the tasks that a system has in it, by id.

    Raises `StoreError` for different versions of the suite, and where no task has the measure.
    """
    first = systems[0].first
    suite = first.content.suite
    for result in (result for system in systems for result in system.results):
        if result.content.suite.version != suite.version:
            raise StoreError(
                where=f"{first.path} and {result.path}",
                found=f"versions {suite.version} and {result.content.suite.version} of suite {suite.name}",
                expected="one version",
                hint="rerun the older result or remove its folder",
            )
    subsets = next(iter(first.content.tasks.values()))
    measure = suite.primary or next(iter(next(iter(subsets.values())).measures))
    columns = {}
    for system in systems:
        for task, subsets in system.first.content.tasks.items():
            if system.has(task, measure):
                name = bare(task).removeprefix(f"{suite.name}/")
                columns[task] = TaskColumn(task, name, sum(subset.queries for subset in subsets.values()))
    if not columns:
        raise StoreError(where=first.path, found=f"no task with a {measure}", expected="the suite's headline measure")
    return measure, tuple(columns[task] for task in sorted(columns))


def _copies(systems: Sequence[System]) -> Iterator[str]:
    """Yield notes on systems, and seeds of a system, that have the same numbers throughout, as copies would."""
    first: dict[str, str] = {}
    for system in systems:
        numbers = [
            digest(
                {task: {name: subset.measures for name, subset in subsets.items()} for task, subsets in tasks.items()}
            )
            for tasks in (result.content.tasks for result in system.results)
        ]
        if len(set(numbers)) < len(numbers):
            seeds = ", ".join(str(result.content.seed) for result in system.results)
            yield f"{system.name}: of seeds {seeds}, some have {COPY}, as copies of one run would."
        original = first.setdefault(numbers[0], system.name)
        if original != system.name:
            yield f"{system.name} has {COPY} as {original}, as a copy of its run would."


def _row(system: System, columns: Sequence[TaskColumn], averages: Sequence[str], measure: str) -> Row:
    """Return a system's row, without what the tests add."""
    content = system.first.content
    subsets = [subset for by_name in content.tasks.values() for subset in by_name.values()]
    by_measure = {  # a task where a subset lacks a measure is left out of it
        name: {column.task: system.task_value(column.task, name) for column in columns if system.has(column.task, name)}
        for name in dict.fromkeys(name for subset in subsets for name in subset.measures)
    }
    tasks = by_measure.get(measure, {})
    average_values = {name: values for name in averages if measure in (values := system.average_values(name))}
    headline: Mapping[str, float] = {}
    if averages:
        headline = average_values.get(averages[0], {})
    elif len(tasks) == len(columns):
        shared = [name for name in subsets[0].measures if len(by_measure[name]) == len(columns)]
        headline = {name: mean(by_measure[name].values()) for name in shared}
    return Row(
        name=system.name,
        system=content.system,
        seeds=tuple(result.content.seed for result in system.results),
        tasks=tasks,
        averages={name: values[measure] for name, values in average_values.items()},
        measures=headline,
        score=headline.get(measure),
        command=command_line(
            [result.content for result in system.results],
            whole_suite=bool(averages) and averages[0] in average_values,
        ),
        libraries=dict(
            sorted({name: version for subset in subsets for name, version in subset.libraries.items()}.items())
        ),
        verification=system.verification,
        marks=system.marks,
        collapsed=system.collapsed,
        seed_scores=system.seed_scores(averages[0] if averages else "", list(tasks), measure) if headline else (),
        by_measure=by_measure,
        cost=total_cost(system.results),
    )


def _ranked(rows: Sequence[Row], tests: Statistics) -> list[Row]:
    """Return the ranked rows with intervals, rank intervals, letters and ties, all from one family of tests."""
    ranks = tests.ranks
    pairs = zip(ranks.pairs(), ranks.table["difference"].tolist(), ranks.decided.tolist(), strict=True)
    better = {pair if difference > 0 else pair[::-1] for pair, difference, decided in pairs if decided}
    order = ordered([row.name for row in rows], better)
    ranked = []
    for row in rows:
        if row.name in tests.intervals:
            low, high = tests.intervals[row.name]
            row = replace(row, low=max(0.0, low), high=min(1.0, high))  # noqa: PLW2901 (with its interval)
        if len(ranks.table["p_uncorrected"]):
            letters = order.letters.get(row.name, "")
            row = replace(row, ranks=order.ranks[row.name], letters=letters, tied=row.name in order.best)  # noqa: PLW2901
        ranked.append(row)
    return ranked


def _untested(
    rows: Sequence[Row], systems: Mapping[str, System], weights: Mapping[Stratum, float], average: str, measure: str
) -> str:
    """Return why the headline cannot be tested, or an empty string; its parts must add up to it."""
    if not rows:
        return "no verified system has every task"
    for row in rows:
        values = {stratum: systems[row.name].subset_value(stratum, measure) for stratum in weights}
        total = sum(weights[stratum] * (value or 0.0) for stratum, value in values.items())
        if None in values.values() or abs(total - (row.score or 0)) > _TOLERANCE:
            return f"these results do not say which tasks {average} averages"
    return ""
