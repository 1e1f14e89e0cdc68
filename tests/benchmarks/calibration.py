"""How often the tests are right: simulated worlds, decided by the engine that decides boards.

`make calibration` writes `docs/calibration.md`. A world is a set of systems on some tasks with a question's difficulty,
what a system makes of a question, what a training makes of it, and the skill of a training; all are Gaussian, in
hundredths of a measure, as the values of retrieval measures mostly scatter.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.evaluation.significance import families
from bench.evaluation.significance.estimates import FloatArray, Sample
from bench.evaluation.significance.families import LEVEL, Family, family, intervals, stratified

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class World:
    """Systems that answer questions.

    Args:
        systems: how many; neighbours are `apart` points apart, and the first is `lead` points better than that.
        seeds: trainings of each.
        scatter: standard deviation of a training's skill, points; that of a system on a question is 10.
        parallel: correlation of a system's success on one question in several tasks, which is one cluster then.
    """

    systems: int
    seeds: int = 1
    scatter: float = 0.0
    parallel: float = 0.0
    apart: float = 0.0
    lead: float = 0.0
    tasks: int = 5
    queries: int = 120

    def draw(self, draw: np.random.Generator) -> Family:
        """Draw a world and decide it."""
        m, n = self.systems, self.queries
        trained = draw.normal(0, self.scatter, (m, self.seeds))
        hard, common = draw.normal(0, 10, (1, n)), draw.normal(size=(m, n))
        values: dict[str, dict[str, FloatArray]] = {f"{at:03}": {} for at in range(m)}
        for task in range(self.tasks):
            own = math.sqrt(self.parallel) * common + math.sqrt(1 - self.parallel) * draw.normal(size=(m, n))
            noise = draw.normal(0, 3, (m, self.seeds, n))
            for at, held in enumerate(values.values()):
                one = hard + 10 * own[at] + noise[at] + trained[at][:, None] + self.apart * at + self.lead * (at == 0)
                held[str(task)] = one / 100
        asked = {str(task): [str(at) for at in range(n)] for task in range(self.tasks)} if self.parallel else {}
        samples = {name: Sample(held, deterministic=not self.scatter) for name, held in values.items()}
        return family(
            samples, {"": dict.fromkeys(map(str, range(self.tasks)), 1.0)}, asked, int(draw.integers(1 << 30))
        )


def errors(world: World, draws: int, seed: int = 1) -> float:
    """Return the share of draws in which any two equal systems are told to differ."""
    draw = np.random.default_rng(seed)
    return float(np.mean([world.draw(draw).decided.any() for _ in range(draws)]))


def power(world: World, draws: int, seed: int = 1) -> float:
    """Return the share of pairs that are decided when the first system is better by what is printed as detectable."""
    draw, found = np.random.default_rng(seed), []
    least = float(np.median([world.draw(draw).detectable or 0 for _ in range(5)]))
    for _ in range(draws):
        made = replace(world, lead=100 * least).draw(draw)
        found += [made.comparison("000", f"{at:03}").decided for at in range(1, world.systems)]
    return float(np.mean(found))


def skewed(draws: int, queries: int = 30, seed: int = 1) -> float:
    """Return how often two equal systems differ: one loses .9 on a tenth of the questions and gains .1 on the rest."""
    draw = np.random.default_rng(seed)
    lost = draw.random((draws, queries)) < 0.1
    return float(np.mean([stratified({"": (np.where(one, -0.9, 0.1), np.zeros(queries))}).p <= LEVEL for one in lost]))


def coverage(
    queries: int, draws: int, values: Callable[[np.random.Generator, int], FloatArray], seed: int = 1
) -> float:
    """Return the share of intervals of differences of two systems that hold the truth, which is 0."""
    draw, held = np.random.default_rng(seed), 0
    for _ in range(draws):
        one = stratified({"": (values(draw, queries), values(draw, queries))})
        held += one.low is not None and one.high is not None and one.low <= 0 <= one.high
    return held / draws


def own_coverage(queries: int, draws: int, seed: int = 1) -> float:
    """Return the share of intervals of a system's own reciprocal rank that hold the truth."""
    draw = np.random.default_rng(seed)
    truth = float(np.mean(1 / np.arange(1, 30)))
    table = {str(at): Sample({"": ranks(draw, queries)}) for at in range(draws)}
    return float(np.mean([low <= truth <= high for low, high in intervals(table, {"": 1.0}).values()]))


def ranks(draw: np.random.Generator, queries: int) -> FloatArray:
    """Reciprocal ranks, skewed as they are."""
    return 1 / draw.integers(1, 30, queries)


def rows(draws: int) -> Iterator[tuple[str, str, str]]:
    """Yield the table: what, wanted, found."""
    few, many = max(1, draws * 2 // 5), max(1, draws // 10)
    for label, world, times in (
        ("2 equal methods, moderate scatter, 3 trainings", World(2, 3, 0.5), draws),
        ("2 equal methods, strong scatter, 3 trainings", World(2, 3, 1.0), draws),
        ("2 equal methods, strong scatter, 5 trainings", World(2, 5, 1.0), draws),
        ("8 equal systems, no scatter", World(8), draws),
        ("8 equal methods, moderate scatter, 3 trainings", World(8, 3, 0.5), draws),
        ("8 equal methods, strong scatter, 3 trainings", World(8, 3, 1.5), draws),
        ("8 equal methods, strong scatter, 5 trainings", World(8, 5, 1.5), draws),
        ("40 equal methods, moderate scatter, 3 trainings", World(40, 3, 0.5), few),
        ("250 equal systems", World(250), many),
        ("2 equal systems, 11 parallel languages, correlation .1", World(2, parallel=0.1, tasks=11), draws),
        ("2 equal systems, 11 parallel languages, correlation .3", World(2, parallel=0.3, tasks=11), draws),
        ("8 equal systems, 11 parallel languages, correlation .3", World(8, parallel=0.3, tasks=11), draws),
    ):
        bound = LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / times)
        yield f"wrong decision among {label}", f"≤ {bound:.3f}", f"{errors(world, times):.3f}"
    yield "wrong decision, skewed differences, 30 queries", "≤ 0.080", f"{skewed(10 * draws):.3f}"
    made = World(40, apart=2.0, queries=300).draw(np.random.default_rng(1))
    yield "pairs decided of 780, 40 systems 2 points apart", "≥ 770", str(int(made.decided.sum()))
    for world in (World(8), World(14), World(20), World(8, 3, 0.5)):
        label = f"power at the detectable difference, {world.systems} systems, {world.seeds} trainings"
        yield label, "about 0.80", f"{power(world, few // 2):.2f}"
    for queries in (12, 30, 100):
        yield f"coverage of differences, {queries} queries", "≥ 0.930", f"{coverage(queries, 2 * draws, ranks):.3f}"
        own = f"{own_coverage(queries, 4 * draws):.3f}"
        yield f"coverage of a system's own mean, very skewed, {queries} queries", "said on the page", own


def speed(systems: int = 250) -> tuple[float, float]:
    """Return seconds of a processor for both families of a board, 11 tasks of 250 questions."""
    draw = np.random.default_rng(1)
    tasks = [str(at) for at in range(11)]
    skill = np.linspace(0, 0.4, systems)
    samples = {f"{at:03}": Sample({task: draw.normal(skill[at], 0.3, 250) for task in tasks}) for at in range(systems)}
    began = time.process_time()
    family(samples, {"": dict.fromkeys(tasks, 1.0)})
    between = time.process_time()
    family(samples, {task: {task: 1.0} for task in tasks})
    return between - began, time.process_time() - between


def main(draws: int) -> None:
    """Write the table."""
    ranked, cells = speed()
    families._DRAWS = 2_000  # enough for decisions at one level
    lines = [
        f"""# Calibration of the tests

Made by `make calibration` (`tests/benchmarks/calibration.py`): {draws:,} draws with 2 or 8 systems, fewer with more.
A table of 250 systems on 11 tasks of 250 questions takes {ranked:.0f} s of a processor for the ranks
({math.comb(250, 2):,} pairs) and {cells:.0f} s for the cells ({11 * math.comb(250, 2):,} pairs).

| case | wanted | found |
|---|---|---|"""
    ]
    for row in rows(draws):
        print(*row, sep=" | ", flush=True)  # noqa: T201 (a command of its own)
        lines.append(f"| {' | '.join(row)} |")
    (ROOT / "docs" / "calibration.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
