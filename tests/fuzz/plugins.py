"""Plugins that misbehave while they are loaded: each costs itself, and is named; commands that do not need it work."""

import json
import sys
from pathlib import Path

from bench.core.messages import visible
from tests.fuzz.attacks import TINY
from tests.fuzz.harness import Case, Draw, Outcome, command, warmed

_HOOKS = """
from bench import hookimpl
from bench.config.base import Config
from bench.types import Measure, Method


def method(name="evil", summary="A method."):
    return Method(name, "1", summary, "none", Config, print)


def brings(function):
    global bench_methods
    bench_methods = hookimpl(function, specname="bench_methods")

"""
AT_IMPORT = {
    "prints": "print('noise')",
    "prints without end": "[print('noise ' * 100) for _ in range(40_000)]",
    "prints on stderr": "import sys; sys.stderr.write('noise' * 100_000)",
    "writes to the descriptor": "import os; os.write(1, b'noise' * 1000)",
    "prints escape sequences": "print(chr(27) + ']0;title' + chr(7) + chr(0x202E))",
    "closes standard output": "import os; os.close(1)",
    "closes Python's standard output": "import sys; sys.stdout.close()",
    "takes standard output away": "import sys; sys.stdout = None",
    "raises": "raise ValueError('no')",
    "raises an escape sequence": "raise ValueError(chr(27) + ']0;title' + chr(7) + chr(0x202E) + 'no')",
    "raises a long message": "raise ValueError('x' * 10_000_000)",
    "raises lines": "raise ValueError('a' + chr(10) * 1000 + 'b')",
    "raises what cannot be printed": (
        "class Odd(Exception):\n    def __str__(self):\n        raise ValueError\n    __repr__ = __str__\nraise Odd"
    ),
    "raises what ends the process when printed": (
        "import os\nclass Odd(Exception):\n    def __str__(self):\n        os._exit(3)\nraise Odd"
    ),
    "raises a name of its own": "raise type('x' * 100_000 + chr(27), (Exception,), {})('no')",
    "raises a base exception": "raise BaseException('no')",
    "raises GeneratorExit": "raise GeneratorExit",
    "interrupts": "raise KeyboardInterrupt",
    "exits": "import sys; sys.exit(0)",
    "exits with a text": "import sys; sys.exit('x' * 100_000 + chr(27))",
    "exits at once": "import os; os._exit(0)",
    "exits in a function of its own": "from os import _exit\n_exit(5)",
    "forks": "import os; os.fork()",
    "starts a thread": "import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "recurs": "def f():\n    return f()\nf()",
    "takes memory": "raise MemoryError",
    "warns as an error": "import warnings; warnings.simplefilter('error'); warnings.warn('no')",
    "changes the folder": "import os; os.chdir('/')\nraise ValueError",
    "forgets modules": "import sys; sys.modules.pop('json', None)\nraise ValueError('no')",
    "imports what is not there": "import no_such_module",
    "is no Python": "def (",
    "holds null bytes": "x = 1\x00",
    "registers an exit": "import atexit; atexit.register(print, 'noise')\nraise ValueError('no')",
    "takes the signal": "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nraise ValueError('no')",
}
"""What is done while it is imported."""
IN_HOOK = {
    "yields without end": "def hook():\n    while True:\n        yield method()\nbrings(hook)",
    "yields without end what is nothing": "import itertools\nbrings(lambda: itertools.repeat(1))",
    "raises half way": "def hook():\n    yield method()\n    raise ValueError('no')\nbrings(hook)",
    "exits in its hook": "import sys\nbrings(lambda: sys.exit(4))",
    "exits at once in its hook": "import os\nbrings(lambda: os._exit(4))",
    "interrupts in its hook": "def hook():\n    raise KeyboardInterrupt\nbrings(hook)",
    "prints in its hook": "brings(lambda: [print('noise'), method()][1:])",
    "brings a name without end": "brings(lambda: [method('x' * 5000)])",
    "brings a summary without end": "brings(lambda: [method(summary='x' * 3_000_000)])",
    "brings a summary that is none": "brings(lambda: [method(summary=b'x')])",
    "brings a name that is none": "brings(lambda: [method(7)])",
    "brings an escape sequence": "brings(lambda: [method(chr(27) + '[2J')])",
    "brings a text": "brings(lambda: 'x' * 100_000)",
    "brings nothing": "brings(lambda: None)",
    "brings what cannot be printed": (
        "class Odd:\n    def __repr__(self):\n        raise ValueError('no')\nbrings(lambda: [Odd()])"
    ),
    "has no hook": "x = 1",
    "has a hook that is none": "@hookimpl\ndef bench_nothing(): return []",
}
"""What is done when it is asked what it brings."""
HARMLESS = {
    *("prints", "prints without end", "prints on stderr", "writes to the descriptor", "prints escape sequences"),
    *("closes standard output", "forks", "starts a thread", "takes standard output away", "prints in its hook"),
    *("closes Python's standard output", "brings nothing"),
}
"""They bring what they say; all others are set aside."""
PLUGINS = {
    **{name: f"{code}\n{_HOOKS}\nbrings(lambda: [method()])\n" for name, code in AT_IMPORT.items()},
    **{name: f"{_HOOKS}\n{code}\n" for name, code in IN_HOOK.items()},
}
_COMMANDS = (
    ("list", "plugins", "--json"),
    ("run", "--method", "bm25", "--suite", "beir", "--task", TINY, "--json"),
)
_LONGEST = 5_000


def case(_: Draw, folder: Path) -> Case:
    """Load the plugin of this number and type one of the commands."""
    number = int(folder.name)
    name, is_run = list(PLUGINS)[number // 2 % len(PLUGINS)], number % 2 == 1
    (folder / "evil-1.dist-info").mkdir()
    (folder / "evil-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    (folder / "evil-1.dist-info" / "entry_points.txt").write_text("[bench]\nevil = evil_plugin\n")
    (folder / "evil_plugin.py").write_text(PLUGINS[name])
    places = ("--store", folder / "store", "--results", folder / "results") if is_run else ()
    typed = command(*_COMMANDS[is_run], *places)
    warmed(*_COMMANDS[is_run], *(("--store", "/nonexistent/store") if is_run else ()))

    def call() -> None:
        sys.path.insert(0, str(folder))
        typed()

    def judge(outcome: Outcome) -> str:
        return f"{name}: {fault}" if (fault := _fault(name, outcome, is_run=is_run)) else ""

    return Case(call, judge, (0,))


def _fault(name: str, outcome: Outcome, *, is_run: bool) -> str:
    try:
        content = json.loads(outcome.out)
    except ValueError:
        return f"stdout is no JSON: {outcome.out[:200]!r}"
    if visible(outcome.stderr) != outcome.stderr:
        return f"stderr holds control characters: {outcome.stderr[:200]!r}"
    if len(outcome.stderr) > _LONGEST:
        return f"{len(outcome.stderr):,} characters on stderr"
    if is_run:
        return "" if len(content["results"]) == 1 else "no row"
    states = {row["name"]: row["state"] for row in content["plugins"]}
    expected = "loaded" if name in HARMLESS else "broken"
    return "" if states.get("evil") == expected else f"it is {states.get('evil')}, expected {expected}"
