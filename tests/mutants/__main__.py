"""`make mutants`: change one expression of the product at a time, and count how many changes the tests notice.

    python -m tests.mutants [SEED [COUNT]]

COUNT mutations (100 by default) are sampled with SEED from the rules between packages in `PLACES`. First every test
module is run once, to record which lines of the product each test executes; the record is kept in `build/mutants` for
as long as neither the product nor the module changes. Then each mutation is applied to a copy of the tree, never to
the tree itself, and tried by the tests that execute its line, up to the first failure. Two processes need at most an
hour for 100. Survivors are printed as file, line and difference; those that `equivalent.json` argues for are marked
and still count as missed.
"""

import difflib
import hashlib
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias

import click

from tests.mutants import runs
from tests.mutants.mutations import Mutation, mutations, statement_of
from tests.mutants.runs import ROOT, Run

PLACES = (
    "bench/config/layers.py",
    "bench/pipeline",
    "bench/evaluation/compare",
    "bench/evaluation/significance",
    "leaderboard/site",
    "leaderboard/submissions",
)
TESTS = (
    "bench/config",
    "bench/pipeline",
    "bench/evaluation",
    "bench/studies",
    "bench/cli",
    "leaderboard",
    "suites",
    "system",
)
"""The folders of `tests` that try them: those of the places, and of what is built on them."""
EQUIVALENT = Path(__file__).with_name("equivalent.json")
"""At most five mutations that no test can notice, each with its reason."""
RECORDS = ROOT / "build" / "mutants"
PROCESSES = min(2, len(os.sched_getaffinity(0)))
LIMITS = (10.0, 60.0)
"""Seconds of tests after which another process goes on with a mutation; one that outlives the last survives."""

Tests: TypeAlias = Mapping[str, Run]
"""What tests take and execute, by their ids."""


def sources(place: str) -> list[str]:
    """Return the Python files of a place, relative to the root, sorted."""
    path = ROOT / place
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return [str(file.relative_to(ROOT)) for file in files]


def sample(seed: int, count: int) -> list[Mutation]:
    """Sample `count` of all mutations, each with equal probability, in the order of sampling."""
    candidates = _candidates()
    return random.Random(seed).sample(candidates, min(count, len(candidates)))


@cache
def _candidates() -> list[Mutation]:
    """Return all mutations."""
    return [
        mutation
        for place in PLACES
        for file in sources(place)
        for mutation in mutations(file, (ROOT / file).read_text(encoding="utf-8"))
    ]


def record(folder: str, module: str, path: Path) -> None:
    """Run a test module without a mutation, and write what its tests take and execute."""
    tree = runs.process_tree(folder)
    runs.run_tests(tree, [module], runs.Recorder(tree, PLACES, path))


def record_path(module: Path, product: bytes) -> Path:
    """Return the file of a module's record, which is named after all that it depends on."""
    digest = hashlib.sha256(product + module.read_bytes()).hexdigest()
    return RECORDS / f"{module.stem}-{digest[:16]}.json"


def record_all(pool: ProcessPoolExecutor, folder: str) -> Tests:
    """Return what every test executes, from records where they are there already.

    Tests that fail without a mutation are left out and printed.
    """
    product = b"".join(path.read_bytes() for place in runs.OURS for path in shared_sources(ROOT / place))
    RECORDS.mkdir(parents=True, exist_ok=True)
    modules = [path for folder in TESTS for path in sorted((ROOT / "tests" / folder).rglob("test_*.py"))]
    paths = {module: record_path(module, product) for module in modules}
    pending = [
        pool.submit(record, folder, str(module.relative_to(ROOT)), path)
        for module, path in paths.items()
        if not path.exists()
    ]
    for future in as_completed(pending):
        future.result()
    tests: dict[str, Run] = {}
    for path in filter(Path.exists, paths.values()):
        passed, failed = runs.read_runs(path)
        tests |= passed
        click.echo("".join(f"left out, since it fails without a mutation: {test}\n" for test in failed), nl=False)
    return tests


def shared_sources(folder: Path) -> list[Path]:
    """Return the Python files of a package that are no test modules."""
    return [path for path in sorted(folder.rglob("*.py")) if not path.name.startswith("test_")]


def steps(mutation: Mutation, tests: Tests) -> list[dict[str, float]]:
    """Return the groups of tests that try a mutation, with their seconds: nearest modules first, then the cheapest.

    What runs at import is tried by all tests that execute a line of its folder, those of its file first.
    """
    file, lines, at_import = mutation.file, *statement_of((ROOT / mutation.file).read_text("utf-8"), mutation)
    folder, stem = f"{Path(file).parent}/", Path(file).stem
    modules = defaultdict[str, dict[str, float]](dict)
    ranks = defaultdict[str, list[tuple[bool, bool]]](list)
    for test, run in tests.items():
        executed = (
            any(name.startswith(folder) for name in run.lines) if at_import else lines & {*run.lines.get(file, ())}
        )
        if executed:
            module = test.partition("::")[0]
            modules[module][test] = run.seconds
            ranks[module].append((not Path(module).stem.startswith(f"test_{stem}"), file not in run.lines))
    groups: list[dict[str, float]] = [{} for _ in LIMITS]
    total = 0.0
    for module in sorted(modules, key=lambda module: (min(ranks[module]), sum(modules[module].values()))):
        for test, seconds in sorted(modules[module].items(), key=itemgetter(1)):
            if total + seconds <= LIMITS[-1]:
                total += seconds
                groups[bisect_left(LIMITS, total)][test] = seconds
    return [group for group in groups if group]


def is_noticed(folder: str, mutation: Mutation, groups: list[dict[str, float]]) -> bool:
    """Try one mutation in this process's copy of the tree, and restore the file."""
    tree = runs.process_tree(folder)
    path = tree / mutation.file
    original = path.read_text(encoding="utf-8")
    _write(path, mutation.apply(original))
    try:
        modules = (list(dict.fromkeys(test.partition("::")[0] for test in group)) for group in groups)
        passes = (runs.run_tests(tree, names, runs.Trial(group)) for names, group in zip(modules, groups, strict=True))
        return not all(passes)
    finally:
        _write(path, original)


def _write(path: Path, text: str) -> None:
    """Write a source with a time of its own: byte code is reused where size and whole seconds agree."""
    seconds = path.stat().st_mtime_ns // 10**9 + 1
    path.write_text(text, encoding="utf-8")
    os.utime(path, (seconds, seconds))


def difference(mutation: Mutation) -> Iterator[str]:
    """Yield the changed lines of a mutation as a unified diff without its header."""
    before = (ROOT / mutation.file).read_text(encoding="utf-8")
    lines = difflib.unified_diff(before.splitlines(), mutation.apply(before).splitlines(), n=0, lineterm="")
    return (line for line in list(lines)[3:] if line)


def try_all(sampled: Sequence[Mutation]) -> list[Mutation]:
    """Try mutations, print a line for each, and return those that survive."""
    survivors, began = [], time.monotonic()
    forked = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory(prefix="bench-mutants-") as folder, ProcessPoolExecutor(PROCESSES, forked) as pool:
        tests = record_all(pool, folder)
        click.echo(f"recorded what {len(tests)} tests execute in {time.monotonic() - began:.0f} s")
        verdicts = {pool.submit(is_noticed, folder, mutation, steps(mutation, tests)): mutation for mutation in sampled}
        for number, future in enumerate(as_completed(verdicts), 1):
            mutation = verdicts[future]
            survivors += [] if future.result() else [mutation]
            verdict = "noticed" if future.result() else "SURVIVED"
            click.echo(f"{number:3} {verdict} {mutation.file}:{mutation.line} {mutation.kind}")
    return sorted(survivors)


def main(seed: int, count: int) -> None:
    """Draw, try and print; exit with 1 when fewer than 90 % are noticed."""
    began = time.monotonic()
    equivalents = {(entry["file"], entry["before"], entry["after"]) for entry in json.loads(EQUIVALENT.read_text())}
    runs.preload()
    sampled = sample(seed, count)
    click.echo(f"seed {seed}: {len(sampled)} mutations")
    survivors = try_all(sampled)
    for mutation in survivors:
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
