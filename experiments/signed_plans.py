"""Time, memory and disk that `bench plan` expects of three runs, and what they took: `docs/signed-plans.md`.

    python -m experiments.signed_plans DATA [plans]

DATA is the folder of official data. Each run finds an empty store, three times, with one thread, a stage at a time.
Time is CPU time of the whole process, for other work may share the machine; memory is the peak of the process's
anonymous memory; disk is what the stages left in the store. The median of three runs counts. With `plans`, only the
plans are made anew, and the runs stay as they were recorded.
"""

import json
import os
import resource
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from bench.core.files import write_bytes
from bench.core.machine import processor

ROOT = Path(__file__).parents[1]
PAGE, RECORD = ROOT / "docs" / "signed-plans.md", ROOT / "docs" / "signed-plans.json"
RUNS = 3
BOUNDS = {"seconds": 1.5, "memory": 1.2, "disk": 1.2}
PLANS = (
    "--method bm25 --suite mrtydi-goldp --data official",
    "--method bm25 --suite beir --task scifact,nfcorpus --data official",
    "--method crop --suite mrtydi-goldp --task id --data official --set budget.tokens=100000",
)
_LOOK = 0.02  # seconds between two looks at a process's memory


@dataclass(frozen=True)
class Taken:
    """What a run was planned to take, or took: seconds, bytes of memory, bytes on the disk."""

    seconds: float
    memory: float
    disk: float


def ratio(planned: float, happened: float) -> float:
    """Return by which factor the two differ, at least 1."""
    return max(planned, happened) / max(1e-9, min(planned, happened))


def anonymous(process: int) -> int:
    """Return the anonymous memory of a process, bytes; 0 once it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")), 0)


def planned(arguments: Sequence[str]) -> Taken:
    """Return what `bench plan` says."""
    command = [sys.executable, "-m", "bench", "plan", *arguments, "--json"]
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    totals: dict[str, Any] = json.loads(output)["totals"]
    return Taken(totals["seconds"], totals["memory"], totals["disk"])


def happened(arguments: Sequence[str], store: Path) -> Taken:
    """Run it, and return what it took."""
    before, peak = resource.getrusage(resource.RUSAGE_CHILDREN), 0
    command = [sys.executable, "-m", "bench", "run", *arguments, "--workers", "1", "--quiet"]
    command += ["--results", str(store.with_name("results"))]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    ended = threading.Event()

    def look() -> None:
        nonlocal peak
        while not ended.is_set():
            peak = max(peak, anonymous(process.pid))
            time.sleep(_LOOK)

    watcher = threading.Thread(target=look)
    watcher.start()
    status = process.wait()
    ended.set()
    watcher.join()
    if status:
        raise SystemExit(f"bench run ended with {status}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    files = [path for path in (store / "artefacts").rglob("*") if path.is_file() and path.name != "manifest.json"]
    return Taken(seconds, peak, sum(path.stat().st_size for path in files))


def measured(name: str, data: str) -> dict[str, Any]:
    """Plan and run, each with an empty store; return both, the medians of the runs."""
    options = ["--data-dir", data, "--device", "cpu", "--offline", "--set", "compute.threads=1"]
    plans, runs = [], []
    for _ in range(RUNS):
        with TemporaryDirectory() as folder:
            arguments = [*shlex.split(name), *options, "--store", str(Path(folder, "store"))]
            plans.append(planned(arguments))
            runs.append(happened(arguments, Path(folder, "store")))
    return {
        quantity: {
            "planned": round(median(getattr(plan, quantity) for plan in plans), 3),
            "happened": round(median(getattr(run, quantity) for run in runs), 3),
            "runs": [round(getattr(run, quantity), 3) for run in runs],
        }
        for quantity in BOUNDS
    }


def row(name: str, record: dict[str, Any]) -> str:
    """Return a plan's row of the table."""
    units = {"seconds": 1.0, "memory": 1e6, "disk": 1e6}
    cells, kept = [f"`{name}`"], True
    for quantity, bound in BOUNDS.items():
        plan, run = (record[quantity][of] / units[quantity] for of in ("planned", "happened"))
        factor = ratio(plan, run)
        kept &= factor <= bound
        cells += [f"{plan:,.1f}", f"{run:,.1f}", f"{factor:.2f}"]
    return f"| {' | '.join([*cells, 'yes' if kept else 'no'])} |"


def planned_again(name: str, data: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with what the plan says now, and what the runs took then."""
    with TemporaryDirectory() as folder:
        options = ["--data-dir", data, "--device", "cpu", "--offline", "--set", "compute.threads=1"]
        plan = planned([*shlex.split(name), *options, "--store", str(Path(folder, "store"))])
    return {quantity: {**record[quantity], "planned": round(getattr(plan, quantity), 3)} for quantity in BOUNDS}


def page(record: Mapping[str, Any]) -> str:
    """Return the page of a record."""
    rows = [row(name, quantities) for name, quantities in record["plans"].items()]
    within = sum(line.endswith("| yes |") for line in rows)
    titles = ["options"]
    titles += [f"{title} {of}" for title in ("CPU s,", "memory, MB,", "disk, MB,") for of in _OF]
    lines = [
        f"""# Resources planned and used

How close are the CPU time, memory and disk space that `bench plan` prints to what a run on real data then
uses?

**Answer.** In {within} of {len(rows)} runs all three were within their bounds: CPU time within a factor of
{BOUNDS["seconds"]}, memory and disk within {BOUNDS["memory"]}. This is a fit and not a prediction of unseen runs:

- The constants for search, scoring and lines of run files were measured on the first two runs.
- What encoders and shards leave on disk was corrected after the third run. Then all three were planned again.

**How it was measured**

- Each run started with an empty store: {record["processor"]}, one thread, one stage at a time. The median of {RUNS}
  runs counts.
- CPU time is that of the whole process. Memory is the peak of its anonymous memory. Disk is what the stages left in
  the store. MB are 10⁶ bytes.
- *Factor* is the larger of both values divided by the smaller.

Measured by `make signed-plans DATA=FOLDER`. [Estimated run times](plans.md) compares the times of ten runs.
""",
        f"| {' | '.join([*titles, 'all within bounds'])} |",
        "|---" * (len(titles) + 1) + "|",
    ]
    return "\n".join([*lines, *rows, ""])


def main(data: str, again: str = "") -> None:
    """Measure, print each row as it is done, and write record and page; `plans` makes only the plans anew."""
    os.environ["OMP_NUM_THREADS"] = "1"
    before: dict[str, Any] = json.loads(RECORD.read_bytes()) if again == "plans" else {"processor": processor()}
    plans = dict[str, Any]()
    for name in PLANS:
        plans[name] = planned_again(name, data, before["plans"][name]) if again == "plans" else measured(name, data)
        print(row(name, plans[name]), flush=True)  # noqa: T201 (a command)
    record = {"processor": before["processor"], "plans": plans}
    write_bytes(RECORD, json.dumps(record, indent=1).encode() + b"\n")
    write_bytes(PAGE, page(record).encode())


_OF = ("planned", "measured", "factor")

if __name__ == "__main__":
    main(*sys.argv[1:])
