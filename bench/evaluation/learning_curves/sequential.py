"""Methods tested again after every further seed: a group-sequential test of all pairs, the last look fixed beforehand.

Who tests after three seeds, after four and so on, each time at 5 %, errs in far more than 5 %. Here each look may spend
a share of the 5 %, by the O'Brien–Fleming type function of Lan and DeMets (1983), half of the level a side:

    spent(t) = 4 − 4 Φ(z / √t),   z = Φ⁻¹(1 − level / 4),   t = seeds so far / seeds at most

so that next to nothing is spent early and the last look is nearly an ordinary test. What a look has to itself follows
from the joint distribution of the looks at one pair (the recursion of Armitage, McPherson and Rowe 1969) and is a level
for p values; the p values are those that boards have, of all pairs that are left, corrected together by max-T
(`bench.evaluation.significance.families`).

- A method that is tested against the leader that was found, and only against it, is tested against the luckiest. So all
  pairs are tested; a method goes once it is decided to be below any other.
- Levels are those of one pair. Looks at the clearest of many pairs depend on each other less: of equal methods with
  normal values and known variances, looked at after 3 to 8 seeds, 8 err in 5.5 % and 12 in 5.6 % (200,000 simulated
  races). The luck of questions stays the same in all looks and works the other way; docs/calibration.md has both.
- A method that has gone counts on in the estimate of how trainings scatter, with the seeds that it has.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bench.core.errors import UsageError
from bench.evaluation.significance.estimates import Sample, Weights
from bench.evaluation.significance.families import LEVEL, SEED, family
from bench.evaluation.significance.trainings import TRAININGS, FloatArray

_NODES = 256  # of a Gauss-Legendre quadrature, over a few standard deviations


@dataclass(frozen=True)
class Look:
    """One test of a sequence.

    Args:
        seeds: trainings of each method that it looks at.
        spent: probability of an error at this look or an earlier one, if two methods are equal.
        level: up to which a p value decides at this look.
    """

    seeds: int
    spent: float
    level: float


@dataclass(frozen=True)
class PairVerdict:
    """A pair that a look has decided: `difference` is better minus worse, `adjusted` its corrected p."""

    better: str
    worse: str
    difference: float
    adjusted: float
    seeds: int


def spent(share: float, level: float = LEVEL) -> float:
    """Return how much of a level may be spent at a share of the seeds, 0 < share ≤ 1."""
    from scipy.special import ndtr, ndtri

    return 4 * float(ndtr(ndtri(level / 4) / math.sqrt(share)))


def looks_until(most: int, first: int = TRAININGS, level: float = LEVEL) -> tuple[Look, ...]:
    """Return the looks after `first`, `first` + 1, … `most` seeds.

    Args:
        most: seeds at the last look, which has to be fixed before the first.
        first: seeds at the first look.
        level: of all looks together.

    Raises:
        UsageError: `most` is less than `first`.
    """
    if most < first:
        raise UsageError(found=f"{most} seeds", expected=f"{first} or more, for the first look is after {first}")
    return levels(range(first, most + 1), level)


def levels(seeds: Sequence[int], level: float = LEVEL) -> tuple[Look, ...]:
    """Return looks after ascending numbers of seeds, of which the last has everything that is left to spend."""
    from scipy.optimize import brentq
    from scipy.special import ndtr

    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    # Of a sum of standard normals that no look has decided: where it may be, and its density there times a width.
    places, mass, before = np.zeros(1), np.ones(1), 0
    looks: list[Look] = []
    for count in seeds:
        share = spent(count / seeds[-1], level)
        spread, unspent = math.sqrt(count - before), share - (looks[-1].spent if looks else 0.0)
        most = 40 * math.sqrt(count)
        limit = float(brentq(_excess, 0.0, most, args=(unspent, places, mass, spread), xtol=1e-12))
        looks.append(Look(count, share, 2 * float(ndtr(-limit / math.sqrt(count)))))
        grid = limit * nodes
        density = np.exp(-(((grid[:, None] - places) / spread) ** 2) / 2) @ mass / (spread * math.sqrt(2 * math.pi))
        places, mass, before = grid, density * weights * limit, count
    return tuple(looks)


def _excess(limit: float, unspent: float, places: FloatArray, mass: FloatArray, spread: float) -> float:
    """Return by how much the probability of a sum beyond a limit exceeds what may be spent."""
    from scipy.special import ndtr

    return float(mass @ (ndtr((places - limit) / spread) + ndtr((-limit - places) / spread))) - unspent


def decide(
    samples: Mapping[str, Sample],
    weights: Weights,
    look: Look,
    alive: Sequence[str],
    questions: Mapping[str, Sequence[str]] | None = None,
    seed: int = SEED,
) -> tuple[PairVerdict, ...]:
    """Test all pairs of the methods that are left.

    Args:
        samples: values of all methods by name, those included that have gone, with the trainings that each has.
        weights: of strata in the mean that is tested.
        look: which one it is.
        alive: names of the methods that are left, two or more.
        questions: as in `bench.evaluation.significance.families.family`.
        seed: of the simulated draws.

    Raises:
        UsageError: a method that is left has another number of trainings than the look asks for; and as `family` does.
    """
    for name in alive:
        runs = len(np.atleast_2d(np.asarray(next(iter(samples[name].values.values())))))
        if runs != look.seeds:
            raise UsageError(where=name, found=f"{runs} trainings", expected=str(look.seeds))
    result = family(samples, {"": weights}, questions, [*combinations(alive, 2)], seed=seed, level=look.level)
    verdicts = []
    for first, second in result.pairs():
        pair = result.comparison(first, second)
        pair, names = (pair, (first, second)) if pair.difference > 0 else (pair.turned(), (second, first))
        if pair.decided_at(look.level):
            verdicts.append(PairVerdict(*names, pair.difference, pair.adjusted, look.seeds))
    return tuple(verdicts)


def undominated(alive: Sequence[str], verdicts: Sequence[PairVerdict]) -> tuple[str, ...]:
    """Return the methods that no verdict puts below another one."""
    below = {verdict.worse for verdict in verdicts}
    return tuple(name for name in alive if name not in below)
