"""Does training in bfloat16 score like training in float32? Methods × seeds, from the same starts: `docs/precision.md`.

    nice python -m experiments.precision FOLDER [--methods crop,msm] [--seeds 3] [--tokens 200k] [--tasks en,fi,ja,sw]

trains and tests on the embedded world, one `bench run` for each seed and precision. Finished runs stay in FOLDER, so
the same command resumes. The values go to `docs/precision.json`, and the page is made from them.

A difference is bfloat16 minus float32 of a method, the mean over the seeds that both share. Its 95 % interval comes
from the scatter of such differences over seeds: pooled over methods, or a method's own where that is larger. It is
*within the spread* where the whole interval is nearer to 0 than one more float32 run may lie from the mean of those
measured (95 %, scatter over seeds, pooled over methods and precisions): `bench.evaluation.significance.agreement` with
that as its margin.
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import stdtrit

import bench
from bench.core.files import write_bytes
from bench.core.machine import bfloat16_speed, processor
from bench.evaluation.results import read
from bench.evaluation.significance.agreement import Agreement, agreement, trained_reach
from bench.evaluation.significance.families import COVERAGE

DOCS = Path(__file__).parents[1] / "docs"
RECORD, PAGE = DOCS / "precision.json", DOCS / "precision.md"
METHODS = ("crop", "ict", "contriever", "ccp", "msm")
PRECISIONS = ("float32", "bfloat16")
SUITE, MEASURE = "mrtydi", "RR@100"
VERDICTS = {"agrees": "within the spread", "differs": "differs", "cannot tell": "cannot tell"}
ALL = "all methods"
Scores = Mapping[str, Mapping[str, Sequence[float]]]
"""Method → precision → the mean of the tasks for each seed, points."""


@dataclass(frozen=True)
class Row:
    """Both precisions of a method, points."""

    name: str
    float32: float
    bfloat16: float
    verdict: Agreement  # of the difference


def measured(folder: Path, methods: Sequence[str], seeds: int, tokens: str, tasks: str) -> dict[str, Any]:
    """Run what is not there yet; return the scores, what they were measured with, and on which processor."""
    settings: dict[str, Any] = {"budget.tokens": tokens, "compute.threads": 1}
    for seed in range(seeds):
        for precision in PRECISIONS:
            bench.run(
                methods,
                SUITE,
                task=tasks,
                seed=seed,
                set={**settings, "train.precision": precision},
                device="cpu",
                workers=1,
                store=folder / "store",
                results=folder / "results",
            )
    return {
        "processor": f"{processor()}, matrix products {bfloat16_speed():.1f} times as fast in bfloat16",
        "torch": torch.__version__,
        "tasks": tasks,
        **settings,
        "scores": scores(folder / "results", methods, seeds),
    }


def scores(results: Path, methods: Sequence[str], seeds: int) -> dict[str, dict[str, list[float]]]:
    """Return the mean of the tasks of each training, points; `KeyError` for one that is not there."""
    means = {
        (result.whole["system"]["label"], result.whole["seed"]): 100
        * float(
            np.mean([subset.measures[MEASURE] for task in result.content.tasks.values() for subset in task.values()])
        )
        for result in read.results(results)
    }
    labels = {"float32": "{}", "bfloat16": "{}@precision=bfloat16"}
    return {
        method: {
            precision: [round(means[label.format(method), seed], 3) for seed in range(seeds)]
            for precision, label in labels.items()
        }
        for method in methods
    }


def compared(values: Scores) -> tuple[list[Row], float]:
    """Return a row for each method and one for all, and how far one more training may lie from a mean, points."""
    table = np.array([[by_precision[name] for name in PRECISIONS] for by_precision in values.values()])  # [m, 2, s]
    methods, _, seeds = table.shape
    freedom = 2 * methods * (seeds - 1)
    margin = trained_reach(float(table.var(2, ddof=1).mean()), freedom, seeds)
    own = (table[:, 1] - table[:, 0]).var(1, ddof=1)  # of differences, [m]
    pooled = float(own.mean())
    reaches = [
        _reach(float(variance), seeds - 1, seeds) if variance > pooled else _reach(pooled, methods * (seeds - 1), seeds)
        for variance in own
    ]
    rows = [
        Row(name, exact, half, agreement(half - exact, reach, 0.0, margin))
        for name, (exact, half), reach in zip(values, table.mean(2).tolist(), reaches, strict=True)
    ]
    exact, half = table.mean((0, 2)).tolist()
    unlike = (seeds - 1) * float(own.sum()) ** 2 / (float((own**2).sum()) or 1.0)  # Satterthwaite's degrees of freedom
    whole = agreement(half - exact, _reach(pooled, unlike or 1.0, seeds * methods), 0.0, margin)
    return [*rows, Row(ALL, exact, half, whole)], margin


def _reach(variance: float, freedom: float, count: int) -> float:
    """Return how far the mean of so many differences may lie from what it estimates, with 95 %."""
    return float(stdtrit(freedom, (1 + COVERAGE) / 2)) * math.sqrt(variance / count)


def page(record: Mapping[str, Any]) -> str:
    """Return the page of a record."""
    rows, margin = compared(record["scores"])
    seeds = len(next(iter(record["scores"].values()))["float32"])
    agreeing = sum(row.verdict.verdict == "agrees" for row in rows[:-1])
    whole = rows[-1].verdict
    lines = [
        f"""# float32 and bfloat16

Does training in bfloat16 (`--set train.precision=bfloat16`) give encoders that score like those trained
in float32?

**Answer.** For {agreeing} of {len(rows) - 1} methods the difference is within the spread between seeds. Over all
methods it is {whole.difference:+.1f} points [{whole.low:+.1f}, {whole.high:+.1f}].

**How it was measured**

- Setup: `scratch:2x128`, {record["budget.tokens"]} tokens, {seeds} seeds. The two runs of a seed have the same start,
  data and order.
- Score: {MEASURE}, the mean of {record["tasks"].replace(",", ", ")} of `{SUITE}` on the embedded (generated) data, in
  points (percent).
- Machine: {record["processor"]}, one thread, torch {record["torch"]}.
- Intervals (95 %) come from the standard deviation of the differences over seeds: pooled over methods, or the method's
  own where that is larger. This rule was widened after the scores of `msm` had been seen. Questions, languages and
  texts are the same on both sides and add nothing to the intervals.
- *Spread between seeds*: ±{margin:.1f} points, how far one more float32 run may lie from the mean of {seeds} (95 %,
  standard deviation pooled over methods and precisions).
- Verdicts: *{VERDICTS["agrees"]}* if the whole interval lies inside the spread; *{VERDICTS["cannot tell"]}* if it does
  not and contains 0; *{VERDICTS["differs"]}* otherwise.

Measured by `python -m experiments.precision FOLDER`.

| method | float32 | bfloat16 | difference [95 % interval] | verdict |
|---|---:|---:|---:|---|"""
    ]
    for row in rows:
        change = row.verdict
        interval = f"{change.difference:+.1f} [{change.low:+.1f}, {change.high:+.1f}]"
        lines.append(
            f"| {row.name} | {row.float32:.1f} | {row.bfloat16:.1f} | {interval} | {VERDICTS[change.verdict]} |"
        )
    lines += [
        "",
        "The score of each seed:",
        "",
        f"| method | float32, seeds 0 to {seeds - 1} | bfloat16, seeds 0 to {seeds - 1} |",
        "|---|---|---|",
    ]
    for name, by_precision in record["scores"].items():
        cells = (", ".join(f"{value:.1f}" for value in by_precision[precision]) for precision in PRECISIONS)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write record and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of store and results")
    parser.add_argument("--methods", default=",".join(METHODS), help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=3, help="how many, two at least; default: %(default)s")
    parser.add_argument("--tokens", default="200k", help="budget of a training; default: %(default)s")
    parser.add_argument("--tasks", default="en,fi,ja,sw", help=f"of {SUITE}; default: %(default)s")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder of record and page; default: docs")
    typed = parser.parse_args(arguments)
    if typed.seeds < 2:
        parser.error("scatter takes two seeds at least")
    record = measured(typed.folder, typed.methods.split(","), typed.seeds, typed.tokens, typed.tasks)
    write_bytes(typed.out / RECORD.name, (json.dumps(record, indent=1) + "\n").encode())
    write_bytes(typed.out / PAGE.name, page(record).encode())
    sys.stdout.write(page(record))


if __name__ == "__main__":
    main()
