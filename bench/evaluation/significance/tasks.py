"""Would a finding hold for other tasks? Tasks (mostly languages) as a sample of those that could have been chosen.

Tests of a board take its tasks as fixed: they ask which system is better on these. Here a task is one value, and the
question is another (Demšar 2006): how large the difference would be over tasks of this kind. Three answers, none of
which orders a board: the difference with Student's interval over tasks, the number of tasks in which the difference is
certain (partial conjunction, Benjamini and Heller 2008; for languages Dror et al. 2017), and the reliability of the
order of all systems (generalizability theory; for test collections Bodoff 2008, Urbano, Marrero and Martín 2013).

Chance of questions and trainings counts as far as it differs from task to task. What a training does to all tasks alike
does not, so intervals over tasks and the reliability are about these trainings.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.evaluation.significance.families import COVERAGE, LEVEL, Comparison
from bench.evaluation.significance.trainings import FloatArray
from bench.evaluation.tables import points

FEWEST = 3
"""Tasks below which there is no interval, and tasks or systems below which there is no reliability."""
RELIABLE = 0.95
"""The reliability that `Reliability.tasks_needed` is about."""
_DECIMALS = 12
"""Of fractions: what comes behind is rounding of the arithmetic."""
Subset = tuple[str, str]
"""A task and the name of a subset of it."""


@dataclass(frozen=True)
class OverTasks:
    """The difference of two systems over tasks, first minus second, in the unit of the values (fractions).

    Args:
        difference: weighted mean over tasks.
        low: lower end of Student's 95 % interval over tasks, of this pair alone; equal to `difference` where all tasks
            differ alike, and None for fewer than `FEWEST` tasks.
        high: its upper end.
        p_uncorrected: two-sided, of this pair alone; None as `low`.
        wins: tasks in which the first system is better.
        ties: tasks in which both are equal.
        tasks: number of tasks.
        better_in: number of tasks in at least which the first system is better, as tests of the single tasks bear out;
            None where they were not tested.
    """

    difference: float
    low: float | None
    high: float | None
    p_uncorrected: float | None
    wins: int
    ties: int
    tasks: int
    better_in: int | None = None

    @property
    def interval(self) -> str | None:
        """Both ends of the interval in points, `[0.3, 6.0]`; None where there is none."""
        return None if self.low is None or self.high is None else f"[{points(self.low)}, {points(self.high)}]"


@dataclass(frozen=True)
class Reliability:
    """How far the order of some systems would be the same for other tasks.

    Args:
        coefficient: share of systems in the variance of their means (Eρ², the generalizability coefficient): 1 where
            other tasks would give the same differences, 0 where tasks decide everything.
        tasks_needed: tasks that count alike with which it would be `RELIABLE`; None where systems do not differ more
            than tasks and chance would make them.
        systems: number of systems.
        tasks: number of tasks.
    """

    coefficient: float
    tasks_needed: int | None
    systems: int
    tasks: int

    def __str__(self) -> str:
        """Say it: `0.98 for 9 systems on 9 tasks; 4 tasks that count alike are needed for 0.95`."""
        needed = (
            "the systems do not differ more than tasks and chance make them, so no number of tasks is enough"
            if self.tasks_needed is None
            else f"{self.tasks_needed:,} tasks that count alike are needed for {RELIABLE}"
            if self.tasks_needed > 1
            else f"one task is enough for {RELIABLE}"
        )
        return f"{self.coefficient:.2f} for {self.systems} systems on {self.tasks} tasks; {needed}"


def over_tasks(
    first: Mapping[Subset, float],
    second: Mapping[Subset, float],
    weights: Mapping[Subset, float],
    tests: Mapping[str, Comparison] | None = None,
    pairs: int = 1,
) -> OverTasks:
    """Compare two systems over tasks, one value a task: the mean of its subsets by their weights.

    With `d` the differences by task, `w` the shares of tasks (their sum is 1) and `s` the standard deviation of `d`,
    the difference is `Σ w·d` and its standard error `s · √(Σ w²)`, with one degree of freedom fewer than tasks. For
    equal shares that is the paired t test over tasks. Where shares are unequal it takes tasks as equally good examples
    whatever they weigh, so that a task with a large share makes the interval longer.

    Args:
        first: fractions by subset.
        second: those of the other system.
        weights: of subsets in the mean that is compared.
        tests: of each task, first against second; without those of all tasks there is no `better_in`.
        pairs: number of pairs whose `better_in` are to hold together.
    """
    from scipy.special import stdtr, stdtrit

    tasks, share, values = _by_task([first, second], weights)
    differences = (values[0] - values[1]).round(_DECIMALS)
    difference = float(differences @ share)
    wins, ties = int((differences > 0).sum()), int((differences == 0).sum())
    better_in = None
    if tests is not None and set(tasks) <= tests.keys():
        better_in = better_in_at_least([_one_sided(tests[task]) for task in tasks], pairs)
    low = high = p = None
    if len(tasks) >= FEWEST:
        freedom = len(tasks) - 1
        if np.ptp(differences) == 0:  # nothing varies: the sign test, as for questions
            low, high, p = difference, difference, 2.0**-freedom if difference else 1.0
        else:
            error = float(differences.std(ddof=1) * math.sqrt(share @ share))
            reach = error * float(stdtrit(freedom, (1 + COVERAGE) / 2))
            low, high = difference - reach, difference + reach
            p = 2 * float(stdtr(freedom, -abs(difference) / error))
    return OverTasks(difference, low, high, p, wins, ties, len(tasks), better_in)


def better_in_at_least(p_values: Sequence[float], pairs: int = 1) -> int:
    """Return the largest `u` for which "better in at least u tasks" is significant, by partial conjunction.

    Sorted from the smallest, `p(u)` of `T` values are corrected to `(T − u + 1) · p(u)`, as Bonferroni does for the
    tasks that may be without a difference; `u` ends at the first that exceeds the level. It is too large in at most
    5 % of cases, however tasks depend on each other (parallel languages share their questions).

    Args:
        p_values: one-sided, one a task.
        pairs: number of pairs of which this is said; all their numbers hold together.
    """
    corrected = [(len(p_values) - at) * pairs * p for at, p in enumerate(sorted(p_values))]
    return next((at for at, p in enumerate(corrected) if p > LEVEL), len(corrected))


def reliability(values: Mapping[str, Mapping[Subset, float]], weights: Mapping[Subset, float]) -> Reliability | None:
    """Return how reliable the order of systems is over tasks, from a two-way table of variance.

    With `σ²_sys` the variance of systems and `σ²_res` that of systems by tasks (their interaction, and the chance of
    questions and trainings), the coefficient is `σ²_sys / (σ²_sys + σ²_res · Σ w²)`, where `Σ w²` is `1 / T` for `T`
    tasks that count alike.

    Args:
        values: fractions by system and subset. The systems are taken as a sample too, so the coefficient is that of
            systems as unlike as these: one that is far from all others raises it.
        weights: of subsets in the mean that orders the systems.

    Returns:
        None for fewer than `FEWEST` systems or tasks.
    """
    if min(len(values), len({task for task, _ in weights})) < FEWEST:
        return None
    tasks, share, table = _by_task([*values.values()], weights)
    rows, columns = table.mean(axis=1, keepdims=True), table.mean(axis=0)
    residual = table - rows - columns + table.mean()
    within = float((residual**2).sum()) / ((len(values) - 1) * (len(tasks) - 1))
    between = float(rows.var(ddof=1)) - within / len(tasks)
    if round(between, 2 * _DECIMALS) <= 0:
        return Reliability(0.0, None, len(values), len(tasks))
    needed = RELIABLE / (1 - RELIABLE) * within / between
    return Reliability(
        coefficient=between / (between + within * float(share @ share)),
        tasks_needed=max(1, math.ceil(round(needed, _DECIMALS))),
        systems=len(values),
        tasks=len(tasks),
    )


def _one_sided(test: Comparison) -> float:
    """Return the p value of "the first system is better", of the pair alone."""
    return test.p_uncorrected / 2 if test.difference > 0 else 1 - test.p_uncorrected / 2


def _by_task(
    values: Sequence[Mapping[Subset, float]], weights: Mapping[Subset, float]
) -> tuple[list[str], FloatArray, FloatArray]:
    """Return tasks, their shares (which sum to one), and values `[systems, tasks]`."""
    tasks = sorted({task for task, _ in weights})
    subsets = np.array([[weight * (subset[0] == task) for task in tasks] for subset, weight in weights.items()])
    totals = subsets.sum(axis=0)
    by_subset = np.array([[system[subset] for subset in weights] for system in values])
    return tasks, totals / totals.sum(), by_subset @ subsets / totals
