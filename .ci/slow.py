"""Run the tests marked `slow` under a cap, and name the slowest ten however the run ends.

    python .ci/slow.py [--cap SECONDS] [PYTEST ARGUMENT …]

pytest tells durations only of a run that ends, and not of the test that hung. So this module is also a pytest plugin
that keeps a journal of starts and ends; when the cap is reached the ten slowest are read from there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import capped

CAP = 45 * 60.0
GRACE = 60.0
TEST_LIMIT = 20 * 60
"""Seconds; a single test that hangs fails by its name long before the cap."""
NO_TESTS = 5
"""What pytest exits with when nothing was collected."""
MARKS = "slow and not gpu and not network"
_JOURNAL = "BENCH_SLOW_JOURNAL"


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note that a test begins."""
    _note(nodeid, "start")


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Note that a test has ended."""
    _note(nodeid, "end")


def _note(test: str, event: str) -> None:
    """Append one line to the journal; opened each time, so that a killed run loses nothing."""
    with Path(os.environ[_JOURNAL]).open("a", encoding="utf-8") as stream:
        stream.write(json.dumps([test, event, time.time()]) + "\n")


def slowest(journal: str, now: float, count: int = 10) -> list[tuple[str, float, bool]]:
    """Return the slowest tests of a journal, slowest first.

    Args:
        journal: lines of `[test, "start" or "end", seconds since the epoch]`.
        now: seconds since the epoch; the end of a test that has none.
        count: how many.

    Returns:
        Test, seconds, and whether it was still running.
    """
    starts: dict[str, float] = {}
    ends: dict[str, float] = {}
    for line in journal.splitlines():
        test, event, when = json.loads(line)
        (starts if event == "start" else ends)[test] = when
    rows = [(test, ends.get(test, now) - start, test not in ends) for test, start in starts.items()]
    return sorted(rows, key=lambda row: -row[1])[:count]


def main(arguments: Sequence[str]) -> int:
    """Run pytest on the slow tests; return its exit code, 0 where there are none, `capped.CAPPED` at the cap."""
    parser = argparse.ArgumentParser(description="Run the tests marked slow under a cap.")
    parser.add_argument("--cap", type=float, default=CAP, help="seconds in all")
    options, rest = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "journal"
        journal.touch()
        command = [sys.executable, "-m", "pytest", "-p", Path(__file__).stem, "-m", MARKS]
        command += ["--durations=10", f"--timeout={TEST_LIMIT}", *rest]
        path = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
        code = capped.run(command, options.cap, GRACE, {**os.environ, _JOURNAL: str(journal), "PYTHONPATH": path})
        rows = slowest(journal.read_text(encoding="utf-8"), time.time())
    if code == NO_TESTS:
        sys.stdout.write("slow: no test is marked slow\n")
        return 0
    if code in (capped.CAPPED, capped.INTERRUPTED):
        why = f"the cap of {options.cap:g} s was reached" if code == capped.CAPPED else "interrupted"
        sys.stdout.write(f"slow: FAILED, {why}; the slowest ten:\n")
        for test, seconds, running in rows:
            sys.stdout.write(f"{seconds:8.1f} s  {test}{'  (still running)' if running else ''}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
