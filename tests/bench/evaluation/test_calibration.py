"""The tests are right as often as they say: simulated boards, with the bounds of what may go wrong.

Two standard errors of a simulation are added to each bound. `make calibration` does the same with more draws and more
worlds (docs/calibration.md).
"""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.evaluation.significance import families
from bench.evaluation.significance.simulation import _interpolated
from experiments import calibration
from experiments.calibration import World, bounds, coverage, keeps, power, ranks, skewed, speed, tally

DRAWS = 100
MOST = 0.06 + 2 * math.sqrt(0.06 * 0.94 / DRAWS)
WORLDS = (
    World(2, 3, 0.5),
    World(2, 3, 1.0),
    World(8),
    World(8, 3, 1.5),
    World(2, parallel=0.3, tasks=(120,) * 11),
    World(8, parallel=0.1, tasks=(60,) * 11),
    World(8, prevalence=0.02),
    World(8, missing=0.4),
)
UNLIKE = World(6, 3, 1.2, noisy=3, times=5.0)
LUCKY = World(6, 3, 1.7, luck=0.8, fixed=True)
GAINS = World(8, 3, 1.2, luck=0.0, start=2.2, carried=1.0, lead=4.0, leading=4, tasks=(30, 60, 120, 190, 200))


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for decisions at one level, and what is close to it is decided, too."""
    monkeypatch.setattr(families, "_DRAWS", 500)
    monkeypatch.setattr(families, "_MOST", 500)
    monkeypatch.setattr(families, "MARGIN", 0.0)


QUICK = (WORLDS[0], UNLIKE)


@pytest.mark.parametrize(
    "world",
    [pytest.param(world, marks=() if world in QUICK else pytest.mark.slow) for world in (*WORLDS, UNLIKE)],
    ids=str,
)
def test_equal_systems_are_told_apart_in_one_board_of_twenty(world: World) -> None:
    """With and without scatter of trainings, equal or not; parallel questions, few hits, missing tasks."""
    assert tally(world, DRAWS)["errors"][0] <= MOST


@pytest.mark.slow
def test_luck_of_a_seed_is_neither_a_difference_nor_hidden_by_one() -> None:
    """Methods that share it differ in few worlds, intervals hold the truth, and 5 points are seen in most."""
    estimates = tally(LUCKY, DRAWS)
    assert estimates["errors"][0] <= MOST
    for of in ("cover", "cover of fixed", "own cover"):
        share, error = estimates[of]
        assert 0.94 - 2 * error <= share <= 0.96 + 2 * error, of
    assert tally(replace(LUCKY, fixed=False, lead=5.0), DRAWS // 2)["power"][0] >= 0.9


def test_gains_are_judged_with_the_start_of_their_seed() -> None:
    """Four methods of eight gain 4 points, and all keep the luck of their start, which is twice that of a training."""
    estimates = tally(GAINS, DRAWS)
    assert estimates["errors"][0] <= MOST
    share, error = estimates["cover"]
    assert 0.94 - 2 * error <= share <= 0.96 + 2 * error
    share, error = estimates["power"]
    assert share >= 0.86 - 2 * error


def test_unequal_scatter_of_two_methods_is_called_so() -> None:
    """Three trainings say it in most worlds where one scatters five times as much, and in one of four where not."""
    world = World(2, 3, 1.2)
    share, error = tally(world, DRAWS)["unequal"]
    assert abs(share - 0.25) <= 2 * error
    assert tally(replace(world, noisy=1, times=5.0), DRAWS)["unequal"][0] >= 0.6


def test_a_world_draws_what_it_says() -> None:
    """Means, scatter of trainings, the luck of seeds and of starts, few hits, zeros, missing tasks."""
    draw = np.random.default_rng(1)
    world = World(4, 3, 2.0, noisy=2, times=3.0, noisy_seeds=5, luck=0.5, start=4.0, carried=0.5, lead=7.0)
    drawn = [world.skills(draw) for _ in range(4_000)]
    assert [len(drawn[0][name]) for name in ("000", "003", "start")] == [3, 5, 5]
    first, other, noisy, start = (
        np.array([skills[name][:3] for skills in drawn]) for name in ("000", "001", "002", "start")
    )
    assert np.mean(first) - np.mean(other) == pytest.approx(7, abs=0.2)
    # A quarter of the starts' variance 16 is carried; of the trainings' own 4 and 36, half is common to a seed.
    for values, variance in ((other, 4 + 4), (noisy, 4 + 36), (start, 16)):
        assert np.var(values) == pytest.approx(variance, rel=0.05)
    assert np.mean(other * noisy) == pytest.approx(4 + 0.5 * 2 * 6, rel=0.07)
    assert np.mean(other[:, 0] * noisy[:, 1]) == pytest.approx(0, abs=1)
    samples = world.samples(draw)
    assert samples["000"].seeds == samples["start"].seeds[:3] == samples["003"].seeds[:3]
    assert (samples["000"].start, samples["start"].start) == ("start", "")

    hits = World(3, 3, 1.2, prevalence=0.02, tasks=(20_000,)).samples(draw)
    assert np.mean([sample.values["0"] for sample in hits.values()]) == pytest.approx(0.02, rel=0.2)
    reciprocal = World(3, zeros=(0.6, 0.98), tasks=(9_000, 9_000), missing=0.5).samples(draw)
    assert [len(sample.values) for sample in reciprocal.values()] == [2, 1, 2]
    by_task = reciprocal["000"].values
    for task, zeros in (("0", 0.6), ("1", 0.98)):
        assert np.mean(np.asarray(by_task[task]) == 0) == pytest.approx(zeros, abs=0.02)
    assert set(np.unique(by_task["0"])) == {0.0, *(1 / rank for rank in range(1, 11))}


def test_bounds_are_kept_but_for_two_errors() -> None:
    """At least, at most, or both."""
    assert bounds({"least": 0.5}) == (0.5, math.inf)
    row = {"least": 0.94, "most": 0.96}
    estimates = [(0.95, 0.0), (0.925, 0.01), (0.915, 0.01), (0.975, 0.01), (0.985, 0.01)]
    assert [keeps(row, estimate) for estimate in estimates] == [True, True, False, True, False]
    assert keeps({}, (0.0, 0.0))


def test_calibration_names_what_misses_its_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The page is written all the same, and what was simulated is not simulated again."""
    world = {"systems": 2, "tasks": [30]}
    rows = [
        {"section": "First", "case": "equal", "of": "errors", "draws": 20, "world": world, "most": 1.0},
        {"section": "Second", "case": "covering", "of": "cover", "draws": 20, "world": world, "least": 2.0},
    ]
    page = tmp_path / "docs" / "calibration.md"
    page.parent.mkdir()
    page.write_text("Prose.\n\n## Results\n\n| case | old |\n|---|---|\n| gone | 1 |\n", encoding="utf-8")
    monkeypatch.setattr(calibration, "ROOT", tmp_path)
    monkeypatch.setattr(calibration, "cases", lambda table: rows if table == "calibration" else [])
    for _ in range(2):
        with pytest.raises(SystemExit, match=r"bounds missed: covering$"):
            calibration.main()
        monkeypatch.setattr(calibration, "tally", None)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("Prose.\n\n## Results\n\n1 of 2 bounds are kept")
    first, second = re.findall(r"^### (?:First|Second)\n\n\| case .*\n\|---.*\n(.*)$", text, re.M)
    assert first.startswith("| equal | 20 | ≤ 1 | 0.")
    assert second.startswith("| covering | 20 | ≥ 2 | **missed:** ")
    assert "gone" not in text
    assert families.MARGIN == 0.0


def test_skewed_differences_do_not_mislead() -> None:
    """Random signs alone reject 18 % here."""
    assert skewed(1_000) <= 0.08


@pytest.mark.slow
def test_what_is_called_detectable_is_detected() -> None:
    """Four times out of five at the corrected level, trainings included; 770 of 780 pairs of 40 systems."""
    assert power(World(8, 3, 0.5), 100, boards=50)[0] == pytest.approx(0.8, abs=0.08)
    result = World(40, distance=2.0, tasks=(300,) * 5).draw(np.random.default_rng(1))
    assert result.decided.sum() >= 770


@pytest.mark.slow
def test_what_is_called_detectable_without_trainings_is_detected() -> None:
    """As above, where systems are trained once."""
    assert power(World(8), 100)[0] == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize("queries", [12, 30, 100])
def test_intervals_hold_the_truth(queries: int) -> None:
    """Of differences of reciprocal ranks."""
    assert coverage(queries, 1_000, ranks) >= 0.93


@pytest.mark.slow
@pytest.mark.alone
def test_a_board_of_250_systems_takes_a_minute() -> None:
    """Both families, seconds of a processor."""
    assert sum(speed()) <= 60


def test_tables_are_read_as_numpy_interpolates_them() -> None:
    """On an even grid, at its ends and beyond, and for infinite values."""
    grid = np.linspace(-12, 40, 2081)
    table = np.sin(grid)
    values = np.concatenate([np.random.default_rng(1).uniform(-15, 45, 10_000), [-np.inf, np.inf, -12, 40, grid[7]]])
    assert _interpolated(values, grid, table) == pytest.approx(np.interp(values, grid, table), abs=1e-12)
