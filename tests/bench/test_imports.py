"""Nothing happens early: what loads before a value is asked for, in a fresh interpreter."""

import json
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import distribution, version
from pathlib import Path

import pytest

from bench.core.errors import UsageError
from bench.store.stage import versions

HEAVY = ("torch", "transformers", "numba", "ir_datasets", "faiss", "pandas", "bm25s", "rank_bm25", "pytrec_eval", "ray")
PLUGINS = sorted(point.value for point in distribution("retrieval-bench").entry_points if point.group == "bench")
LIGHT = (
    *("bench", "bench.training", "bench.testing", "bench.types", "bench.hookspecs", "bench.plugins", "bench.cli"),
    *("bench.core.errors", "bench.core.workspace", "bench.config.layers", "bench.config.profiles", "bench.data.mini"),
    *("bench.data.formats.irds", "bench.pipeline.stages.prepare", "bench.pipeline.stages.init", "bench.studies.doctor"),
    "bench.training.fine_tuning_config",
)
BENCHMARKS = ("askubuntu", "beir", "dpr", "lareqa", "mewsli_x", "mkqa", "mrtydi", "tatoeba", "xor_retrieve")
SUBSTITUTES = ("askubuntu", "mewsli_x", "mkqa", "mrtydi", "xor")
NUMERIC = (*HEAVY, "numpy", "scipy", "bench.data.mini")
LISTING = """
from bench.plugins import load
found = load({"BENCH_PLUGINS": "retrieval-bench"})
assert found.methods and found.suites and not found.broken, found.broken
[owned.value.config() for owned in found.methods.values()]
"""
HELP = """
import click
from bench.cli import CommandGroup, bench

def walk(group, words):
    for name in group.list_commands(click.Context(group)):
        if [*words, name] != ["data", "audit"]:  # its options are the settings of its rules
            command = group.get_command(click.Context(group), name)
            command.get_help(click.Context(command, info_name=name))
            if isinstance(command, CommandGroup):
                walk(command, [*words, name])

walk(bench, [])
"""
LATE = (
    *("bench.plugins", "bench.config.layers", "bench.data", "bench.pipeline", "bench.retrieval", "bench.store"),
    *("bench.studies", "pydantic", "pluggy", "requests", "jinja2", "leaderboard"),
)
REPEATED = """
import bench.cli.outcome, bench.pipeline.first_look, bench.pipeline.run, bench.studies.ablation
import bench.evaluation.significance.families as families
families.stratified({'': ([0, 1], [1, 1])})
"""
CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "the help of every command": (HELP, (*NUMERIC, *LATE)),
    "beir": ("import suites.beir", ("pydantic",)),
    "archives": ("import suites.mrtydi, suites.tatoeba, suites.askubuntu", ("tarfile",)),
    "local files": (
        "import bench.data.fetching.local_files, bench.data.fetching.official",
        ("requests", "urllib3", "torch", "zipfile", "tarfile"),
    ),
    "bench list": (
        "from bench.cli import bench; from click.testing import CliRunner; CliRunner().invoke(bench, ['list'])",
        (*NUMERIC, "filelock", "bench.store", "bench.pipeline", "bench.evaluation.results"),
    ),
    "suites": (f"import {', '.join(f'suites.{name}' for name in BENCHMARKS)}", (*NUMERIC, "nltk", "suites.reported")),
    "substitutes": (f"import {', '.join(f'suites.substitutes.{name}' for name in SUBSTITUTES)}", NUMERIC),
    "a data set that is named": ("import bench.data.formats.irds as irds; irds.sources('beir/nq')", HEAVY),
    "a language without stemmer": (
        "from methods.bm25 import BM25; BM25.resolve(BM25.config(), 'sw')",
        ("torch", "numpy", "numba", "bm25s", "rank_bm25", "Stemmer", "icu4py"),
    ),
    "the core": (f"import {', '.join(LIGHT)}", (*HEAVY, "scipy")),
    "all plugins, by their entry points, and what they bring": (LISTING, HEAVY),
    "a run that is repeated": (
        REPEATED,
        (*HEAVY, "scipy.stats", "regex"),
    ),
}
"""Code, and what it may not import; each is run after those before it, so the lightest come first."""
ALONE = ("local files", "bench list")
"""Those that may not import what others may."""


IN_TURN = """
import json, sys
for name, (code, heavy) in json.loads(sys.argv[1]).items():
    exec(code, {})
    print(json.dumps([name, [module for module in heavy if module in sys.modules]]))
"""


def imported(cases: Mapping[str, tuple[str, tuple[str, ...]]], folder: Path) -> dict[str, list[str]]:
    """Run code in a fresh interpreter, one piece after the other; return which of its heavy modules are there then.

    What a piece imports is there for those behind it: it finds all that a process of its own would.
    """
    command = [sys.executable, "-c", IN_TURN, json.dumps(dict(cases))]
    completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return dict(map(json.loads, completed.stdout.splitlines()))


@pytest.fixture(scope="module")
def brought(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The heavy modules after each of `CASES`."""
    folder, alone = tmp_path_factory.mktemp("empty"), {name: {name: CASES[name]} for name in ALONE}
    in_turn = {name: case for name, case in CASES.items() if name not in ALONE}
    return {name: heavy for cases in (in_turn, *alone.values()) for name, heavy in imported(cases, folder).items()}


@pytest.mark.parametrize("case", CASES)
def test_it_is_light(case: str, brought: dict[str, list[str]]) -> None:
    """Importing modules brings none of the heavy libraries."""
    assert brought[case] == []


WITHOUT_TORCH = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
from bench.cli import main
sys.argv = ["bench", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("method", "status", "says"),
    [("bm25", 0, "71.0"), pytest.param("msm", 2, "'retrieval-bench[dense]'", marks=pytest.mark.slow)],
)
def test_without_torch(method: str, status: int, says: str, tmp_path: Path, texts: Path) -> None:
    """BM25 is indexed, searched and scored; a method that trains says what to install."""
    command = ["run", "--method", method, "--suite", "mrtydi", "--task", "sw", "--store", "store"]
    small = ["--corpus", str(texts), "--set", "prepare.vocabulary=512"] if method == "msm" else []
    typed = [sys.executable, "-c", WITHOUT_TORCH, *command, *small]
    completed = subprocess.run(typed, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (completed.returncode, says in completed.stdout + completed.stderr) == (status, True), completed.stderr


def test_a_stage_without_torch_is_refused_when_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything has run: its key holds torch's version."""
    monkeypatch.setattr("bench.store.stage.version_of", {"numpy": "2"}.get)
    assert versions("numpy") == {"numpy": version("numpy")}
    with pytest.raises(UsageError, match="found no torch") as refused:
        versions("numpy", "torch")
    assert refused.value.hint == "type: pip install 'retrieval-bench[dense]'"


def test_the_measurement_sees_a_heavy_import(tmp_path: Path) -> None:
    """Otherwise the tests above would prove nothing; nor would an empty list of plugins."""
    case = {"heavy": ("import pytrec_eval", HEAVY)}
    assert {"pytrec_eval", "methods.bm25", "suites.beir"} <= {*imported(case, tmp_path)["heavy"], *PLUGINS}
