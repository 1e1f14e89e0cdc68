"""Does a branch that cools down foretell a training of the budget that it cost? Methods × seeds: `docs/cooled.md`.

    nice python -m experiments.cooled FOLDER [--methods crop,ict,simcse] [--seeds 3] [--tokens 40000] [--task sw]

trains on the embedded world under FOLDER to a budget, with a branch at its half that cools down over a fifth more; and
again, from the same starts, to the budget that the branch came to. What is done is kept there, so that typing it again
goes on. Then the values go to `docs/cooled.json`, and the page is made of them.

A difference is the branch minus the training, the mean over seeds. Its interval has 95 %, by the scatter of such
differences over seeds, pooled over methods. It is *within the seeds' scatter* where the whole interval is nearer to 0
than one more training may lie to the mean of those that were made (95 %, scatter pooled over methods and kinds).
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import stdtrit

import bench
from bench.core.files import write_bytes
from bench.core.machine import processor
from bench.evaluation.results import read
from bench.evaluation.significance.agreement import Agreement, agreement, trained_reach
from bench.evaluation.significance.families import COVERAGE

DOCS = Path(__file__).parents[1] / "docs"
SUITE, MEASURES = "mrtydi", ("RR@100", "R@100")
COOL = 0.2
KINDS = ("branch", "training")
VERDICTS = {"agrees": "within the seeds' scatter", "differs": "differs", "cannot tell": "cannot tell"}
SMALL = {"compute.threads": 1, "method.pairs": 16, "prepare.vocabulary": 2000}
BACKBONE = "scratch:2x32"
Scores = Mapping[str, Mapping[str, Sequence[float]]]
"""Method → kind → the value of each seed, points."""


def measured(folder: Path, methods: Sequence[str], seeds: int, tokens: int, task: str) -> dict[str, Any]:
    """Run what is not there yet; return the scores by measure, and what they were measured with."""
    cost = round(tokens / 2 * (1 + COOL))
    settings: dict[str, dict[str, Any]] = {
        "branch": {"budget.tokens": tokens, "curve.points": 2, "curve.cool": COOL},
        "training": {"budget.tokens": cost},
    }
    places: Any = {"backbone": BACKBONE, "device": "cpu", "workers": 1, "store": folder / "store"}
    for kind, sets in settings.items():
        for seed in range(seeds):
            values = {**SMALL, **sets}
            bench.run(methods, SUITE, task=task, seed=seed, set=values, results=folder / kind, **places)
    scores = {
        measure: {
            method: {
                kind: [_value(folder / kind, method, kind, seed, measure) for seed in range(seeds)] for kind in KINDS
            }
            for method in methods
        }
        for measure in MEASURES
    }
    machine = {"processor": processor(), "torch": torch.__version__}
    return {**machine, "task": task, "backbone": BACKBONE, "tokens": tokens, "cost": cost, "scores": scores}


def _value(results: Path, method: str, kind: str, seed: int, measure: str) -> float:
    """Return the value of a training or of its branch, points."""
    (value,) = (
        subset.measures[measure]
        for result in read.results(results)
        if (result.content.system.method, result.content.seed) == (method, seed) and result.content.system.budget
        if (result.content.system.point is not None and result.content.system.point.kind == "cooled")
        == (kind == "branch")
        and (kind == "training" or result.content.system.point is not None)
        for task in result.content.tasks.values()
        for subset in task.values()
    )
    return round(100 * value, 3)


def compared(values: Scores) -> tuple[dict[str, Agreement], float]:
    """Return the verdict of each method, and how far one more training may lie from the mean of those made, points."""
    table = np.array([[by_kind[kind] for kind in KINDS] for by_kind in values.values()])  # [m, 2, s]
    methods, kinds, seeds = table.shape
    margin = trained_reach(float(table.var(2, ddof=1).mean()), methods * kinds * (seeds - 1), seeds)
    differences = table[:, 0] - table[:, 1]  # [m, s]
    pooled, freedom = float(differences.var(1, ddof=1).mean()), methods * (seeds - 1)
    reach = float(stdtrit(freedom, (1 + COVERAGE) / 2)) * math.sqrt(pooled / seeds)
    means = dict(zip(values, differences.mean(1).tolist(), strict=True))
    return {name: agreement(mean, reach, 0.0, margin) for name, mean in means.items()}, margin


def page(record: Mapping[str, Any]) -> str:
    """Return the page of a record."""
    scores = record["scores"]
    seeds = len(next(iter(scores[MEASURES[0]].values()))[KINDS[0]])
    tokens, cost = f"{record['tokens']:,}", f"{record['cost']:,}"
    what = (
        f"A branch at {record['tokens'] // 2:,} of {tokens} tokens, whose rate falls to 0 over {100 * COOL:.0f} % more,"
        f" against a training whose budget is the {cost} tokens that the branch came to: `{record['backbone']}` on "
        f"the embedded world, `{SUITE}/{record['task']}` of it, {seeds} seeds, both from one start. Measured on "
        f"{record['processor']}, one thread, torch {record['torch']}, by `python -m experiments.cooled`. So small a "
        "training says whether the schedule works, and nothing of larger ones."
    )
    how = (
        "*Within the seeds' scatter*: the interval lies within so many points of 0. *Cannot tell*: it reaches further "
        "and holds 0. Intervals are by the scatter of differences over seeds, pooled over methods."
    )
    lines = ["# Branches that cool down", "", what]
    for measure in MEASURES:
        verdicts, margin = compared(scores[measure])
        lines += ["", f"| {measure} | branch | training | difference [95 %] | |", "|---|---|---|---:|---|"]
        for name, verdict in verdicts.items():
            cells = " | ".join(", ".join(f"{value:.1f}" for value in scores[measure][name][kind]) for kind in KINDS)
            interval = f"{verdict.difference:+.1f} [{verdict.low:+.1f}, {verdict.high:+.1f}]"
            lines.append(f"| {name} | {cells} | {interval} | {VERDICTS[verdict.verdict]} |")
        lines += ["", f"One more training may lie {margin:.1f} points from the mean of {seeds} (95 %)."]
    lines += ["", how]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write record and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of store and results")
    parser.add_argument("--methods", default="crop,ict,simcse", help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=3, help="how many, two at least; default: %(default)s")
    parser.add_argument("--tokens", type=int, default=40_000, help="budget of a training; default: %(default)s")
    parser.add_argument("--task", default="sw", help=f"of {SUITE}; default: %(default)s")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder of record and page; default: docs")
    typed = parser.parse_args(arguments)
    if typed.seeds < 2:
        parser.error("scatter takes two seeds at least")
    record = measured(typed.folder, typed.methods.split(","), typed.seeds, typed.tokens, typed.task)
    write_bytes(typed.out / "cooled.json", (json.dumps(record, indent=1) + "\n").encode())
    write_bytes(typed.out / "cooled.md", page(record).encode())
    sys.stdout.write(page(record))


if __name__ == "__main__":
    main()
