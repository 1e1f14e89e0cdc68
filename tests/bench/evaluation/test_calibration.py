"""The tests are right as often as they say: simulated boards, with the bounds of what may go wrong.

Two standard errors of a simulation are added to each bound. `make calibration` does the same with more draws, 40 and
250 systems (docs/calibration.md).
"""

import math

import numpy as np
import pytest

from bench.evaluation.significance import families
from experiments.calibration import World, coverage, errors, power, ranks, skewed, speed

DRAWS = 200
WORLDS = (World(2, 3, 0.5), World(2, 3, 1.0), World(8), World(8, 3, 1.5))


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for decisions at one level."""
    monkeypatch.setattr(families, "_DRAWS", 500)


@pytest.mark.parametrize(
    "world", [*WORLDS, World(2, parallel=0.3, tasks=11), World(8, parallel=0.1, tasks=11, queries=60)], ids=str
)
def test_equal_systems_are_told_apart_in_one_board_of_twenty(world: World) -> None:
    """Without any scatter of trainings, with it, and with parallel questions."""
    assert errors(world, DRAWS) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / DRAWS)


def test_skewed_differences_do_not_mislead() -> None:
    """Random signs alone reject 18 % here."""
    assert skewed(1_000) <= 0.08


def test_what_is_called_detectable_is_detected() -> None:
    """Four times out of five at the corrected level, trainings included; 770 of 780 pairs of 40 systems."""
    assert power(World(8), 100) == pytest.approx(0.8, abs=0.06)
    assert power(World(8, 3, 0.5), 100) == pytest.approx(0.8, abs=0.08)
    result = World(40, distance=2.0, queries=300).draw(np.random.default_rng(1))
    assert result.decided.sum() >= 770


@pytest.mark.parametrize("queries", [12, 30, 100])
def test_intervals_hold_the_truth(queries: int) -> None:
    """Of differences of reciprocal ranks."""
    assert coverage(queries, 1_000, ranks) >= 0.93


@pytest.mark.slow
@pytest.mark.alone
def test_a_board_of_250_systems_takes_a_minute() -> None:
    """Both families, seconds of a processor."""
    assert sum(speed()) <= 60
