"""The scripts of `.ci`: time limits that end a run by themselves and name the slowest tests, and releases."""

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITE = """
import time, pytest

@pytest.mark.slow
def test_short(): time.sleep(0.3)

@pytest.mark.slow
def test_shorter(): time.sleep(0.01)

def test_not_slow(): raise AssertionError("it is not marked slow")

@pytest.mark.slow
def test_endless():
    open("at_endless", "w").close(); time.sleep(300)
"""


# `make` hands on what was typed after it, and would give it to the commands of these tests.
_OUTER = {"MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "PYTEST_ADDOPTS", "PYTEST_ARGS", "SLOW_CAP"}


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment, with more, and without what was typed to run these tests."""
    return {name: value for name, value in os.environ.items() if name not in _OUTER} | more


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; stderr is part of its output."""
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )


def test_what_was_typed_for_these_tests_reaches_no_command_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `make test PYTEST_ARGS=--durations=5` hands it on."""
    monkeypatch.setenv("MAKEFLAGS", " -- PYTEST_ARGS=--durations=5 SLOW_CAP=7")
    monkeypatch.setenv("PYTEST_ARGS", "--durations=5")
    assert slow_command(500) == ["bash", str(ROOT / ".ci/slow"), "500", sys.executable]


def slow_command(seconds: int) -> list[str]:
    """Return what `make test-slow` runs, with this Python and the script of this checkout."""
    printed = run("make", "--dry-run", "test-slow", "VENV=VENV", f"SLOW_CAP={seconds}", cwd=ROOT).stdout
    (line,) = [line for line in printed.splitlines() if ".ci/slow" in line]
    bash, script, cap, _, *arguments = shlex.split(line)
    return [bash, str(ROOT / script), cap, sys.executable, *arguments]


def marked(mark: str) -> str:
    """Return the small suite, its slow tests with one more mark."""
    return SUITE.replace("@pytest.mark.slow", f"@pytest.mark.slow\n{mark}") if mark else SUITE


ALONE = "@pytest.mark.alone"
FEW_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist -p pytest_timeout"}
"""Those that the script's options need; others take seconds to import."""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A small test suite with the repository's markers."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  alone\n  gpu\n  network\n")
    (tmp_path / "test_some.py").write_text(SUITE)
    return tmp_path


MARKS = [pytest.param("", id="side by side", marks=pytest.mark.slow), pytest.param(ALONE, id="alone")]


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["", ALONE], ids=["side by side", "alone"])
def test_slow_tests_stop_after_their_seconds_and_name_the_slowest(suite: Path, mark: str) -> None:
    """The test that is running then is the last one; the run fails. While it runs, a clock jumps by ten minutes."""
    jump = "time.sleep(0.5); clock = time.time; time.time = lambda: clock() + 600"
    late = f"\n@pytest.mark.slow\n{mark}\ndef test_late(): pass\n"
    (suite / "test_some.py").write_text(marked(mark).replace("time.sleep(300)", jump) + late)
    result = run(*slow_command(500), cwd=suite, **FEW_PLUGINS)
    assert result.returncode != 0
    assert "session-timeout: " in result.stdout
    rows = result.stdout.partition("slowest 10 durations")[2].splitlines()
    assert next(row for row in rows if "::" in row).endswith("test_endless")
    assert "test_late" not in result.stdout


STUB = """#!/bin/sh
echo "$@" >> calls
case "$*" in *"not alone"*) exit $BESIDE ;; *) sleep $NAP; exit $ALONE ;; esac
"""


@pytest.mark.parametrize(
    ("seconds", "nap", "alone", "beside", "calls", "status"),
    [
        pytest.param(100, "1.1", 0, 0, 2, 0, marks=pytest.mark.slow),
        (100, "0", 5, 0, 2, 0),
        (100, "0", 0, 5, 2, 0),
        (100, "0", 5, 5, 2, 5),
        (100, "0", 1, 0, 2, 1),
        (100, "0", 0, 1, 2, 1),
        (100, "0", 2, 0, 1, 2),
        pytest.param(1, "1.1", 0, 0, 1, 1, marks=pytest.mark.slow),
    ],
)
def test_slow_tests_that_are_timed_come_first_and_the_seconds_are_for_all(
    tmp_path: Path, seconds: int, nap: str, alone: int, beside: int, calls: int, status: int
) -> None:
    """A stub takes the place of Python: what it is called with, and what becomes of its exit statuses."""
    python = tmp_path / "python"
    python.write_text(STUB)
    python.chmod(0o755)
    command = [str(python) if word == sys.executable else word for word in slow_command(seconds)]
    result = run(*command, "-k", "some", cwd=tmp_path, NAP=nap, ALONE=str(alone), BESIDE=str(beside))
    assert result.returncode == status, result.stdout
    lines = (tmp_path / "calls").read_text().splitlines()
    assert ["slow and not alone" in line for line in lines] == [False, True][:calls]
    assert all(line.endswith(" -k some") for line in lines)
    left = [int(line.partition("--session-timeout=")[2].split()[0]) for line in lines]
    assert left[0] == seconds
    assert calls == 1 or left[1] < left[0] or nap == "0"
    assert ("the 1 seconds for all slow tests are over" in result.stdout) == (seconds == 1)


@pytest.mark.parametrize("mark", MARKS)
def test_a_test_that_hangs_is_named_when_it_is_interrupted(suite: Path, mark: str) -> None:
    """`timeout` sends SIGINT to all, as `.ci/run` does; pytest still prints durations, and what it was at.

    Alone it names the line, side by side the test.
    """
    (suite / "test_some.py").write_text(text := marked(mark))
    output = suite / "output"
    with output.open("w") as stream:
        process = subprocess.Popen(
            slow_command(100),
            cwd=suite,
            env=environment(**FEW_PLUGINS),
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    while not ((suite / "at_endless").exists() and (mark or "test_endless" in output.read_text())):
        assert process.poll() is None  # a busy machine may take long to come to it
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=120) == 2
    assert "test_short\n" in output.read_text().partition("slowest 10 durations")[2]
    if mark:
        line = next(number for number, text in enumerate(text.splitlines(), 1) if "time.sleep(300)" in text)
        assert f"test_some.py:{line}: Keyboard" in output.read_text()
    else:
        named = [line.strip() for line in output.read_text().splitlines() if "test_endless" in line]
        assert named == ["test_some.py::test_endless"], "begun and not ended"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with `.ci/run` and a `make` whose target `test` hangs, deaf to SIGINT, with a child."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "bin").mkdir()
    make = tmp_path / "bin" / "make"
    make.write_text(
        "#!/usr/bin/env bash\n"
        '[ "$1" = lint ] && exit 7\n'
        '[ "$1" = test ] || exit 0\n'
        "trap '' INT\nsleep 300 &\necho $! > pid\nwait\nsleep 300\n"
    )
    make.chmod(0o755)
    (tmp_path / "bin" / "chromium").symlink_to("/bin/true")
    return tmp_path


def is_alive(process: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_ci_ends_by_itself_and_names_what_failed(checkout: Path) -> None:
    """Steps after one that was stopped are run too; of a stopped one nothing survives."""
    script = checkout / ".ci" / "run"
    script.write_text(script.read_text().replace("grace=60 ", "grace=1 "))
    path = f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"
    result = run("bash", script, cwd=checkout, PATH=path, CI_SECONDS="44", BENCH_DATA="none", PYTHON=sys.executable)
    assert result.returncode == 1
    assert "test: stopped" in result.stdout
    assert "=== layers: passed" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("ci: FAILED in")
    assert result.stdout.splitlines()[-1].endswith(": test lint")
    time.sleep(0.2)  # the kernel needs a moment to reap
    assert not is_alive(int((checkout / "pid").read_text()))


def test_an_interrupt_ends_ci(checkout: Path) -> None:
    """A SIGTERM to the script reaches the step that runs."""
    make = checkout / "bin" / "make"
    make.write_text(make.read_text().replace("trap '' INT", "trap 'kill %1; touch stopped; exit 1' INT"))
    path = f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = environment(PATH=path, BENCH_DATA="none", PYTHON=sys.executable)
    process = subprocess.Popen(["/bin/bash", ".ci/run"], cwd=checkout, env=env, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (checkout / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 130
    assert (checkout / "stopped").exists()


CHANGES = "# Changelog\n\n## [Unreleased]\n\n- later\n\n## [1.2.0] - 2026-01-31\n\n- new\n\n## [1.1.0]\n\n- old\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A committed project of one module with a changelog, and `.ci/release`."""
    folder = tmp_path / "project"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "release", folder / ".ci")
    (folder / "some.py").write_text("")
    (folder / ".gitignore").write_text("/dist/\n")
    (folder / "CHANGELOG.md").write_text(CHANGES)
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n\n'
        '[project]\nname = "some"\nversion = "1.2.0"\nrequires-python = ">=3"\n\n'
        '[tool.hatch.build]\ninclude = ["some.py"]\n'
    )
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


IDENTITY = {f"GIT_{role}_{field}": "x" for role in ("COMMITTER", "AUTHOR") for field in ("NAME", "EMAIL")}


def git(folder: Path, *arguments: str) -> str:
    """Run git, which must succeed; return what it prints."""
    result = run("git", *arguments, cwd=folder, **IDENTITY)
    assert result.returncode == 0, result.stdout
    return result.stdout


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=x")


def release(folder: Path) -> subprocess.CompletedProcess[str]:
    return run("bash", ".ci/release", cwd=folder, PYTHON=sys.executable, **IDENTITY)


def test_a_release_has_notes_a_wheel_its_sum_and_a_tag(project: Path) -> None:
    """The notes are those of its section alone; the second release of a version is refused."""
    result = release(project)
    assert result.returncode == 0, result.stdout
    wheel = project / "dist" / "some-1.2.0-py3-none-any.whl"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert (project / "dist" / "SHA256SUMS").read_text() == f"{digest}  {wheel.name}\n"
    assert (project / "dist" / "NOTES.md").read_text().split("\n\n") == ["retrieval-bench 1.2.0, 2026-01-31", "- new\n"]
    assert git(project, "tag", "--list", "--format=%(refname:short) %(contents:lines=9)").split() == [
        *("v1.2.0", "retrieval-bench", "1.2.0,", "2026-01-31", "-", "new")
    ]
    result = release(project)
    assert result.returncode == 1
    assert "the tag v1.2.0 exists" in result.stdout


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (CHANGES.replace("[1.2.0]", "[1.3.0]"), "no section '## [1.2.0] - DATE'"),
        (CHANGES.replace("2026-01-31", "soon"), "expected a date"),
        (CHANGES.replace("- new", ""), "is empty"),
    ],
    ids=["no section", "no date", "no notes"],
)
def test_a_release_without_dated_notes_is_refused(project: Path, changes: str, message: str) -> None:
    (project / "CHANGELOG.md").write_text(changes)
    assert "the tree has changes" in release(project).stdout
    commit(project)
    result = release(project)
    assert result.returncode == 1
    assert message in result.stdout
    assert not git(project, "tag")
