"""`make bench`: measure the rows of `docs/performance.md`, and write it where all were measured.

    python -m experiments.speed [--full] [NAME …]

Rows are named by any part of their names, those of growth begin with `growth`; `--full` takes the sizes that need an
hour. A row is kept in `docs/performance.json` when it is finished, so that an interrupted command goes on; `--again`
measures anew.
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
from bench.core.machine import bfloat16_speed
from experiments.speed import commands, dense, lexical, scoring
from experiments.speed.growth import grown, lines
from experiments.speed.measure import Row, measure

ROOT = Path(__file__).parents[2]
PAGE, RECORD = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance.json"
LIBRARIES = ("torch", "transformers", "sentence-transformers", "faiss-cpu", "bm25s", "rank_bm25", "datasets", "numba")


def rows(full: bool = False) -> dict[str, Row]:
    """Return every row by its name; `full` takes the larger sizes."""
    return {**dense.rows(512), **lexical.rows(100_000 if full else 30_000), **scoring.ROWS, **commands.ROWS}


def line(name: str, row: Row, measured: dict[str, Any]) -> str:
    """Return a row of the table."""
    peers = [f"{peer} {measured['seconds'][peer]:.3g} s" for peer in measured["ratios"]]
    ratios = [f"{ratio:.2g} (≥ {row.reach[peer]:g})" if peer in row.reach else f"{ratio:.2g}"
              for peer, ratio in measured["ratios"].items()]  # fmt: skip
    missed = [peer for peer, least in row.reach.items() if measured["ratios"][peer] < least]
    ours = f"{measured['seconds']['ours']:.3g} s for {row.units:,} {row.unit}"
    cells = (name, ours, "; ".join(peers), "; ".join(ratios), "no" if missed else "yes", row.holds, stamp(measured))
    return f"| {' | '.join(cells)} |"


def growth_line(name: str, measured: dict[str, Any]) -> str:
    """Return a line of the table of growth."""
    work = f"{name.removeprefix('growth: ').split()[0]}, {'tokens' if 'prepare' in name else 'passages'}"
    each, size = f"{measured['microseconds']:.3g}", f"{measured['mebibytes']:,}"
    return f"| {work} | {measured['units']:,} | {each} | {size} | {stamp(measured)} |"


def stamp(measured: dict[str, Any]) -> str:
    """Return what a row was measured on, and how many processes wanted a processor of it; rows of before have none."""
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


def processor() -> str:
    """Return the name of this machine's processor, with the instructions that torch uses."""
    info = Path("/proc/cpuinfo")
    texts = info.read_text().splitlines() if info.exists() else []
    name = next((text.partition(": ")[2] for text in texts if text.startswith("model name")), platform.processor())
    return f"{name} {torch.backends.cpu.get_cpu_capability()}"


def libraries() -> str:
    """Return what was measured with."""
    return f"Python {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in LIBRARIES)}"


def main() -> None:
    """Measure, print each row as it is done, and write the page."""
    parser = argparse.ArgumentParser(description="Measure the rows of docs/performance.md")
    parser.add_argument("names", nargs="*", help="parts of the names of rows; all rows without")
    parser.add_argument("--full", action="store_true", help="the sizes that need an hour")
    parser.add_argument("--again", action="store_true", help="measure rows anew that are kept")
    typed = parser.parse_args()
    records: dict[str, Any] = json.loads(RECORD.read_bytes()) if RECORD.exists() else {}
    all_rows = rows(typed.full)
    sizes = lines(typed.full)
    names = [name for name in (*all_rows, *sizes) if not typed.names or any(part in name for part in typed.names)]
    for name in names:
        if name in all_rows and all_rows[name].bfloat16 and bfloat16_speed() <= 1:
            print(f"{name}: not measured, this processor has no unit for bfloat16", flush=True)  # noqa: T201 (a command)
            continue
        if name not in records or typed.again:
            load = os.getloadavg()[0]
            with TemporaryDirectory() as folder:
                measured = grown(*sizes[name]) if name in sizes else asdict(measure(all_rows[name], Path(folder)))
            records[name] = {**measured, "processor": processor(), "load": round(max(load, os.getloadavg()[0]), 1)}
            write_bytes(RECORD, json.dumps(records, indent=1).encode())
        text = growth_line(name, records[name]) if name in sizes else line(name, all_rows[name], records[name])
        print(text, flush=True)  # noqa: T201 (a command)
    if sentences := contradictions(records, all_rows["BM25 index"].units):
        raise SystemExit("\n".join(sentences))
    if any(name not in records for name, row in all_rows.items() if not row.bfloat16):
        return
    before = PAGE.read_text(encoding="utf-8").partition("Measured with ")[0]
    table = [
        f"Measured with {libraries()}.",
        "",
        "| work | ours | peers | ratio | reached | what holds it | measured on, load |",
        "|---|---|---|---|---|---|---|",
    ]
    table += [line(name, row, records[name]) for name, row in all_rows.items() if name in records]
    table += ["", "| growth | size | µs each | memory, MiB | measured on, load |", "|---|---|---|---|---|"]
    table += [growth_line(name, records[name]) for name in lines(True) if name in records]
    write_bytes(PAGE, (before + "\n".join(table) + "\n").encode())


if __name__ == "__main__":
    main()
