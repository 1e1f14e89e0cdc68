"""What would decide an open difference: by hand, at its limits, and by buying it in simulated worlds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bench.evaluation.significance.allocation import common_luck, needs, spread_of
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.families import Comparison, Family, family
from experiments.calibration import World, tally


def compared(
    systems: int, seeds: int, scatter: float, questions: int = 200, tasks: int = 3, lead: float = 0.0
) -> Family:
    """Systems on tasks, each by itself and in the mean; the first is better by so much."""
    draw, samples = np.random.default_rng(5), {}
    for at in range(systems):
        skill = scatter * draw.normal(size=(seeds, 1)) + (lead if at == 0 else 0.0)
        samples[str(at)] = Sample(
            {str(task): 0.5 + skill + 0.1 * draw.normal(size=questions) for task in range(tasks)},
            deterministic=not scatter,
        )
    estimands = {"": dict.fromkeys(map(str, range(tasks)), 1.0)} | {
        str(task): {str(task): 1.0} for task in range(tasks)
    }
    return family(samples, estimands)


def test_what_is_at_hand_detects_what_the_family_says() -> None:
    """The same arithmetic, before anything is bought."""
    for systems, seeds, scatter in ((2, 5, 0.02), (6, 3, 0.02), (5, 1, 0.0)):
        comparison = compared(systems, seeds, scatter).comparison("0", "1")
        spread = spread_of(comparison)
        assert spread is not None
        assert spread.detectable == pytest.approx(comparison.detectable)


def test_seeds_and_questions_by_hand() -> None:
    """Two methods alone, so at the level itself: the least number by trying all, with quantiles of scipy."""
    comparison = Comparison(
        *(0.02, -0.01, 0.05, 0.2, 0.2, None, 0.7, 400, 200, 150, (4, 4)),
        error=math.sqrt(2e-5 + 6e-5),
        freedom=(8e-5) ** 2 / ((2e-5) ** 2 / 399 + (6e-5) ** 2 / 6),
        luck=6e-5,
        luck_total=6e-5,
        luck_freedom=6,
    )
    reach = comparison.error * stats.t.ppf(0.975, comparison.freedom)
    bought = needs(replace(comparison, reach=reach), tasks=4)
    assert bought is not None

    def detectable(questions: float, luck: float, trainings_freedom: float, question_freedom: float = 399) -> float:
        variance = questions + luck
        freedom = variance**2 / (questions**2 / question_freedom + luck**2 / trainings_freedom)
        return math.sqrt(variance) * float(stats.t.ppf(0.975, freedom) + stats.t.ppf(0.8, freedom))

    expected = next(s for s in range(5, 101) if detectable(2e-5, 6e-5 * 4 / s, 6 * (s - 1) / 3) <= 0.02)
    assert bought.seeds == expected
    assert bought.seeds_floor == pytest.approx(math.sqrt(2e-5) * (1.9659 + 0.8424), rel=1e-3)
    assert (bought.questions, bought.tasks) == (None, None), "trainings alone leave more than the difference"
    assert bought.questions_floor == pytest.approx(detectable(1e-14, 6e-5, 6), rel=1e-3)
    quiet = replace(
        comparison, luck=0.0, luck_total=0.0, luck_freedom=1.0, error=math.sqrt(8e-5), freedom=399, seeds=(1, 1)
    )
    bought = needs(replace(quiet, reach=math.sqrt(8e-5) * float(stats.t.ppf(0.975, 399))), tasks=4)
    assert bought is not None
    assert (bought.seeds, bought.seeds_floor) == (None, None), "nothing is trained"
    times = (math.sqrt(8e-5) * (1.96 + 0.8416) / 0.02) ** 2
    assert bought.questions == pytest.approx(400 * times, rel=0.06)
    assert bought.tasks == math.ceil(4 * times)


def test_what_a_training_does_to_all_tasks_alike_stays() -> None:
    """Scatter of each task's own falls with tasks; the common part is estimated from single tasks and the mean."""
    headline = compared(2, 8, 0.02).comparison("0", "1")
    assert common_luck(replace(headline, luck=4e-5), [replace(headline, luck=4e-5)] * 3) == 1.0
    assert common_luck(replace(headline, luck=4e-5), [replace(headline, luck=12e-5)] * 3) == pytest.approx(0.0)
    assert common_luck(replace(headline, luck=4e-5), [replace(headline, luck=8e-5)] * 3) == pytest.approx(0.5)
    assert common_luck(headline, []) == 1.0
    open_pair = replace(headline, difference=0.015)
    alike, unlike = (needs(open_pair, 3, common) for common in (1.0, 0.0))
    assert alike is not None
    assert unlike is not None
    assert unlike.tasks_floor < alike.tasks_floor


def test_nobody_can_say() -> None:
    """Of no difference, of checkpoints, and where nothing scatters."""
    pair = compared(3, 3, 0.02).comparison("0", "1")
    assert needs(replace(pair, difference=0.0), 3) is None
    assert needs(compared(3, 2, 0.02).comparison("0", "1"), 3) is None
    constant = {name: Sample({"t": [value] * 5}, deterministic=True) for name, value in (("a", 0.5), ("b", 0.4))}
    assert needs(family(constant, {"": {"t": 1.0}}).comparison("a", "b"), 1) is None


@pytest.mark.slow
def test_bought_seeds_decide_four_times_in_five() -> None:
    """Eight methods, one three points better than the rest: with the seeds that three say are needed, it is found."""
    world = World(systems=8, seeds=3, scatter=1.7, lead=3.0)
    draw, bought = np.random.default_rng(2), []
    for _ in range(40):
        pair = replace(world.draw(draw).comparison("000", "001"), difference=0.03)
        needed = needs(pair, len(world.tasks))
        assert needed is not None
        bought.append(needed.seeds or 100)
    seeds = int(np.median(bought))
    assert 5 < seeds < 40
    share, error = tally(replace(world, seeds=seeds), 60, seed=3)["power"]
    assert 0.7 - 2 * error <= share <= 0.95, f"{seeds} seeds"
