"""Trials: drawn by seed alone, the defaults first, within the space, without repeats where the space is small."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.config.spaces import Choice, LogUniform, Space, Uniform
from bench.core.errors import UsageError
from bench.studies.trials import Trial, best, draw

POOLING = Choice(("mean", "cls"))
SPACE: dict[str, Space] = {"rate": LogUniform(1e-4, 1e-1), "share": Uniform(0.0, 1.0), "pooling": POOLING}
DEFAULTS = {"rate": 2e-3, "share": 0.1, "pooling": "mean"}


@settings(max_examples=50, deadline=None)
@given(trials=st.integers(1, 20), more=st.integers(0, 10), seed=st.integers(0, 1000))
def test_fewer_trials_are_the_first_of_more(trials: int, more: int, seed: int) -> None:
    """So that sixteen after eight cost eight; the first is the defaults, and the same seed draws the same."""
    some = draw(SPACE, DEFAULTS, trials, seed)
    assert some == draw(SPACE, DEFAULTS, trials + more, seed)[:trials]
    assert some[0] == {}
    assert len(some) == trials
    for values in some[1:]:
        assert values.keys() == SPACE.keys()
        assert 1e-4 <= values["rate"] <= 1e-1
        assert 0 <= values["share"] <= 1
        assert values["pooling"] in {"mean", "cls"}


def test_draws_are_of_their_scale_and_can_be_typed() -> None:
    """Half of a logarithmic space lies below the geometric middle, 10^-2.5; four significant digits; by seed."""
    drawn = draw(SPACE, DEFAULTS, 2001, 3)[1:]
    assert sum(one["rate"] < 10**-2.5 for one in drawn) == pytest.approx(1000, abs=70)
    assert sum(one["share"] < 0.5 for one in drawn) == pytest.approx(1000, abs=70)
    assert sum(one["pooling"] == "cls" for one in drawn) == pytest.approx(1000, abs=70)
    for values in draw(SPACE, DEFAULTS, 50, 1)[1:]:
        for key in ("rate", "share"):
            assert values[key] == float(f"{values[key]:.4g}")
    assert draw(SPACE, DEFAULTS, 5, 0) != draw(SPACE, DEFAULTS, 5, 1)


def test_a_small_space_is_drawn_without_repeats_and_runs_out() -> None:
    """2 × 3 combinations: the defaults and the five others, each once; or the defaults alone."""
    space: dict[str, Space] = {"a": Choice((1, 2)), "b": Choice(("x", "y", "z"))}
    drawn = draw(space, {"a": 1, "b": "y"}, 100, 0)
    assert drawn[0] == {}
    assert sorted((one["a"], one["b"]) for one in drawn[1:]) == [(1, "x"), (1, "z"), (2, "x"), (2, "y"), (2, "z")]
    assert draw(space, {"a": 1, "b": "y"}, 3, 0) == drawn[:3]
    assert draw({}, {}, 8, 0) == [{}]
    assert draw({"a": Choice((1,))}, {"a": 1}, 8, 0) == [{}]


def _trial(number: int, score: float | None) -> Trial:
    return Trial(number, {}, score, {}, 0.0, {}, "" if score is not None else "the loss is nan")


def test_the_first_of_equal_scores_wins_and_failures_never() -> None:
    """By hand."""
    assert best([_trial(0, 0.5), _trial(1, None), _trial(2, 0.7), _trial(3, 0.7)]).number == 2
    assert best([_trial(0, 0.0), _trial(1, None)]).number == 0
    with pytest.raises(UsageError, match="all 1 trials failed; the first one said: the loss is nan"):
        best([_trial(0, None)])
    assert best([_trial(0, 0.1), _trial(1, 0.2)]).score == 0.2
