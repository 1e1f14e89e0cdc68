"""SIGKILL at any change of the file system of a run, then the same command: the same bytes, no damage, no litter."""

import os
import signal
import sys
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.folders import run, write
from tests.fuzz.harness import Case, Draw, Outcome, carried_out, command, ended, scratch

_CHANGES = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.truncate", "shutil.rmtree")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class _Counter:
    """Count the changes below a folder; at one of them this process ends, as by a power cut."""

    def __init__(self, folder: Path, last: int = -1) -> None:
        self.folder, self.last, self.count = str(folder), last, 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Python's audit hook."""
        if event != "open" and event not in _CHANGES:
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & _WRITING):
            return
        if isinstance(arguments[0], str | os.PathLike) and os.fspath(arguments[0]).startswith(self.folder):
            self.count += 1
            if self.count == self.last:
                os.kill(os.getpid(), signal.SIGKILL)


def _contents(place: Path) -> dict[str, bytes]:
    """Return the runs and values of all results, by path."""
    files = (path for path in (place / "results").rglob("*") if path.is_file())
    return {str(path.relative_to(place)): path.read_bytes() for path in files if path.name != "result.json"}


@cache
def _whole() -> tuple[Path, dict[str, bytes], int]:
    """Run once undisturbed; return the data, what was written, and how many changes it took."""
    folder = scratch()
    write(Draw(2), folder / "data")
    made = run(folder / "data", folder)

    def counted() -> int:
        sys.addaudithook(counter := _Counter(folder))
        assert ended(made.call) == 0
        return counter.count

    done = carried_out(Case(counted))
    assert done.code == 0, done.said
    return folder / "data", _contents(folder), done.value


def case(draw: Draw, folder: Path) -> Case:
    """Kill a run at one of its changes; type it again."""
    data, expected, changes = _whole()
    made, at = run(data, folder), draw.randint(1, changes)

    def killed() -> None:
        sys.addaudithook(_Counter(folder, at))
        made.call()

    assert carried_out(Case(killed)).code in (-signal.SIGKILL, 0)
    places = ("--store", str(folder / "store"), "--results", str(folder / "results"))

    def call() -> list[str]:
        for one in (made.call, command("verify", *places)):
            if code := ended(one):
                raise SystemExit(code)
        inside = (path for top in ("store", "results") for path in (folder / top).rglob("*"))
        return [str(path) for path in inside if path.name.endswith(".part") or path.parent.name == "work"]

    def judge(outcome: Outcome) -> str:
        if _contents(folder) != expected:
            return f"other bytes after a kill at change {at} of {changes}"
        return f"litter after a kill at change {at} of {changes}: {outcome.value}" if outcome.value else ""

    return Case(call, judge, allowed=(0,))
