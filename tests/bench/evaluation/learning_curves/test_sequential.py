"""The group-sequential test: levels of its looks, and what they decide."""

import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import multivariate_normal

from bench.core.errors import UsageError
from bench.evaluation.learning_curves.sequential import PairVerdict, decide, levels, looks_until, spent, undominated
from bench.evaluation.significance.estimates import Sample
from bench.testing import fields
from experiments import races


def test_limits_are_those_of_a_published_table() -> None:
    """Looks at a quarter, half, three quarters and all, 5 % a side: README of SeqBounds.jl, O'Brien-Fleming.

    That table is of one side; a path that leaves on both is so rare that two sides of 5 % have the same limits.
    """
    looks = levels([1, 2, 3, 4], 0.1)
    assert [-ndtri(look.level / 2) for look in looks] == pytest.approx([3.74955, 2.53993, 2.01604, 1.72014], abs=1e-4)
    shares = [8.85754e-5, 0.0055746, 0.0236251, 0.05]
    assert [look.spent / 2 for look in looks] == pytest.approx(shares, rel=1e-5)


@pytest.mark.parametrize("seeds", [(3, 4), (3, 4, 5), (3, 5, 8)])
def test_what_may_be_spent_is_spent(seeds: tuple[int, ...]) -> None:
    """The chance that no look at one pair exceeds its limit, by scipy's multivariate normal distribution."""
    looks = levels(seeds)
    limits = np.array([-ndtri(look.level / 2) for look in looks])
    together = [[math.sqrt(min(one, other) / max(one, other)) for other in seeds] for one in seeds]
    inside = multivariate_normal.cdf(limits, cov=np.array(together), lower_limit=-limits, rng=0)
    assert inside == pytest.approx(0.95, abs=1e-4)
    assert looks[-1].spent == pytest.approx(0.05)


def test_one_look_is_an_ordinary_test() -> None:
    """All of the level, at once; and early looks have next to nothing of it."""
    (only,) = looks_until(3)
    assert (only.seeds, round(only.spent, 9), round(only.level, 9)) == (3, 0.05, 0.05)
    assert [look.seeds for look in looks_until(6)] == [3, 4, 5, 6]
    assert spent(3 / 8) < 0.001 < spent(0.5)


def test_too_few_seeds_are_refused() -> None:
    """Three is the least."""
    with pytest.raises(UsageError, check=fields(found="2 seeds")):
        looks_until(2)


def sample(seed: int, points: float, seeds: int, scatter: float = 1.0) -> Sample:
    """A method whose trainings scatter about some points, on forty questions."""
    draw = np.random.default_rng(seed)
    hard = np.random.default_rng(0).normal(size=40)
    trainings = points + scatter * draw.normal(size=seeds)
    values = (hard + trainings[:, None] + 0.5 * draw.normal(size=(seeds, 40))) / 100
    return Sample({"": values}, seeds=tuple(map(str, range(seeds))))


def test_what_is_clear_is_decided_early_and_the_rest_goes_on() -> None:
    """Twenty points at the first look; two points then not, though a test of three seeds alone would say so."""
    samples = {"high": sample(1, 22.0, 3), "next": sample(2, 20.0, 3, 0.2), "low": sample(3, 0.0, 3, 0.2)}
    first, *_ = looks_until(8)
    verdicts = decide(samples, {"": 1.0}, first, [*samples])
    assert {(verdict.better, verdict.worse) for verdict in verdicts} == {("high", "low"), ("next", "low")}
    assert all(verdict.seeds == 3 and 0.15 < verdict.difference < 0.25 for verdict in verdicts)
    assert all(verdict.adjusted <= first.level for verdict in verdicts)
    assert undominated([*samples], verdicts) == ("high", "next")
    alone = decide({name: samples[name] for name in ("low", "high")}, {"": 1.0}, first, ("low", "high"))
    assert [(verdict.better, verdict.worse) for verdict in alone] == [("high", "low")]


def test_pairs_of_methods_that_have_gone_are_not_tested() -> None:
    """They lend their scatter, with the seeds that they have."""
    samples = {"a": sample(1, 9.0, 4), "b": sample(2, 9.0, 4), "gone": sample(3, 0.0, 3)}
    assert not decide(samples, {"": 1.0}, looks_until(8)[1], ("a", "b"))
    with pytest.raises(UsageError, check=fields(where="gone", found="3 trainings", expected="4")):
        decide(samples, {"": 1.0}, looks_until(8)[1], [*samples])


def test_a_method_goes_that_is_below_any_other() -> None:
    """Not only below the leader."""
    verdicts = [PairVerdict("b", "c", 0.1, 0.001, 3)]
    assert undominated(["a", "b", "c"], verdicts) == ("a", "b")


def test_equal_methods_keep_the_level_and_a_lead_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By simulation, two methods, looks after three, four and five seeds; naive looks err in a tenth and more."""
    for name, value in {"_DRAWS": 500, "_MOST": 500, "MARGIN": 0.0}.items():
        monkeypatch.setattr(f"bench.evaluation.significance.families.{name}", value)
    worlds = 120
    equal = races.tally(races.spread(0, 5, 2), worlds, guess=False)
    assert equal["false"][0] <= 0.06 + 2 * math.sqrt(0.06 * 0.94 / worlds)
    apart = races.tally(races.spread(8, 5, 2), 40, guess=False)
    assert apart["false"][0] == apart["best by test"][0] == 0
    assert apart["alone"][0] > 0.8
    assert apart["work"][0] < 0.95
