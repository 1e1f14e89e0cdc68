"""Imports that are really ours, and another's plugin that comes in by the same door."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from bench.cli.plugin import new_plugin
from bench.core.errors import PluginError
from bench.core.installed import own_package
from bench.core.workspace import Parts, Workspace
from bench.plugins import load
from bench.testing import fields
from bench.types import Corpus, Item, Source

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "overlap"


def python(code: str, folder: Path, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    env = {**inherited, **environment}
    command = [sys.executable, "-c", code]
    completed = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


SHADOW = (
    "import json; from bench.plugins import load; p = load(); print(json.dumps({b.name: b.reason for b in p.broken}))"
)


@pytest.mark.parametrize("place", ["methods/__init__.py", "methods.py"])
def test_a_shadowed_import_is_a_sentence(tmp_path: Path, place: str) -> None:
    """A user's own `methods` in the way is named and never imported; our suites, which it does not hide, load."""
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("raise SystemExit('another package was imported')")
    reasons = json.loads(python(SHADOW, tmp_path, PYTHONPATH=str(tmp_path)))
    shadow = tmp_path / place.removesuffix("/__init__.py")
    assert reasons["bm25"] == (
        f"the import name 'methods': found {shadow.resolve()}, which hides retrieval-bench's own, "
        f"expected {ROOT / 'methods'}; run from another folder or rename it"
    )
    assert "beir" not in reasons


def test_a_folder_without_init_hides_nothing(tmp_path: Path) -> None:
    """A plain folder called `methods` is no package that wins; the package next to `bench` is ours."""
    (tmp_path / "methods").mkdir()
    assert json.loads(python(SHADOW, tmp_path, PYTHONPATH=str(tmp_path))) == {}
    for name in ("methods", "suites", "leaderboard"):
        assert own_package(name).__file__ == str(ROOT / name / "__init__.py")
    with pytest.raises(PluginError, check=fields(where="the import name 'json'")):
        own_package("json")
    with pytest.raises(PluginError, check=fields(found="no package 'no_such_package'")):
        own_package("no_such_package")


def test_the_example_plugin_retrieves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imported as it lies, it ranks by Σ ln(1 + N/df), worked out by hand."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    method = load({}, extra=[import_module("bench_example")], entries=()).method("overlap")
    texts = {"d1": "red fox", "d2": "red hen", "d3": "blue sea"}
    items = Source("made", "test/1", (), lambda: iter([Item(name, text) for name, text in texts.items()]))
    retriever = method.build_retriever(method.config())
    metadata = retriever.index(Corpus("made", items), Workspace(tmp_path, Parts(tmp_path)))
    ranking, missed = retriever.search(tmp_path, [Item("q1", "a red fox"), Item("q2", "x")], 10, "list")
    assert metadata == {"documents": 3}
    assert ranking.documents == ("d1", "d2")
    # ln(1 + 3/2) + ln(1 + 3/1) = ln 10 for both words, ln 2.5 for `red` alone.
    assert ranking.scores == pytest.approx([2.302585093, 0.916290732])
    assert missed.documents == ()


def install(source: Path, target: Path) -> None:
    pip = "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"
    subprocess.run([sys.executable, "-m", *pip, "--target", str(target), str(source)], check=True, cwd=source.parent)


@pytest.mark.slow
def test_the_example_plugin_installs_and_keeps_every_promise(tmp_path: Path) -> None:
    """A real wheel is found through its entry point, with its distribution; the kit tries both of its methods."""
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"))
    install(source, target)
    code = "from bench.plugins import load; p = load(); print(p.methods['overlap'].owner, p.method('overlap').version)"
    output = python(code, tmp_path, PYTHONPATH=str(target))
    assert re.fullmatch(r"bench-example \(bench_example\) 1\+[0-9a-f]{10}\n", output)
    code = "from bench.cli import main; main(['plugin', 'check', 'overlap', 'nearby', '--json'])"
    report = json.loads(python(code, tmp_path, PYTHONPATH=str(target)))
    assert report["broken"] == 0
    assert {name: len(rows) for name, rows in report["checks"].items()} == {"overlap": 12, "nearby": 19}
    assert {row["state"] for rows in report["checks"].values() for row in rows} == {"kept"}


@pytest.mark.slow
def test_a_new_method_installs_and_passes_its_own_test(tmp_path: Path) -> None:
    """What `bench plugin new method` writes, installed, and its test run by pytest as its author would."""
    files = new_plugin("method", "my-idea", tmp_path / "project", taken=())
    assert sum(len((tmp_path / "project" / name).read_text().splitlines()) for name in files) < 100
    install(tmp_path / "project", tmp_path / "target")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "tests"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "target")}
    completed = subprocess.run(command, cwd=tmp_path / "project", env=env, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout
    assert "19 passed" in completed.stdout


def test_our_tests_refuse_to_run_beside_plugins(tmp_path: Path) -> None:
    """They count methods; whoever installed an example is told what to type."""
    information = tmp_path / "bench_toy-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-toy\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[bench]\ntoy = bench_toy\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", "--collect-only", __file__]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    refused = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert "pip uninstall bench-toy" in refused.stderr
