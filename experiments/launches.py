"""What a step of each method asks of a GPU, counted on the emulated device of the tests: one table, before and after.

    python -m experiments.launches [--record NAME] [--layers 12]

counts in this tree and prints the table of `docs/launches.json` with what was counted; `--record` writes it there too.
A step is one micro-batch of the planted corpus in bfloat16; an encoder has 12 narrow layers, since width and length
change what an operation takes and not how many there are. Operations are those that torch dispatches for the device,
views and allocations left out; CUDA may run one of them as several kernels.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.core.files import write_bytes
from tests.device.cases import METHODS, TABLES, method
from tests.device.rules import counts
from tests.device.steps import FORWARD

RECORD = Path(__file__).parents[1] / "docs" / "launches.json"
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ccp, a batch of its own task": ("ccp", {"mlm": {"probability": 0.0}}),
    "contriever, in-batch": ("contriever", {"loss": "in-batch"}),
    "crop, span": ("crop", {"variant": "span", "span": {"tokens": 12}}),
    "msm, a batch of its own task": ("msm", {"mlm": {"probability": 0.0}}),
}
ALONE = ("ccp", "msm")  # whose other batches are those of mlm
COLUMNS = {"operations": "operations", "of the optimiser": "optimiser", "reads": "reads", "blocking copies": "copies"}
Row = dict[str, float]


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    name: (name, {}) for name in TABLES["small"] if name in METHODS and name not in ALONE
} | VARIANTS
"""Title of a row → method and settings."""


def count(layers: int) -> dict[str, Row]:
    """Return what a step of each method asks for, the mean of three."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (title, (name, values)) in enumerate(sorted(CASES.items())):
            (place := Path(folder) / str(number)).mkdir()
            steps = method(name, {**values, "precision": "bfloat16"}, place, f"scratch:{layers}x16")
            rows[title] = _row(steps)
            sys.stderr.write(f"{title}: {json.dumps(rows[title])}\n")
    return rows


def _row(steps: Sequence[Mapping[str, Any]]) -> Row:
    """Return the means over some steps."""
    totals = [counts(step) for step in steps]
    forward = [sum(n for kind, *_, n in step["asked"][FORWARD] if kind == "launch") for step in steps]
    columns = {
        "operations": sum(forward),
        "optimiser": sum(total.get("launch", 0) for total in totals) - sum(forward),
        "reads": sum(total.get("read", 0) for total in totals),
        "copies": sum(total.get("copy", 0) for total in totals),
        "layers": sum(step["layers"] for step in steps),
    }
    return {name: round(value / len(steps), 1) for name, value in columns.items()}


def table(records: Mapping[str, Mapping[str, Row]]) -> str:
    """Return a Markdown table: a row for each method, in each cell what was counted by each record, in order."""
    titles = sorted({title for record in records.values() for title in record})
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * len(COLUMNS)]
    for title in titles:
        cells = (
            " → ".join(f"{record[title][name]:g}" for record in records.values() if title in record)
            for name in COLUMNS.values()
        )
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Count, print, and write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", metavar="NAME", help="write what is counted to docs/launches.json by this name")
    parser.add_argument("--layers", type=int, default=12, help="of the encoder; default: 12")
    typed = parser.parse_args(arguments)
    records: dict[str, dict[str, Row]] = json.loads(RECORD.read_bytes()) if RECORD.exists() else {}
    records[typed.record or "now"] = count(typed.layers)
    if typed.record:
        write_bytes(RECORD, (json.dumps(records, indent=1) + "\n").encode())
    sys.stdout.write(f"{' → '.join(records)}\n\n{table(records)}\n")


if __name__ == "__main__":
    main()
