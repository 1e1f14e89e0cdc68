"""`make bench`: measure the rows of `docs/performance.md`, and write it where all were measured.

    python -m experiments.speed [--full] [NAME …]

Rows are named by any part of their names, `growth` is one of them; `--full` takes the sizes that need an hour. A row is
kept in `docs/performance.json` when it is finished, so that an interrupted command goes on; `--again` measures anew.
"""

import argparse
import json
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from bench.core.files import write_bytes
from experiments.speed import commands, dense, lexical
from experiments.speed.growth import growth
from experiments.speed.measure import Row, measure

ROOT = Path(__file__).parents[2]
PAGE, RECORD = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance.json"
LIBRARIES = ("torch", "transformers", "sentence-transformers", "faiss-cpu", "bm25s", "rank_bm25", "datasets", "numba")


def rows(full: bool = False) -> dict[str, Row]:
    """Return every row by its name; `full` takes the larger sizes."""
    return {**dense.rows(512), **lexical.rows(100_000 if full else 30_000), **commands.ROWS}


def line(name: str, row: Row, measured: dict[str, Any]) -> str:
    """Return a row of the table."""
    peers = [f"{peer} {measured['seconds'][peer]:.3g} s" for peer in measured["ratios"]]
    ratios = [f"{ratio:.2g} (≥ {row.reach[peer]:g})" if peer in row.reach else f"{ratio:.2g}"
              for peer, ratio in measured["ratios"].items()]  # fmt: skip
    missed = [peer for peer, least in row.reach.items() if measured["ratios"][peer] < least]
    ours = f"{measured['seconds']['ours']:.3g} s for {row.units:,} {row.unit}"
    return f"| {name} | {ours} | {'; '.join(peers)} | {'; '.join(ratios)} | {'no' if missed else 'yes'} | {row.holds} |"


def machine() -> str:
    """Return what was measured on, and with."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((text.partition(": ")[2] for text in lines if text.startswith("model name")), platform.processor())
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}, Python {platform.python_version()}, {libraries}"


def main() -> None:
    """Measure, print each row as it is done, and write the page."""
    parser = argparse.ArgumentParser(description="Measure the rows of docs/performance.md")
    parser.add_argument("names", nargs="*", help="parts of the names of rows; all rows without")
    parser.add_argument("--full", action="store_true", help="the sizes that need an hour")
    parser.add_argument("--again", action="store_true", help="measure rows anew that are kept")
    typed = parser.parse_args()
    records: dict[str, Any] = json.loads(RECORD.read_bytes()) if RECORD.exists() else {}
    all_rows = rows(typed.full)
    names = [name for name in (*all_rows, "growth") if not typed.names or any(part in name for part in typed.names)]
    for name in names:
        if name not in records or typed.again:
            with TemporaryDirectory() as folder:
                records[name] = (
                    growth(typed.full) if name == "growth" else asdict(measure(all_rows[name], Path(folder)))
                )
            write_bytes(RECORD, json.dumps(records, indent=1).encode())
        print(name if name == "growth" else line(name, all_rows[name], records[name]), flush=True)  # noqa: T201 (a command)
    if not all_rows.keys() <= records.keys():
        return
    before = PAGE.read_text(encoding="utf-8").partition("Measured on ")[0]
    lines = [
        f"Measured on {machine()}.",
        "",
        "| work | ours | peers | ratio | reached | what holds it |",
        "|---|---|---|---|---|---|",
    ]
    lines += [line(name, row, records[name]) for name, row in all_rows.items()]
    lines += ["", "| growth | size | µs each | peak memory, MiB |", "|---|---|---|---|"]
    lines += [
        f"| {work} | {size:,} | {microseconds:.3g} | {peak:,} |"
        for work, size, microseconds, peak in records.get("growth", ())
    ]
    write_bytes(PAGE, (before + "\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
