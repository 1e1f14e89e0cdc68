"""Does a number of ours agree with one that a paper printed? Agreement is shown, and not what is left without a proof.

The paper's number is one training of its method on the questions that we answered, so what may lie between the two is
the scatter of trainings and the rounding of print; questions are no excuse. Two means of one and of S trainings with
variance V differ by less than

    reach = t(.975, degrees of freedom of V) · √(V (1 + 1/S)) + half a printed unit

in 95 of 100 cases. The difference with this interval *agrees* where the interval lies within a margin (an equivalence
test, Schuirmann 1987, at 2.5 % on each side, so that what decides is the interval that is shown), *differs* where it
is clear of 0 otherwise, and *cannot tell* where it is neither. An interval of a method's own three trainings is ± 5
standard deviations wide and contains a wrong number in most cases, which is why V is pooled, and why containing a
number is not agreeing with it.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from bench.evaluation.significance.families import COVERAGE

Verdict: TypeAlias = Literal["agrees", "differs", "cannot tell"]

MARGIN = 0.01
"""One point: differences below it are none that a reader of papers would act on."""
RECOMPUTED = 0.0025
"""How far a system without trainings moves between machines, libraries and precisions. The largest change on record:
nDCG@10 of all-MiniLM-L6-v2 in bfloat16, +0.25 points on SciFact (64.51 → 64.75) and −0.07 on NFCorpus (31.59 → 31.52),
by `bench run --method pretrained --set method.precision=bfloat16 --suite beir --task scifact,nfcorpus` and without."""


@dataclass(frozen=True)
class Agreement:
    """Ours minus a paper's number, fractions.

    Args:
        verdict: what the interval says.
        difference: ours minus the paper's.
        low: lower end of the interval; None where nothing is known of the scatter.
        high: its upper end.
    """

    verdict: Verdict
    difference: float
    low: float | None = None
    high: float | None = None


def trained_reach(variance: float, freedom: float, trainings: int) -> float:
    """Return how far one more training lies from the mean of some, with 95 %.

    Args:
        variance: of one training.
        freedom: degrees of freedom of the variance.
        trainings: number in the mean.
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + COVERAGE) / 2)) * math.sqrt(variance * (1 + 1 / trainings))


def agreement(difference: float, reach: float | None, unit: float, margin: float = MARGIN) -> Agreement:
    """Judge a difference, all in fractions.

    Args:
        difference: ours minus the paper's.
        reach: what scatter may add on each side; None where nothing is known of it.
        unit: one in the last printed digit.
        margin: differences up to which two numbers agree.
    """
    if reach is None:
        return Agreement("cannot tell", difference)
    reach += unit / 2 * (1 + 1e-9)
    low, high = difference - reach, difference + reach
    if -margin <= low and high <= margin:
        return Agreement("agrees", difference, low, high)
    return Agreement("differs" if low > 0 or high < 0 else "cannot tell", difference, low, high)
