"""Who is better than whom among many systems, decided together.

A family is a set of differences that one reader looks at, so that one error anywhere in it is an error: all pairs of
systems on the headline or on every task, the gains of all methods over their own starts, or the contrasts that somebody
registered. Its p values are corrected by the step-down
minP method of Westfall and Young (1993; Romano and Wolf 2005 for the studentised form): a difference is as surprising
as the most surprising one of all that are not clearer than it would be if no two systems differed.

Each difference over its standard error (`bench.evaluation.significance.estimates`) is judged by Student's distribution
with its own degrees of freedom. How differences depend on each other is simulated: every question gets one random
multiplier, the same for all systems and tasks, and every seed and training one (multiplier bootstrap, Chernozhukov,
Chetverikov and Kato 2013). Multipliers are random signs of Gaussian size. Signs alone have too light tails where
differences are skewed: of 30 questions of which one in ten loses .9 and the others gain .1, they reject 18 % at the
level 5 %.

No decision hangs on the generator: while a corrected p is within `MARGIN` of its Monte-Carlo errors of the level, draws
go on, up to a limit (Gandy 2009); what is still that close then is not decided, and says so.

Simulated p values end at 1 / (1 + draws). Below, and wherever it is smaller, Holm's bound (1979) on the same Student p
values holds, so that there is no floor: with any number of systems a difference that is large enough is decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.evaluation.significance.estimates import (
    Differences,
    Estimand,
    Sample,
    Values,
    Weights,
    differences,
    errors,
    estimands,
)
from bench.evaluation.significance.luck import Scatter
from bench.evaluation.significance.simulation import Simulation
from bench.evaluation.significance.trainings import TRAININGS, FloatArray, IntArray
from bench.evaluation.tables import chance_text, interval_text

LEVEL, POWER, COVERAGE = 0.05, 0.8, 0.95
SEED = 0
"""Of all draws: the same values always give the same numbers."""
MARGIN = 4.0
"""Monte-Carlo errors between a corrected p and the level from which a decision holds."""
_DRAWS, _MOST = 10_000, 300_000
_FEWEST = 1_000
_WORK = 1 << 29
"""Pairs times draws: a large family is drawn less often, and its small p values rest on Holm's bound."""
_LARGE = 60 * 59 // 2
"""Pairs above which draws end at `_DRAWS`."""
_LEAST = 1e-300


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same queries, first minus second, in the unit of the values (fractions).

    Args:
        difference: weighted mean over strata of the mean difference.
        low: lower end of Student's 95 % interval over questions and trainings; equal to `difference` where nothing
            varies, and None where a block of strata has one question.
        high: its upper end.
        p_uncorrected: two-sided, of this pair alone.
        adjusted: p corrected for the family that it was tested in.
        chance: Monte-Carlo error of `adjusted`; 0 where nothing was drawn for it.
        reach: half of its interval in a set that holds the truth of all pairs of the family with 95 %; None as `low`.
        detectable: the true difference that would be decided in this family with a probability of 80 %; None as `low`.
        superiority: probability that a new training of the first system beats a new one of the second; None where
            neither was trained several times.
        n: queries.
        wins: queries on which the first system is better.
        losses: queries on which the second is.
        seeds: trainings of both.
        checkpoints: it holds for these checkpoints only, for a method has fewer than `TRAININGS` trainings.
        holm: p corrected by Holm's bound alone, which earlier releases reported.
        error: standard error of the difference; None as `low`.
        freedom: degrees of freedom of the error.
        luck: what trainings add to its square, without what questions do.
        luck_total: the same as measured, with it.
        luck_freedom: degrees of freedom of `luck_total`.
    """

    difference: float
    low: float | None
    high: float | None
    p_uncorrected: float
    adjusted: float
    detectable: float | None
    superiority: float | None
    n: int
    wins: int
    losses: int
    seeds: tuple[int, int] = (1, 1)
    checkpoints: bool = False
    holm: float = 1.0
    chance: float = 0.0
    reach: float | None = None
    error: float | None = None
    freedom: float | None = None
    luck: float | None = None
    luck_total: float | None = None
    luck_freedom: float | None = None

    @property
    def ties(self) -> int:
        """Queries on which both are equal."""
        return self.n - self.wins - self.losses

    @property
    def interval(self) -> str | None:
        """Both ends of the interval in points, `[39.0, 43.4]`; None where there is none."""
        return interval_text(None if self.low is None or self.high is None else (self.low, self.high))

    @property
    def simultaneous(self) -> tuple[float, float] | None:
        """Both ends of its interval in a set that holds the truth of all pairs of its family with 95 %."""
        return None if self.reach is None else (self.difference - self.reach, self.difference + self.reach)

    @property
    def settled(self) -> bool:
        """Whether more draws would not turn the decision."""
        return abs(self.adjusted - LEVEL) >= MARGIN * self.chance

    @property
    def decided(self) -> bool:
        """Whether it is significant in its family."""
        return self.decided_at(LEVEL)

    def decided_at(self, level: float) -> bool:
        """Whether it is significant at another level, to which draws were made (`family`)."""
        settled = abs(self.adjusted - level) >= MARGIN * self.chance
        return self.adjusted <= level and settled and self.difference != 0

    @property
    def chance_text(self) -> str:
        """The corrected p in words, with no more digits than its error bears."""
        return chance_text(self.adjusted, self.chance) + ("" if self.settled else ", not decided")

    def turned(self) -> Comparison:
        """Return the same as second minus first."""
        return replace(
            self,
            difference=0.0 - self.difference,
            low=None if self.high is None else 0.0 - self.high,
            high=None if self.low is None else 0.0 - self.low,
            superiority=None if self.superiority is None else 1.0 - self.superiority,
            wins=self.losses,
            losses=self.wins,
            seeds=self.seeds[::-1],
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` prints it: fractions, None where a number is not defined."""
        return {
            "difference": self.difference,
            "low": self.low,
            "high": self.high,
            "p_uncorrected": self.p_uncorrected,
            "p_adjusted": self.adjusted,
            "p_error": self.chance,
            "p_holm": self.holm,
            "decided": self.decided,
            "simultaneous": None if self.simultaneous is None else list(self.simultaneous),
            "checkpoints": self.checkpoints,
            "superiority": self.superiority,
            "detectable": self.detectable,
            "wins": self.wins,
            "ties": self.ties,
            "losses": self.losses,
            "queries": self.n,
        }


FIELDS = tuple(column.name for column in fields(Comparison) if column.name != "seeds")
"""Columns of a family's table."""


@dataclass(frozen=True)
class Family:
    """Comparisons that were corrected together.

    Args:
        members: systems by estimand.
        table: by field of `Comparison`, a value a pair, estimand by estimand; NaN where a field is None.
        runs: number of trainings by system.
        scatter: of trainings, by estimand.
        listed: by estimand the pairs of the table; default: every two of its members, in the order of
            `itertools.combinations`.
    """

    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    table: Mapping[str, FloatArray] = field(default_factory=lambda: dict.fromkeys(FIELDS, np.empty(0)))
    runs: Mapping[str, int] = field(default_factory=dict)
    scatter: Mapping[str, Scatter] = field(default_factory=dict)
    listed: Mapping[str, tuple[tuple[str, str], ...]] | None = None

    def pairs(self, estimand: str = "") -> Iterator[tuple[str, str]]:
        """Yield the pairs of an estimand in the order of the table."""
        if self.listed is not None:
            return iter(self.listed.get(estimand, ()))
        return combinations(self.members.get(estimand, ()), 2)

    def _length(self, estimand: str) -> int:
        """Number of pairs of an estimand."""
        return math.comb(len(self.members[estimand]), 2) if self.listed is None else len(self.listed[estimand])

    @cached_property
    def _places(self) -> dict[str, tuple[int, dict[str, int]]]:
        """First row of each estimand, and the number of each of its systems."""
        start, places = 0, {}
        for estimand, names in self.members.items():
            places[estimand] = (start, {name: at for at, name in enumerate(names)})
            start += self._length(estimand)
        return places

    @cached_property
    def _rows(self) -> dict[tuple[str, str, str], int]:
        """Row of every pair that is listed, by estimand, first and second."""
        return {
            (estimand, *pair): self._places[estimand][0] + at
            for estimand, pairs in (self.listed or {}).items()
            for at, pair in enumerate(pairs)
        }

    def has(self, first: str, second: str, estimand: str = "") -> bool:
        """Whether two systems were compared."""
        if self.listed is not None:
            return (estimand, first, second) in self._rows or (estimand, second, first) in self._rows
        names = self.members.get(estimand, ())
        return first != second and first in names and second in names

    def decided_against(self, system: str, estimand: str = "") -> frozenset[str]:
        """Return the systems that differ significantly from one; empty where it was not compared."""
        if self.listed is not None:
            rivals = {name: name for pair in self.pairs(estimand) if system in pair for name in pair if name != system}
            return frozenset(name for name in rivals if self.comparison(system, name, estimand).decided)
        start, places = self._places.get(estimand, (0, {}))
        if system not in places:
            return frozenset()
        names, at = tuple(places), places[system]
        others = np.delete(np.arange(len(names)), at)
        low, high = np.minimum(others, at), np.maximum(others, at)
        rows = start + low * len(names) - low * (low + 1) // 2 + high - low - 1
        return frozenset(names[rival] for rival in others[self.decided[rows]].tolist())

    def comparison(self, first: str, second: str, estimand: str = "") -> Comparison:
        """Return first minus second. Raises `KeyError` where they were not compared."""
        start, places = self._places[estimand]
        if self.listed is not None:
            if (estimand, first, second) not in self._rows:
                return self._comparison(self._rows[estimand, second, first], second, first).turned()
            return self._comparison(self._rows[estimand, first, second], first, second)
        row_index, column_index = places[first], places[second]
        if row_index > column_index:
            return self.comparison(second, first, estimand).turned()
        at = start + row_index * len(places) - row_index * (row_index + 1) // 2 + column_index - row_index - 1
        return self._comparison(at, first, second)

    def _comparison(self, at: int, first: str, second: str) -> Comparison:
        """Return a row of the table."""
        row: dict[str, Any] = {name: float(column[at]) for name, column in self.table.items()}
        row = {name: None if math.isnan(value) else value for name, value in row.items()}
        row |= {name: int(row[name]) for name in ("n", "wins", "losses")}
        row["checkpoints"] = bool(row["checkpoints"])
        return Comparison(**row, seeds=(self.runs[first], self.runs[second]))

    def column(self, name: str, estimand: str = "") -> FloatArray:
        """Return a field for every pair of an estimand."""
        if estimand not in self.members:
            return np.empty(0)
        start, _ = self._places[estimand]
        return self.table[name][start : start + self._length(estimand)]

    def column_decided(self, estimand: str = "") -> npt.NDArray[np.bool_]:
        """Return whether each pair of an estimand is significant in the family."""
        if estimand not in self.members:
            return np.zeros(0, bool)
        start, _ = self._places[estimand]
        return self.decided[start : start + self._length(estimand)]

    @cached_property
    def decided(self) -> npt.NDArray[np.bool_]:
        """Whether each pair is significant in the family."""
        adjusted = self.table["adjusted"]
        settled = np.abs(adjusted - LEVEL) >= MARGIN * self.table["chance"]
        decided: npt.NDArray[np.bool_] = (adjusted <= LEVEL) & settled & (self.table["difference"] != 0)
        return decided


def family(
    systems: Mapping[str, Sample],
    weights_by_estimand: Mapping[str, Weights],
    questions: Mapping[str, Sequence[str]] | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    seed: int = SEED,
    level: float = LEVEL,
) -> Family:
    """Compare systems on every estimand that both have, and correct all p values together.

    Args:
        systems: values by name; on one stratum all have the same queries in the same order. The scatter of trainings is
            estimated from all of them, whichever are compared.
        weights_by_estimand: positive weights of strata, by estimand.
        questions: name of the question that each query asks, by stratum; default: each query asks its own.
        pairs: first and second of each comparison; default: every two systems.
        seed: of the simulated draws.
        level: draws go on while a corrected p is close to it; what the table calls decided is so at `LEVEL`.

    Raises:
        UsageError: as `bench.evaluation.significance.estimates.estimands` does.
    """
    from scipy.special import stdtrit

    prepared = estimands(systems, weights_by_estimand, questions or {})
    listed = None
    if pairs is not None:
        listed = {
            name: tuple(pair for pair in pairs if {*pair} <= {*estimand.names}) for name, estimand in prepared.items()
        }
    judged = [
        judge(estimand, *_sides(estimand, None if listed is None else listed[name]))
        for name, estimand in prepared.items()
    ]
    runs = {
        name: int(count)
        for estimand in prepared.values()
        for name, count in zip(estimand.names, estimand.runs, strict=True)
    }
    members = {name: estimand.names for name, estimand in prepared.items()}
    scatter = {name: estimand.luck.scatter for name, estimand in prepared.items()}
    if not sum(len(estimand_pairs.p_uncorrected) for estimand_pairs in judged):
        return Family(members, runs=runs, scatter=scatter, listed=listed)
    adjusted, chance, clearest = _adjusted(list(prepared.values()), judged, seed, level)
    columns: dict[str, FloatArray] = {
        name: np.concatenate([getattr(estimand_pairs, name) for estimand_pairs in judged])
        for name in FIELDS
        if name not in {"adjusted", "chance", "detectable", "holm", "reach"}
    }
    columns |= {"adjusted": adjusted, "chance": chance, "holm": holm(columns["p_uncorrected"])}
    error, freedom = columns["error"], columns["freedom"]
    with np.errstate(invalid="ignore"):
        reach = error * stdtrit(freedom, 1 - clearest / 2)
        # A true difference of as many errors as both quantiles are is found with `POWER`.
        columns["detectable"] = np.where(error > 0, reach + error * stdtrit(freedom, POWER), np.nan)
    columns["reach"] = np.where(error == 0, 0.0, reach)
    return Family(members, {name: columns[name] for name in FIELDS}, runs, scatter, listed)


def _sides(estimand: Estimand, listed: Sequence[tuple[str, str]] | None) -> tuple[IntArray, IntArray]:
    """Return the places of both systems of every pair."""
    if listed is None:
        return estimand.pairs
    places = {name: at for at, name in enumerate(estimand.names)}
    first, second = (np.array([places[pair[side]] for pair in listed], np.int64) for side in (0, 1))
    return first, second


def stratified(
    tasks: Mapping[str, tuple[Values, Values]], questions: Mapping[str, Sequence[str]] | None = None
) -> Comparison:
    """Compare two systems, values by stratum, on the unweighted mean over strata."""
    pair = {side: Sample({task: values[at] for task, values in tasks.items()}) for at, side in enumerate(("a", "b"))}
    return family(pair, {"": dict.fromkeys(tasks, 1.0)}, questions).comparison("a", "b")


def intervals(
    systems: Mapping[str, Sample], weights: Weights, questions: Mapping[str, Sequence[str]] | None = None
) -> dict[str, tuple[float, float]]:
    """Return the 95 % interval of each system's own mean; a system is left out where a block has one question.

    It is Student's, widened on each side to Hall's (1992) where that reaches further, which takes account of skewness.
    For fewer than about 100 questions of a very skewed measure it is still too short.
    """
    from scipy.special import stdtrit

    (estimand,) = estimands(systems, {"": weights}, questions or {}).values()
    error, freedom, skewness = errors(estimand)
    with np.errstate(invalid="ignore"):
        reach = np.where(error > 0, stdtrit(freedom, (1 + COVERAGE) / 2), 0.0)
    low = estimand.means - error * np.maximum(reach, _unskewed(reach, skewness))
    high = estimand.means + error * np.maximum(reach, -_unskewed(-reach, skewness))
    return {
        name: (float(low[at]), float(high[at]))
        for at, name in enumerate(estimand.names)
        if math.isfinite(low[at] + high[at])
    }


def _unskewed(reach: FloatArray, skewness: FloatArray) -> FloatArray:
    """Invert Hall's cubic transformation of a studentised mean of that skewness."""
    skew = np.where(np.abs(skewness) < 1e-6, 1e-6, skewness)
    quantile: FloatArray = (np.cbrt(1 + skew * (reach - skew / 6)) - 1) * 3 / skew
    return quantile


@dataclass(frozen=True)
class Judged(Differences):
    """Pairs of an estimand, each by itself.

    Args:
        low: lower end of the 95 % interval.
        high: its upper end.
        p_uncorrected: two-sided.
        n: queries.
        checkpoints: 1 where a method has fewer than `TRAININGS` trainings.
    """

    low: FloatArray
    high: FloatArray
    p_uncorrected: FloatArray
    n: FloatArray
    checkpoints: FloatArray


def judge(estimand: Estimand, first: IntArray, second: IntArray) -> Judged:
    """Judge pairs by Student's distribution; without any scatter by the sign test, of which it is a tie."""
    from scipy.special import stdtr, stdtrit

    pairs = differences(estimand, first, second)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * stdtr(pairs.freedom, -np.abs(pairs.difference / pairs.error))
        reach = np.where(pairs.error > 0, stdtrit(pairs.freedom, (1 + COVERAGE) / 2), 0.0) * pairs.error
    constant = np.where(pairs.difference == 0, 1.0, 2.0 ** max(-1000, 1 - len(estimand.parts)))
    p = np.where(pairs.error > 0, p, np.where(pairs.error == 0, constant, 1.0))
    too_few = ~estimand.random & (estimand.runs < TRAININGS) & ~estimand.deterministic
    checkpoints = too_few[first] | too_few[second]
    pairs.superiority[checkpoints] = np.nan
    return Judged(
        **vars(pairs),
        low=pairs.difference - reach,
        high=pairs.difference + reach,
        p_uncorrected=p,
        n=np.full(len(p), float(len(estimand.queries))),
        checkpoints=checkpoints.astype(np.float64),
    )


def holm(chances: FloatArray) -> FloatArray:
    """Return p values corrected for their number (Holm 1979), in the order given."""
    order = np.argsort(chances)
    corrected = np.empty(len(chances))
    corrected[order] = np.maximum.accumulate(np.minimum(1.0, chances[order] * np.arange(len(chances), 0, -1)))
    return corrected


def _adjusted(
    prepared: Sequence[Estimand], judged: Sequence[Judged], seed: int, level: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return corrected p values, their Monte-Carlo errors, and the level at which the clearest difference is judged."""
    from scipy.special import ndtr, ndtri

    p = np.concatenate([pairs.p_uncorrected for pairs in judged])
    if len(p) == 1:
        return p, np.zeros(1), LEVEL
    observed, bound = -ndtri(np.maximum(p, _LEAST) / 2), holm(p)
    first = min(_DRAWS, max(_FEWEST, _WORK // len(p)))
    most = max(first, _MOST) if len(p) <= _LARGE else first
    order = np.argsort(observed, kind="stable")
    order = order[bound[order] > 1 / (1 + first)]  # of clearer differences, draws can say no more than the bound does
    limits, above, highest = observed[order, None].astype(np.float32), np.zeros(len(order)), []
    simulation, draws, target = Simulation(prepared, judged, seed), 0, first
    while True:
        while draws < target:
            simulated = simulation.draw(target - draws)
            above += np.count_nonzero(np.maximum.accumulate(simulated[order], axis=0) >= limits, axis=1)
            draws += simulated.shape[1]
            if target == first:
                highest.append(simulated.max(axis=0))
        drawn = np.zeros(len(p))
        drawn[order[::-1]] = np.maximum.accumulate((1 + above[::-1]) / (1 + draws))
        drawn[bound <= 1 / (1 + first)] = 1.0
        corrected = np.maximum(p, np.minimum(drawn, bound))
        chance = np.where(corrected == drawn, np.sqrt(drawn * (1 - drawn) / draws), 0.0)
        if draws == most or (np.abs(corrected - level) >= MARGIN * chance).all():
            break
        target = min(most, 2 * draws)
    clearest = 2 * float(ndtr(-np.quantile(np.concatenate(highest), 1 - LEVEL)))
    return corrected, chance, min(LEVEL, max(clearest, LEVEL / len(p)))
