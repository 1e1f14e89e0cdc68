"""Does a cooled-down branch score like a separate run of its budget? Methods × seeds: `docs/cooled.md`.

    nice python -m experiments.cooled FOLDER [--methods crop,ict,simcse] [--seeds 3] [--tokens 40000] [--task sw]

trains on the embedded world, with a branch at half the budget that cools down over a fifth more; and again, from the
same starts, to the budget that the branch used. Finished runs stay in FOLDER, so the same command resumes. The values
go to `docs/cooled.json`, and the page is made from them.

A difference is the branch minus the separate run, the mean over seeds. Its 95 % interval comes from the scatter of such
differences over seeds, pooled over methods. It is *within the spread* where the whole interval is nearer to 0 than one
more run may lie from the mean of those measured (95 %, scatter pooled over methods and kinds).
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
VERDICTS = {"agrees": "within the spread", "differs": "differs", "cannot tell": "cannot tell"}
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
    all_verdicts = {measure: compared(scores[measure]) for measure in MEASURES}
    each = [(measure, name, verdict) for measure in MEASURES for name, verdict in all_verdicts[measure][0].items()]
    agreeing = sum(verdict.verdict == "agrees" for _, _, verdict in each)
    apart = [f"{name}, {measure}" for measure, name, of in each if not (of.low or 0) <= 0 <= (of.high or 0)]
    lines = [
        f"""# Cooled-down branches

Does a branch that is split off halfway through a training run, and cools down to a learning rate of 0 (`curve.cool`),
score like a separate run that had only the branch's budget?

**Answer.** In {agreeing} of {len(each)} comparisons the difference is within the spread between seeds. Intervals that
exclude 0: {"; ".join(apart) or "none"}. The models are tiny and the spread is wide: this checks the schedule and says
nothing about larger models.

**How it was measured**

- Branch: split off at {record["tokens"] // 2:,} of {tokens} tokens, then trained on {100 * COOL:.0f} % more while the
  learning rate falls to 0.
- Separate run: the same start and the {cost} tokens that the branch had seen by its end.
- Setup: `{record["backbone"]}`, {seeds} seeds, tested on `{SUITE}/{record["task"]}` of the embedded (generated) data;
  {record["processor"]}, one thread, torch {record["torch"]}.
- Intervals (95 %) come from the standard deviation of the differences over seeds, pooled over methods.
- *Spread between seeds*: how far one more run may lie from the mean of those measured (95 %).
- Verdicts: *{VERDICTS["agrees"]}* if the whole interval is closer to 0 than that spread; *{VERDICTS["cannot tell"]}* if
  it is not and contains 0; *{VERDICTS["differs"]}* otherwise.

Measured by `python -m experiments.cooled FOLDER`. Scores are in points (percent), one for each seed."""
    ]
    for measure, (verdicts, margin) in all_verdicts.items():
        lines += [
            "",
            f"## {measure}",
            "",
            f"The spread between seeds is {margin:.1f} points.",
            "",
            "| method | branch | separate run | difference [95 % interval] | verdict |",
            "|---|---|---|---:|---|",
        ]
        for name, verdict in verdicts.items():
            cells = " | ".join(", ".join(f"{value:.1f}" for value in scores[measure][name][kind]) for kind in KINDS)
            interval = f"{verdict.difference:+.1f} [{verdict.low:+.1f}, {verdict.high:+.1f}]"
            lines.append(f"| {name} | {cells} | {interval} | {VERDICTS[verdict.verdict]} |")
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
