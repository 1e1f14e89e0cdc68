"""`make mutants`: change one expression of the product at a time, and count how many changes the tests notice.

    python -m tests.mutants [SEED [COUNT]]

COUNT mutations (100 by default) are sampled with SEED from the rules between packages that `PLACES` lists. Each is
applied to a copy of the tree, never to the tree itself, and tried by the nearest tests first, then by those that
`PLACES` names for it, up to the first failure. Two processes need at most an hour for 100. Survivors are printed as
file, line and difference; those that `equivalent.json` argues for are marked and still count as missed.
"""

import difflib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from functools import cache
from pathlib import Path

import click

from tests.mutants.mutations import Mutation, mutations

ROOT = Path(__file__).parents[2]
SYSTEM = ("tests/system/test_recorded_keys.py", "tests/system/test_main_job.py", "tests/system/test_dense.py")
PLACES: dict[str, tuple[str, ...]] = {  # what is mutated → tests to run after the nearest ones
    "bench/config/layers.py": ("tests/bench/config", *SYSTEM),
    "bench/pipeline": ("tests/bench/pipeline", *SYSTEM, "tests/bench/studies/test_few_shot.py"),
    "bench/evaluation/compare": ("tests/bench/evaluation", "tests/leaderboard/test_compare_pages.py"),
    "bench/evaluation/significance": ("tests/bench/evaluation", "tests/leaderboard/test_statistics.py"),
    "leaderboard/site": ("tests/leaderboard",),
    "leaderboard/submissions": ("tests/leaderboard/submissions",),
}
EQUIVALENT = Path(__file__).with_name("equivalent.json")
"""At most five mutations that no test can notice, each with its reason."""
PROCESSES = 2
NO_TESTS = 5
"""What pytest exits with when nothing was collected."""
TEST_LIMIT = 120
"""Seconds for one test; a mutation that makes a loop endless is noticed by this."""
MUTANT_LIMIT = 240.0
"""Seconds for all tests of one mutation; one that outlives them survives."""


def sources(place: str) -> list[str]:
    """Return the Python files of a place, relative to the root, sorted."""
    path = ROOT / place
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return [str(file.relative_to(ROOT)) for file in files]


def sample(seed: int, count: int) -> list[Mutation]:
    """Sample `count` of all mutations, each with equal probability, in the order of sampling."""
    candidates = [
        mutation
        for place in PLACES
        for file in sources(place)
        for mutation in mutations(file, (ROOT / file).read_text(encoding="utf-8"))
    ]
    return random.Random(seed).sample(candidates, min(count, len(candidates)))


def steps(file: str) -> list[list[str]]:
    """Return the groups of test paths that try a mutation of `file`: test modules of its name, then its place's."""
    stem = Path(file).stem
    package = Path("tests", Path(file).parts[0])
    nearest = sorted({*(ROOT / package).rglob(f"test_{stem}.py"), *(ROOT / package).rglob(f"test_{stem}_*.py")})
    (wider,) = (tests for place, tests in PLACES.items() if file == place or file.startswith(f"{place}/"))
    return [group for group in ([str(path.relative_to(ROOT)) for path in nearest], list(wider)) if group]


def copy_tree(folder: Path) -> Path:
    """Copy what git lists of the working tree into `folder`."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listing, cwd=ROOT, text=True).split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def run_tests(tree: Path, tests: Sequence[str], seconds: float) -> int | None:
    """Run tests in a copy up to the first failure; return pytest's exit code, None when the seconds were over."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    environment |= {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    command += [f"--timeout={TEST_LIMIT}", "--basetemp", f"{tree}-pytest", *tests]
    process = subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@cache
def process_tree(folder: str) -> Path:
    """Return this process's copy of the tree, made on the first call."""
    return copy_tree(Path(folder, str(os.getpid())))


def is_noticed(folder: str, mutation: Mutation) -> bool:
    """Try one mutation in this process's copy of the tree, and restore the file."""
    tree = process_tree(folder)
    path = tree / mutation.file
    original = path.read_text(encoding="utf-8")
    deadline = time.monotonic() + MUTANT_LIMIT
    _write(path, mutation.apply(original))
    try:
        codes = (run_tests(tree, group, deadline - time.monotonic()) for group in steps(mutation.file))
        return any(code not in (0, None, NO_TESTS) for code in codes)
    finally:
        _write(path, original)


def _write(path: Path, text: str) -> None:
    """Write a source with a time of its own: byte code is reused where size and whole seconds agree."""
    seconds = path.stat().st_mtime_ns // 10**9 + 1
    path.write_text(text, encoding="utf-8")
    os.utime(path, (seconds, seconds))


def baseline(folder: str, tests: Sequence[str]) -> int | None:
    """Run tests on the tree as it is."""
    return run_tests(process_tree(folder), tests, 20 * 60.0)


def difference(mutation: Mutation) -> Iterator[str]:
    """Yield the changed lines of a mutation as a unified diff without its header."""
    before = (ROOT / mutation.file).read_text(encoding="utf-8")
    lines = difflib.unified_diff(before.splitlines(), mutation.apply(before).splitlines(), n=0, lineterm="")
    return (line for line in list(lines)[3:] if line)


def main(seed: int, count: int) -> None:
    """Draw, try and print; exit with 1 when fewer than 90 % are noticed."""
    equivalents = {(entry["file"], entry["before"], entry["after"]) for entry in json.loads(EQUIVALENT.read_text())}
    sampled = sample(seed, count)
    wider = sorted({test for mutation in sampled for test in steps(mutation.file)[-1]})
    with tempfile.TemporaryDirectory(prefix="bench-mutants-") as folder, ProcessPoolExecutor(PROCESSES) as pool:
        began = time.monotonic()
        checks = [pool.submit(baseline, folder, wider[at::PROCESSES]) for at in range(PROCESSES)]
        if any(check.result() not in (0, NO_TESTS) for check in checks):
            sys.exit("mutants: the tests fail without a mutation; get them green first")
        click.echo(f"seed {seed}: {len(sampled)} mutations, tests are green in {time.monotonic() - began:.0f} s")
        verdicts = {pool.submit(is_noticed, folder, mutation): mutation for mutation in sampled}
        survivors = []
        for number, future in enumerate(as_completed(verdicts), 1):
            mutation = verdicts[future]
            verdict = "noticed" if future.result() else "SURVIVED"
            survivors += [] if future.result() else [mutation]
            click.echo(f"{number:3} {verdict} {mutation.file}:{mutation.line} {mutation.kind}")
    for mutation in sorted(survivors):
        lines = list(difference(mutation))
        removed = "\n".join(line[1:].strip() for line in lines if line.startswith("-"))
        added = "\n".join(line[1:].strip() for line in lines if line.startswith("+"))
        note = "  (argued to be equivalent)" if (mutation.file, removed, added) in equivalents else ""
        click.echo("\n".join([f"\n{mutation.file}:{mutation.line}{note}", *lines]))
    missed = Counter(next(place for place in PLACES if mutation.file.startswith(place)) for mutation in survivors)
    click.echo("".join(f"\n{number} missed in {place}" for place, number in missed.items()))
    noticed = len(sampled) - len(survivors)
    click.echo(
        f"noticed {noticed} of {len(sampled)} ({noticed / len(sampled):.0%}) in {time.monotonic() - began:.0f} s"
    )
    sys.exit(noticed < 0.9 * len(sampled))


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    main(*arguments, *(0, 100)[len(arguments) :])
