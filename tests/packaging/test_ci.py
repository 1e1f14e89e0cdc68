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


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; stderr is part of its output."""
    return subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )


def slow_command(seconds: int) -> list[str]:
    """Return what `make test-slow` runs, with this Python."""
    printed = run("make", "--dry-run", "test-slow", "VENV=VENV", f"SLOW_CAP={seconds}", cwd=ROOT).stdout
    (line,) = [line for line in printed.splitlines() if "-m pytest" in line]
    return [sys.executable, *shlex.split(line)[1:]]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A small test suite with the repository's markers."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  gpu\n  network\n")
    (tmp_path / "test_some.py").write_text(SUITE)
    return tmp_path


def test_slow_tests_stop_after_their_seconds_and_name_the_slowest(suite: Path) -> None:
    """The test that is running then is the last one; the run fails."""
    (suite / "test_some.py").write_text(
        SUITE.replace("time.sleep(300)", "time.sleep(2)") + "\n" + SUITE.split("\n\n")[1]
    )
    result = run(*slow_command(1), cwd=suite)
    assert result.returncode != 0
    assert "session-timeout: 1" in result.stdout
    rows = result.stdout.partition("slowest 10 durations")[2].splitlines()
    assert next(row for row in rows if "::" in row).endswith("test_endless")


def test_a_test_that_hangs_is_named_when_it_is_interrupted(suite: Path) -> None:
    """`timeout` sends SIGINT, as `.ci/run` does; pytest still prints durations, and the line that it was at."""
    command = slow_command(100)
    with subprocess.Popen(command, cwd=suite, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        while not (suite / "at_endless").exists():  # a busy machine may take long to come to it
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "test_short\n" in output.partition("slowest 10 durations")[2]
    line = next(number for number, text in enumerate(SUITE.splitlines(), 1) if "time.sleep(300)" in text)
    assert f"test_some.py:{line}: Keyboard" in output


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
    env = os.environ | {"PATH": path, "BENCH_DATA": "none", "PYTHON": sys.executable}
    process = subprocess.Popen(["/bin/bash", ".ci/run"], cwd=checkout, env=env, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not (checkout / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 130
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
