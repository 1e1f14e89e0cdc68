"""What to buy next: the seeds, tasks or questions with which an open difference would be decided.

If the true difference d is the one that was seen, it is decided with a probability of `POWER` as soon as

    d ≥ error · (t(1 − level / 2, freedom) + t(POWER, freedom)),      error² = Q + L

where Q is what questions add to the variance of the difference, L what trainings do, and the level is that of the
family in which the difference is tested. More of something makes parts of it smaller (for test collections Sakai 2016,
Urbano, Marrero and Martín 2013; for trainings Bouthillier et al. 2021):

- seeds: L / (S′ / S), and its degrees of freedom grow as S − 1 does; Q stays;
- questions: Q / (N′ / N), and with it what questions add to the scatter of trainings; L stays;
- tasks that are like those at hand: Q / (T′ / T), and of L the part that is each task's own. What a training does to
  all tasks alike stays; it is estimated from the scatter of trainings on single tasks.

What stays is a floor: where it is above the difference, no amount is enough. A difference that was seen is an estimate
itself, and of many that are open the largest are overestimated; what is bought decides with 80 % only if it is true.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.evaluation.significance.families import POWER, Comparison
from bench.evaluation.significance.trainings import TRAININGS

MOST_SEEDS, MOST_TASKS, MOST_QUESTIONS = 100, 200, 100.0
"""Beyond these (of questions, times those at hand) nobody buys anything."""
_STEP = 1.05


@dataclass(frozen=True)
class Spread:
    """The parts of the error of a difference.

    Args:
        questions: variance that questions add.
        questions_spread: Satterthwaite's term of it: the square of the variance over its degrees of freedom.
        luck: variance that trainings add, without what questions do.
        luck_total: the same as measured, with it.
        luck_freedom: degrees of freedom of `luck_total`.
        common: part of `luck`, 0 to 1, that is the same on all tasks.
        level: of the family, for one difference.
    """

    questions: float
    questions_spread: float
    luck: float
    luck_total: float
    luck_freedom: float
    common: float
    level: float

    def more(self, *, seeds: float = 1.0, freedom: float = 1.0, questions: float = 1.0, tasks: float = 1.0) -> "Spread":
        """Return the parts with so many times as many of everything; `freedom` is how much that of trainings grows."""
        by_questions = (self.luck_total - self.luck) / questions / tasks
        luck = self.luck / seeds * (self.common + (1 - self.common) / tasks)
        return Spread(
            self.questions / questions / tasks,
            self.questions_spread / (questions * tasks) ** 3,
            luck,
            luck + by_questions / seeds,
            self.luck_freedom * freedom,
            self.common,
            self.level,
        )

    @property
    def detectable(self) -> float:
        """The true difference that is decided with a probability of `POWER`."""
        from scipy.special import stdtrit

        variance = self.questions + self.luck
        spread = self.questions_spread + (self.luck_total**2 / self.luck_freedom if self.luck_total else 0.0)
        freedom = variance**2 / spread if spread > 0 else math.inf
        quantiles = float(stdtrit(min(freedom, 1e9), 1 - self.level / 2) + stdtrit(min(freedom, 1e9), POWER))
        return math.sqrt(variance) * quantiles


@dataclass(frozen=True)
class Needs:
    """With how much of one thing, the rest as it is, an open difference would be decided.

    Args:
        seeds: of each system that is trained; None where no number is enough, or nothing is trained.
        tasks: number of tasks like those at hand; None where no number is enough.
        questions: number of questions in all, spread over tasks as now; None where no number is enough.
        seeds_floor: the difference that could be detected with any number of seeds; None where nothing is trained.
        tasks_floor: the same of tasks.
        questions_floor: the same of questions.
    """

    seeds: int | None
    tasks: int | None
    questions: int | None
    seeds_floor: float | None
    tasks_floor: float
    questions_floor: float


def spread_of(comparison: Comparison, common: float = 1.0) -> Spread | None:
    """Return the parts of a comparison's error; None where nothing varies, or its variance is not known.

    Args:
        comparison: in its family.
        common: part of the trainings' scatter that is the same on all tasks (`common_luck`).
    """
    from scipy.special import stdtr

    error, freedom, reach = comparison.error, comparison.freedom, comparison.reach
    if not error or not freedom or not reach:
        return None
    luck, total, luck_freedom = (
        value or 0.0 for value in (comparison.luck, comparison.luck_total, comparison.luck_freedom)
    )
    questions = max(0.0, error**2 - luck)
    of_luck = total**2 / luck_freedom if total else 0.0
    level = 2 * float(stdtr(freedom, -reach / error))
    return Spread(questions, max(0.0, error**4 / freedom - of_luck), luck, total, luck_freedom or 1.0, common, level)


def common_luck(headline: Comparison, tasks: Sequence[Comparison]) -> float:
    """Return the part of the trainings' scatter that is the same on all tasks, 0 to 1.

    With scatter L of the mean over T tasks, and of single tasks l on average, what is each task's own is
    o = (l − L) / (1 − 1/T), of which o / T is left in the mean. 1 where there are no single tasks to tell by.
    """
    if not headline.luck or len(tasks) < 2:
        return 1.0
    single = math.fsum(task.luck or 0.0 for task in tasks) / len(tasks)
    specific = max(0.0, (single - headline.luck) / (1 - 1 / len(tasks)))
    return max(0.0, 1 - specific / len(tasks) / headline.luck)


def needs(comparison: Comparison, tasks: int, common: float = 1.0) -> Needs | None:
    """Return what would decide a difference.

    Args:
        comparison: in its family, on the mean over tasks.
        tasks: how many there are.
        common: part of the trainings' scatter that is the same on all tasks.

    Returns:
        None for a difference of 0, without any scatter, and of checkpoints, whose trainings' scatter is not known.
    """
    spread, difference = spread_of(comparison, common), abs(comparison.difference)
    if spread is None or not difference or comparison.checkpoints:
        return None
    trainings = min((count for count in comparison.seeds if count >= TRAININGS), default=0) if spread.luck_total else 0

    def with_seeds(count: int) -> float:
        return spread.more(seeds=count / trainings, freedom=(count - 1) / (trainings - 1)).detectable

    def with_tasks(count: int) -> float:
        return spread.more(tasks=count / tasks).detectable

    steps = [_STEP**power for power in range(1, 1 + math.ceil(math.log(MOST_QUESTIONS) / math.log(_STEP)))]
    times = next((step for step in steps if spread.more(questions=step).detectable <= difference), None)
    far = 1e9
    return Needs(
        _least(with_seeds, trainings, MOST_SEEDS, difference) if trainings else None,
        _least(with_tasks, tasks, MOST_TASKS, difference),
        None if times is None else math.ceil(times * comparison.n),
        spread.more(seeds=far, freedom=far).detectable if trainings else None,
        spread.more(tasks=far).detectable,
        spread.more(questions=far).detectable,
    )


def _least(detectable: Callable[[int], float], at_hand: int, most: int, difference: float) -> int | None:
    """Return the least number above what is at hand with which a difference is detected; None for none up to `most`."""
    return next((count for count in range(at_hand + 1, most + 1) if detectable(count) <= difference), None)
