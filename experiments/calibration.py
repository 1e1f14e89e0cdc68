"""How often the tests are right: simulated worlds, decided by the engine that decides boards.

`make calibration` writes `docs/calibration.md` from the rows of `tests/fixtures/cases/calibration.json` and, to resume
where it was interrupted, `build/calibration.json`. A world is a set of systems on some tasks with a question's
difficulty, what a system makes of a question, what a training makes of it, and the skill of a training; all are
Gaussian, in hundredths of a measure, as the values of retrieval measures mostly scatter.
"""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.core.files import write_bytes
from bench.evaluation.significance import families
from bench.evaluation.significance.estimates import FloatArray, Sample
from bench.evaluation.significance.families import LEVEL, Comparison, Family, family, intervals, stratified
from tests.conftest import cases

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class World:
    """Systems that answer questions.

    Args:
        systems: how many; neighbours are `distance` points apart, and the first is `lead` points better than that.
        seeds: trainings of each.
        scatter: standard deviation of a training's skill, points; that of a system on a question is 10.
        parallel: correlation of a system's success on one question in several tasks, which is one cluster then.
    """

    systems: int
    seeds: int = 1
    scatter: float = 0.0
    parallel: float = 0.0
    distance: float = 0.0
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
            skill = math.sqrt(self.parallel) * common + math.sqrt(1 - self.parallel) * draw.normal(size=(m, n))
            noise = draw.normal(0, 3, (m, self.seeds, n))
            for at, by_task in enumerate(values.values()):
                lead = self.distance * at + self.lead * (at == 0)
                by_task[str(task)] = (hard + 10 * skill[at] + noise[at] + trained[at][:, None] + lead) / 100
        questions = {str(task): [str(at) for at in range(n)] for task in range(self.tasks)} if self.parallel else {}
        samples = {name: Sample(by_task, deterministic=not self.scatter) for name, by_task in values.items()}
        return family(
            samples, {"": dict.fromkeys(map(str, range(self.tasks)), 1.0)}, questions, int(draw.integers(1 << 30))
        )


def errors(world: World, draws: int, seed: int = 1, *, checkpoints: bool = False) -> float:
    """Return the share of draws in which any two methods are claimed to differ, or else any two checkpoints."""
    draw = np.random.default_rng(seed)
    verdicts = (world.draw(draw) for _ in range(draws))
    return float(np.mean([(row.decided & (row.table["checkpoints"] == checkpoints)).any() for row in verdicts]))


def power(world: World, draws: int, seed: int = 1) -> float:
    """Return the share of pairs that are decided when the first system is better by what is printed as detectable.

    The printed value is an estimate (with 3 trainings of 8 systems it scatters by 7 %), so its median is what is tried.
    """
    draw, decided = np.random.default_rng(seed), []
    least = float(np.median([world.draw(draw).detectable or 0 for _ in range(200)]))
    for _ in range(draws):
        drawn_family = replace(world, lead=100 * least).draw(draw)
        decided += [drawn_family.comparison("000", f"{at:03}").decided for at in range(1, world.systems)]
    return float(np.mean(decided))


def skewed(draws: int, queries: int = 30, seed: int = 1) -> float:
    """Return how often two equal systems differ: one loses .9 on a tenth of the questions and gains .1 on the rest."""
    draw = np.random.default_rng(seed)
    lost = draw.random((draws, queries)) < 0.1
    return float(np.mean([stratified({"": (np.where(row, -0.9, 0.1), np.zeros(queries))}).p <= LEVEL for row in lost]))


def coverage(
    queries: int, draws: int, values: Callable[[np.random.Generator, int], FloatArray], seed: int = 1
) -> float:
    """Return the share of intervals of differences of two systems that hold the truth, which is 0."""
    draw, covering = np.random.default_rng(seed), 0
    for _ in range(draws):
        compared = stratified({"": (values(draw, queries), values(draw, queries))})
        covering += compared.low is not None and compared.high is not None and compared.low <= 0 <= compared.high
    return covering / draws


def own_coverage(queries: int, draws: int, seed: int = 1) -> float:
    """Return the share of intervals of a system's own reciprocal rank that hold the truth."""
    draw = np.random.default_rng(seed)
    truth = float(np.mean(1 / np.arange(1, 30)))
    table = {str(at): Sample({"": ranks(draw, queries)}) for at in range(draws)}
    return float(np.mean([low <= truth <= high for low, high in intervals(table, {"": 1.0}).values()]))


def ranks(draw: np.random.Generator, queries: int) -> FloatArray:
    """Reciprocal ranks, skewed as they are."""
    return 1 / draw.integers(1, 30, queries)


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


def measured(of: str, draws: int, arguments: dict[str, Any]) -> float:
    """Return what a row of the table holds."""
    match of:
        case "claims" | "marked":
            return errors(World(**arguments), draws, checkpoints=of == "marked")
        case "power":
            return power(World(**arguments), draws)
        case "pairs":
            return float(World(**arguments).draw(np.random.default_rng(1)).decided.sum())
        case "skewed":
            return skewed(draws, arguments["queries"])
        case "coverage":
            return coverage(arguments["queries"], draws, ranks)
        case "own coverage":
            return own_coverage(arguments["queries"], draws)
    return sum(speed(arguments["systems"]))


def decision(case: dict[str, Any]) -> Comparison:
    """Decide a case of `tests/fixtures/cases/decisions.json`, which was worked out by hand, scipy or statsmodels."""
    systems = {
        name: Sample(by_question, deterministic=name in case["deterministic"])
        for name, by_question in case["systems"].items()
    }
    return family(systems, {"": case["weights"] or {"": 1.0}}, case["questions"]).comparison(*case["pair"])


def main() -> None:
    """Fill the table, row by row; a row that an interrupted command finished stays as it is."""
    path = ROOT / "build" / "calibration.json"
    path.parent.mkdir(exist_ok=True)
    finished = json.loads(path.read_bytes()) if path.exists() else {}
    lines = []
    for row in cases("calibration"):
        of, draws, arguments = row["of"], row["draws"], row["given"]
        families._DRAWS = 10_000 if of == "speed" else 2_000  # enough for decisions at one level
        key = json.dumps([of, draws, arguments])
        if key not in finished:
            began = time.process_time()
            finished[key] = [measured(of, draws, arguments), time.process_time() - began]
            write_bytes(path, json.dumps(finished).encode())
            print(row["case"], *finished[key], sep=" | ", flush=True)  # noqa: T201 (a command of its own)
        value = finished[key][0]
        shown, error = f"{value:.0f}", ""
        if draws > 1:
            shown, error = f"{value:.3f}", f"{math.sqrt(value * (1 - value) / draws):.3f}"
        bound = row["wanted"] or f"≤ {LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / draws):.3f}"
        lines.append(f"| {row['case']} | {draws:,} | {bound} | {shown} | {error} |")
    page = ROOT / "docs" / "calibration.md"
    before = page.read_text(encoding="utf-8").partition("|---")[0].rpartition("| case")[0]
    head = "| case | draws | wanted | found | standard error |\n|---|---|---|---|---|\n"
    lines += [
        "",
        "| decision | worked out by | p there | p here | 95 % interval here | decided |",
        "|---|---|---|---|---|---|",
    ]
    for case in cases("decisions"):
        comparison = decision(case)
        low, high = comparison.low, comparison.high
        interval = "" if low is None or high is None else f"[{low:.4f}, {high:.4f}]"
        decided = ("yes" if comparison.decided else "no") + ", of these checkpoints" * comparison.checkpoints
        ours = f"{comparison.p:.4g} | {interval} | {decided}"
        lines.append(f"| {case['name']} | {case['judge']} | {case['p']:.4g} | {ours} |")
    write_bytes(page, (before + head + "\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
