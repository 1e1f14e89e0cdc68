"""Paired tests between results: over the questions of each suite and regime, on the trainings that both have.

Everything that compares results of this harness goes through here: the tests printed after a run, `bench compare`, and
ablations. The site compares whole boards by the same `bench.evaluation.significance.families.family`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from bench.core.errors import UsageError
from bench.evaluation.compare.lineage import lineages
from bench.evaluation.results import Result
from bench.evaluation.significance.estimates import Sample, Weights
from bench.evaluation.significance.families import Comparison, Family, family
from bench.evaluation.significance.questions import ORDER, questions
from bench.evaluation.significance.trainings import TRAININGS
from bench.evaluation.tables import points

QueryValues = Mapping[str, Mapping[str, float]]
"""A result's values by stratum (`TASK` or `TASK/SUBSET`) and query."""


@dataclass(frozen=True)
class PairedTest:
    """Two systems on the same queries.

    Args:
        metadata: `seeds` of both, and where it is known `suite`, `regime` and `data`.
        first: label of the system that is better on average; of a gain and a contrast, that of the first.
        second: label of the other; of a gain, that of the start.
        measure: canonical name.
        comparison: first minus second, over all tasks that all systems have, corrected for its family.
        by_task: the same of every task, corrected for all pairs and tasks; empty where not asked for.
        same_trainings: both come from the same training runs, seed by seed.
        family: what `comparison` was corrected with: `pairs` (every two systems), `gains` (every system over its own
            start) or `contrasts` (those that a file registers).
        about_methods: neither system is one that another seed would change and that has fewer than `TRAININGS`; of
            such checkpoints there is an interval, and no p.
    """

    metadata: Mapping[str, Any]
    first: str
    second: str
    measure: str
    comparison: Comparison
    by_task: Mapping[str, Comparison] = field(default_factory=dict)
    same_trainings: bool = False
    family: str = "pairs"
    about_methods: bool = True

    def __str__(self) -> str:
        """Say it: `crop − crop@init: +41.2 RR@100 points, 95 % [39.0, 43.4], p < 0.001, corrected, over …`."""
        comparison = self.comparison
        bounds = f", 95 % {comparison.interval}" if comparison.interval else ""
        chance = self.chance_text(comparison)
        untested = "a task has one question" if self.about_methods else "of these checkpoints"
        decided = untested if chance is None else f"{chance} corrected"
        change = points(comparison.difference, sign=True)
        return f"{self.pair}: {change} {self.measure} points{bounds}, {decided}, over {comparison.n:,} queries"

    def chance_text(self, comparison: Comparison) -> str | None:
        """The corrected p of its comparison or of that of a task, in words; None for checkpoints and one question."""
        return comparison.chance_text if self._tested(comparison) else None

    def numbers(self, comparison: Comparison) -> dict[str, Any]:
        """The comparison's JSON; of checkpoints, and where a task has one question, without a corrected p."""
        return comparison.as_json() | ({} if self._tested(comparison) else {"p_adjusted": None})

    def _tested(self, comparison: Comparison) -> bool:
        """Return whether its p is one: it is about methods, and more than one question says how questions scatter."""
        return self.about_methods and comparison.low is not None

    @property
    def pair(self) -> str:
        """Both labels: `crop − crop@init`."""
        return f"{self.first} − {self.second}"

    def turned(self) -> PairedTest:
        """Return the same as second minus first."""
        by_task = {task: comparison.turned() for task, comparison in self.by_task.items()}
        return replace(self, first=self.second, second=self.first, comparison=self.comparison.turned(), by_task=by_task)

    def row(self) -> dict[str, Any]:
        """Return what `bench run --json` prints."""
        pair = {**self.metadata, "system": self.first, "other": self.second, "measure": self.measure}
        pair |= {"family": self.family}
        return pair | self.numbers(self.comparison)

    def as_json(self) -> dict[str, Any]:
        """Return what `bench compare --json` prints: the row, the trainings of both, and every task by itself."""
        return {
            **self.row(),
            "runs": dict(zip(("system", "other"), self.comparison.seeds, strict=True)),
            "same_trainings": self.same_trainings,
            "by_task": [{"task": task, **self.numbers(test)} for task, test in self.by_task.items()],
        }


@dataclass(frozen=True)
class SeedResults:
    """A system's results in one cell of the grid of suites, regimes and data, by seed; all have the same tasks."""

    label: str
    results: Mapping[int, Result]
    deterministic: bool = False

    @property
    def any(self) -> Result:
        """One of the results."""
        return next(iter(self.results.values()))


@dataclass(frozen=True)
class Tests:
    """The tests of a table: two families, each corrected by itself.

    Args:
        pairs: of every two systems, the better one first.
        gains: of every system over its own start.
    """

    pairs: list[PairedTest] = field(default_factory=list)
    gains: list[PairedTest] = field(default_factory=list)


def all_tests(
    rows: Sequence[SeedResults],
    measure: str,
    tasks: Collection[str] | None = None,
    *,
    shares: Mapping[str, float] | None = None,
    by_task: bool = False,
) -> Tests:
    """Test every two systems on what all of them have, each on all its seeds, and every gain over a start of the table.

    Args:
        rows: systems of one suite, regime and kind of data, with unique labels.
        measure: canonical name of the measure that is tested.
        tasks: ids of tasks; default: all that all systems have with the same queries.
        shares: weight of each stratum (`TASK` or `TASK/SUBSET`) in the mean tested; a stratum without a weight is
            left out of it. Default: the unweighted mean over strata.
        by_task: also test every task by itself.

    Returns:
        The tests; none for fewer than two systems or without a stratum in common.

    Raises:
        StoreError: a bundle that is not as it was written.
    """
    values = _QueryTables(rows, [[values_of(result, measure) for result in row.results.values()] for row in rows])
    strata = {name: task for name, task in values.strata.items() if tasks is None or task in tasks}
    weights = {name: 1.0 if shares is None else shares[name] for name in strata if shares is None or name in shares}
    if len(rows) < 2 or not weights:
        return Tests()
    task_weights: dict[str, dict[str, float]] = defaultdict(dict)
    for name, task in strata.items() if by_task else ():
        task_weights[task][name] = 1.0
    every_two = list(combinations(map(str, range(len(rows))), 2))
    gains = [(label, line.start) for label, line in values.lineages.items() if line.start]
    pairs = _tests(values, measure, every_two, "pairs", weights, task_weights)
    return Tests(
        [test if test.comparison.difference >= 0 else test.turned() for test in pairs],
        _tests(values, measure, gains, "gains", weights, task_weights),
    )


def _tests(
    values: _QueryTables,
    measure: str,
    pairs: Sequence[tuple[str, str]],
    name: str,
    weights: Weights,
    task_weights: Mapping[str, Weights],
) -> list[PairedTest]:
    """Test a family of pairs, which are numbers of rows, on the headline and on each task."""
    if not pairs:
        return []
    headline = values.family({"": weights}, pairs)
    cells = values.family(task_weights, pairs) if task_weights else Family()
    tests = []
    for pair in pairs:
        by_task = {task: cells.comparison(*pair, task) for task in task_weights}
        tests.append(values.test(values.seeds(*pair), pair, measure, headline.comparison(*pair), by_task, name))
    return tests


@dataclass(frozen=True)
class ContrastTable:
    """Registered contrasts of systems on one suite, regime and kind of data.

    Args:
        metadata: `suite`, `regime` and `data`.
        rows: as for `paired_tests`.
        measure: canonical name.
        shares: weight of each stratum in the mean tested.
        contrasts: labels of the first and the second system of each.
    """

    metadata: Mapping[str, Any]
    rows: Sequence[SeedResults]
    measure: str
    shares: Mapping[str, float]
    contrasts: Sequence[tuple[str, str]]


def contrast_tests(tables: Sequence[ContrastTable]) -> list[PairedTest]:
    """Test contrasts on the headlines of several suites, corrected together.

    What trainings do to several suites is taken as it is: the same training is one source of luck in all.

    Returns:
        A test for each contrast, table by table.

    Raises:
        UsageError: a table whose rows have no stratum with the same queries.
        StoreError: a bundle that is not as it was written.
    """
    samples: dict[str, Sample] = {}
    weights: dict[str, dict[str, float]] = {}
    question_ids: dict[str, list[str]] = {}
    values, pairs = [], []
    for at, table in enumerate(tables):
        of_rows = [[values_of(result, table.measure) for result in row.results.values()] for row in table.rows]
        values.append(_QueryTables(table.rows, of_rows))
        strata = [name for name in values[at].strata if name in table.shares]
        if not strata:
            labels = ", ".join(row.label for row in table.rows)
            raise UsageError(
                where=table.metadata["suite"],
                found=f"no task on which {labels} have the same queries",
                expected="at least one",
                hint="run them again on the same data",
            )
        prefix = f"{at}\t"
        samples |= values[at].samples(strata, prefix)
        question_ids |= values[at].questions(strata, prefix)
        weights[str(at)] = {prefix + name: table.shares[name] for name in strata}
        numbers = {row.label: prefix + str(number) for number, row in enumerate(table.rows)}
        pairs.append([(numbers[first], numbers[second]) for first, second in table.contrasts])
    corrected = family(samples, weights, question_ids, [pair for of_table in pairs for pair in of_table])
    tests = []
    for at, (table, of_table) in enumerate(zip(tables, pairs, strict=True)):
        for pair in of_table:
            comparison = corrected.comparison(*pair, str(at))
            first, second = (number.removeprefix(f"{at}\t") for number in pair)
            metadata = {**table.metadata, **values[at].seeds(first, second)}
            tests.append(values[at].test(metadata, (first, second), table.measure, comparison, {}, "contrasts"))
    return tests


class _QueryTables:
    """The values of rows by number, on the strata that every run of every row has with the same queries."""

    def __init__(self, rows: Sequence[SeedResults], tables: Sequence[Sequence[QueryValues]]) -> None:
        self.rows, self.tables = rows, tables
        self.lineages = lineages({str(at): [*row.results.values()] for at, row in enumerate(rows)})
        first, *further = (table for row_tables in tables for table in row_tables)
        content = rows[0].any.content
        self.strata = {
            name: task
            for task, subsets in content.tasks.items()
            for name in (stratum(task, subset) for subset in subsets)
            if name in first and all(first[name].keys() == table.get(name, {}).keys() for table in further)
        }
        self.order = {name: sorted(first[name]) for name in self.strata}
        self.parallel = max((row.any.content.suite.parallel for row in rows), key=ORDER.index)

    def samples(self, strata: Collection[str], prefix: str = "") -> dict[str, Sample]:
        """Return the rows by number, as the tests take them; the prefix is put before their names and those of strata.

        What names the same trainings and seeds stays as it is, so that tables can be tested together.
        """
        return {
            f"{prefix}{at}": Sample(
                {
                    prefix + name: np.array(
                        [[table[name][query] for query in self.order[name]] for table in row_tables]
                    )
                    for name in strata
                },
                row.deterministic and not row.any.came_trained,
                (line := self.lineages[str(at)]).trainings,
                line.seeds,
                line.start and prefix + line.start,
            )
            for at, (row, row_tables) in enumerate(zip(self.rows, self.tables, strict=True))
        }

    def questions(self, strata: Collection[str], prefix: str = "") -> dict[str, list[str]]:
        """Return by stratum the question that each query asks, where several ask one."""
        ids = {name: questions(self.parallel, self.strata[name], self.order[name]) for name in strata}
        return {
            prefix + name: [prefix + question for question in of_queries]
            for name, of_queries in ids.items()
            if of_queries is not None
        }

    def family(self, estimand_weights: Mapping[str, Weights], pairs: Sequence[tuple[str, str]] | None = None) -> Family:
        """Compare every two rows, or pairs of them."""
        strata = {name for weights in estimand_weights.values() for name in weights}
        return family(self.samples(strata), estimand_weights, self.questions(strata), pairs)

    def seeds(self, *numbers: str) -> dict[str, list[int]]:
        """Return the seeds that two rows have between them, which a deterministic one adds nothing to."""
        rows = [self.rows[int(number)] for number in numbers]
        seeds = {seed for row in rows if not row.deterministic for seed in row.results}
        return {"seeds": sorted(seeds or {seed for row in rows for seed in row.results})}

    def test(
        self,
        metadata: Mapping[str, Any],
        pair: tuple[str, str],
        measure: str,
        comparison: Comparison,
        by_task: Mapping[str, Comparison],
        family_name: str,
    ) -> PairedTest:
        """Make a test of two rows."""
        first, second = (self.rows[int(number)].label for number in pair)
        same = self.lineages[pair[0]].trainings == self.lineages[pair[1]].trainings
        rows = [self.rows[int(number)] for number in pair]
        about_methods = all(row.deterministic or len(row.results) >= TRAININGS for row in rows)
        return PairedTest(metadata, first, second, measure, comparison, by_task, same, family_name, about_methods)


def values_of(result: Result, measure: str) -> dict[str, dict[str, float]]:
    """Read per-query values by stratum (`TASK` or `TASK/SUBSET`), then query; strata without the measure lack.

    Raises `StoreError` where a file of the bundle is missing or not as it was written.
    """
    values = {}
    for task, subsets in result.content.tasks.items():
        for subset, scored in subsets.items():
            if measure in scored.measures:
                table = result.per_query(task, subset)
                values[stratum(task, subset)] = dict(zip(table.queries, table.measures[measure], strict=True))
    return values


def stratum(task: str, subset: str) -> str:
    """Name a subset of a task as the bundle's files do: `TASK`, or `TASK/SUBSET` where it has several."""
    return f"{task}/{subset}" if subset else task
