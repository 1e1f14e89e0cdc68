"""What the luck of trainings adds to the error of a mean and of a difference: systems crossed with seeds.

The value of system m trained with seed s is y[m, s] = μ[m] + σ[s] + r[m, s]. The seed's effect σ is one for all systems
whose trainings began at the same artefact with the same seed; r is what a training does by itself. Where no two systems
share a seed, σ and r cannot be separated and need not be. Sums of squares are split by the normal equations, systems
first (Henderson 1953, method III; in whole tables that is the two-way analysis of variance, and where both components
are positive, REML):

    A = SS(seeds | systems) / df_A                what seeds do, and what trainings do by themselves
    B = SS(rest) / df_B                           what trainings do by themselves
    V = (SS(seeds | systems) + SS(rest)) / k      one training of a system; k = trainings − systems = df_A + df_B

In a whole table of M systems and S seeds df_A = S − 1, df_B = (M−1)(S−1) and V = (A + (M−1) B) / M. Then

    own mean, or against a fixed system:          V / S, with Satterthwaite's degrees of freedom of A and B
    two systems with the same seeds:              2 B / S, with df_B
    two with w and v of each seed in their means: (V − B) Σ (w − v)² + B (Σ w² + Σ v²)

Components are not cut off at 0 and fitted again: where A < B, which REML answers with σ = 0 and one pooled variance, A
and B stay what they are, so that no rule changes at the boundary.

Systems that scatter alike share one variance. That they do is a pretest's word (Bartlett 1937), so it needs more than
the lack of proof: all are pooled from p = `ALIKE` on (Bancroft 1964), and only with more than `BLIND` degrees of
freedom, since two or three methods with three seeds look alike whatever they do. Otherwise a system counts with the
larger of the pooled variance and its own, which brings its own degrees of freedom. Own parts of B are Grubbs's (1948).
Where numbers of seeds differ the pool is the unweighted mean over systems, lest those with many seeds speak for the
rest; and where those with as many seeds scatter unlike the rest by the same pretest, they are pooled by themselves.

Questions scatter trainings, too. What they add is computed by the same sums of squares of each question's contributions
and taken off, since the variance over questions holds it already; degrees of freedom are of what was measured.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

TRAININGS = 3
"""From so many on, a result is about a method; below, about these checkpoints."""
ALIKE = 0.25
"""P of Bartlett's test from which scatter is pooled."""
BLIND = 7
"""Degrees of freedom of systems' own variances up to which scatter is not pooled, whatever Bartlett's test says."""


@dataclass(frozen=True)
class Variance:
    """What trainings add to the variance of estimates `[estimates]`.

    Args:
        net: without what questions add.
        total: with it, as measured.
        freedom: degrees of freedom of `total`.
    """

    net: FloatArray
    total: FloatArray
    freedom: FloatArray

    def take(self, places: IntArray) -> "Variance":
        """Return some of them."""
        return Variance(self.net[places], self.total[places], self.freedom[places])

    def put(self, places: IntArray, variance: "Variance") -> None:
        """Replace those at some places."""
        self.net[places], self.total[places], self.freedom[places] = variance.net, variance.total, variance.freedom


@dataclass(frozen=True)
class Pool:
    """The variance of one training of each system, pooled or its own.

    Args:
        net: without what questions add `[systems]`.
        total: as measured `[systems]`.
        freedom: degrees of freedom of `total` `[systems]`.
        sources: which estimate each rests on: 0 for the pool of all, further ones for the pools of those with as many
            seeds, negative ones for a system's own `[systems]`.
        pooled: the pooled variance: net, total, degrees of freedom.
        alike: p of the hypothesis that all have the same; NaN for fewer than two that can say.
    """

    net: FloatArray
    total: FloatArray
    freedom: FloatArray
    sources: IntArray
    pooled: tuple[float, float, float]
    alike: float

    def of_pairs(self, runs: IntArray, first: IntArray, second: IntArray) -> Variance:
        """Return the variances of differences of means of independent trainings (Satterthwaite 1946)."""
        parts = np.stack([self.total[side] / runs[side] for side in (first, second)])
        freedom = np.stack([self.freedom[side] for side in (first, second)])
        total: FloatArray = parts.sum(axis=0)
        one = self.sources[first] == self.sources[second]
        spread = np.where(one, total**2 / freedom[0], (parts**2 / freedom).sum(axis=0))
        net = self.net[first] / runs[first] + self.net[second] / runs[second]
        return Variance(net, total, degrees(total, spread, self.pooled[2]))


class Trainings:
    """The trainings of some systems, crossed with their seeds.

    Args:
        values: of each training `[trainings]`.
        contributions: of questions to each `[trainings, questions]`, scaled so that squares sum to a variance.
        system: of each training, from 0, ascending; each has two trainings or more `[trainings]`.
        seed: of each, from 0; the same number where trainings share start and seed `[trainings]`.
    """

    def __init__(self, values: FloatArray, contributions: FloatArray, system: IntArray, seed: IntArray) -> None:
        self.system, self.seed, self.runs = system, seed, np.bincount(system)
        centred = _centred(values[:, None], system)
        of_questions = _centred(contributions, system)
        seeds, seeds_of_questions = np.zeros_like(centred), np.zeros_like(of_questions)
        trained, count = (self.runs - 1).astype(np.float64), len(self.runs)
        freedom, own_freedom, mixing, df_seeds = np.zeros(count), np.zeros(count), np.zeros((count, count)), 0
        for rows in _components(system, seed):
            basis, members = _basis(system[rows], seed[rows]), np.unique(system[rows])
            seeds[rows] = basis @ (basis.T @ centred[rows])
            seeds_of_questions[rows] = basis @ (basis.T @ of_questions[rows])
            df_seeds += basis.shape[1]
            if len(members) > 1:
                grams = np.stack([(part.T @ part).ravel() for part in (basis[system[rows] == at] for at in members)])
                taken = grams @ np.eye(basis.shape[1]).ravel()
                freedom[members] = trained[members] - taken
                own_freedom[members] = freedom[members] * len(members) / (len(members) - 1)
                mixing[np.ix_(members, members)] = np.diag(trained[members] - 2 * taken) + grams @ grams.T
        rest, rest_of_questions = centred - seeds, of_questions - seeds_of_questions
        self.seeds, self.alone = seeds[:, 0], rest[:, 0]
        df_rest = int(trained.sum()) - df_seeds
        # A and B of the module's text, net and total.
        self.of_seeds = tuple(float((part**2).sum()) / df_seeds for part in (seeds, seeds_of_questions))
        self.df_seeds, self.scale = df_seeds, df_seeds / float(trained.sum())
        of_rest = float((rest**2).sum()) / df_rest if df_rest else 0.0
        spread = (self.scale * self.of_seeds[0]) ** 2 / df_seeds
        spread += ((1 - self.scale) * of_rest) ** 2 / df_rest if df_rest else 0.0
        whole = self.scale * self.of_seeds[0] + (1 - self.scale) * of_rest
        self.whole = _pool(
            self.runs,
            _by_system(centred, system),
            _by_system(of_questions, system),
            trained,
            trained,
            np.diag(trained),
            float(degrees(np.array(whole), np.array(spread), trained.sum())),
        )
        self.rest: Pool | None = None
        if df_rest:
            squares = _by_system(rest, system), _by_system(rest_of_questions, system)
            self.rest = _pool(self.runs, *squares, freedom, own_freedom, mixing, float(df_rest))

    @property
    def share(self) -> FloatArray:
        """Part of each seed in the mean of each system `[systems, seeds]`."""
        shares = np.zeros((len(self.runs), int(self.seed.max(initial=-1)) + 1))
        shares[self.system, self.seed] = 1.0 / self.runs[self.system]
        return shares

    def of_means(self) -> Variance:
        """Return what trainings add to the variance of each system's mean."""
        return Variance(self.whole.net / self.runs, self.whole.total / self.runs, self.whole.freedom)

    def of_pairs(self, first: IntArray, second: IntArray) -> Variance:
        """Return what trainings add to the variance of differences of means."""
        apart = self.whole.of_pairs(self.runs, first, second)
        if self.rest is None:
            return apart
        together = self.share @ self.share.T
        gap = together[first, first] + together[second, second] - 2 * together[first, second]
        rest, (net, total) = self.rest.of_pairs(self.runs, first, second), self._common()
        variance, spread = rest.total + gap * total, rest.total**2 / rest.freedom + (gap * total) ** 2 / self.df_seeds
        freedom = degrees(variance, spread, self.rest.pooled[2])
        meet = together[first, second] > 0
        return Variance(
            np.where(meet, rest.net + gap * net, apart.net),
            np.where(meet, variance, apart.total),
            np.where(meet, freedom, apart.freedom),
        )

    def _common(self) -> tuple[float, float]:
        """Return V − B, the variance of a seed's effect, net and total; 0 where it would be negative."""
        if self.rest is None:
            return 0.0, 0.0
        square, by_questions = self.of_seeds
        net, total, _ = self.rest.pooled
        return max(0.0, self.scale * (square - by_questions - net)), max(0.0, self.scale * (square - total))

    def moves(self) -> tuple[FloatArray, list[FloatArray]]:
        """Return how seeds move the mean of each system `[systems, seeds]`, and how its trainings do by themselves.

        Squares sum to the variances; signs and sizes are those that were seen, so that two estimands of the same
        trainings depend on each other as far as these do.
        """
        common, own = self._common()[0], self.whole if self.rest is None else self.rest
        effect = np.bincount(self.seed, self.seeds) / np.maximum(1, np.bincount(self.seed))
        size = float(np.mean(effect**2))
        alone = self.alone if self.rest else self.seeds
        rows = [alone[self.system == at] for at in range(len(self.runs))]
        return self.share * (effect * np.sqrt(common / size) if size else 0.0), [
            row * np.sqrt(own.net[at] / len(row) / (row @ row)) if row.any() else row for at, row in enumerate(rows)
        ]


def bartlett(variances: FloatArray, freedom: FloatArray, groups: Sequence[BoolArray] | None = None) -> float:
    """Return p of the hypothesis that variances with these degrees of freedom are equal (Bartlett 1937).

    Args:
        variances: `[systems]`, positive.
        freedom: of each.
        groups: systems within which they are to be equal; statistics of several add up. Default: all are one.

    Returns:
        NaN where no group has two.
    """
    from scipy import stats  # which takes half a second to load

    statistic, compared = 0.0, 0
    for members in groups or [np.ones(len(variances), bool)]:
        of_group, free = variances[members], freedom[members]
        if len(free) > 1:
            whole = float(free.sum())
            likelihood = float(whole * np.log(free @ of_group / whole) - free @ np.log(of_group))
            statistic += likelihood / (1 + (float((1 / free).sum()) - 1 / whole) / (3 * (len(free) - 1)))
            compared += len(free) - 1
    return float(stats.chi2.sf(statistic, compared)) if compared else float("nan")


def _pool(
    runs: IntArray,
    squares: FloatArray,
    questions: FloatArray,
    freedom: FloatArray,
    own_freedom: FloatArray,
    mixing: FloatArray,
    pooled_freedom: float,
) -> Pool:
    """Pool the variances of systems, or let a system count with its own.

    Args:
        runs: number of trainings `[systems]`.
        squares: sum over each system's trainings `[systems]`.
        questions: the part of it that questions add `[systems]`.
        freedom: degrees of freedom of the sums; 0 for systems that say nothing `[systems]`.
        own_freedom: of a system's own variance `[systems]`.
        mixing: matrix that makes the systems' variances expectations of the sums `[systems, systems]`.
        pooled_freedom: of the pooled variance.
    """
    judges = (own_freedom > TRAININGS - 1 - 1e-9) & (squares > 0)
    observed, judging = squares[judges] / own_freedom[judges], own_freedom[judges]
    alike = like_pools = bartlett(observed, judging)
    # Systems with as many seeds are pooled by their squares, and each system counts the same in the mean over them.
    groups = [members for count in np.unique(runs) if freedom[members := runs == count].sum() > 1e-9]
    weights = np.array([members.sum() for members in groups]) / sum(members.sum() for members in groups)
    sums = np.array([[squares[members].sum(), questions[members].sum()] for members in groups])
    means = sums / (free := np.array([freedom[members].sum() for members in groups]))[:, None]
    total, by_questions = (float(mean) for mean in weights @ means)
    if total > 0:
        pooled_freedom *= total**2 / float(((weights * means[:, 0]) ** 2 / free).sum()) / free.sum()
    net = max(0.0, total - by_questions)
    totals, nets = np.full(len(runs), total), np.full(len(runs), net)
    sources, free_of = np.zeros(len(runs), np.int64), np.full(len(runs), pooled_freedom)
    if (means[:, 0] > 0).all() and bartlett(means[:, 0], free) < ALIKE:
        like_pools = bartlett(observed, judging, [members[judges] for members in groups])
        for number, (members, mean, group_free) in enumerate(zip(groups, means, free, strict=True), 1):
            totals[members], nets[members] = mean[0], max(0.0, mean[0] - mean[1])
            sources[members], free_of[members] = number, group_free
    if like_pools < ALIKE or (judges.sum() > 1 and judging.sum() < BLIND + 0.5):
        variances = np.linalg.lstsq(mixing, np.stack([squares, questions], axis=1), rcond=1e-9)[0]
        own = variances[:, 0] > totals * (1 + 1e-9)
        totals[own], nets[own] = variances[own, 0], np.maximum(nets, variances[:, 0] - variances[:, 1])[own]
        sources[own], free_of[own] = -1 - np.flatnonzero(own), np.maximum(1.0, own_freedom[own])
    return Pool(nets, totals, free_of, sources, (net, total, pooled_freedom), float(alike))


def _components(system: IntArray, seed: IntArray) -> Iterator[IntArray]:
    """Yield the rows of trainings that shared seeds connect."""
    from scipy.sparse import csgraph, csr_array

    size = int(system.max()) + 1
    nodes = size + int(seed.max()) + 1
    _, numbers = csgraph.connected_components(
        csr_array((np.ones(len(system)), (system, size + seed)), shape=(nodes, nodes)), directed=False
    )
    for number in np.unique(numbers[system]):
        yield np.flatnonzero(numbers[system] == number)


def _basis(system: IntArray, seed: IntArray) -> FloatArray:
    """Return an orthonormal basis of what seeds do besides systems, of connected trainings `[trainings, seeds − 1]`."""
    _, seed = np.unique(seed, return_inverse=True)
    _, system = np.unique(system, return_inverse=True)
    indicators = _centred(np.eye(int(seed.max()) + 1)[seed], system)
    basis: FloatArray = np.linalg.svd(indicators, full_matrices=False)[0][:, : int(seed.max())]
    return basis


def _centred(values: FloatArray, system: IntArray) -> FloatArray:
    """Subtract each system's mean over trainings, of values `[trainings, columns]`."""
    starts = np.flatnonzero(np.diff(system, prepend=-1))
    means = np.add.reduceat(values, starts) / np.bincount(system)[:, None]
    centred: FloatArray = values - means[system]
    return centred


def _by_system(values: FloatArray, system: IntArray) -> FloatArray:
    """Sum the squares of values `[trainings, columns]` over each system's trainings."""
    squares: FloatArray = np.bincount(system, (values**2).sum(axis=1)).astype(np.float64)
    return squares


def degrees(total: FloatArray, spread: FloatArray, default: float) -> FloatArray:
    """Return Satterthwaite's degrees of freedom; the default where nothing scatters."""
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom: FloatArray = np.where(spread > 0, total**2 / spread, default)
    return freedom
