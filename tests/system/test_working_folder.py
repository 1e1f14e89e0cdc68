"""Nothing in the working folder runs: commands typed where a stranger has laid modules of known names."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from bench.cli import bench
from bench.core import children
from tests.hostile import console_script, plant

ROOT = Path(__file__).parents[2]
Type = Callable[..., "subprocess.CompletedProcess[str]"]
BM25 = ("run", "--method", "bm25", "--suite", "mrtydi", "--task", "en")
SMALL = (
    *("run", "--method", "crop", "--suite", "mrtydi", "--task", "en", "--backbone", "scratch:1x32"),
    *("--set", "prepare.vocabulary=1500", "--set", "budget.tokens=5000", "--set", "compute.threads=1"),
)
EVERY = """
import json, sys
from bench.cli import main
for words in json.load(sys.stdin):
    sys.argv = ["bench", *words]
    try:
        main()
    except SystemExit as ended:
        print("status", ended.code, *words, file=sys.stderr, flush=True)
"""
"""The command `bench`, as often as it is typed: what is imported once would be the same the next time."""


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Path]:
    """A folder in which no line may run."""
    folder, log = tmp_path / "theirs", tmp_path / "ran"
    plant(folder, log)
    yield folder
    assert not log.exists(), log.read_text()


@pytest.fixture
def type_there(theirs: Path, environment: dict[str, str]) -> Type:
    """Run a program in their folder, and expect success."""

    def run(*words: str | Path, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        completed = subprocess.run(
            [*map(str, words)],
            cwd=theirs,
            env={**environment, "HF_HUB_OFFLINE": "1", **variables},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert completed.returncode == 0, completed.stderr
        return completed

    return run


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """The installed command."""
    return console_script(tmp_path / "bin")


def commands(group: click.Group, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command below a group, with the words that name it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        item = group.get_command(context, name)
        assert item is not None
        yield from commands(item, *words, name) if isinstance(item, click.Group) else [((*words, name), item)]


def needed(item: click.Command) -> Iterator[str]:
    """Yield a value for each argument, and each option that a command cannot do without; a path is their folder."""
    for parameter in item.params:
        if not (parameter.required or isinstance(parameter, click.Argument)):
            continue
        choices = getattr(parameter.type, "choices", ("nobody",))
        value = "." if isinstance(parameter.type, click.Path) else str(choices[0])
        yield from (value,) if isinstance(parameter, click.Argument) else (parameter.opts[0], value)


@pytest.mark.slow
def test_every_command_that_there_is(tmp_path: Path, theirs: Path, type_there: Type) -> None:
    """With what it needs, and their folder wherever it takes a path: it may refuse, and runs no line of theirs."""
    typed = [[*words, *needed(item)] for words, item in commands(bench)]
    assert ["leaderboard", "check", "."] in typed
    every = console_script(tmp_path / "bin", EVERY)
    (theirs / "result.json").write_text("{}")
    ended = re.findall(r"^status (\S+) (.*)$", type_there(every, stdin=json.dumps(typed)).stderr, re.MULTILINE)
    assert [words for _, words in ended] == [" ".join(words) for words in typed]
    assert {status for status, _ in ended} <= {"0", "1", "2"}


def test_python_is_started_in_one_place() -> None:
    """Whatever starts Python is written there, and nobody's own call forgets `-P`."""
    allowed = {ROOT / "bench" / "core" / "children.py", ROOT / "bench" / "studies" / "doctor.py"}  # which names it
    for package in ("bench", "leaderboard", "methods", "suites"):
        for path in {*(ROOT / package).rglob("*.py")} - allowed:
            found = re.search(
                r"\bsys\.executable\b|^\s*(import|from) subprocess\b(?! import Popen$)", path.read_text(), re.M
            )
            assert not found, (path, found and found[0])


def test_what_a_process_trusts_its_children_trust(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`python -m bench` imports from the folder, and so do the processes of its libraries; those of `bench` do not."""
    monkeypatch.chdir(tmp_path)
    for path, safe in (([""], None), ([str(tmp_path)], None), (["elsewhere"], "1")):
        monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
        monkeypatch.setattr(sys, "path", path)
        children.keep_children_out_of_the_folder()
        assert os.environ.get("PYTHONSAFEPATH") == safe


@pytest.mark.slow
def test_processes_with_bounds(theirs: Path, command: Path, type_there: Type, tmp_path: Path) -> None:
    """A result of theirs is checked, from within their folder: the numbers are the checker's own."""
    type_there(command, *BM25, "--results", ".", "--store", tmp_path / "store")
    (result,) = theirs.rglob("result.json")
    assert type_there(command, "leaderboard", "check", result.parent.relative_to(theirs)).stdout.startswith("passes: ")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["--workers=2", "--executor=slurm", "--executor=ray", "torchrun"])
def test_processes_of_libraries(how: str, command: Path, type_there: Type, corpus: Path) -> None:
    """Workers of multiprocessing, of submitit, of Ray, and of torch's elastic launcher."""
    library = {"--executor=slurm": "submitit", "--executor=ray": "ray"}.get(how, "torch")
    if not find_spec(library):
        pytest.skip(f"needs {library}")
    typed: tuple[str | Path, ...] = (command, *BM25, how)
    if how == "torchrun":
        launcher = ("torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python")
        typed = (sys.executable, "-P", "-m", *launcher, command, *SMALL, "--corpus", corpus)
    variables = {"BENCH_SLURM": "local"} | ({"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {})
    assert "RR@100" in type_there(*typed, **variables).stdout


@pytest.mark.slow
def test_the_check_of_a_plugin(command: Path, type_there: Type) -> None:
    """What it promises of a fresh interpreter is tried in one."""
    type_there(command, "plugin", "check", "bm25")
