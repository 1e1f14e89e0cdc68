"""`make fuzz`: try every fuzzer, print what failed as JSON, end with 1 if anything did.

Usage: python -m tests.fuzz [TRIES [SEED [TARGET…]]]; without arguments a short round. A failure names its seed:
`make fuzz FUZZ=1 SEED=… TARGETS=…` makes the same case again. A process of its own, with one thread: it forks.
"""

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.fuzz import archives, attacks, bundles, folders, kills, models, plugins, scores, settings, texts
from tests.fuzz.harness import Target, try_seeds

TARGETS: dict[str, tuple[Target, int]] = {  # with the tries of a short round
    "texts": (texts.case, 30),
    "archives": (archives.case, 15),
    "answers": (archives.answered, 15),
    "scores": (scores.case, 15),
    "settings": (settings.case, 10),
    "folders": (folders.case, 6),
    "models": (models.case, 15),
    "bundles": (bundles.case, 2),
    "attacks": (attacks.case, 12),
    "plugins": (plugins.case, 2 * len(plugins.PLUGINS)),
    "kills": (kills.case, 1),
}


def main(tries: int = 0, first: int = 0, *names: str) -> None:
    """Try targets, by default all; print faults by target and seed."""
    faults: dict[str, Mapping[int, str]] = {}
    for name in names or TARGETS:
        target, short = TARGETS[name]
        number = min(tries or short, len(attacks.ATTACKS)) if name == "attacks" else tries or short
        with tempfile.TemporaryDirectory(prefix="bench-fuzz-") as folder:
            came = try_seeds(target, Path(folder), range(first, first + number))
        faults[name] = came.faults
        most = f"at most {came.seconds:.1f} s and {came.memory >> 20:,} MiB a case"
        print(f"{name}: {number} tries, {len(came.faults)} faults, {most}", file=sys.stderr)  # noqa: T201 (a command)
    print(json.dumps(faults, indent=1))  # noqa: T201 (a command)
    sys.exit(any(faults.values()))


if __name__ == "__main__":
    if os.environ.get("OMP_NUM_THREADS") != "1":  # a child of a process with more would wait for them for ever
        os.environ["OMP_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "tests.fuzz", *sys.argv[1:]])  # noqa: S606 (ourselves)
    numbers = [int(word) for word in sys.argv[1:3]] + [0, 0]
    main(numbers[0], numbers[1], *sys.argv[3:])
