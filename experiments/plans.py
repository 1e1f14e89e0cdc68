"""What `bench plan` expects of ten runs, and what they then took: the table of `docs/plans.md`.

    python -m experiments.plans DATA

DATA is the folder of official data. The first plan of a letter finds an empty store, later ones what those before left.
Both are seconds of the wall clock, as plans state and runs record. The table also gives the share of a processor that
the run had, for other work may share the machine. Stages use one thread and run one at a time.
"""

import json
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
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
    ratio = max(estimated, happened) / max(1e-9, min(estimated, happened))
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


def main(data: str) -> None:
    """Measure, print each row as it is done, and write the page."""
    head = [
        "| plan | store | estimated, s | guessed | happened, s | processor | ratio | within 3 |",
        "|---" * 8 + "|",
    ]
    lines, records = list[str](), dict[str, dict[str, float]]()
    with TemporaryDirectory() as folder:
        for letter, name in PLANS:
            store = Path(folder, letter)
            state = f"{letter}, used" if store.exists() else f"{letter}, empty"
            trained = next(store.glob("artefacts/train/*/encoder"), Path())
            arguments = shlex.split(name.replace("TRAINED", str(trained)))
            records[name] = measured(arguments, store, data)
            lines.append(row(name, state, records[name]))
            print(lines[-1], flush=True)  # noqa: T201 (a command)
    write_bytes(RECORD, json.dumps(records, indent=1).encode() + b"\n")
    introduction = [
        "# Plans",
        "",
        "Seconds of the wall clock that `bench plan` expected of ten runs, and those that stages then recorded, by",
        "`python -m experiments.plans DATA`. TRAINED is the encoder of the run before it.",
        "*Guessed* is the share of the estimate for which the store had seen no work of the kind.",
        "*Processor* is the share of one that the run had: other work ran too, and made the seconds longer.",
        f"Measured on {processor()}, with one thread.",
        "",
    ]
    write_bytes(PAGE, "\n".join([*introduction, *head, *lines, ""]).encode())


if __name__ == "__main__":
    main(sys.argv[1])
