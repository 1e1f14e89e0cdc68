"""What all fuzzers share: seeded damage, a call in a forked child with limits, and a verdict on how it ended.

A target makes inputs from a seed and says what must come of them. Every case is carried out in a child of this process,
so that a crash, an endless loop or a bomb is an outcome like any other. A failure names its target and seed, which make
the same case again: `make fuzz FUZZ=1 SEED=… TARGETS=…`.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

SECONDS, MEMORY = 20, 1 << 30
"""Limits of one case: seconds of a processor, and bytes beyond what the parent has."""
LONGEST = 2_048
"""Bytes of the longest message that a person can be expected to read."""

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 1e308, -1e-320, 10**19, 10**400, float("nan"), float("inf")),
    *("", " ", "\n", "x" * 5_000, "../..", "/etc", "\x00", "\u2028", "\u202e", "\ud800", "é", "NaN", "-0", "1e999"),
    *([], {}, [[]], {"": {}}, [None] * 3),
)
"""Values that are rarely meant, for any place."""


class Draw(random.Random):
    """A seeded source of chance that knows how to damage things."""

    def damaged(self, data: bytes) -> bytes:
        """Return bytes with one to three faults: flipped, cut, doubled, swapped or foreign ones."""
        for _ in range(self.randint(1, 3)):
            at, end = sorted(self.randrange(len(data) + 1) for _ in range(2))
            piece = data[at:end][:200]
            change = self.randrange(6)
            if change == 0 and data:
                place = self.randrange(len(data))
                data = data[:place] + bytes([data[place] ^ 1 << self.randrange(8)]) + data[place + 1 :]
            elif change == 1:
                data = data[:at]
            elif change == 2:
                data = data[:at] + data[end:]
            elif change == 3:
                data = data[:end] + piece + data[end:]
            else:
                foreign = (b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\n\n", b'"', b"[" * 300, b"9" * 400)
                data = data[:at] + self.choice(foreign) + data[at:]
        return data

    def altered(self, value: Any) -> Any:
        """Return JSON with one place that holds something else, is lost, or stands under another name."""
        if isinstance(value, dict) and value and self.random() < 0.9:
            name = self.choice([*value])
            siblings = {key: part for key, part in value.items() if key != name}
            change = self.random()
            if change < 0.15:
                return siblings
            if change < 0.25:
                return {**siblings, self.choice(("", "a", name.upper(), f"{name} ", "__proto__")): value[name]}
            return {**value, name: self.altered(value[name])}
        if isinstance(value, list) and value and self.random() < 0.9:
            at = self.randrange(len(value))
            if self.random() < 0.2:
                return value[:at] + value[at + 1 :] if self.random() < 0.5 else value + value[at : at + 1]
            return [*value[:at], self.altered(value[at]), *value[at + 1 :]]
        if isinstance(value, int | float) and not isinstance(value, bool) and self.random() < 0.3:
            return value * self.choice((-1, 0, 2, 1000)) + self.choice((0, 1))
        return self.choice(ODD)


@dataclass(frozen=True)
class Case:
    """One input, what is done with it, and what must come of it."""

    call: Callable[[], Any]  # carried out in the child; what it returns must be JSON
    judge: Callable[[Outcome], str] = lambda _: ""  # why the outcome is wrong, empty where it is right
    allowed: tuple[int, ...] = (0, 2)  # exit codes; 2 is a refusal in words
    memory: int = MEMORY  # bytes of address space that it may take besides what the parent has


@dataclass(frozen=True)
class Outcome:
    """How a case ended."""

    code: int  # exit code; −N for signal N
    value: Any  # what the call returned
    out: str
    stderr: str  # on stderr
    seconds: float
    memory: int = 0  # bytes at most, with what the parent had loaded

    def fault(self, case: Case) -> str:
        """Return what is wrong whatever was put in, then what the case itself finds."""
        if "Traceback (most recent" in self.stderr:
            return f"a traceback: {self.stderr.strip()[-600:]}"
        if self.code not in case.allowed:
            return f"ended with {self.code} after {self.seconds:.1f} s: {self.stderr.strip()[-300:]}"
        if self.code == 2 and not self.stderr.strip():
            return "refused without a word"
        if self.code == 2 and len(self.stderr.encode()) > LONGEST:
            return f"a message of {len(self.stderr.encode()):,} bytes: {self.stderr[:200]}"
        return case.judge(self)


def command(*arguments: str | Path) -> Callable[[], None]:
    def call() -> None:
        from bench.cli import main

        main([str(argument) for argument in arguments])

    return call


def ended(call: Callable[[], Any]) -> int:
    try:
        call()
    except SystemExit as status:
        return int(status.code or 0)
    return 0


def scratch() -> Path:
    """Return a new folder for what all cases of a target share; it goes with this process."""
    folder = Path(tempfile.mkdtemp(prefix="bench-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def warmed(*arguments: str | Path) -> None:
    """Type a command once and say nothing, so that no child imports again what it needs."""
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        ended(command(*arguments))


def carried_out(case: Case) -> Outcome:
    """Carry out a case in a child of this process."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as value:
        start = time.monotonic()
        code, peak = waited(start_child(case, out.fileno(), err.fileno(), value.fileno()), start)
        texts = []
        for stream in (value, out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
        returned = json.loads(texts[0]) if texts[0] else None
        return Outcome(code, returned, texts[1], texts[2], time.monotonic() - start, peak)


def start_child(case: Case, out: int, err: int, value: int) -> int:
    """Begin a case in a child of this process, which writes to descriptors; return its id."""
    if not (child := os.fork()):
        _child(case, out, err, value)
    return child


def _child(case: Case, out: int, err: int, value: int) -> None:
    """Carry out a case under limits, and end the process as a command would."""
    code = 70
    try:
        os.setsid()
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout, sys.stderr = (  # as Python itself does
            open(number, "w", encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115 (descriptors, for good)
            for number, errors in ((1, "strict"), (2, "backslashreplace"))
        )
        address_space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (address_space + case.memory, address_space + case.memory))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        code = _returned(case, value)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):  # they may be closed, and the child must never come back from here
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _returned(case: Case, value: int) -> int:
    """Carry out the call; errors that the harness raises on purpose end as they do on the command line."""
    from bench.core.errors import BenchError

    try:
        os.write(value, json.dumps(case.call()).encode())
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)  # noqa: T201 (as the command does)
        return error.exit_code
    except SystemExit as error:
        return int(error.code or 0)
    return 0


def waited(child: int, start: float) -> tuple[int, int]:
    """Return a child's exit code and most bytes; kill it, and all that it began, where it outlives its limits."""
    while time.monotonic() - start < 6 * SECONDS:  # of a clock on the wall, for machines are shared
        finished, status, usage = os.wait4(child, os.WNOHANG)
        if finished:
            break
        time.sleep(0.002)
    else:
        os.killpg(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10


Target = Callable[[Draw, Path], Case]
"""(chance, an empty folder) → a case."""


@dataclass
class Round:
    """What came of trying a target: faults by seed, and the most that a case took."""

    faults: dict[int, str] = field(default_factory=dict)
    seconds: float = 0.0
    memory: int = 0  # bytes


def try_seeds(target: Target, folder: Path, seeds: range) -> Round:
    result = Round()
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        case = target(Draw(seed), place)
        outcome = carried_out(case)
        result.seconds, result.memory = max(result.seconds, outcome.seconds), max(result.memory, outcome.memory)
        if fault := outcome.fault(case):
            result.faults[seed] = fault
        shutil.rmtree(place, ignore_errors=True)
    return result
