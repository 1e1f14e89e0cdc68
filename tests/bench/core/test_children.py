"""Processes that this one begins: they end with it, and are found by what they were begun with."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from bench.core.children import end_processes

SLEEPS = "import time; time.sleep(600)"
BEGINS = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


def ended(process: int, seconds: float = 60) -> bool:
    """Wait for the end of a process; return whether it came."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if psutil.Process(process).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_processes_of_a_folder_end_with_all_that_they_began(tmp_path: Path) -> None:
    """In sessions of their own, too; a process without the word in its command line goes on."""
    with (
        subprocess.Popen([sys.executable, "-c", BEGINS, str(tmp_path)], stdout=subprocess.PIPE, text=True) as named,
        subprocess.Popen([sys.executable, "-c", SLEEPS, "other"]) as other,
    ):
        try:
            assert named.stdout
            grandchild = int(named.stdout.readline())
            end_processes(str(tmp_path))
            assert ended(named.pid)
            assert ended(grandchild)
            assert other.poll() is None
        finally:
            other.kill()


def test_a_bounded_process_ends_with_the_one_that_began_it(tmp_path: Path) -> None:
    """Even where that is killed, and can tell it nothing."""
    code = (
        "import sys, time\nfrom bench.core.children import end_with_parent\n"
        "end_with_parent(0.05); print('ready', flush=True); time.sleep(600)\n"
    )
    begins = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {code!r}], start_new_session=True, stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(child.pid, flush=True); child.wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", begins], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        bounded = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(timeout=60)
    assert ended(bounded)
