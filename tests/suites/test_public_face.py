"""Suites are made of `bench` and `bench.suites` alone, ours as well as those of third parties."""

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import bench.suites
from bench.config.request import Request
from bench.pipeline.run import run
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.store import Store
from tests.conftest import present

ROOT = Path(__file__).parents[2]
FACE = {"bench", "bench.suites"}
LINES = ROOT / "examples" / "lines_suite" / "bench_lines.py"


def imported(path: Path) -> set[str]:
    """Return the modules of the harness that a file imports, wherever it does."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
    return {name for name in modules if name.partition(".")[0] == "bench"}


def test_suites_import_the_public_face_alone_which_needs_no_torch() -> None:
    """Types and late imports included; the fixtures are third parties'. No name of it needs torch or transformers."""
    paths = [*(ROOT / "suites").rglob("*.py"), *(ROOT / "tests" / "fixtures").glob("*_suite/*.py"), LINES]
    assert len(paths) > 30
    assert {path.name: imported(path) - FACE for path in paths if imported(path) - FACE} == {}
    code = "import sys, bench.suites as face; [getattr(face, name) for name in dir(face)]; print(sorted(sys.modules))"
    completed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert not {"torch", "transformers", "ir_datasets", "nltk"} & set(ast.literal_eval(completed.stdout))


def test_the_face_lists_what_suites_use() -> None:
    """Each name is used by a suite, and none comes from `bench`."""
    names = set(bench.suites.__all__)
    assert not names & set(bench.__all__)
    used_names: set[str] = set()
    for path in (ROOT / "suites").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "bench.suites":
                used_names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "face":
                used_names.add(node.attr)
    assert names - used_names == set()


def test_a_suite_of_a_third_party(tmp_path: Path) -> None:
    """A module and a card are all of it: its format is read, its scorer shown, its card kept with the result."""
    folder = tmp_path / "data" / "lines"
    folder.mkdir(parents=True)
    (folder / "pairs.tsv").write_text("who built walls\twalls of Berlin\nwhat is a moon\tthe moon is a rock\n")
    spec = present(importlib.util.spec_from_file_location("bench_lines", LINES))
    module = importlib.util.module_from_spec(spec)
    present(spec.loader).exec_module(module)
    plugins = load({}, extra=(module,))
    assert not plugins.broken
    request = Request(("bm25",), ("lines",), data="official", data_dir=tmp_path / "data", results=tmp_path / "results")
    outcome = run(request, plugins, Store(tmp_path / "store"), NullListener())
    (row,) = outcome.rows
    assert (row["task"], row["measures"], row["official"]) == ("lines/all", {"RR@10": 1.0}, {"first (Lines)": 1.0})
    (cards,) = (tmp_path / "results").rglob("cards.json")
    assert json.loads(cards.read_text())["suite"] == module.SUITE.card()
