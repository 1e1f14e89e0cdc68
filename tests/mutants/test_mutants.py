"""What `make mutants` changes: each kind of expression once, one place at a time, the same for the same seed.

And who tries it: the tests that execute its line, in whatever process, on a copy of the tree.
"""

import ast
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants import runs
from tests.mutants.__main__ import EQUIVALENT, PLACES, TESTS, sample, sources, steps
from tests.mutants.mutations import Statement, mutations, statement_of
from tests.mutants.runs import ROOT, Recorder, Run, Trial, read_runs, run_tests

CHANGES = {
    "x = a < b": ["(a <= b)"],
    "x = a in b": ["(a not in b)"],
    "x = a and b or c": ["((a and b) and c)", "(a or b) or c"],
    "x = a + 1": ["(a - 1)", "a + (2)"],
    "x = not a": ["(a)"],
    "x = f(a, b)": ["(f(b, a))"],
    "x = f(a, a)": [],
    "x = sorted(a)": ["(list(reversed(sorted(a))))"],
    "x = min(a)": ["(max(a))"],
    "x = max(a, b)": ["(min(a, b))"],
    "x = zip(a, strict=True)": [],
    "x = {**a, **b}": ["({**b, **a})"],
    "x = a if b else c": ["a if (not b) else c"],
    "x = [a for a in b if c]": ["[a for a in b if (not c)]"],
    "x = True": ["(False)"],
    "x = 'ü', 0.5": ["'ü', (1.0)"],
    "x: int | None = f'{a + b}'": [],
    "X = int | str": [],
    "x = lambda: a | b": ["lambda: (a & b)"],
}


def test_each_kind_of_expression_is_changed_in_its_place() -> None:
    for source, expected in CHANGES.items():
        results = [mutation.apply(source).removeprefix("x = ") for mutation in mutations("some.py", source)]
        assert sorted(results) == sorted(expected), source


@pytest.mark.slow
def test_a_sample_is_reproducible_and_every_mutation_is_a_program() -> None:
    """Each changes its own line, and every place is sampled from."""
    sampled = sample(3, 200)
    assert sampled == sample(3, 200) != sample(4, 200)
    assert len(set(sampled)) == 200
    for mutation in sampled[:40]:
        source = (ROOT / mutation.file).read_text(encoding="utf-8")
        changed = mutation.apply(source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), mutation
        assert changed.splitlines()[: mutation.line - 1] == source.splitlines()[: mutation.line - 1]
    places = Counter(place for place in PLACES for mutation in sampled if mutation.file.startswith(place))
    assert set(places) == set(PLACES)


def test_places_exist_and_few_are_argued_away() -> None:
    """A place has sources, a folder has tests, and each argument names what is changed."""
    assert all(sources(place) for place in PLACES)
    assert all((ROOT / "tests" / folder).is_dir() for folder in TESTS)
    entries = json.loads(EQUIVALENT.read_text(encoding="utf-8"))
    assert len(entries) <= 5
    assert all(set(entry) == {"file", "before", "after", "reason"} for entry in entries)


SOURCE = """LIMIT = 3


def rule(value: int = LIMIT + 1, *more: int) -> int:
    if (
        value > 3
    ):
        return max(value,
                   more[0])
    return 0
"""


@pytest.mark.parametrize(
    ("line", "lines", "at_import"), [(1, {1}, True), (4, {4}, True), (6, {5, 6, 7}, False), (9, {8, 9}, False)]
)
def test_the_statement_around_a_mutation(line: int, lines: set[int], at_import: bool) -> None:
    """All its lines but those of statements within; defaults of a function are computed when it is defined."""
    mutation = next(mutation for mutation in mutations("some.py", SOURCE) if mutation.line == min(line, 8))
    assert statement_of(SOURCE, mutation._replace(line=line)) == Statement(frozenset(lines), at_import)


def test_tests_that_execute_a_mutation_try_it() -> None:
    """Nearest modules first, then the cheapest; what runs at import is tried by all tests of its folder."""
    file = "leaderboard/site/heat.py"
    source = (ROOT / file).read_text(encoding="utf-8")
    inside = next(mutation for mutation in mutations(file, source) if not statement_of(source, mutation).at_import)
    limits = next(mutation for mutation in mutations(file, source) if statement_of(source, mutation).at_import)
    (line, *_) = statement_of(source, inside).lines
    tests = {
        "tests/a/test_wide.py::test_slow": Run(70.0, {file: [line]}),
        "tests/a/test_wide.py::test_second": Run(5.0, {file: [line]}),
        "tests/a/test_wide.py::test_other": Run(1.0, {file: [line + 1000]}),
        "tests/b/test_cheap.py::test_first": Run(2.0, {file: [1, line]}),
        "tests/b/test_heat.py::test_nearest": Run(6.0, {file: [line]}),
        "tests/b/test_text.py::test_text": Run(0.5, {"leaderboard/site/text.py": [1]}),
        "tests/b/test_far.py::test_far": Run(0.5, {"bench/pipeline/plan.py": [line]}),
    }
    names = [[test.partition("::test_")[2] for test in group] for group in steps(inside, tests)]
    assert names == [["nearest", "first"], ["second"]], "8 of 10 seconds, 13 of 60; 83 are too many"
    names = [[test.partition("::test_")[2] for test in group] for group in steps(limits, tests)]
    assert names == [["nearest", "first", "other"], ["second", "text"]]


RULES = """def small(value):
    return value < 3


def large(value):
    while value > 9:
        value -= 1
        return True
    return False
"""
MADE_TESTS = """import subprocess, sys
import pytest
from bench import rules

@pytest.fixture(scope="module")
def shared():
    return rules.large(10)

def test_small():
    assert rules.small(2)

def test_bound():
    assert not rules.small(3)

def test_shared(shared):
    assert shared

def test_process():
    subprocess.run([sys.executable, "-c", "from bench.rules import large; assert not large(9)"], check=True)

def test_fails():
    assert rules.small(7)
"""
SLOW_END = """import time

def pytest_unconfigure():
    began = time.process_time()
    while time.process_time() < began + 5:
        pass
"""
"""A conftest.py whose end takes more than any of the tests may."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of a tree that has two rules and their tests."""
    for name, text in (("bench/__init__.py", ""), ("bench/rules.py", RULES), ("tests/test_made.py", MADE_TESTS)):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    shutil.copytree(ROOT / "tests" / "mutants" / "tracing", tmp_path / "tree" / "tests" / "mutants" / "tracing")
    return tmp_path / "tree"


@pytest.mark.slow
def test_a_mutation_is_tried_on_a_copy(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What tests execute, fixtures that they share and processes that they start included; then each mutation's end."""
    out = tree.with_name("runs.json")
    run_tests(tree, ["tests/test_made.py"], Recorder(tree, ["bench"], out))
    tests, failed = read_runs(out)
    lines = {test.partition("::test_")[2]: run.lines["bench/rules.py"] for test, run in tests.items()}
    assert lines == {"small": [2], "bound": [2], "shared": [6, 7, 8], "process": [1, 5, 6, 9]}
    assert failed == ["tests/test_made.py::test_fails"]
    monkeypatch.setattr(runs, "SECONDS_FREE", 2.0)
    seconds = {test: run.seconds for test, run in tests.items()}
    assert run_tests(tree, ["tests/test_made.py"], Trial({})), "no test is no failure"
    (tree / "tests" / "conftest.py").write_text(SLOW_END)
    assert run_tests(tree, ["tests/test_made.py"], Trial(seconds)), "seconds after the last test are not a test's"
    (tree / "tests" / "conftest.py").unlink()
    for old, new, is_noticed in (
        ("return True", "return 1", False),
        ("value < 3", "value <= 3", True),
        ("value > 9", "value > 8", True),  # which a process sees alone
        ("value -= 1\n        return True", "value += 1", True),  # without end
    ):
        (tree / "bench" / "rules.py").write_text(RULES.replace(old, new))
        shutil.rmtree(tree / "bench" / "__pycache__", ignore_errors=True)
        assert run_tests(tree, ["tests/test_made.py"], Trial(seconds)) is not is_noticed, new
