"""The guess on the way: who would not catch up even if it repeated its last gain."""

import numpy as np
import pytest

from bench.core.errors import UsageError
from bench.evaluation.learning_curves.guess import guesses
from bench.testing import fields


def seeds(mean: float, scatter: float = 0.0) -> np.ndarray:
    """Three trainings around a mean, with that standard deviation."""
    return mean + scatter * np.array([-1.0, 0.0, 1.0])


def test_a_method_may_repeat_its_last_gain_for_every_doubling_left() -> None:
    """At a quarter two doublings are left: .10 + 2 · .08 passes a leader at .25, .10 + 2 · .07 does not. No scatter."""
    before = {"leader": seeds(0.24), "steep": seeds(0.02), "slow": seeds(0.03)}
    now = {"leader": seeds(0.25), "steep": seeds(0.10), "slow": seeds(0.10)}
    made = guesses(before, now, 0.25)
    assert {name: of.dropped for name, of in made.items()} == {"leader": False, "steep": False, "slow": True}
    assert made["slow"].gain == pytest.approx(0.07)
    assert made["slow"].forecast == made["slow"].highest == pytest.approx(0.24)
    assert made["slow"].lowest == pytest.approx(0.25)


def test_scatter_of_seeds_counts_on_both_sides() -> None:
    """By hand: all scatter by .03 now and not before, so now by .03 / √3 and forecasts by 3 · .03 / √3, twice each."""
    before = {"leader": seeds(0.50), "low": seeds(0.10)}
    now = {"leader": seeds(0.50, 0.03), "low": seeds(0.12, 0.03)}
    made = guesses(before, now, 0.25)["low"]
    assert made.lowest == pytest.approx(0.50 - 2 * 0.03 / 3**0.5)
    assert made.highest == pytest.approx(0.16 + 2 * 0.09 / 3**0.5)
    assert made.dropped
    assert not guesses(before, now | {"low": seeds(0.30, 0.03)}, 0.25)["low"].dropped


def test_a_method_that_fell_is_taken_as_it_is() -> None:
    """A loss is not repeated: .24 now, not .24 − 2 · .02."""
    falling = guesses({"a": seeds(0.2), "b": seeds(0.26)}, {"a": seeds(0.23), "b": seeds(0.24)}, 0.25)["b"]
    assert falling.forecast == pytest.approx(0.20)
    assert falling.highest == pytest.approx(0.24)
    assert not falling.dropped


def test_one_seed_has_no_scatter() -> None:
    """So nothing is guessed from it."""
    with pytest.raises(UsageError, check=fields(expected="two or more, of all alike")):
        guesses({"a": np.array([0.1])}, {"a": np.array([0.2])}, 0.25)
