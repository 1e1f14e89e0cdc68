"""The band keeps its level where curves are equal and where they cross: simulated, with few draws.

`make calibration` does the same with more draws and more worlds (docs/calibration.md).
"""

import math

import numpy as np
import pytest

from experiments.curve_worlds import NOISE, SCATTER, SKILL, CurveWorld, measured

DRAWS = 40
MOST = 0.06 + 2 * math.sqrt(0.06 * 0.94 / DRAWS)


@pytest.mark.parametrize(
    "world",
    [CurveWorld(2, 3, path=1.0), pytest.param(CurveWorld(8, 3, "lines", tasks=(60, 60)), marks=pytest.mark.slow)],
    ids=str,
)
def test_false_leads_are_rare(world: CurveWorld) -> None:
    """Two equal methods; eight of which each pair meets a tie of its own."""
    assert measured("false leads", world, DRAWS)["false leads"][0] <= MOST


def test_a_clear_lead_is_found() -> None:
    """Eight points between one of four methods and the rest, and nothing false beside it."""
    estimates = measured("leads found", CurveWorld(4, 5, gap=8.0, tasks=(60, 60)), 20)
    assert estimates["leads found"][0] >= 0.9
    assert estimates["false leads"][0] <= 0.06 + 2 * math.sqrt(0.06 * 0.94 / 20)


@pytest.mark.slow
def test_intervals_of_exponents_hold_the_truth() -> None:
    """In most worlds; and no method that rises is flat."""
    world = CurveWorld(4, 5, "rising", tasks=(60, 60))
    share = measured("exponents", world, 15)["exponents"][0]
    assert share >= 0.93 - 2 * math.sqrt(0.06 * 0.94 / 60)
    assert measured("false flats", world, 15)["false flats"][0] <= 0.06 + 2 * math.sqrt(0.06 * 0.94 / 15)


def test_a_world_draws_what_it_says() -> None:
    """Curves that cross where they should, scatter, and paths."""
    pairs = CurveWorld(8, 3, "pairs").truth
    assert [int(np.flatnonzero(pairs[at] == pairs[at + 1])[0]) for at in (0, 2, 4, 6)] == [1, 3, 5, 7]
    lines = CurveWorld(8, 3, "lines").truth
    first, second = np.triu_indices(8, 1)
    assert np.count_nonzero((lines[first] == lines[second]).any(axis=1)) == 22
    world = CurveWorld(300, 2, gap=60.0, tasks=(40,))
    scores = world.draw(np.random.default_rng(1))
    values = 100 * scores.values.reshape(300, 2, 8, 40)
    apart = values[:, 0] - values[:, 1]
    between = 2 * 0.8 * SCATTER**2
    assert np.var(apart.mean(axis=2)) == pytest.approx(between + 2 * NOISE**2 / 40, rel=0.1)
    assert np.var(apart) == pytest.approx(between + 2 * NOISE**2, rel=0.05)
    methods = values[1:].mean(axis=1) - values[1:].mean(axis=(0, 1))
    assert np.var(methods) == pytest.approx(SKILL**2 + NOISE**2 / 2 + 0.8 * SCATTER**2 / 2, rel=0.1)
    assert np.corrcoef(methods[:, 3].ravel(), methods[:, 4].ravel())[0, 1] == pytest.approx(0.76, abs=0.05)
    rest = np.mean([scores.mean(f"{at:03}") for at in range(1, 300)])
    assert 100 * (scores.mean("000").mean() - rest) == pytest.approx(60, abs=4)
