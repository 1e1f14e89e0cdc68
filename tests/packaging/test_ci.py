"""The helpers of `.ci/run`: a cap ends what it should, and the slowest tests are named however a run ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CAPPED, SLOW = ROOT / ".ci" / "capped.py", ROOT / ".ci" / "slow.py"

SUITE = """
import time, pytest

@pytest.mark.slow
def test_short(): time.sleep(0.3)

@pytest.mark.slow
def test_shorter(): time.sleep(0.01)

def test_not_slow(): raise AssertionError("it is not marked slow")

@pytest.mark.slow
def test_endless(): time.sleep(60)
"""


def suite(folder: Path, text: str = SUITE) -> Path:
    """Write a small test suite with the repository's markers."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  gpu\n  network\n")
    (folder / "test_some.py").write_text(text)
    return folder


def slow(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `.ci/slow.py` in a folder."""
    command = [sys.executable, str(SLOW), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def test_the_cap_fails_and_names_the_slowest_first_with_the_one_that_hangs(tmp_path: Path) -> None:
    """At the cap the run fails, and lists the tests by time, the running one included."""
    done = slow(suite(tmp_path), "--cap", "6")
    assert done.returncode == 124
    assert "the cap of 6 s was reached" in done.stdout
    rows = done.stdout.partition("the slowest ten:\n")[2].splitlines()
    assert [row.split()[2].partition("::")[2] for row in rows] == ["test_endless", "test_short", "test_shorter"]
    assert rows[0].endswith("(still running)")
    assert not rows[1].endswith("(still running)")
    assert float(rows[1].split()[0]) == pytest.approx(0.3, abs=0.25)


def test_the_verdict_is_pytests(tmp_path: Path) -> None:
    """Its exit code for "no tests" is no failure, and is said; that of a failing test is passed on."""
    done = slow(suite(tmp_path, "def test_quick(): pass\n"))
    assert done.returncode == 0
    assert "no test is marked slow" in done.stdout
    done = slow(suite(tmp_path, "import pytest\n@pytest.mark.slow\ndef test_wrong(): assert 1 == 2\n"))
    assert done.returncode == 1


@pytest.mark.parametrize("code", [0, 1, 7])
def test_an_exit_code_is_passed_on(code: int) -> None:
    """A command that ends before the cap keeps its code."""
    done = subprocess.run(
        [sys.executable, str(CAPPED), "20", sys.executable, "-c", f"raise SystemExit({code})"], check=False
    )
    assert done.returncode == code


def alive(process: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to look at a process")
def test_nothing_survives_the_cap(tmp_path: Path) -> None:
    """A command that ignores SIGINT is killed together with its child."""
    script = tmp_path / "stubborn.py"
    script.write_text(
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)\n"
    )
    begun = time.monotonic()
    code = f"import capped, sys; sys.exit(capped.run([sys.executable, {str(script)!r}], 1.5, grace=0.5))"
    done = subprocess.run([sys.executable, "-c", code], cwd=CAPPED.parent, check=False, timeout=30)
    assert done.returncode == 124
    assert time.monotonic() - begun < 20
    child = int((tmp_path / "pid").read_text())
    time.sleep(0.2)  # the kernel needs a moment to reap
    assert not alive(child)


def test_an_interrupt_from_outside_stops_the_command(tmp_path: Path) -> None:
    """SIGINT to the helper reaches the command, which may still speak."""
    told = tmp_path / "told"
    code = (
        "import pathlib, time\n"
        f"told = pathlib.Path({str(told)!r})\n"
        "try:\n  told.write_text('began'); time.sleep(60)\nexcept KeyboardInterrupt:\n  told.write_text('stopped')\n"
    )
    helper = subprocess.Popen([sys.executable, str(CAPPED), "40", sys.executable, "-c", code])
    limit = time.monotonic() + 20
    while not told.exists() and time.monotonic() < limit:
        time.sleep(0.05)
    os.kill(helper.pid, signal.SIGINT)
    assert helper.wait(timeout=20) == 130
    assert told.read_text() == "stopped"
