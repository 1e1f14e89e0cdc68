"""The luck of the trainings of an estimand's systems: what it adds to errors, and how it is drawn.

Three kinds of trainings are crossed with seeds (`bench.evaluation.significance.trainings`), each by itself.

- Methods: all systems with several trainings, but for starts.
- Gains: of a system whose start was drawn with the same seeds, each training less the start that it began with. In a
  gain the luck of both is one sample.
- Starts: they are no trainings, so the scatter of methods says nothing of them, and each counts with its own where that
  is the larger.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.evaluation.significance.trainings import BoolArray, FloatArray, IntArray, Trainings, Variance, degrees

_TRAINING = "training\t"
"""How the names of those sources of luck begin that are trainings."""


@dataclass(frozen=True)
class Scatter:
    """The scatter of trainings, pooled over systems.

    Args:
        deviation: standard deviation of one training's value, without what questions add; NaN where no system has
            several trainings.
        freedom: degrees of freedom; fewer than trainings less systems where seeds move all systems alike.
        equal: p of the hypothesis that all systems scatter alike; NaN for fewer than two that can say.
        shared: part of the variance that systems of one seed have in common; NaN where no two share seeds.
        pooled: whether one variance serves all systems.
    """

    deviation: float = math.nan
    freedom: float = 0.0
    equal: float = math.nan
    shared: float = math.nan
    pooled: bool = True


@dataclass(frozen=True)
class _Crossed:
    """Some of the systems, crossed with seeds; `rows` has the place of each among them, −1 for the rest."""

    rows: IntArray
    trainings: Trainings | None


class Luck:
    """What trainings add to the systems of an estimand.

    Args:
        values: of each training, by system `[trainings]`.
        contributions: → of questions to each training of a system `[trainings, questions]`.
        random: whether a system's trainings count as drawn `[systems]`.
        seeds: what each training shares with those of other systems, by system; empty for nothing.
        starts: place of each system's start, −1 for none `[systems]`.
        groups: name of the trainings, by system; the same name means the same trainings.
    """

    def __init__(
        self,
        values: Sequence[FloatArray],
        contributions: Callable[[int], FloatArray],
        random: BoolArray,
        seeds: Sequence[tuple[str, ...]],
        starts: IntArray,
        groups: Sequence[str],
    ) -> None:
        self._values, self._random, self._starts, self._groups = values, random, starts, groups
        self._seeds = [
            names if len(names) == len(runs) else tuple(f"{at}\t{run}" for run in range(len(runs)))
            for at, (names, runs) in enumerate(zip(seeds, values, strict=True))
        ]
        gaining = [
            at
            for at, start in enumerate(starts.tolist())
            if start >= 0 and random[at] and random[start] and self._seeds[at] == self._seeds[start]
        ]
        self._begun = sorted({int(starts[at]) for at in gaining})
        methods = [at for at, runs in enumerate(values) if len(runs) > 1 and runs.any() and at not in self._begun]
        self._methods = self._crossed(methods, lambda at: values[at], contributions)
        self._gains = self._crossed(
            gaining,
            lambda at: values[at] - values[starts[at]],
            lambda at: contributions(at) - contributions(int(starts[at])),
        )
        self._own = {at: self._crossed([at], lambda at: values[at], contributions) for at in self._begun}
        self.of_means = self._of_means()

    def _crossed(
        self,
        systems: Sequence[int],
        values: Callable[[int], FloatArray],
        contributions: Callable[[int], FloatArray],
    ) -> _Crossed:
        rows = np.full(len(self._random), -1)
        rows[list(systems)] = np.arange(len(systems))
        if not systems:
            return _Crossed(rows, None)
        _, seeds = np.unique([name for at in systems for name in self._seeds[at]], return_inverse=True)
        names = np.repeat(np.arange(len(systems)), [len(self._values[at]) for at in systems])
        by_training, by_question = (np.concatenate([part(at) for at in systems]) for part in (values, contributions))
        return _Crossed(rows, Trainings(by_training, by_question, names, seeds))

    @property
    def scatter(self) -> Scatter:
        """The scatter of the methods' trainings."""
        methods = self._methods.trainings
        if methods is None:
            return Scatter()
        net, total, freedom = methods.whole.pooled
        shared = math.nan
        if methods.rest is not None and total:
            shared = max(0.0, 1 - methods.rest.pooled[1] / total)
        pooled = not methods.whole.sources.any()
        return Scatter(math.sqrt(net), freedom, methods.whole.alike, shared, pooled)

    def _of_means(self) -> Variance:
        """Return what trainings add to the variance of each system's mean `[systems]`."""
        count = len(self._random)
        variance = Variance(np.zeros(count), np.zeros(count), np.ones(count))
        for at in np.flatnonzero(self._random).tolist():
            crossed = self._own.get(at, self._methods)
            pool, row = crossed.trainings.whole, crossed.rows[at]  # type: ignore[union-attr] # it is in one of them
            net, total, freedom = pool.net[row], pool.total[row], pool.freedom[row]
            methods = self._methods.trainings
            if at in self._own and methods is not None and methods.whole.pooled[1] > total:
                net, total, freedom = methods.whole.pooled
            runs = len(self._values[at])
            variance.net[at], variance.total[at], variance.freedom[at] = net / runs, total / runs, freedom
        return variance

    def of_pairs(self, first: IntArray, second: IntArray) -> Variance:
        """Return what trainings add to the variance of differences of means `[pairs]`."""
        means = self.of_means
        total = means.total[first] + means.total[second]
        spread = means.total[first] ** 2 / means.freedom[first] + means.total[second] ** 2 / means.freedom[second]
        variance = Variance(means.net[first] + means.net[second], total, degrees(total, spread, 1.0))
        rows, methods = self._methods.rows, self._methods.trainings
        if methods is not None:
            both = np.flatnonzero(self._random[first] & self._random[second] & (rows[first] >= 0) & (rows[second] >= 0))
            variance.put(both, methods.of_pairs(rows[first[both]], rows[second[both]]))
        if self._gains.trainings is not None:
            places, systems = self._gaining(first, second)
            variance.put(places, self._gains.trainings.of_means().take(self._gains.rows[systems]))
        for at in self._together(first, second):
            gaps = self._values[first[at]] - self._values[second[at]]
            variance.net[at] = variance.total[at] = np.var(gaps, ddof=1) / len(gaps)
            variance.freedom[at] = len(gaps) - 1
        return variance

    def errors(self, first: IntArray, second: IntArray) -> IntArray:
        """Return which estimate of the trainings' variance each pair's error rests on, from 0 `[pairs]`.

        Of a pair with two it is that of the first system with another one than the pool of all.
        """
        count, rows = len(self._random), self._methods.rows
        sources = np.zeros(count, np.int64)
        sources[[*self._own]] = -1 - np.array([*self._own], np.int64)
        if self._methods.trainings is not None:
            pool = self._methods.trainings.rest or self._methods.trainings.whole
            methods = np.flatnonzero(self._random & (rows >= 0))
            found = pool.sources[rows[methods]]
            sources[methods] = np.where(found < 0, -1 - methods, found)
        pairs = np.where(sources[first] != 0, sources[first], sources[second])
        places, systems = self._gaining(first, second)
        if self._gains.trainings is not None:
            found = self._gains.trainings.whole.sources[self._gains.rows[systems]]
            pairs[places] = np.where(found < 0, -1 - systems, found)
        estimates: IntArray = np.where(pairs < 0, count - pairs, pairs)
        return estimates

    def of_one(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return the variance of the difference of one new training of each `[pairs]`; of a gain, of one new gain."""
        one = self.of_means.total * np.array([len(values) for values in self._values])
        variance: FloatArray = one[first] + one[second]
        if self._gains.trainings is not None:
            places, systems = self._gaining(first, second)
            variance[places] = self._gains.trainings.whole.total[self._gains.rows[systems]]
        return variance

    def _together(self, first: IntArray, second: IntArray) -> list[int]:
        """Return the places of the pairs of systems that come from the same trainings."""
        if len(set(self._groups)) == len(self._groups):
            return []
        both = np.flatnonzero(self._random[first] & self._random[second])
        return [at for at in both.tolist() if self._groups[first[at]] == self._groups[second[at]]]

    def _gaining(self, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
        """Return the places of the pairs of a system and the start that it began with, and their systems."""
        at, turned = (
            np.flatnonzero((self._gains.rows[side] >= 0) & (self._starts[side] == rival))
            for side, rival in ((first, second), (second, first))
        )
        return np.concatenate([at, turned]), np.concatenate([first[at], second[turned]])

    def columns(self, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
        """Return for every pair the columns of `moves` whose difference is that of the pair."""
        first, second = first.copy(), second.copy()
        places, systems = self._gaining(first, second)
        count = len(self._random)
        turned = first[places] != systems
        rows = self._gains.rows[systems] + 2 * count
        starts = self._starts[systems] + count
        first[places], second[places] = np.where(turned, starts, rows), np.where(turned, rows, starts)
        return first, second

    @property
    def column_systems(self) -> IntArray:
        """The system of every column of `moves`: all, all without their luck, and all that gain."""
        systems = np.arange(len(self._random))
        if self._gains.trainings is None:
            return systems
        return np.concatenate([systems, systems, np.flatnonzero(self._gains.rows >= 0)])

    def alone(self) -> dict[str, FloatArray]:
        """Return how far what each training does by itself moves every column of `moves`, by source."""
        return {name: move for name, move in zip(*self.moves(), strict=True) if name.startswith(_TRAINING)}

    def estimates(self, names: Sequence[str], first: IntArray, second: IntArray) -> list[str]:
        """Name the estimate of `errors` that each pair rests on: the same in every estimand.

        Args:
            names: of all systems.
            first: place of each pair's first system.
            second: place of its second.
        """
        count = len(names)
        return [f"pool {at}" if at <= count else f"own {names[at - count - 1]}" for at in self.errors(first, second)]

    def moves(self) -> tuple[list[str], FloatArray]:
        """Return sources of luck, and how far a standard normal of each moves every column `[sources, columns]`.

        A source is a seed, a gain's seed, or a training; a name means the same source in every estimand.
        """
        count, systems = len(self._random), self.column_systems
        sources: dict[str, FloatArray] = {}

        def add(name: str, column: int, move: float) -> None:
            sources.setdefault(name, np.zeros(len(systems)))[column] += move

        kinds = [(crossed, "seed", 0) for crossed in (self._methods, *self._own.values())]
        kinds.append((self._gains, "gain", 2 * count))
        for crossed, kind, offset in kinds:
            if crossed.trainings is None:
                continue
            common, alone = crossed.trainings.moves()
            for at in np.flatnonzero(self._random & (crossed.rows >= 0)).tolist():
                row = crossed.rows[at]
                column = offset + row if offset else at
                seeds = sorted({name for system in np.flatnonzero(crossed.rows >= 0) for name in self._seeds[system]})
                for run, move in enumerate(alone[row].tolist()):
                    add(f"{_TRAINING}{self._groups[at]}\t{run}", column, move)
                for seed in np.flatnonzero(common[row]).tolist():
                    add(f"{kind}\t{seeds[seed]}", column, float(common[row, seed]))
        return list(sources), np.stack([*sources.values()]) if sources else np.zeros((0, len(systems)))
