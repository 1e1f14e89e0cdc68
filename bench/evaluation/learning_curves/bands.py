"""Which method leads at which budget, and from where on a method is flat.

All pairs of methods are compared at all points by one simultaneous band (`simultaneous`). A method leads another at
the points at which the band of their difference is without 0; a run of such points is a lead. Where the leader changes
from one run to the next, the curves cross somewhere between the two runs, and no point is claimed for the crossing.
Between points nothing is tested.

With fewer than three trainings of a method the band is over questions alone: what is found holds for these trainings.

A training that diverged has no value from there on (NaN for all questions). Its method then has no value at these
points: a mean of those that survived would speak for trainings that happened to go well.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, groupby
from typing import Any

import numpy as np

from bench.core.errors import UsageError
from bench.evaluation.learning_curves.simultaneous import Band, band
from bench.evaluation.significance.estimates import Estimand, Sample, estimands
from bench.evaluation.significance.families import SEED
from bench.evaluation.significance.trainings import TRAININGS, FloatArray
from bench.evaluation.tables import points

_NOTHING = "\0nothing"
"""A system without any gain."""


@dataclass(frozen=True)
class CurveScores:
    """Scores of trainings along the way, by question.

    Args:
        x: the points, ascending, in the axis's unit `[points]`.
        trainings: method and seed of each.
        values: in the unit of the measure (fractions), higher is better; NaN for all questions of a point at which a
            training has no value, since it diverged or was not scored `[trainings, points, questions]`.
        strata: stratum (a task, or a subset of one) of each question; empty for one stratum.
        weights: of strata in a score, which is the weighted mean of the strata's means; empty for equal ones.
        clusters: which questions are one question in several languages: the same name; empty for none.
        starts: of each training the name of the artefact that it began at; trainings of one seed and one start share
            its luck. Empty where they share nothing.
        unit: of the axis: `tokens`, `FLOPs`, `seconds`.

    Raises:
        UsageError: shapes that do not fit each other, points that do not ascend, a training twice, values that are
            infinite or NaN for some questions of a point only, names or weights that are missing or not positive.
    """

    x: FloatArray
    trainings: tuple[tuple[str, int], ...]
    values: FloatArray
    strata: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    clusters: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    unit: str = "tokens"

    def __post_init__(self) -> None:
        """Check everything against everything."""
        for name in ("x", "values"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), np.float64))
        expected = f"[{len(self.trainings)} trainings, {self.x.size} points, questions], one of each at least"
        if self.values.ndim != 3 or self.values.shape[:2] != (len(self.trainings), self.x.size) or not self.values.size:
            raise UsageError(where="a curve", found=f"values of shape {list(self.values.shape)}", expected=expected)
        if self.x.ndim != 1 or not np.isfinite(self.x).all() or (np.diff(self.x) <= 0).any() or self.x[0] <= 0:
            raise UsageError(where="a curve", found=f"points {self.x.tolist()}", expected="positive ones, ascending")
        if len({*self.trainings}) < len(self.trainings):
            repeated = next(training for training in self.trainings if self.trainings.count(training) > 1)
            raise UsageError(where=repeated[0], found=f"seed {repeated[1]} twice", expected="each training once")
        counts = {"strata": self.values.shape[2], "clusters": self.values.shape[2], "starts": len(self.trainings)}
        for name, count in counts.items():
            if len(getattr(self, name)) not in {0, count}:
                counted = f"{len(getattr(self, name))} names of {name}"
                raise UsageError(where="a curve", found=counted, expected=f"{count} or none")
        if self.weights and not {*self.strata} <= self.weights.keys():
            missing = min({*self.strata} - self.weights.keys())
            raise UsageError(where=f"stratum {missing!r}", found="no weight", expected="one for each stratum, or none")
        missing_values = np.isnan(self.values)
        partly = missing_values.any(axis=2) & ~missing_values.all(axis=2)
        for training, point in np.argwhere(partly | np.isinf(self.values).any(axis=2)).tolist():
            method, seed = self.trainings[training]
            raise UsageError(
                where=f"{method}, seed {seed}, at {amount(self.x[point])} {self.unit}",
                found="a value that is not finite",
                expected="numbers only, or NaN for all questions of a point without values",
            )

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in the order of their first trainings."""
        return tuple(dict.fromkeys(method for method, _ in self.trainings))

    def rows(self, method: str) -> list[int]:
        """Return the places of a method's trainings, by seed."""
        return sorted((at for at, (name, _) in enumerate(self.trainings) if name == method), key=self._seed)

    def _seed(self, training: int) -> int:
        return self.trainings[training][1]

    @cached_property
    def shares(self) -> FloatArray:
        """Weight of each question in a score `[questions]`."""
        strata = np.array(self.strata or ("",) * self.values.shape[2])
        names, places, sizes = np.unique(strata, return_inverse=True, return_counts=True)
        weights = np.array([self.weights.get(str(name), 1.0) for name in names])
        shares: FloatArray = (weights / weights.sum() / sizes)[places]
        return shares

    @cached_property
    def scores(self) -> FloatArray:
        """Score of each training at each point; NaN where it has none `[trainings, points]`."""
        scores: FloatArray = self.values @ self.shares
        return scores

    def mean(self, method: str) -> FloatArray:
        """Return a method's score at each point, the mean of its trainings; NaN where one has none `[points]`."""
        mean: FloatArray = self.scores[self.rows(method)].mean(axis=0)
        return mean

    def lost(self, method: str) -> dict[int, tuple[int, ...]]:
        """Return the seeds of a method that have no value, by the place of a point."""
        missing = {row: np.isnan(self.scores[row]) for row in self.rows(method)}
        lost = {
            at: tuple(self._seed(row) for row, at_points in missing.items() if at_points[at])
            for at in range(self.x.size)
        }
        return {at: seeds for at, seeds in lost.items() if seeds}

    def sample(self, method: str, values: Mapping[str, FloatArray]) -> Sample:
        """Describe a method's trainings to the tests.

        Args:
            method: its name.
            values: by stratum, of all its trainings `[trainings, questions]`.
        """
        seeds = tuple(f"{self.starts[row]}\t{self._seed(row)}" for row in self.rows(method)) if self.starts else ()
        return Sample(values, trainings=method, seeds=seeds)

    def prepared(self, by_point: Sequence[Mapping[str, FloatArray]]) -> list[Estimand]:
        """Return what the tests read, a point at a time.

        Args:
            by_point: values by method, of all its trainings `[trainings, questions]`.
        """
        strata = np.array(self.strata or ("",) * self.values.shape[2])
        places = {str(name): np.flatnonzero(strata == name) for name in np.unique(strata)}
        # An estimand has the systems that have all its strata, so that a point's strata bear the point's number.
        of_methods: dict[str, dict[str, FloatArray]] = defaultdict(dict)
        for at, by_method in enumerate(by_point):
            for method, values in by_method.items():
                of_methods[method] |= {f"{name}\t{at}": values[:, columns] for name, columns in places.items()}
        samples = {
            method: Sample(values, deterministic=True) if method == _NOTHING else self.sample(method, values)
            for method, values in of_methods.items()
        }
        questions = self.clusters or tuple(f"{stratum}\t{at}" for at, stratum in enumerate(strata.tolist()))
        clusters = {name: [questions[column] for column in columns] for name, columns in places.items()}
        weights = {name: self.weights.get(name, 1.0) for name in places}
        prepared = estimands(
            samples,
            {str(at): {f"{name}\t{at}": weight for name, weight in weights.items()} for at in range(len(by_point))},
            {f"{name}\t{at}": of_stratum for at in range(len(by_point)) for name, of_stratum in clusters.items()},
        )
        return [prepared[str(at)] for at in range(len(by_point))]


@dataclass(frozen=True)
class Run:
    """Neighbouring points at which one method leads, in the axis's unit; both ends are points."""

    leader: str
    first: float
    last: float


@dataclass(frozen=True)
class Lead:
    """Who leads whom where.

    Args:
        first: a method.
        second: another one.
        x: the points at which both have values.
        runs: runs of points at which one of the two leads, in their order; none where nobody leads.
        detectable: the gap at the last of `x` that would have been found with a probability of 80 %, as a fraction;
            None where it cannot be said.
        checkpoints: it holds for these trainings only, of which there are too few to speak of methods.
        lost: why points are missing in `x`; empty where none is.
        few_questions: both have values, and too few questions for an error of their difference.
        unit: of the axis.
    """

    first: str
    second: str
    x: tuple[float, ...]
    runs: tuple[Run, ...]
    detectable: float | None = None
    checkpoints: bool = False
    lost: str = ""
    few_questions: bool = False
    unit: str = "tokens"

    @property
    def crossings(self) -> tuple[tuple[float, float], ...]:
        """Where the curves cross: open intervals between the last point of one lead and the first of the next."""
        changes = zip(self.runs, self.runs[1:], strict=False)
        return tuple((run.last, later.first) for run, later in changes if run.leader != later.leader)

    @property
    def leader(self) -> str | None:
        """Who leads at the last point; None where nobody does."""
        return self.runs[-1].leader if self.runs and self.runs[-1].last == self.x[-1] else None

    @property
    def sentence(self) -> str:
        """Say it: `ict leads crop from 31k tokens on; crop leads up to 7.8k tokens; they cross between …`."""
        parts = [self._runs(), *([self.lost] if self.lost else [])]
        prefix = "these seeds: " if self.checkpoints else ""
        tail = "; nothing follows for the methods, of which three seeds each would tell" if self.checkpoints else ""
        return prefix + "; ".join(parts) + tail

    def _runs(self) -> str:
        if self.few_questions:
            return f"{self.first} and {self.second}: too few questions to say who leads"
        if not self.x:
            return f"{self.first} and {self.second} have no point in common"
        if not self.runs:
            shown = ""
            if self.detectable is not None:
                gap = "no gap" if self.detectable > 1 else f"a gap of {points(self.detectable)} points"
                shown = f"; {gap} there would have shown"
            span = f"up to {self._at(self.x[-1])}" if len(self.x) > 1 else f"at {self._at(self.x[-1])}"
            return f"{self.first} and {self.second}: nobody leads {span}{shown}"
        clauses = []
        for at, (leader, group) in enumerate(groupby(self.runs, lambda run: run.leader)):
            rival = "" if at else f" {self.second if leader == self.first else self.first}"
            clauses.append(f"{leader} leads{rival} {_listed([self._span(run) for run in group])}")
        spans = [f"between {amount(low)} and {self._at(high)}" for low, high in self.crossings]
        if spans:
            return f"{', '.join(clauses)}; they cross {_listed(spans)}"
        everywhere = sum(self.x.index(run.last) - self.x.index(run.first) + 1 for run in self.runs) == len(self.x)
        return clauses[0] + ("" if everywhere else "; elsewhere nobody leads")

    def _span(self, run: Run) -> str:
        if run.first == run.last:
            return f"at {self._at(run.first)}"
        if (run.first, run.last) == (self.x[0], self.x[-1]):
            return f"at every point from {amount(run.first)} to {self._at(run.last)}"
        if run.first == self.x[0]:
            return f"up to {self._at(run.last)}"
        if run.last == self.x[-1]:
            return f"from {self._at(run.first)} on"
        return f"from {amount(run.first)} to {self._at(run.last)}"

    def _at(self, x: float) -> str:
        return f"{amount(x)} {self.unit}"

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` prints it: fractions, None where a number is not defined."""
        return {
            "first": self.first,
            "second": self.second,
            "points": list(self.x),
            "runs": [{"leader": run.leader, "first": run.first, "last": run.last} for run in self.runs],
            "crossings": [list(crossing) for crossing in self.crossings],
            "detectable": self.detectable,
            "checkpoints": self.checkpoints,
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class Bands:
    """All pairs of methods at all points.

    Args:
        scores: what was compared.
        pairs: first and second of each, in the order of `itertools.combinations`.
        band: of their differences, a row a pair.
    """

    scores: CurveScores
    pairs: tuple[tuple[str, str], ...]
    band: Band

    def lead(self, first: str, second: str) -> Lead:
        """Return who leads whom where, of two methods in either order. Raises `KeyError` for one that is not there."""
        pair = (first, second) if (first, second) in self.pairs else (second, first)
        if pair not in self.pairs:
            raise KeyError((first, second))
        row = self.pairs.index(pair)
        signs, x = self.band.signs[row], self.scores.x
        if pair != (first, second):
            signs = -signs
        shared = np.isfinite(self.band.difference[row])
        compared = np.flatnonzero(shared & np.isfinite(self.band.reach[row])).tolist()
        runs = []
        for sign, group in groupby(compared, lambda at: int(signs[at])):
            places = list(group)
            if sign:
                runs.append(Run(first if sign > 0 else second, float(x[places[0]]), float(x[places[-1]])))
        detectable = float(self.band.detectable[row, compared[-1]]) if compared else np.nan
        return Lead(
            first=first,
            second=second,
            x=tuple(x[compared].tolist()),
            runs=tuple(runs),
            detectable=detectable if np.isfinite(detectable) else None,
            checkpoints=bool(self.band.checkpoints[row]),
            lost=_lost(self.scores, pair),
            few_questions=bool(shared.any() and not compared),
            unit=self.scores.unit,
        )

    @property
    def leads(self) -> tuple[Lead, ...]:
        """Who leads whom where, of every pair."""
        return tuple(self.lead(*pair) for pair in self.pairs)


def bands(scores: CurveScores, seed: int = SEED) -> Bands:
    """Compare all pairs of methods at all points, by one band that holds the truth of all with 95 %.

    Args:
        scores: of at least one method; of one there are no pairs.
        seed: of the simulated draws.

    Raises:
        UsageError: as `bench.evaluation.significance.estimates.estimands` does.
    """
    pairs = tuple(combinations(scores.methods, 2))
    defined = {method: np.isfinite(scores.mean(method)) for method in scores.methods}
    by_point = [
        {method: scores.values[scores.rows(method), at] for method, is_defined in defined.items() if is_defined[at]}
        for at in range(scores.x.size)
    ]
    return Bands(scores, pairs, band(scores.prepared(by_point), pairs, seed))


@dataclass(frozen=True)
class Flat:
    """From where on a method is flat.

    Args:
        method: its name.
        since: the first point from which on the band of what is gained up to the last point, over every point, is
            within ± `least`; None where there is none.
        end: the last point at which it has values; None where it has fewer than two.
        least: the smallest gain that could not be missed in four of five such comparisons, or the one that was named,
            as a fraction: the largest of those over the points from `since` on, or over the last but one.
        gain: what was gained from `since`, or else from the last point but one, to the end, with its band.
        checkpoints: it holds for these trainings only.
        unit: of the axis.
    """

    method: str
    since: float | None = None
    end: float | None = None
    least: float | None = None
    gain: tuple[float, float, float] | None = None
    checkpoints: bool = False
    unit: str = "tokens"

    @property
    def verdict(self) -> str:
        """Whether it is flat: `flat`, `not flat`, `not known to be flat`, or `too few points or questions`."""
        if self.end is None or self.gain is None or self.least is None:
            return "too few points or questions to say whether flat"
        if self.since is not None:
            return "flat"
        return "not flat" if self.gain[1] > 0 or self.gain[2] < 0 else "not known to be flat"

    @property
    def sentence(self) -> str:
        """Say it: `crop is flat from 250k tokens on: what it gained from there to 1M tokens is within ± 1.3 points`."""
        prefix = "these seeds: " if self.checkpoints else ""
        if self.end is None or self.gain is None or self.least is None:
            return f"{prefix}{self.method}: too few points or questions to say whether it is flat"
        # As many decimals as the margin needs, lest something be called not within ± 0.0.
        decimals = next((count for count in (1, 2, 3) if round(100 * self.least, count)), 4 if self.least else 1)
        gain, low, high = (points(value, sign=not at, decimals=decimals) for at, value in enumerate(self.gain))
        end, margin = f"{amount(self.end)} {self.unit}", f"± {points(self.least, decimals=decimals)} points"
        if self.since is not None:
            since = f"{prefix}{self.method} is flat from {amount(self.since)} {self.unit} on"
            return f"{since}: what it gained from there to {end} is within {margin}; a smaller gain could be missed"
        gained = f"over the point before it gained {gain} points [{low}, {high}]"
        return f"{prefix}{self.method} is {self.verdict} at {end}: {gained}, which is not within {margin}"

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` prints it: fractions, None where a number is not defined."""
        return {
            "method": self.method,
            "since": self.since,
            "end": self.end,
            "least": self.least,
            "gain": None if self.gain is None else list(self.gain),
            "checkpoints": self.checkpoints,
            "sentence": self.sentence,
        }


def flats(scores: CurveScores, least: float | None = None, seed: int = SEED) -> tuple[Flat, ...]:
    """Say of every method from where on it is flat: one band over all methods and points.

    Args:
        scores: of at least one method.
        least: gain that matters, as a fraction; default: at each point the smallest gain that the band would show with
            a probability of 80 %.
        seed: of the simulated draws.

    Raises:
        UsageError: a gain that is not positive; else as `bands` does.
    """
    if least is not None and not 0 < least < np.inf:
        raise UsageError(found=f"a gain of {least}", expected="a positive fraction: 0.01 for one point")
    # Gains are up to the last point of all: those of a method that has no value there are up to its own last one.
    defined_points = {method: np.flatnonzero(np.isfinite(scores.mean(method))) for method in scores.methods}
    ends = {method: int(defined_at[-1]) for method, defined_at in defined_points.items() if len(defined_at) > 1}
    by_point: list[dict[str, FloatArray]] = []
    for at in range(scores.x.size):
        gains = {
            method: scores.values[scores.rows(method), end] - scores.values[scores.rows(method), at]
            for method, end in ends.items()
            if at in defined_points[method] and at < end
        }
        by_point.append(gains | {_NOTHING: np.zeros((1, scores.values.shape[2]))})
    contrasts = [(method, _NOTHING) for method in scores.methods]
    over = band(scores.prepared(by_point), contrasts, seed)
    return tuple(_flat(scores, method, over, row, ends.get(method), least) for row, method in enumerate(scores.methods))


def _flat(scores: CurveScores, method: str, over: Band, row: int, end: int | None, least: float | None) -> Flat:
    """Read a method's row of the band of gains."""
    checkpoints = len(scores.rows(method)) < TRAININGS
    margins = (
        np.where(over.error[row] == 0, 0.0, over.detectable[row]) if least is None else np.full(scores.x.size, least)
    )
    defined = np.flatnonzero(np.isfinite(over.reach[row]) & (margins <= 1))  # no gain is more than 100 points
    if end is None or not len(defined):
        return Flat(method, checkpoints=checkpoints, unit=scores.unit)
    outer = np.maximum(np.abs(over.low[row]), np.abs(over.high[row]))
    start = None
    for at in defined[::-1].tolist():
        if outer[at] > margins[at]:
            break
        start = at
    since = defined[-1] if start is None else start
    low, high = float(over.low[row, since]), float(over.high[row, since])
    return Flat(
        method=method,
        since=None if start is None else float(scores.x[start]),
        end=float(scores.x[end]),
        least=float(margins[defined[defined >= since]].max()) if least is None else least,
        gain=(float(over.difference[row, since]), low, high),
        checkpoints=checkpoints,
        unit=scores.unit,
    )


def _lost(scores: CurveScores, methods: Iterable[str]) -> str:
    """Say why points of some methods are missing: `not compared at 1M tokens, where seed 2 of ict has no value`."""
    clauses: dict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(list)
    for method in methods:
        for at, seeds in scores.lost(method).items():
            clauses[method, seeds].append(at)
    sentences = []
    for (method, seeds), places in clauses.items():
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {_listed([*map(str, seeds)])}"
        point_list = _listed([amount(scores.x[at]) for at in places])
        sentences.append(f"not compared at {point_list} {scores.unit}, where {which} of {method} has no value")
    return "; ".join(sentences)


def _listed(words: Sequence[str]) -> str:
    """Join words: `a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def amount(x: float) -> str:
    """Print an amount of an axis with two or three digits: `31k`, `1M`, `250M`, `1.2e15`.

    >>> [amount(x) for x in (7.5, 800, 7812.5, 31250, 1e6, 39e6, 2.5e9, 1.25e15)]
    ['7.5', '800', '7.8k', '31k', '1M', '39M', '2.5G', '1.2e15']
    """
    for size, suffix in ((1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")):
        digits = f"{x / size:.2g}" if x / size < 100 else f"{x / size:.0f}"
        if float(digits) < 1000:
            return f"{float(digits):g}{suffix}"
    return f"{x:.2g}".replace("e+", "e")
