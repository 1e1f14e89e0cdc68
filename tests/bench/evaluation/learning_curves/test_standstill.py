"""When a training stands still, by hand and by how often the rule errs."""

from math import inf, sqrt

import numpy as np
import pytest

from bench.evaluation.learning_curves.standstill import LOOKS, gain_between, reason, standstill

START = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}
LATER = {"a": 0.2, "b": 0.5, "c": 0.4, "d": 0.7}  # 0.1, 0.3, 0.1, 0.3 more
ERROR = sqrt((4 * 0.1**2 / 3) / 4)
T2, T3 = 2.919986, 2.353363  # Student's t at 95 %, of printed tables


def test_a_gain_by_hand() -> None:
    """Its band is Student's, one-sided."""
    gain = gain_between({"sw": START}, {"sw": LATER}, 0.05)
    assert (gain.mean, gain.high) == pytest.approx((0.2, 0.2 + T3 * ERROR))


def test_subsets_count_alike_whatever_their_sizes() -> None:
    """The second, of three questions, gains nothing without error; the fewest questions give the degrees of freedom."""
    still = {"x": 0.5, "y": 0.6, "z": 0.7}
    gain = gain_between({"sw": START, "ko": still}, {"sw": LATER, "ko": still}, 0.05)
    assert (gain.mean, gain.high) == pytest.approx((0.1, 0.1 + T2 * ERROR / 2))


@pytest.mark.parametrize(("names", "error"), [("abcd", ERROR), ("wxyz", ERROR / sqrt(2))])
def test_one_question_in_two_languages_counts_once(names: str, error: float) -> None:
    """The same questions again are no more evidence than once; others are."""
    before, after = ({**dict(zip(names, scores.values(), strict=True))} for scores in (START, LATER))
    gain = gain_between({"sw": START, "ko": before}, {"sw": LATER, "ko": after}, 0.05)
    assert (gain.mean, gain.high) == pytest.approx((0.2, 0.2 + T3 * error))


def test_one_question_says_nothing() -> None:
    """It has no error that could be estimated, so that no training ends by it."""
    gain = gain_between({"sw": {"a": 0.5}}, {"sw": {"a": 0.1}}, 0.05)
    assert gain.mean == pytest.approx(-0.4)
    assert gain.high == inf


def test_the_rule_goes_by_the_last_looks_alone() -> None:
    """With a patience of 8 there is one decision, after the ninth look, at 5 %: from the first look to the ninth."""
    looks = [{"sw": START}, *[{"sw": {"a": 9.0, "b": -9.0, "c": 0.0, "d": 0.0}}] * (LOOKS - 3), {"sw": LATER}]
    high = 0.2 + T3 * ERROR
    assert all(standstill(looks[:count], 8, inf) is None for count in range(LOOKS - 1))
    assert standstill(looks, 8, high - 1e-4) is None
    gain = standstill(looks, 8, high + 1e-4)
    assert gain is not None
    assert gain.high == pytest.approx(high)
    assert reason(gain, 8, 0.4) == (
        "LogRank on dev questions changed by +0.2000 over the last 80% of the budget, at most by +0.3359: less than 0.4"
    )


def test_more_looks_share_the_level() -> None:
    """A shorter patience decides more often, each time at a smaller part of 5 %: t of 3 degrees at 5 % / 6 is 4.86."""
    gain = standstill([{"sw": START}, *[{"sw": LATER}] * 3], 3, 1.0)
    assert gain is not None
    assert (gain.high - 0.2) / ERROR == pytest.approx(4.8566, abs=1e-3)


def test_a_training_that_gains_as_much_is_seldom_ended() -> None:
    """Of trainings that gain the least amount over every stretch, at most one of twenty ends before its budget."""
    generator, worlds, patience, least = np.random.default_rng(3), 600, 3, 0.02
    wrong = 0
    for _ in range(worlds):
        expected = least / patience * np.arange(1, LOOKS)[:, None] + generator.normal(0, 0.2, 40)
        values = expected + generator.normal(0, 0.1, expected.shape)
        looks = [{"": {str(at): float(score) for at, score in enumerate(row)}} for row in values]
        wrong += any(standstill(looks[:count], patience, least) for count in range(1, LOOKS))
    assert 0.005 < wrong / worlds <= 0.05 + 2 * sqrt(0.05 * 0.95 / worlds)
