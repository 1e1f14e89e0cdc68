"""`make bench`: measure the rows of `docs/performance.md`, and write it where all were measured.

    python -m experiments.speed [--full] [--again | --beside] [NAME …]

Rows are named by any part of their names, those of growth begin with `growth`; `--full` takes the sizes that need an
hour. A row is kept in `docs/performance.json` when it is finished, so that an interrupted command goes on; `--again`
measures anew, and `--beside` keeps what another processor reaches beside it.
"""

import argparse
import json
import os
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from bench.core.files import write_bytes
from bench.core.machine import bfloat16_speed, processor
from experiments import step_costs
from experiments.speed import commands, dense, lexical, scoring
from experiments.speed.growth import SIZES, grown, lines
from experiments.speed.measure import Row, measure

ROOT = Path(__file__).parents[2]
PAGE, RECORD = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance.json"
STEPS = ROOT / "docs" / "steps.json"
LIBRARIES = ("torch", "transformers", "sentence-transformers", "faiss-cpu", "bm25s", "rank_bm25", "datasets", "numba")


def rows(full: bool = False) -> dict[str, Row]:
    """Return every row by its name; `full` takes the larger sizes."""
    return {**dense.rows(512), **lexical.rows(100_000 if full else 30_000), **scoring.ROWS, **commands.ROWS}


def line(name: str, row: Row, measured: dict[str, Any]) -> str:
    """Return a row of the table."""
    peers = [f"{peer} {measured['seconds'][peer]:.3g} s" for peer in measured["ratios"]]
    ratios = [f"{_ratio(ratio, row.reach[peer])} (≥ {row.reach[peer]:g})" if peer in row.reach else f"{ratio:.2g}"
              for peer, ratio in measured["ratios"].items()]  # fmt: skip
    ours = f"{measured['seconds']['ours']:.3g} s for {row.units:,} {row.unit}"
    cells = (
        name,
        ours,
        "; ".join(peers),
        "; ".join(ratios),
        "no" if missed(row, measured) else "yes",
        row.holds,
        stamp(measured),
    )
    return f"| {' | '.join(cells)} |"


def _ratio(ratio: float, target: float) -> str:
    """Return a ratio with two digits, or with as many as show that it misses the target."""
    texts = [f"{ratio:.{digits}g}" for digits in range(2, 18)]
    return next(text for text in texts if (float(text) < target) == (ratio < target))


def missed(row: Row, measured: dict[str, Any]) -> list[str]:
    """Return the peers whose ratio is below what is wanted."""
    return [peer for peer, least in row.reach.items() if measured["ratios"][peer] < least]


def reached(measured: dict[str, Any], peer: str) -> float:
    """Return the ratio to a peer that was reached on this processor, or where it has none the lowest on any."""
    ratios = {each.get("processor"): each["ratios"][peer] for each in (measured, *measured.get("beside", {}).values())}
    return float(ratios.get(this_processor(), min(ratios.values())))


def beside_line(name: str, row: Row, measured: dict[str, Any]) -> str:
    """Return a line of the table of other processors."""
    ours = f"{measured['seconds']['ours']:.3g} s for {row.units:,} {row.unit}"
    reach = "no" if missed(row, measured) else "yes"
    return f"| {name} | {ours} | {_ratios(row, measured)} | {reach} | {stamp(measured)} |"


def _ratios(row: Row, measured: dict[str, Any]) -> str:
    """Return the ratio to each peer by its name, with the target of those that have one."""
    targets = {peer: f" (≥ {least:g})" for peer, least in row.reach.items()}
    return "; ".join(
        f"{peer} {_ratio(ratio, row.reach.get(peer, 0.0))}{targets.get(peer, '')}"
        for peer, ratio in measured["ratios"].items()
    )


def growth_line(name: str, measured: dict[str, Any]) -> str:
    """Return a line of the table of growth."""
    work = f"{name.removeprefix('growth: ').split()[0]}, {'tokens' if 'prepare' in name else 'passages'}"
    each, size = f"{measured['microseconds']:.3g}", f"{measured['mebibytes']:,}"
    return f"| {work} | {measured['units']:,} | {each} | {size} | {stamp(measured)} |"


def growth_answer(records: dict[str, Any]) -> str:
    """Return a list of how time for each and memory change from the smallest to the largest size that is recorded."""
    items = []
    for work in SIZES:
        sizes = [records[name] for name, (of, _) in lines(True).items() if of == work and name in records]
        more, slower, larger = (sizes[-1][name] / sizes[0][name] for name in ("units", "microseconds", "mebibytes"))
        items.append(f"- {work}: {more:.0f} times the size takes {slower:.2g} times the CPU time for each "
                     f"{'token' if work == 'prepare' else 'passage'}, and {larger:.2g} times the memory.")  # fmt: skip
    return "\n".join(items)


def stamp(measured: dict[str, Any]) -> str:
    """Return the processor and load that a row was measured with; old rows have none."""
    return f"{measured['processor']}, {measured['load']:.1f}" if "processor" in measured else "not noted"


def contradictions(records: dict[str, Any], passages: int) -> list[str]:
    """Return a sentence where the index of BM25, which is measured twice, costs more than 1.3 times as much once."""
    name, again = "BM25 index", f"growth: bm25 {passages:,}"
    if name not in records or again not in records:
        return []
    each = records[name]["seconds"]["ours"] / passages * 1e6, records[again]["microseconds"]
    if max(each) <= 1.3 * min(each):
        return []
    return [f"{name}: {each[0]:.3g} µs a passage, {again}: {each[1]:.3g}; measure both --again on a quiet machine"]


def this_processor() -> str:
    """Return the name of this machine's processor, with the instructions that torch uses."""
    return f"{processor()} {torch.backends.cpu.get_cpu_capability()}"


def libraries() -> str:
    """Return the versions that rows are measured with."""
    return f"Python {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in LIBRARIES)}"


def page(records: dict[str, Any], all_rows: dict[str, Row], versions: str) -> str:
    """Return the page: of the rows that are recorded, those of growth, and the steps of `docs/steps.json`."""
    measured = {name: row for name, row in all_rows.items() if name in records}
    below = [name for name, row in measured.items() if missed(row, records[name])]
    steps = json.loads(STEPS.read_bytes())
    keys = [f"{size} {precision}" for size in step_costs.SIZES for precision in step_costs.PRECISIONS]
    faster = [step_costs.ratio(rounds, key) for rounds in steps["methods"].values() for key in keys]
    beside = "\n".join(
        beside_line(name, row, there)
        for name, row in measured.items()
        for there in records[name].get("beside", {}).values()
    )
    others = [(row, there) for name, row in measured.items() for there in records[name].get("beside", {}).values()]
    elsewhere = f"{sum(bool(missed(row, there)) for row, there in others)} of {len(others)}"
    drift = max(max(step_costs.drift(rounds[0], key)) for rounds in steps["methods"].values() for key in keys)
    differ = f"differ by at most {drift:.0e}, relative," if drift else "are equal in every digit"
    parts = [
        f"""# Performance

How fast is `bench`, compared with libraries that do the same work?

**Answer.** {len(measured) - len(below)} of {len(measured)} rows reach their target. Below it:
{"; ".join(below) or "none"}. On [another processor](#on-another-processor) {elsewhere} are below it.
[Estimated run times](plans.md) compares `bench plan` with real runs.

**How it was measured**

- Seconds are CPU seconds of one core. `bench` and the other libraries run in one process, with one thread, and take
  turns, in another order each round. Commands run in processes of their own.
- *Ratio* is the other library's seconds divided by ours, the median over rounds: above 1, ours is faster. The target,
  in parentheses, is the lowest ratio that we want.
- *Bare matrix products* are only the multiplications that the model needs. Their ratio is the share of that speed
  that ours reaches; in dense search it can exceed 1, since ours multiplies by a faster library (below).
- *Load* is the one-minute load average of a machine with two cores, before or after the row, whichever is larger.
  *Not noted*: measured before rows recorded both, on an AMD EPYC with AVX512 on which other work ran.
- Absolute seconds hold for that machine only.
- Slow tests (`tests/benchmarks/test_speed.py`) fail where a ratio falls below 0.8 of the target or of the ratio that
  the same processor has here, whichever is lower; for a processor that has none the lowest ratio counts. Commands are
  measured, but no test checks them.

Measured by `make bench`.

## Compared with other libraries

{versions}.
""",
        "| work | ours, CPU s | others, CPU s | ratio (target) | target reached | what limits ours | processor, load |",
        "|---|---|---|---|---|---|---|",
        *(line(name, row, records[name]) for name, row in measured.items()),
        f"""
- **Masked language modelling.** Sequences have mixed lengths, as texts have; Hugging Face pads them to the longest.
  Rows name the size of the vocabulary: where it has 250,002 words against our 30,000, most of the ratio comes from the
  vocabulary and not from the code.
- **bfloat16.** Both sides compute in it: sentence-transformers encodes with weights in bfloat16, and trains under
  autocast, as Hugging Face and we do. *Ours in float32* shows what bfloat16 gains. Processors without instructions for
  it leave these rows out.
- **Reading a run file.** Where lines have the usual form (one blank between columns, the lines of a query together) a
  file is read in blocks; otherwise line by line, at half the speed.
- **Dense search.** Candidates come from the products of the library that is quickest on the processor: with AVX-512
  torch's MKL on Intel's processors and oneDNN elsewhere, without it numpy. On AMD's processors oneDNN takes AVX-512 and
  the OpenBLAS of faiss does not, so ours can be faster; on Intel's both take it, and ours selects and sums exactly
  besides. For the best 1,000 exact sums take a quarter of our seconds on AMD, half of it to read candidates' vectors
  again. With AVX2 on both sides the three ratios to faiss were 0.83, 0.83 and 0.73 on that AMD EPYC
  (`ATEN_CPU_CAPABILITY=avx2 python -m experiments.speed --again ROW`).

## On another processor

Which targets are missed elsewhere? A row is here for each processor on which it was measured besides the one above
(`python -m experiments.speed --beside ROW`).

| work | ours, CPU s | ratio (target) | target reached | processor, load |
|---|---|---|---|---|
{beside}

## Growth with the size of the data

How do CPU time and memory grow with the number of passages or tokens?

**Answer.** From the smallest to the largest size:

{growth_answer(records)}

Passages are drawn as they are read, and none is kept. Drawing is not part of the seconds. *Memory* is the peak of
anonymous memory beyond what the script holds at its start.

| work | size | CPU µs for each | memory, MiB | processor, load |
|---|---|---|---|---|""",
        *(growth_line(name, records[name]) for name in lines(True) if name in records),
        f"""
- The index of BM25 is measured in both tables. The command refuses to write the page if they differ by more than 1.3
  times.
- `prepare` with 21 languages on disk and a tokenizer of its own had a peak of 405 MiB at 34 million tokens (751 MiB
  before commit 04264331).
- On three languages, 6.6 million tokens took 15.5 CPU seconds in one process, 15.7 with two more processes and 15.4
  with three more, each of 80 to 110 MiB, for the same bytes (an Intel Xeon with other work on it).

## A training step before and after an optimisation

How much less CPU time does a training step take at commit {steps["after"]} than at {steps["before"]},
after work on kernel launches, reads and bfloat16, and are the losses the same?

**Answer.** It is {min(faster):.2f} to {max(faster):.2f} times as fast. Losses and gradient norms {differ} over
three steps. The last column has the largest relative differences by method.

{len(steps["methods"])} methods in batches of {_tokens(steps):s} tokens, one thread, without dropout, one process after
the other, each commit once. Measured by `python -m experiments.step_costs BEFORE OUT.json --rounds 1`.
""",
        step_costs.page(steps["methods"]).rstrip("\n"),
    ]
    return "\n".join(parts) + "\n"


def _tokens(steps: dict[str, Any]) -> str:
    """Return the smallest and the largest batch of any method."""
    sizes = [
        row["tokens"]
        for rounds in steps["methods"].values()
        for turn in rounds
        for tree in ("before", "after")
        for row in turn[tree].values()
    ]
    return f"{min(sizes):,.0f} to {max(sizes):,.0f}"


def main() -> None:
    """Measure, print each row as it is done, and write the page."""
    parser = argparse.ArgumentParser(description="Measure the rows of docs/performance.md")
    parser.add_argument("names", nargs="*", help="parts of the names of rows; all rows without")
    parser.add_argument("--full", action="store_true", help="the sizes that need an hour")
    parser.add_argument("--again", action="store_true", help="measure rows anew that are kept")
    parser.add_argument("--beside", action="store_true", help="keep this processor's ratios beside those of another")
    typed = parser.parse_args()
    records: dict[str, Any] = json.loads(RECORD.read_bytes()) if RECORD.exists() else {}
    all_rows = rows(typed.full)
    sizes = lines(typed.full)
    names = [name for name in (*all_rows, *sizes) if not typed.names or any(part in name for part in typed.names)]
    for name in names:
        if name in all_rows and all_rows[name].bfloat16 and bfloat16_speed() <= 1:
            print(f"{name}: not measured, this processor has no unit for bfloat16", flush=True)  # noqa: T201 (a command)
            continue
        elsewhere = records.get(name, {}).get("processor") not in {None, this_processor()}
        beside = typed.beside and elsewhere and name in all_rows
        kept = records[name].get("beside", {}) if name in records else {}
        if typed.again or (this_processor() not in kept if beside else name not in records):
            load = os.getloadavg()[0]
            with TemporaryDirectory() as folder:
                measured = grown(*sizes[name]) if name in sizes else asdict(measure(all_rows[name], Path(folder)))
            measured |= {"processor": this_processor(), "load": round(max(load, os.getloadavg()[0]), 1)}
            if beside:
                kept[this_processor()] = measured
            else:
                kept.pop(this_processor(), None)
                records[name] = measured
            records[name] |= {"beside": kept} if kept else {}
            write_bytes(RECORD, json.dumps(records, indent=1).encode())
        text = growth_line(name, records[name]) if name in sizes else line(name, all_rows[name], records[name])
        print(beside_line(name, all_rows[name], kept[this_processor()]) if beside else text, flush=True)  # noqa: T201
    if sentences := contradictions(records, all_rows["BM25 index"].units):
        raise SystemExit("\n".join(sentences))
    if any(name not in records for name, row in all_rows.items() if not row.bfloat16):
        return
    write_bytes(PAGE, page(records, all_rows, libraries()).encode())


if __name__ == "__main__":
    main()
