"""How often races err and what they save: simulated worlds, raced by the code of `bench race`.

`python -m experiments.races` prints the section "Races" of `docs/calibration.md`, and `--write` puts it there. A world
is drawn as in `experiments.calibration`; on the way to the end a method's score is its score at the end less
b (pᶜ − 1) at a share 1/p of the budget, with b and c drawn for each method, and scatters anew at every point.
"""

import argparse
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from bench.core.files import write_bytes
from bench.evaluation.learning_curves.guess import guesses
from bench.evaluation.learning_curves.sequential import Look, PairVerdict, decide, looks_until, undominated
from bench.evaluation.significance import families
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.trainings import TRAININGS, FloatArray
from experiments.calibration import World

PAGE = Path(__file__).parents[1] / "docs" / "calibration.md"
FINISHED = Path(__file__).parents[1] / "build" / "races.json"
HEADING = "## Races"
DRAWS, WORLDS = 4_000, 1_000
"""Of a family, as `experiments.calibration` explains; and of each kind."""
SHARE = 0.25
"""Of the budget, where methods are dropped by a guess."""
SCATTER, ON_THE_WAY = 1.5, 0.5
"""Standard deviations of a training's score, points: its own, and what each point adds."""
GAIN, EXPONENT = (1.0, 5.0), (0.2, 0.8)
"""Between which b and c of a method are drawn."""


@dataclass(frozen=True)
class Raced:
    """A race in one world.

    Args:
        guessed: methods dropped by stage 1.
        verdicts: pairs that stage 2 decided.
        alive: methods left.
        work: budgets of trainings that were spent, of those that the full grid has.
    """

    guessed: tuple[str, ...]
    verdicts: tuple[PairVerdict, ...]
    alive: tuple[str, ...]
    work: float


def on_the_way(world: World, samples: Mapping[str, Sample], draw: np.random.Generator) -> list[dict[str, FloatArray]]:
    """Draw scores of the first trainings of each method at half of `SHARE`, and at `SHARE`."""
    points: list[dict[str, FloatArray]] = [{}, {}]
    for name in world.methods:
        values = np.stack([np.asarray(task)[:TRAININGS] for task in samples[name].values.values()])
        size, exponent = draw.uniform(*GAIN), draw.uniform(*EXPONENT)
        for scores, share in zip(points, (SHARE / 2, SHARE), strict=True):
            behind = size * (share**-exponent - 1) + ON_THE_WAY * draw.normal(size=TRAININGS)
            scores[name] = values.mean(axis=(0, 2)) - behind / 100
    return points


def race(world: World, draw: np.random.Generator, *, guess: bool) -> Raced:
    """Race the methods of a world over its seeds."""
    samples, alive, trained = world.samples(draw), world.methods, dict.fromkeys(world.methods, 0.0)
    guessed: tuple[str, ...] = ()
    if guess:
        before, now = on_the_way(world, samples, draw)
        guessed = tuple(name for name, of in guesses(before, now, SHARE).items() if of.dropped)
        alive = tuple(name for name in alive if name not in guessed)
        trained |= dict.fromkeys(guessed, TRAININGS * SHARE)
    verdicts: list[PairVerdict] = []
    for look in _looks(world.seeds):
        trained |= dict.fromkeys(alive, float(look.seeds))
        if len(alive) < 2:
            break
        so_far = {name: _first(samples[name], int(trained[name])) for name in world.methods if name not in guessed}
        weights = dict.fromkeys(next(iter(samples.values())).values, 1.0)
        verdicts += decide(so_far, weights, look, alive, seed=int(draw.integers(1 << 30)))
        alive = undominated(alive, verdicts)
        if len(alive) < 2:
            break
    return Raced(guessed, tuple(verdicts), alive, sum(trained.values()) / (world.systems * world.seeds))


@cache
def _looks(seeds: int) -> tuple[Look, ...]:
    """Return the looks of a race, once."""
    return looks_until(seeds)


def _first(sample: Sample, seeds: int) -> Sample:
    """Return the first trainings of a method."""
    values = {task: np.asarray(runs)[:seeds] for task, runs in sample.values.items()}
    return replace(sample, values=values, seeds=sample.seeds[:seeds])


def tally(world: World, worlds: int, *, guess: bool, seed: int = 1) -> dict[str, tuple[float, float]]:
    """Race in many worlds; return estimates with their Monte-Carlo errors.

    - `false`: any pair decided that is equal, or the wrong way round;
    - `best by test`: the best method dropped by stage 2; `best by guess`: by stage 1;
    - `guessed`: methods dropped by stage 1;
    - `alone`: one method is left;
    - `work`: budgets spent, as a share of the full grid.
    """
    draw, truth, rows = np.random.default_rng(seed), world.truth, []
    best = max(world.methods, key=lambda name: truth[name])
    for _ in range(worlds):
        raced = race(world, draw, guess=guess)
        rows.append(
            {
                "false": any(truth[verdict.better] <= truth[verdict.worse] for verdict in raced.verdicts),
                "best by test": any(verdict.worse == best for verdict in raced.verdicts),
                "best by guess": best in raced.guessed,
                "guessed": len(raced.guessed),
                "alone": len(raced.alive) == 1,
                "work": raced.work,
            }
        )
    columns = {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]}
    return {name: (float(of.mean()), float(of.std() / math.sqrt(worlds))) for name, of in columns.items()}


def spread(points: float, seeds: int, systems: int = 8) -> World:
    """Return methods at equal distances over some points."""
    return World(
        systems, seeds, SCATTER, luck=0.2, distance=points / (systems - 1) if systems > 1 else 0.0, tasks=(120, 120)
    )


CASES: Sequence[tuple[str, World, bool]] = (
    ("2 equal methods, 5 seeds", spread(0, 5, 2), False),
    ("8 equal methods, 5 seeds", spread(0, 5), False),
    ("8 equal methods, 8 seeds", spread(0, 8), False),
    ("8 methods, 4 of them 6 points better, 8 seeds", replace(spread(0, 8), lead=6.0, leading=4), False),
    ("8 methods over 1 point, 8 seeds, with a guess", spread(1, 8), True),
    ("8 methods over 2 points, 8 seeds, with a guess", spread(2, 8), True),
    ("8 methods over 4 points, 8 seeds, with a guess", spread(4, 8), True),
    ("8 methods over 8 points, 8 seeds, with a guess", spread(8, 8), True),
)


def section(worlds: int = WORLDS) -> str:
    """Simulate all cases that an interrupted command has not, and return the section."""
    engine = families._DRAWS, families._MOST, families.MARGIN
    families._DRAWS, families._MOST, families.MARGIN = DRAWS, DRAWS, 0.0
    FINISHED.parent.mkdir(exist_ok=True)
    finished = json.loads(FINISHED.read_bytes()) if FINISHED.exists() else {}
    lines, estimates = [], []
    for case, world, guess in CASES:
        key = json.dumps([worlds, guess, asdict(world)])
        if key not in finished:
            finished[key] = tally(world, worlds, guess=guess)
            write_bytes(FINISHED, json.dumps(finished).encode())
        estimates.append(finished[key])
        cells = {name: f"{value:.3f} ({error:.3f})" for name, (value, error) in finished[key].items()}
        if not guess:
            cells |= {"best by guess": "", "guessed": ""}
        if not world.distance:  # nobody is the best
            cells["best by test"] = ""
        lines.append(f"| {case} | {' | '.join(cells.values())} |")
        print(lines[-1], flush=True)  # noqa: T201 (a command of its own)
    families._DRAWS, families._MOST, families.MARGIN = engine
    return "\n".join([_text(worlds, estimates), *lines])


def _text(worlds: int, estimates: Sequence[Mapping[str, tuple[float, float]]]) -> str:
    """Return what is written above the lines, with the answer; the best method counts where there is one."""
    work = [of["work"][0] for of in estimates]
    bests = [of["best by test"][0] for of, (_, world, _) in zip(estimates, CASES, strict=True) if world.distance]
    return _TEXT.format(
        worlds=worlds,
        false=max(of["false"][0] for of in estimates),
        dropped=max(bests),
        least=min(work),
        most=max(work),
    )


_TEXT = f"""{HEADING}

How often does `bench race` drop a method wrongly, and how much training does it save?

**Answer.** False decisions: at most {{false:.3f}} of the races (goal: 0.06). Best method dropped by a test: at most
{{dropped:.3f}} (goal: 0.01). Work: {{least:.3f}} to {{most:.3f}} of the full grid, less where methods are further
apart.

- {{worlds:,}} simulations of each case; Monte-Carlo errors in parentheses. Methods answer two tasks of 120 questions.
  The SD between seeds is {SCATTER} points, and a fifth of the variance is common to all methods with that seed.
- *False*: share of races in which a pair is decided that is equal, or is decided the wrong way round.
- *By a guess*: methods are dropped at a quarter of the budget, where a forecast puts them far behind. Nothing bounds
  how often that is wrong, so it is counted.
- Scores before the end lie b (pᶜ − 1) points below the final one, where p is the whole budget divided by what is
  spent. For each method b is drawn between {GAIN[0]:g} and {GAIN[1]:g}, and c between {EXPONENT[0]} and {EXPONENT[1]}.
- *Work*: training done, as a share of training all methods with all seeds. What a race saves on other data, it prints.

Simulated by `python -m experiments.races --write`, in about ten minutes of CPU time.

| case | false | best dropped by a test | best dropped by a guess | methods dropped by a guess, mean | one left | work |
|---|---|---|---|---|---|---|"""


def main() -> None:
    """Print the section, and write it where that was typed."""
    parser = argparse.ArgumentParser(description="Simulate races.")
    parser.add_argument("--worlds", type=int, default=WORLDS)
    parser.add_argument("--write", action="store_true")
    typed = parser.parse_args()
    text = section(typed.worlds)
    if typed.write:
        page = PAGE.read_text(encoding="utf-8")
        without = re.sub(rf"\n*^{HEADING}\n.*?(?=^## |\Z)", "\n", page, flags=re.MULTILINE | re.DOTALL)
        write_bytes(PAGE, f"{without.rstrip()}\n\n{text}\n".encode())


if __name__ == "__main__":
    main()
