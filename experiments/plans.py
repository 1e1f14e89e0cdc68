"""How long `bench plan` expects ten runs to take, and how long they took: `docs/plans.md`.

    python -m experiments.plans DATA

DATA is the folder of official data. The first plan of a letter finds an empty store, later ones what those before left.
All seconds are wall-clock time. The table also gives the share of one processor that a run had, for other work may
share the machine. Stages use one thread and run one at a time. The numbers go to `docs/plans.json`, and the page is
made from them.
"""

import json
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.core.files import write_bytes
from bench.core.machine import processor

ROOT = Path(__file__).parents[1]
PAGE, RECORD = ROOT / "docs" / "plans.md", ROOT / "docs" / "plans.json"
WITHIN = 3.0
MODEL = "--method pretrained --set method.model=TRAINED --data official"
TINY = "--set budget.tokens=300000"
PLANS = (
    ("A", "--method bm25 --suite beir --task scifact --data official"),
    ("A", "--method bm25 --suite mrtydi-goldp --task sw,te,ko --data official"),
    ("A", f"--method crop --suite mrtydi --task sw,ko,te {TINY}"),
    ("A", f"{MODEL} --suite tatoeba --task deu-eng,fra-eng,swh-eng,jpn-eng"),
    ("A", "--method crop --suite mrtydi --task sw,ko,te --backbone scratch:4x256 --set budget.tokens=100000"),
    ("A", f"{MODEL} --suite mrtydi-goldp --task ko"),
    ("A", f"--method ict,crop --seed 0,1 --suite mrtydi --task sw,ko,te {TINY}"),
    ("B", f"--method msm --suite mrtydi {TINY}"),
    (
        "B",
        f"--method msm --suite mrtydi --regime english --task en,ko {TINY} --set tune.mine=bm25 --set tune.epochs=1",
    ),
    ("C", "--method bm25 --suite mrtydi --task en --regime english --rerank trained"),
)


def row(name: str, store: str, seconds: dict[str, float]) -> str:
    """Return a plan's row of the table."""
    estimated, happened = seconds["estimated"], seconds["happened"]
    ratio = _ratio(seconds)
    reached, guessed = "yes" if ratio <= WITHIN else "no", seconds["guessed"] / max(1e-9, estimated)
    cells = (
        f"`{name}`",
        store,
        f"{estimated:.1f}",
        f"{guessed:.0%}",
        f"{happened:.1f}",
        f"{seconds['share']:.0%}",
        f"{ratio:.2f}",
        reached,
    )
    return f"| {' | '.join(cells)} |"


def _ratio(seconds: Mapping[str, float]) -> float:
    """Return by which factor both times differ, at least 1."""
    estimated, happened = seconds["estimated"], seconds["happened"]
    return max(estimated, happened) / max(1e-9, min(estimated, happened))


def measured(arguments: Sequence[str], store: Path, data: str) -> dict[str, float]:
    """Plan and run, and return the seconds that were estimated and those that came, also of each kind of stage."""
    shared = ["--store", str(store), "--data-dir", data, "--device", "cpu", "--offline", "--set", "compute.threads=1"]
    bench = [sys.executable, "-m", "bench"]
    output = subprocess.run([*bench, "plan", *arguments, *shared, "--json"], stdout=subprocess.PIPE, check=True).stdout
    plan: dict[str, Any] = json.loads(output)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    results = ["--workers", "1", "--results", str(store / "results"), "--quiet"]
    subprocess.run([*bench, "run", *arguments, *shared, *results], stdout=subprocess.DEVNULL, check=True)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    share = min(1.0, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / wall)
    totals = {"estimated": 0.0, "guessed": 0.0, "happened": 0.0, "share": share}
    for step in (step for step in plan["steps"] if step["runs"]):
        manifest = store / "artefacts" / step["stage"] / step["key"] / "manifest.json"
        seconds_taken = json.loads(manifest.read_bytes())["seconds"]
        totals["estimated"] += step["seconds"]
        totals["guessed"] += step["seconds"] * step.get("guessed", False)
        totals["happened"] += seconds_taken
        for kind, seconds in (("estimated", step["seconds"]), ("happened", seconds_taken)):
            name = f"{kind} {step['stage']}"
            totals[name] = totals.get(name, 0.0) + seconds
    return {name: round(seconds, 3) for name, seconds in totals.items()}


def page(record: Mapping[str, Any]) -> str:
    """Return the page of a record."""
    plans = record["plans"]
    ratios = {name: _ratio(seconds) for name, seconds in plans.items()}
    stores = {name: f"{letter}, {'used' if at and PLANS[at - 1][0] == letter else 'empty'}"
              for at, (letter, name) in enumerate(PLANS)}  # fmt: skip
    within = sum(ratio <= WITHIN for ratio in ratios.values())
    lines = [
        f"""# Estimated run times

How close are the times that `bench plan` prints to what a run then takes?

**Answer.** {within} of {len(ratios)} runs came within a factor of {WITHIN:g} of
their plan; the largest factor is {max(ratios.values()):.2f}. [Resources planned and used](signed-plans.md) has
stricter bounds, and also covers memory and disk.

**How it was measured**

- Each run was planned, then run: {record["processor"]}, one thread, one stage at a time. Other work ran on the machine.
- *Planned* and *measured* are wall-clock seconds, summed over the stages that had to run.
- *Guessed* is the share of the planned time for which the store held no earlier stage of that kind to estimate from.
- *Store*: runs with the same letter share a store, from the top of the table down; the first one finds it empty.
- *CPU share* is the share of one processor that the run got; where it is low, other work made the run slower.
- *Factor* is the larger of both times divided by the smaller.
- TRAINED is an encoder that an earlier run left in the same store.

Measured by `python -m experiments.plans DATA`.
""",
        f"| options | store | planned, s | guessed | measured, s | CPU share | factor | within {WITHIN:g} |",
        "|---" * 8 + "|",
    ]
    return "\n".join([*lines, *(row(name, stores[name], seconds) for name, seconds in plans.items()), ""])


def main(data: str) -> None:
    """Measure, print each row as it is done, and write record and page."""
    plans = dict[str, dict[str, float]]()
    with TemporaryDirectory() as folder:
        for letter, name in PLANS:
            store = Path(folder, letter)
            trained = next(store.glob("artefacts/train/*/encoder"), Path())
            plans[name] = measured(shlex.split(name.replace("TRAINED", str(trained))), store, data)
            print(row(name, letter, plans[name]), flush=True)  # noqa: T201 (a command)
    record = {"processor": processor(), "plans": plans}
    write_bytes(RECORD, json.dumps(record, indent=1).encode() + b"\n")
    write_bytes(PAGE, page(record).encode())


if __name__ == "__main__":
    main(sys.argv[1])
