"""When a training stands still: the rule of `--stop-when flat`, over one training's scores on dev questions.

A training ends at a look if the upper band of what it gained over the last few looks is below the least gain that is
worth going on for. The band is over questions alone, since a training has one seed. It may be read at several looks,
each of which gets an equal part of 5 %; so a training that would gain that much in expectation over every such stretch
is ended by the luck of its questions in one of twenty cases at most, as far as means of questions are normal.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean

from bench.evaluation.measures.log_rank import LOG_RANK

LOOKS = 10
"""Equal parts of the budget, after each of which a training is looked at."""
PATIENCE, LEAST = 3, 0.01
"""Looks over which a gain is counted, and the least one, where nobody says."""
_LEVEL = 0.05

Scores = Mapping[str, Mapping[str, float]]
"""Scores of an encoder by question, for each subset by its name."""


@dataclass(frozen=True)
class Gain:
    """What a training gained between two looks."""

    mean: float  # the subsets' means, averaged
    high: float  # upper end of its one-sided band; infinity where a subset has one question


def standstill(looks: Sequence[Scores], patience: int, least: float) -> Gain | None:
    """Return the gain for which a training ends at the last of its looks, None where it goes on.

    Args:
        looks: scores of the same questions after each tenth of the budget so far.
        patience: looks over which the gain is counted, 1 to `LOOKS` − 2.
        least: the gain below which a training ends.
    """
    if len(looks) <= patience:
        return None
    gain = gain_between(looks[-1 - patience], looks[-1], _LEVEL / (LOOKS - 1 - patience))
    return gain if gain.high < least else None


def gain_between(before: Scores, after: Scores, level: float) -> Gain:
    """Return the gain of the mean over subsets, whose error is over questions.

    Questions of one name in several subsets count as one question in several languages: where they are unrelated all
    the same, that makes no error smaller on average.

    Args:
        before: scores.
        after: later ones of the same questions.
        level: probability that the truth is above the band.
    """
    from scipy.special import stdtrit

    shares: dict[str, float] = defaultdict(float)  # what each question adds to the error
    means, fewest = [], inf
    for name, scores in after.items():
        gains = {question: score - before[name][question] for question, score in scores.items()}
        mean, count = fmean(gains.values()), len(gains)
        means.append(mean)
        fewest = min(fewest, count)
        for question, gain in gains.items():
            shares[question] += (gain - mean) / (len(after) * sqrt(count * max(1, count - 1)))
    if fewest < 2:
        return Gain(fmean(means), inf)
    error = sqrt(sum(share**2 for share in shares.values()))
    return Gain(fmean(means), fmean(means) + float(stdtrit(fewest - 1, 1 - level)) * error)


def reason(gain: Gain, patience: int, least: float) -> str:
    """Say why a training ended."""
    return (
        f"{LOG_RANK} on dev questions changed by {gain.mean:+.4f} over the last {patience / LOOKS:.0%} of the budget, "
        f"at most by {gain.high:+.4f}: less than {least:g}"
    )
