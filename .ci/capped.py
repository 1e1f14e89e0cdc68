"""Run a command and stop it at a cap: first SIGINT, so that it can tell what it was at, then SIGKILL.

    python capped.py SECONDS COMMAND [ARGUMENT …]

Exits with the command's own code, with 124 when the cap was reached, and with 130 when it was interrupted itself.
Runs on any Python 3, for it must be there before the environment is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

CAPPED, INTERRUPTED = 124, 130
GRACE = 30.0
"""Seconds between SIGINT and SIGKILL."""


def run(command: Sequence[str], seconds: float, grace: float = GRACE, env: Mapping[str, str] | None = None) -> int:
    """Run `command` in a process group of its own for at most `seconds`; at most `grace` more to end by itself.

    Args:
        command: program and arguments; no shell.
        seconds: the cap.
        grace: seconds between SIGINT and SIGKILL.
        env: its environment, ours by default.

    Returns:
        Its exit code (negative: the signal that ended it), `CAPPED` or `INTERRUPTED`. Nothing of its group is left
        alive in the last two cases.
    """
    # A shell's background job ignores SIGINT, and a program passes that on; with a handler of its own the command gets
    # the default back.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, env=env, start_new_session=True)
    try:
        return process.wait(timeout=max(seconds, 0.0))
    except subprocess.TimeoutExpired:
        code = CAPPED
    except KeyboardInterrupt:
        code = INTERRUPTED
    _stop(process, grace)
    return code


def _stop(process: subprocess.Popen[bytes], grace: float) -> None:
    """Interrupt the group of `process`, wait for `process`, then kill what is left of the group."""
    _signal(process.pid, signal.SIGINT)
    try:
        process.wait(timeout=grace)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        sys.stderr.write(f"capped: it did not end within {grace:g} s of SIGINT; killing it\n")
    finally:
        _signal(process.pid, signal.SIGKILL)
        process.wait()


def _signal(group: int, number: int) -> None:
    """Signal a process group; one that has ended already needs none."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(run(sys.argv[2:], float(sys.argv[1])))
