"""Run test modules on a copy of the tree in a forked process: to record what they execute, or to try a mutation.

The process is forked from one that has imported the heavy libraries and nothing of the product, so that a run pays for
the product's own modules alone, and imports them from its copy.
"""

import importlib
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.mutants.tracing import sitecustomize

ROOT = Path(__file__).parents[2]
OURS = ("bench", "leaderboard", "methods", "suites", "tests", "experiments")
HEAVY = ("numpy", "pandas", "scipy.stats", "torch", "transformers.models.bert.modeling_bert", "hypothesis", "pydantic")
"""What takes seconds to import and never changes."""
SECONDS_FREE, SLOWER = 20.0, 10.0
"""A test may take this many seconds of a processor, and this many times what it takes without a mutation."""
MEMORY = 6 << 30
"""Bytes of data for a process; what a mutation lets grow without end is noticed by this."""


class Run(NamedTuple):
    """What one test takes without a mutation: seconds of a processor, and the lines that it executes, by file."""

    seconds: float
    lines: Mapping[str, Sequence[int]]


def preload() -> None:
    """Import what is heavy, with one thread for each library."""
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in HEAVY:
        importlib.import_module(name)


@cache
def process_tree(folder: str) -> Path:
    """Return this process's copy of what git lists of the working tree, made on the first call."""
    tree = Path(folder, str(os.getpid()))
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listing, cwd=ROOT, text=True).split("\0"):
        if name and (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    return tree


def run_tests(tree: Path, modules: Sequence[str], plugin: object) -> bool:
    """Run test modules of a copy in a forked process, and end all that they started.

    Args:
        tree: the copy; all modules of ours are imported from it, in subprocesses too.
        modules: paths of test modules in it.
        plugin: a plugin of pytest, which sees the tests.

    Returns:
        Whether all of them pass; none is as good. A process that a signal ends does not pass.
    """
    process = os.fork()
    if not process:
        code = int(pytest.ExitCode.INTERNAL_ERROR)
        try:
            code = _run_pytest(tree, modules, plugin)
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    return code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def _run_pytest(tree: Path, modules: Sequence[str], plugin: object) -> int:
    """Run tests in this process, as if it had been started in the copy of the tree."""
    os.setsid()
    os.chdir(tree)
    with Path(os.devnull).open("r+", encoding="utf-8") as nowhere:
        for stream in range(3):
            os.dup2(nowhere.fileno(), stream)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    for name in [name for name in os.environ if name.startswith("BENCH_")]:
        del os.environ[name]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(tree), str(tree / "tests/mutants/tracing")])
    sys.path[:] = [str(tree), *(path for path in sys.path if path and Path(path) != ROOT)]
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    already_imported = "ignore::pytest.PytestAssertRewriteWarning"
    arguments = [
        "-q",
        "-W",
        already_imported,
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tree}-pytest",
    ]
    return int(pytest.main([*arguments, *modules], plugins=[plugin]))


def processor_seconds() -> float:
    """Seconds of a processor that this process has taken, with all that it started and waited for."""
    return sum(os.times()[:4])


class Recorder:
    """A plugin of pytest that writes the `Run` of each test that passes (`read_runs`).

    Lines of a fixture that several tests share count for every test that names the fixture.
    """

    def __init__(self, tree: Path, places: Sequence[str], out: Path) -> None:
        self.tree, self.out, self.folder = f"{tree}/", out, Path(f"{tree}-lines")
        self.prefixes = tuple(f"{tree}/{place}" for place in places)
        self.fixtures: dict[str, Path] = {}
        self.runs: dict[str, tuple[float, list[Path]]] = {}
        self.failed: set[str] = set()

    def pytest_sessionstart(self) -> None:
        """Trace this process."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.lines = sitecustomize.trace(self.prefixes, str(self.folder / "imports"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Trace a test with its setup into a file of its own."""
        path, began = self.folder / f"{len(self.runs)}.test", processor_seconds()
        self.lines.write_to(str(path))
        result = yield
        shared = [self.fixtures[name] for name in getattr(item, "fixturenames", ()) if name in self.fixtures]
        self.runs[item.nodeid] = processor_seconds() - began, [path, *shared]
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """Trace a shared fixture into a file that all its tests have in common."""
        test = self.lines.path
        if fixturedef.scope != "function":
            path = self.fixtures.setdefault(fixturedef.argname, self.folder / f"{len(self.fixtures)}.fixture")
            self.lines.write_to(str(path))
        try:
            return (yield)
        finally:
            self.lines.write_to(test)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what fails without a mutation."""
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write down all runs."""
        passed = {test: run for test, run in self.runs.items() if test not in self.failed}
        rows = {test: (seconds, self._read(paths)) for test, (seconds, paths) in passed.items()}
        path = self.folder / "runs.json"
        path.write_text(json.dumps({"passed": rows, "failed": sorted(self.failed)}), encoding="utf-8")
        shutil.move(path, self.out)

    def _read(self, paths: Sequence[Path]) -> dict[str, list[int]]:
        """Return the lines by file that processes wrote down."""
        lines = defaultdict(set)
        for path in paths:
            for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
                file, _, line = text.removeprefix(self.tree).rpartition(":")
                lines[file].add(int(line))
        return {file: sorted(lines[file]) for file in sorted(lines)}


def read_runs(path: Path) -> tuple[dict[str, Run], list[str]]:
    """Read what a `Recorder` wrote: the runs of tests that pass without a mutation, by id, and the tests that fail."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return {test: Run(*row) for test, row in content["passed"].items()}, content["failed"]


class Trial:
    """A plugin of pytest that runs some tests, the cheapest of a module first, and ends the process when one fails.

    Args:
        seconds: what each test takes without a mutation, by its id.
    """

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self.seconds = seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests to run; modules stay together, since their tests share fixtures."""
        modules = list(dict.fromkeys(item.path for item in items))
        rows = [item for item in items if item.nodeid in self.seconds]
        items[:] = sorted(rows, key=lambda item: (modules.index(item.path), self.seconds[item.nodeid]))

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Give a test its share of the processor, after which the system ends the process."""
        limit = math.ceil(sum(os.times()[:2]) + SECONDS_FREE + SLOWER * self.seconds[item.nodeid])
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))

    def pytest_sessionfinish(self) -> None:
        """Lift the limit: the end of pytest, which collects a large heap's garbage several times, is no test's."""
        resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """End at the first failure."""
        if report.failed:
            os._exit(int(pytest.ExitCode.TESTS_FAILED))
