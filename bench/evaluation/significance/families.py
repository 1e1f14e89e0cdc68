"""Who is better than whom among many systems, decided together.

A family is a set of differences that one reader looks at, so that one error anywhere in it is an error: all pairs of
systems on the headline (`ranks`), or all pairs on every task (`cells`). Its p values are corrected by the step-down
minP method of Westfall and Young (1993; Romano and Wolf 2005 for the studentised form): a difference is as surprising
as the most surprising one of all that are not clearer than it would be if no two systems differed.

Each difference over its standard error (`bench.evaluation.significance.estimates`) is judged by Student's distribution
with its own degrees of freedom. How differences depend on each other is simulated: every question gets one random
multiplier, the same for all systems and tasks, and every training one (multiplier bootstrap, Chernozhukov, Chetverikov
and Kato 2013). Multipliers are random signs of Gaussian size. Signs alone have too light tails where differences are
skewed: of 30 questions of which one in ten loses .9 and the others gain .1, they reject 18 % at the level 5 %.

Simulated p values end at 1 / (1 + draws). Below, and wherever it is smaller, Holm's bound (1979) on the same Student p
values holds, so that there is no floor: with any number of systems a difference that is large enough is decided.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.evaluation.significance.estimates import (
    CELLS,
    TRAININGS,
    Differences,
    Estimand,
    FloatArray,
    Sample,
    Scatter,
    Values,
    Weights,
    differences,
    errors,
    estimands,
)
from bench.evaluation.tables import chance_text, points

LEVEL, POWER, COVERAGE = 0.05, 0.8, 0.95
SEED = 0
"""Of all draws: the same values always give the same numbers."""
_DRAWS = 10_000
_FEWEST = 1_000
_WORK = 1 << 29
"""Pairs times draws: a large family is drawn less often, and its small p values rest on Holm's bound."""
_CHUNK = 64  # draws, at least: rows of fewer are slow
_LEAST = 1e-300


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same queries, first minus second, in the unit of the values (fractions).

    Args:
        difference: weighted mean over strata of the mean difference.
        low: lower end of Student's 95 % interval over questions and trainings; equal to `difference` where nothing
            varies, and None where a block of strata has one question.
        high: its upper end.
        p: two-sided, of this pair alone.
        adjusted: p corrected for the family that it was tested in.
        detectable: the true difference that would be decided in this family with a probability of 80 %; None as `low`.
        effect: difference in standard deviations of the per-query differences within strata (Cohen's d_z).
        n: queries.
        wins: queries on which the first system is better.
        losses: queries on which the second is.
        seeds: trainings of both.
        checkpoints: it holds for these checkpoints only, for a method has fewer than `TRAININGS` trainings.
        holm: p corrected by Holm's bound alone, which earlier releases reported.
    """

    difference: float
    low: float | None
    high: float | None
    p: float
    adjusted: float
    detectable: float | None
    effect: float | None
    n: int
    wins: int
    losses: int
    seeds: tuple[int, int] = (1, 1)
    checkpoints: bool = False
    holm: float = 1.0

    @property
    def ties(self) -> int:
        """Queries on which both are equal."""
        return self.n - self.wins - self.losses

    @property
    def interval(self) -> str | None:
        """Both ends of the interval in points, `[39.0, 43.4]`; None where there is none."""
        return None if self.low is None or self.high is None else f"[{points(self.low)}, {points(self.high)}]"

    @property
    def decided(self) -> bool:
        """Whether it is significant in its family."""
        return self.adjusted <= LEVEL and self.difference != 0

    def turned(self) -> Comparison:
        """Return the same as second minus first."""
        return replace(
            self,
            difference=0.0 - self.difference,
            low=None if self.high is None else 0.0 - self.high,
            high=None if self.low is None else 0.0 - self.low,
            effect=None if self.effect is None else 0.0 - self.effect,
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
            "p": self.p,
            "p_t": None if self.effect is None else self.p,
            "p_adjusted": self.adjusted,
            "p_holm": self.holm,
            "checkpoints": self.checkpoints,
            "effect": self.effect,
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
        members: systems by estimand; every two of them were compared.
        table: by field of `Comparison`, a value a pair, pairs in the order of `itertools.combinations`, estimand by
            estimand; NaN where a field is None.
        runs: number of trainings by system.
        scatter: of trainings, by estimand.
    """

    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    table: Mapping[str, FloatArray] = field(default_factory=lambda: dict.fromkeys(FIELDS, np.empty(0)))
    runs: Mapping[str, int] = field(default_factory=dict)
    scatter: Mapping[str, Scatter] = field(default_factory=dict)

    def pairs(self, estimand: str = "") -> Iterator[tuple[str, str]]:
        """Yield the pairs of an estimand in the order of the table."""
        return combinations(self.members.get(estimand, ()), 2)

    @cached_property
    def _places(self) -> dict[str, tuple[int, dict[str, int]]]:
        """First row of each estimand, and the number of each of its systems."""
        start, places = 0, {}
        for estimand, names in self.members.items():
            places[estimand] = (start, {name: at for at, name in enumerate(names)})
            start += math.comb(len(names), 2)
        return places

    def has(self, first: str, second: str, estimand: str = "") -> bool:
        """Whether two systems were compared."""
        names = self.members.get(estimand, ())
        return first != second and first in names and second in names

    def decided_against(self, system: str, estimand: str = "") -> frozenset[str]:
        """Return the systems that differ significantly from one; empty where it was not compared."""
        start, places = self._places.get(estimand, (0, {}))
        if system not in places:
            return frozenset()
        names, at = tuple(places), places[system]
        rivals = np.delete(np.arange(len(names)), at)
        low, high = np.minimum(rivals, at), np.maximum(rivals, at)
        rows = start + low * len(names) - low * (low + 1) // 2 + high - low - 1
        return frozenset(names[rival] for rival in rivals[self.decided[rows]].tolist())

    def comparison(self, first: str, second: str, estimand: str = "") -> Comparison:
        """Return first minus second. Raises `KeyError` where they were not compared."""
        start, places = self._places[estimand]
        row_index, column_index = places[first], places[second]
        if row_index > column_index:
            return self.comparison(second, first, estimand).turned()
        at = start + row_index * len(places) - row_index * (row_index + 1) // 2 + column_index - row_index - 1
        row: dict[str, Any] = {name: float(column[at]) for name, column in self.table.items()}
        row = {name: None if math.isnan(value) else value for name, value in row.items()}
        row |= {name: int(row[name]) for name in ("n", "wins", "losses")}
        row["checkpoints"] = bool(row["checkpoints"])
        return Comparison(**row, seeds=(self.runs[first], self.runs[second]))

    def column(self, name: str, estimand: str = "") -> FloatArray:
        """Return a field for every pair of an estimand."""
        if estimand not in self.members:
            return np.empty(0)
        start, places = self._places[estimand]
        return self.table[name][start : start + math.comb(len(places), 2)]

    @cached_property
    def decided(self) -> npt.NDArray[np.bool_]:
        """Whether each pair is significant in the family."""
        decided: npt.NDArray[np.bool_] = (self.table["adjusted"] <= LEVEL) & (self.table["difference"] != 0)
        return decided

    @property
    def detectable(self) -> float | None:
        """The true difference that is decided with a probability of 80 %: the median over pairs."""
        finite = self.table["detectable"][np.isfinite(self.table["detectable"])]
        return float(np.median(finite)) if len(finite) else None


def family(
    systems: Mapping[str, Sample],
    weights_by_estimand: Mapping[str, Weights],
    questions: Mapping[str, Sequence[str]] | None = None,
    seed: int = SEED,
) -> Family:
    """Compare every two systems on every estimand that both have, and correct all p values together.

    Args:
        systems: values by name; on one stratum all have the same queries in the same order.
        weights_by_estimand: positive weights of strata, by estimand.
        questions: name of the question that each query asks, by stratum; default: each query asks its own.
        seed: of the simulated draws.

    Raises:
        UsageError: as `bench.evaluation.significance.estimates.estimands` does.
    """
    from scipy.special import stdtrit

    prepared = estimands(systems, weights_by_estimand, questions or {})
    judged = [_judge(estimand, differences(estimand)) for estimand in prepared.values()]
    runs = {
        name: int(count)
        for estimand in prepared.values()
        for name, count in zip(estimand.names, estimand.runs, strict=True)
    }
    members = {name: estimand.names for name, estimand in prepared.items()}
    scatter = {name: estimand.scatter for name, estimand in prepared.items()}
    if not sum(len(pairs.p) for pairs in judged):
        return Family(members, runs=runs, scatter=scatter)
    adjusted, level = _adjusted(list(prepared.values()), judged, seed)
    columns: dict[str, FloatArray] = {
        name: np.concatenate([getattr(pairs, name) for pairs in judged])
        for name in (*FIELDS, "error", "freedom")
        if name not in {"adjusted", "detectable", "holm"}
    }
    columns |= {"adjusted": adjusted, "holm": holm(columns["p"])}
    error, freedom = columns.pop("error"), columns.pop("freedom")
    with np.errstate(
        invalid="ignore"
    ):  # a true difference of as many errors as both quantiles are is found with `POWER`
        reach = error * (stdtrit(freedom, 1 - level / 2) + stdtrit(freedom, POWER))
    columns["detectable"] = np.where(error > 0, reach, np.nan)
    return Family(members, {name: columns[name] for name in FIELDS}, runs, scatter)


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


def summary(first: str, second: str, measure: str, comparison: Comparison) -> str:
    """Say a comparison of fractions: `crop − crop@init: +41.2 RR@100 points, 95 % [39.0, 43.4], p < 0.001 over …`."""
    bounds = f", 95 % {comparison.interval}" if comparison.interval else ""
    return (
        f"{first} − {second}: {points(comparison.difference, sign=True)} {measure} points{bounds}, "
        f"{chance_text(comparison.p)} over {comparison.n:,} queries"
        + (", of these checkpoints" if comparison.checkpoints else "")
    )


@dataclass(frozen=True)
class _Judged(Differences):
    """The pairs of an estimand, each by itself; `unit` is the deviation of its simulated difference."""

    low: FloatArray
    high: FloatArray
    p: FloatArray
    n: FloatArray
    checkpoints: FloatArray
    unit: FloatArray


def _judge(estimand: Estimand, pairs: Differences) -> _Judged:
    """Judge every pair by Student's distribution; without any scatter by the sign test, of which it is a tie."""
    from scipy.special import stdtr, stdtrit

    first, second = estimand.pairs
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * stdtr(pairs.freedom, -np.abs(pairs.difference / pairs.error))
        reach = np.where(pairs.error > 0, stdtrit(pairs.freedom, (1 + COVERAGE) / 2), 0.0) * pairs.error
    constant = np.where(pairs.difference == 0, 1.0, 2.0 ** max(-1000, 1 - len(estimand.parts)))
    p = np.where(pairs.error > 0, p, np.where(pairs.error == 0, constant, 1.0))
    too_few = ~estimand.random & (estimand.runs < TRAININGS) & ~estimand.deterministic
    return _Judged(
        **vars(pairs),
        low=pairs.difference - reach,
        high=pairs.difference + reach,
        p=p,
        n=np.full(len(p), float(len(estimand.queries))),
        checkpoints=(too_few[first] | too_few[second]).astype(np.float64),
        unit=_units(estimand, pairs.error),
    )


def _units(estimand: Estimand, error: FloatArray) -> FloatArray:
    """Deviation of every simulated difference: its error, but for systems from the same trainings."""
    unit, (first, second) = np.nan_to_num(error), estimand.pairs
    for at in estimand.together(first, second):
        a, b = first[at], second[at]
        between = estimand.loading(a) - estimand.loading(b)
        unit[at] = math.sqrt(float(((estimand.parts[:, a] - estimand.parts[:, b]) ** 2).sum() + between @ between))
    return unit


def holm(chances: FloatArray) -> FloatArray:
    """Return p values corrected for their number (Holm 1979), in the order given."""
    order = np.argsort(chances)
    corrected = np.empty(len(chances))
    corrected[order] = np.maximum.accumulate(np.minimum(1.0, chances[order] * np.arange(len(chances), 0, -1)))
    return corrected


def _adjusted(prepared: Sequence[Estimand], judged: Sequence[_Judged], seed: int) -> tuple[FloatArray, float]:
    """Return the p values of a family, corrected, and the level at which its clearest difference is judged."""
    from scipy.special import ndtr, ndtri

    p = np.concatenate([pairs.p for pairs in judged])
    if len(p) == 1:
        return p, LEVEL
    observed, bound, draws = -ndtri(np.maximum(p, _LEAST) / 2), holm(p), min(_DRAWS, max(_FEWEST, _WORK // len(p)))
    order = np.argsort(observed, kind="stable")
    order = order[bound[order] > 1 / (1 + draws)]  # of clearer differences, draws can say no more than the bound does
    limits, above, highest = observed[order, None].astype(np.float32), np.zeros(len(order)), []
    for simulated in _simulated(prepared, judged, seed, draws):
        above += np.count_nonzero(np.maximum.accumulate(simulated[order], axis=0) >= limits, axis=1)
        highest.append(simulated.max(axis=0))
    corrected = np.ones(len(p))
    corrected[order[::-1]] = np.maximum.accumulate((1 + above[::-1]) / (1 + draws))
    level = 2 * float(ndtr(-np.quantile(np.concatenate(highest), 1 - LEVEL)))
    return np.maximum(p, np.minimum(corrected, bound)), min(LEVEL, max(level, LEVEL / len(p)))


def _simulated(
    prepared: Sequence[Estimand], judged: Sequence[_Judged], seed: int, draws: int
) -> Iterator[npt.NDArray[np.float32]]:
    """Yield what chance makes of every pair `[pairs, draws]`, in units of its deviation, some draws at a time."""
    chance = np.random.default_rng(seed)
    questions = 1 + max(int(estimand.ids.max(initial=0)) for estimand in prepared)
    width = max(questions, sum(len(pairs.p) for pairs in judged))
    numbers = {name: hashlib.sha256(name.encode()).digest()[:8] for estimand in prepared for name in estimand.groups}
    trainings = {name: np.random.default_rng([seed, int.from_bytes(number)]) for name, number in numbers.items()}
    size = max(_CHUNK, CELLS // width)
    scales = [np.divide(1.0, pairs.unit, out=np.zeros_like(pairs.unit), where=pairs.unit > 0) for pairs in judged]
    for start in range(0, draws, size):
        count = min(size, draws - start)
        multipliers = chance.standard_normal((questions, count))
        training_multipliers: dict[str, FloatArray] = {}
        parts = []
        for estimand, scale in zip(prepared, scales, strict=True):
            values = np.nan_to_num(estimand.parts).T @ multipliers[estimand.ids]
            for at in np.flatnonzero(estimand.random).tolist():
                group, loading = estimand.groups[at], estimand.loading(at)
                if group not in training_multipliers:
                    training_multipliers[group] = trainings[group].standard_normal((len(loading), count))
                values[at] += loading @ training_multipliers[group]
            first, second = estimand.pairs
            single = values.astype(np.float32)
            parts.append(np.abs(single[first] - single[second]) * scale[:, None].astype(np.float32))
        yield np.concatenate(parts)
