"""Nothing happens early: what loads before a value is asked for, in a fresh interpreter."""

import subprocess
import sys
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
CASES = {
    "the core": (f"import {', '.join(LIGHT)}", (*HEAVY, "scipy")),
    "suites": (f"import {', '.join(f'suites.{name}' for name in BENCHMARKS)}", (*NUMERIC, "nltk", "suites.reported")),
    "beir": ("import suites.beir", ("pydantic",)),
    "archives": ("import suites.mrtydi, suites.tatoeba, suites.askubuntu", ("tarfile",)),
    "substitutes": (f"import {', '.join(f'suites.substitutes.{name}' for name in SUBSTITUTES)}", NUMERIC),
    "local files": (
        "import bench.data.fetching.local_files, bench.data.fetching.official",
        ("requests", "urllib3", "torch", "zipfile", "tarfile"),
    ),
    "a data set that is named": ("import bench.data.formats.irds as irds; irds.sources('beir/nq')", HEAVY),
    "a language without stemmer": (
        "from methods.bm25 import BM25; BM25.resolve(BM25.config(), 'sw')",
        ("torch", "numpy", "numba", "bm25s", "rank_bm25", "Stemmer", "icu4py"),
    ),
    "the help of every command": (HELP, (*NUMERIC, *LATE)),
    "bench list": (
        "from bench.cli import bench; from click.testing import CliRunner; CliRunner().invoke(bench, ['list'])",
        (*NUMERIC, "filelock", "bench.store", "bench.pipeline", "bench.evaluation.results"),
    ),
    "a run that is repeated": (
        REPEATED,
        (*HEAVY, "scipy.stats", "regex"),
    ),
    "all plugins, by their entry points, and what they bring": (LISTING, HEAVY),
}


def loaded(code: str, folder: Path, heavy: tuple[str, ...] = HEAVY) -> set[str]:
    """Run code in a fresh interpreter and return which modules of `heavy` it imported."""
    script = f"{code}\nimport sys\nprint('\\n'.join(name for name in {heavy!r} if name in sys.modules))"
    completed = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return set(completed.stdout.split())


@pytest.mark.parametrize("case", CASES)
def test_it_is_light(case: str, tmp_path: Path) -> None:
    """Importing modules brings none of the heavy libraries."""
    code, heavy = CASES[case]
    assert loaded(code, tmp_path, heavy) == set()


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


@pytest.mark.parametrize(("method", "status", "says"), [("bm25", 0, "71.0"), ("msm", 2, "'retrieval-bench[dense]'")])
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
    assert {"pytrec_eval", "methods.bm25", "suites.beir"} <= {*loaded("import pytrec_eval", tmp_path), *PLUGINS}
