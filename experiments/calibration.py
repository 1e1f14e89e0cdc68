"""How often the tests are right: simulated worlds, decided by the engine that decides boards.

`make calibration` writes `docs/calibration.md` from the rows of `tests/fixtures/cases/calibration.json` and, to resume
where it was interrupted, `build/calibration.json`; `python -m experiments.calibration curves` fills only the rows that
have that word in their names. A row names a world, what is measured in it, and the bounds that the
estimate has to keep (`least`, `most`; `before` is what the engine of commit 84986ef8 gave in the same world, and `loss`
how far the estimate may lie below that). Where one misses its bound by more than two Monte-Carlo errors, the command
names it and fails.
"""

import json
import math
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtr

from bench.core.files import write_bytes
from bench.evaluation.significance import families
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.families import LEVEL, Comparison, Family, family, intervals, stratified
from bench.evaluation.significance.trainings import ALIKE, FloatArray
from experiments import curve_worlds
from tests.conftest import cases

ROOT = Path(__file__).parents[1]
START, FIXED = "start", "fixed"
"""Names of the systems of a world that are no methods; methods are `000`, `001` and so on."""
HARD, SKILL, NOISE = 10.0, 10.0, 3.0
"""Standard deviations over questions, points: of difficulty, of what a system makes of one, of what a training does."""
RESULTS, MISSED = "## Results", "**missed:**"
"""Heading before the tables, and the mark of what misses its bound."""
DRAWS = 1_000
"""Of a family: as many keep the level of a simulated test, and more would decide hardly anything else."""

Estimate: TypeAlias = tuple[float, float]
"""With its Monte-Carlo error."""


@dataclass(frozen=True)
class World:
    """Methods that answer the questions of some tasks.

    The value of a training on a question is the question's difficulty, what the method makes of the question, what the
    training makes of it, and the training's skill: all Gaussian, in hundredths of a measure, as the values of retrieval
    measures mostly scatter. `prevalence` and `zeros` read a measure with few values off the same draws. Methods are
    equal but for `lead` and `distance`.

    Args:
        systems: how many methods.
        seeds: trainings of each.
        scatter: standard deviation of a training's skill, points; without it methods are deterministic.
        noisy: how many methods, the last ones, scatter otherwise.
        times: by what factor they do.
        noisy_seeds: their trainings; 0 for as many as the rest have.
        luck: correlation of the skill of trainings with one seed, which they name; None where they share no seed.
        start: standard deviation of the skill of the start of each seed, which is in the table and the start of all
            methods; 0 for one start of all seeds, and None for none.
        carried: part of its start's luck that a training keeps.
        fixed: whether a deterministic system is in the table that is as good as the methods.
        lead: points by which the first methods are better.
        leading: how many they are.
        distance: points between neighbours.
        tasks: questions of each task.
        parallel: correlation of a method's success on one question in several tasks, which is one cluster then.
        prevalence: values are 1 on this share of questions and 0 on the rest.
        zeros: by task the share of zeros of reciprocal ranks; the rest are 1 to 1/10, each as often.
        missing: share of the tasks that every second method lacks; tasks are decided one by one then.
    """

    systems: int
    seeds: int = 1
    scatter: float = 0.0
    noisy: int = 0
    times: float = 1.0
    noisy_seeds: int = 0
    luck: float | None = None
    start: float | None = None
    carried: float = 0.0
    fixed: bool = False
    lead: float = 0.0
    leading: int = 1
    distance: float = 0.0
    tasks: Sequence[int] = (120,) * 5
    parallel: float = 0.0
    prevalence: float = 0.0
    zeros: Sequence[float] = ()
    missing: float = 0.0

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods."""
        return tuple(f"{at:03}" for at in range(self.systems))

    @property
    def truth(self) -> dict[str, float]:
        """Expectation of every system's values, as a fraction; of measures with few values up to a constant."""
        means = {name: self.lead * (at < self.leading) + self.distance * at for at, name in enumerate(self.methods)}
        return {name: mean / 100 for name, mean in ({START: 0.0, FIXED: 0.0} | means).items()}

    @property
    def weights(self) -> dict[str, dict[str, float]]:
        """Weights of tasks, by estimand: the headline, or every task where some are missing."""
        tasks = dict.fromkeys(map(str, range(len(self.tasks))), 1.0)
        return {task: {task: 1.0} for task in tasks} if self.missing else {"": tasks}

    def skills(self, draw: np.random.Generator) -> dict[str, FloatArray]:
        """Draw the skill of every training, by system, points."""
        shared, starts = draw.normal(size=(2, max(self.seeds, self.noisy_seeds)))
        starts *= self.start or 0.0
        skills = {}
        for at, name in enumerate(self.methods):
            noisy = at >= self.systems - self.noisy
            seeds = self.noisy_seeds or self.seeds if noisy else self.seeds
            luck = self.luck or 0.0
            skill = math.sqrt(luck) * shared[:seeds] + math.sqrt(1 - luck) * draw.normal(size=seeds)
            skills[name] = 100 * self.truth[name] + self.carried * starts[:seeds]
            skills[name] += self.scatter * (self.times if noisy else 1.0) * skill
        if self.start is not None:
            skills[START] = starts if self.start else np.zeros(1)
        return skills | ({FIXED: np.zeros(1)} if self.fixed else {})

    def samples(self, draw: np.random.Generator) -> dict[str, Sample]:
        """Draw all systems."""
        skills = self.skills(draw)
        common = draw.normal(size=(1 + len(skills), max(self.tasks)))
        values: dict[str, dict[str, FloatArray]] = {name: {} for name in skills}
        for task, queries in enumerate(self.tasks):
            own = draw.normal(size=(1 + len(skills), queries))
            hard, *success = math.sqrt(self.parallel) * common[:, :queries] + math.sqrt(1 - self.parallel) * own
            for name, on_questions in zip(skills, success, strict=True):
                noise = NOISE * draw.normal(size=(len(skills[name]), queries))
                points = HARD * hard + SKILL * on_questions + noise + skills[name][:, None]
                values[name][str(task)] = self._read(points, task)
        for name in self.methods[1::2]:
            for task in draw.permutation(len(self.tasks))[: round(self.missing * len(self.tasks))].tolist():
                del values[name][str(task)]
        seeds = {name: tuple(f"seed {at}" for at in range(len(runs))) for name, runs in skills.items()}
        return {
            name: Sample(
                by_task,
                deterministic=name == FIXED or (name == START and not self.start) or not self.scatter,
                seeds=() if self.luck is None or name == FIXED else seeds[name],
                start=START if START in skills and name != START else "",
            )
            for name, by_task in values.items()
        }

    def _read(self, points: FloatArray, task: int) -> FloatArray:
        """Return the measure's values of answers in points."""
        place = ndtr(points / math.sqrt(HARD**2 + SKILL**2 + NOISE**2 + self.scatter**2))
        if self.prevalence:
            return np.asarray(place > 1 - self.prevalence, np.float64)
        if self.zeros:
            ranks = np.ceil(10 * (1 - place) / (1 - self.zeros[task]))
            return np.where(ranks <= 10, 1 / np.maximum(1, ranks), 0.0)
        return points / 100

    def decide(self, samples: Mapping[str, Sample], seed: int) -> Family:
        """Compare all methods with their start where there is one, and else every two systems."""
        questions = {
            task: [str(at) for at in range(self.tasks[int(task)])] for task in map(str, range(len(self.tasks)))
        }
        pairs = None if self.start is None else [(name, START) for name in self.methods]
        return family(samples, self.weights, questions if self.parallel else {}, pairs, seed=seed)

    def draw(self, draw: np.random.Generator) -> Family:
        """Draw a world and decide it."""
        return self.decide(self.samples(draw), int(draw.integers(1 << 30)))


def tally(world: World, draws: int, seed: int = 1) -> dict[str, Estimate]:
    """Draw a world many times and return what is measured in it.

    - `errors`: how often any two equal methods are said to differ;
    - `marked`: how often any two checkpoints are;
    - `power`: the share of pairs decided that differ in truth;
    - `cover`: the share of intervals of differences that hold the truth;
    - `cover of fixed`: of those from the deterministic system;
    - `own cover`: the share of intervals of the methods' own means that do;
    - `unequal`: how often scatter is said to be unequal.
    """
    draw, truth, rows = np.random.default_rng(seed), world.truth, []
    for _ in range(draws):
        samples = world.samples(draw)
        result = world.decide(samples, int(draw.integers(1 << 30)))
        pairs = [pair for estimand in world.weights for pair in result.pairs(estimand)]
        true = np.array([truth[first] - truth[second] for first, second in pairs])
        low, high, marked = (result.table[name] for name in ("low", "high", "checkpoints"))
        covering, equal = (low <= true) & (true <= high), true == 0
        row = {
            "errors": (result.decided & equal & (marked == 0)).any(),
            "marked": (result.decided & (marked == 1)).any(),
            "cover": covering.mean(),
            "unequal": any(scatter.equal < ALIKE for scatter in result.scatter.values()),
        }
        if not equal.all():
            row["power"] = result.decided[~equal].mean()
        if world.fixed:
            row["cover of fixed"] = covering[[FIXED in pair for pair in pairs]].mean()
            own = intervals(samples, world.weights[""])
            row["own cover"] = np.mean([own[name][0] <= truth[name] <= own[name][1] for name in world.methods])
        rows.append(row)
    shares = {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]}
    return {name: (float(share.mean()), float(share.std() / math.sqrt(draws))) for name, share in shares.items()}


def power(world: World, draws: int, seed: int = 1, boards: int = 200) -> Estimate:
    """Return the share of pairs decided when the first system is better by what is printed as detectable.

    The printed value is an estimate (with 3 trainings of 8 systems it scatters by 7 %): the median of boards is tried.
    """
    draw = np.random.default_rng(seed)
    least = float(np.median([np.nanmedian(world.draw(draw).table["detectable"]) for _ in range(boards)]))
    return tally(replace(world, lead=100 * least), draws, seed + 1)["power"]


def skewed(draws: int, queries: int = 30, seed: int = 1) -> float:
    """Return how often two equal systems differ: one loses .9 on a tenth of the questions and gains .1 on the rest."""
    draw = np.random.default_rng(seed)
    lost = draw.random((draws, queries)) < 0.1
    return float(
        np.mean(
            [stratified({"": (np.where(row, -0.9, 0.1), np.zeros(queries))}).p_uncorrected <= LEVEL for row in lost]
        )
    )


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


def measured(row: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return what is measured in the world of a row, by what it is called there."""
    of, draws, world = row["of"], row["draws"], row["world"]
    if "methods" in world:
        return curve_worlds.measured(of, curve_worlds.CurveWorld(**world), draws)
    match of:
        case "power at detectable":
            return {of: power(World(**world), draws)}
        case "pairs":
            return {of: (float(World(**world).draw(np.random.default_rng(1)).decided.sum()), 0.0)}
        case "skewed":
            return {of: _share(skewed(draws, **world), draws)}
        case "cover of ranks":
            return {of: _share(coverage(draws=draws, values=ranks, **world), draws)}
        case "own cover of ranks":
            return {of: _share(own_coverage(draws=draws, **world), draws)}
        case "seconds":
            return {of: (sum(speed(**world)), 0.0)}
    return tally(World(**world), draws)


def _share(estimate: float, draws: int) -> Estimate:
    """Return a share of independent draws with its error."""
    return estimate, math.sqrt(estimate * (1 - estimate) / draws)


def bounds(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return what the estimate of a row may be at least and at most."""
    return row.get("least", -math.inf), row.get("most", math.inf)


def keeps(row: Mapping[str, Any], estimate: Estimate) -> bool:
    """Whether an estimate keeps the bounds of its row, but for two Monte-Carlo errors."""
    (least, most), (value, error) = bounds(row), estimate
    return least - 2 * error <= value <= most + 2 * error


def decision(case: dict[str, Any]) -> Comparison:
    """Decide a case of `tests/fixtures/cases/decisions.json`, which was worked out by hand, scipy or statsmodels."""
    systems = {
        name: Sample(by_question, deterministic=name in case["deterministic"])
        for name, by_question in case["systems"].items()
    }
    return family(systems, {"": case["weights"] or {"": 1.0}}, case["questions"]).comparison(*case["pair"])


def main(word: str = "") -> None:
    """Fill the table, world by world; what an interrupted command finished stays as it is.

    Args:
        word: of the rows to fill, in their names; others stay as they are on the page, where they are there.
    """
    page = ROOT / "docs" / "calibration.md"
    there = {line.split(" | ")[0].removeprefix("| "): line for line in page.read_text(encoding="utf-8").splitlines()}
    path = ROOT / "build" / "calibration.json"
    path.parent.mkdir(exist_ok=True)
    finished = json.loads(path.read_bytes()) if path.exists() else {}
    engine = families._DRAWS, families._MOST, families.MARGIN
    lines, missed, section = list[str](), [], ""
    for row in cases("calibration"):
        if row["section"] != section:
            section = row["section"]
            lines += [
                "",
                f"### {section}",
                "",
                "| case | simulations | bound | estimate | Monte-Carlo error |",
                "|---" * 5 + "|",
            ]
        if word not in row["case"] and row["case"] in there:
            lines.append(there[row["case"]])
            continue
        key = json.dumps([row["draws"], row["world"]])
        if row["of"] not in finished.setdefault(key, {}):
            # Draws are few, so what is close to the level is decided by them and does not count as undecided.
            simulated = engine if row["of"] == "seconds" else (DRAWS, DRAWS, 0.0)
            families._DRAWS, families._MOST, families.MARGIN = simulated
            finished[key] |= measured(row)
            write_bytes(path, json.dumps(finished).encode())
        estimate = finished[key][row["of"]]
        print(row["case"], *estimate, sep=" | ", flush=True)  # noqa: T201 (a command of its own)
        if not keeps(row, estimate):
            missed.append(row["case"])
        lines.append(_line(row, estimate))
    families._DRAWS, families._MOST, families.MARGIN = engine
    by_hand = page.read_text(encoding="utf-8").partition(f"{RESULTS}\n")[0]
    bounded = [line for line in lines if re.search(r"\| ([≤≥]|[\d.]+–)", line)]
    kept = sum(MISSED not in line for line in bounded)
    lines = [f"{kept} of {len(bounded)} bounds are kept; the others are marked {MISSED}", *lines]
    lines += [
        "",
        "### Decisions worked out by other software or by hand",
        "",
        "| decision | worked out by | p there | p here | 95 % interval here | declared different |",
        "|---|---|---|---|---|---|",
    ]
    for case in cases("decisions"):
        comparison = decision(case)
        low, high = comparison.low, comparison.high
        interval = "" if low is None or high is None else f"[{low:.4f}, {high:.4f}]"
        decided = ("yes" if comparison.decided else "no") + ", for these checkpoints" * comparison.checkpoints
        ours = f"{comparison.p_uncorrected:.4g} | {interval} | {decided}"
        lines.append(f"| {case['name']} | {case['judge']} | {case['p']:.4g} | {ours} |")
    write_bytes(page, "\n".join([f"{by_hand}{RESULTS}", "", *lines, ""]).encode())
    if missed:
        sys.exit("bounds missed: " + "; ".join(missed))


def _line(row: Mapping[str, Any], estimate: Estimate) -> str:
    """Return a row of the page."""
    least, most = (f"{bound:.3f}".rstrip("0").rstrip(".") if math.isfinite(bound) else "" for bound in bounds(row))
    bound = f"{least}–{most}" if least and most else f"≥ {least}" if least else f"≤ {most}" if most else ""
    value, error = estimate
    shown = f"{value:.3f} | {error:.3f}" if row["draws"] > 1 else f"{value:.0f} | "
    shown = shown if keeps(row, estimate) else f"{MISSED} {shown}"
    return f"| {row['case']} | {row['draws']:,} | {bound} | {shown} |"


if __name__ == "__main__":
    main(*sys.argv[1:2])
