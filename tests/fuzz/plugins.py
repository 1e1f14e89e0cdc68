"""Plugins that misbehave while they are loaded: each costs itself, and is named; commands that do not need it work."""

import json
import sys
from functools import cache
from pathlib import Path

from bench.core.messages import visible
from tests.fuzz.attacks import TINY
from tests.fuzz.harness import Case, Draw, Outcome, carried_out, command, scratch, warmed

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
_SUITE = """
from bench.types import Suite
about = "evil", "1", "Evil", "A suite.", "none", "none", ("english",), ("mini",)
suite = Suite(*about, lambda data: {}, print, None, (), "", print)
bench_suites = hookimpl(lambda: [suite], specname="bench_suites")
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
    "sets up logging": "import logging; logging.basicConfig()\nraise ValueError('no')",
    "uses the bytes of standard output": "import sys; sys.stdout.buffer.write(b'noise')",
    "uses a stream's number": "import faulthandler, sys; faulthandler.enable(); print(sys.stdout.fileno())",
    "sets an encoding": "import sys; sys.stdout.reconfigure(encoding='utf-8'); print('noise')",
    "prints on Python's first standard output": "import sys; sys.__stdout__.write('noise')",
    "closes stderr": "import os, sys; sys.stderr.close(); os.close(2)\nraise ValueError('no')",
    "starts a process": (
        "import multiprocessing\ncontext = multiprocessing.get_context('fork')\n"
        "child = context.Process(target=print, args=('noise',)); child.start(); child.join()\n"
        "assert child.exitcode == 0"
    ),
    "starts another program": "import os, sys; os.execv(sys.executable, [sys.executable, '-c', ''])",
    "aborts": "import os; os.abort()",
    "raises what has no module": "raise type('Odd', (Exception,), {'__module__': None})('no')",
    "raises what has no name": (
        "class Kind(type):\n    @property\n    def __name__(self):\n        raise SystemExit(5)\n"
        "class Odd(Exception, metaclass=Kind): pass\nraise Odd"
    ),
    "raises a text with methods": (
        "class Text(str):\n    def __getitem__(self, at):\n        raise SystemExit(5)\n    split = __getitem__\n"
        "class Odd(Exception):\n    def __str__(self):\n        return Text('no')\nraise Odd"
    ),
    "clears the variables": "import os; os.environ.clear()",
    "clears the path": "import sys; sys.path.clear(); sys.meta_path.clear()",
    "clears the modules": "import sys; sys.modules.clear()",
    "replaces builtins": "import builtins; builtins.open = builtins.len = None\nraise ValueError('no')",
    "forgets ours": "import sys\nfor name in [*sys.modules]:\n    name.startswith('bench') and sys.modules.pop(name)",
    "changes the locale": "import locale; locale.setlocale(locale.LC_ALL, 'C')\nraise ValueError('no')",
    "lowers the limit of recursion": "import sys; sys.setrecursionlimit(60)",
    "makes errors of warnings": "import warnings; warnings.simplefilter('error')",
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
    "brings tasks that raise": _SUITE.format("1 / 0"),
    "brings tasks without end": _SUITE.format("__import__('itertools').repeat('a')"),
    "brings tasks that are none": _SUITE.format("(1, 2)"),
    "brings a preset's summary without end": (
        "from dataclasses import replace\nfrom bench.types import Preset\n"
        "brings(lambda: [replace(method(), presets={'a': Preset({}, '', 'x' * 3_000_000)})])"
    ),
    "brings a name of ours": "brings(lambda: [method('crop')])",
    "has no hook": "x = 1",
    "has a hook that is none": "@hookimpl\ndef bench_nothing(): return []",
}
"""What is done when it is asked what it brings."""
HARMLESS = {
    *("prints", "prints without end", "prints on stderr", "writes to the descriptor", "prints escape sequences"),
    *("closes standard output", "forks", "starts a thread", "takes standard output away", "prints in its hook"),
    *("closes Python's standard output", "brings nothing", "uses the bytes of standard output"),
    *("uses a stream's number", "sets an encoding", "prints on Python's first standard output", "starts a process"),
    *("clears the variables", "clears the path", "lowers the limit of recursion", "makes errors of warnings"),
    "brings a name of ours",
}
"""They bring what they say; all others are set aside."""
SILENT = {"closes standard output", "closes Python's standard output", "takes standard output away", "forks"} | {
    *("starts a thread", "brings nothing"),
}
"""They do no harm, and nothing is to be said."""
PLUGINS = {
    **{name: f"{code}\n{_HOOKS}\nbrings(lambda: [method()])\n" for name, code in AT_IMPORT.items()},
    **{name: f"{_HOOKS}\n{code}\n" for name, code in IN_HOOK.items()},
}
_COMMANDS = (
    ("list", "--json"),
    ("run", "--method", "bm25", "--suite", "beir", "--task", TINY, "--json"),
)
_LONGEST = 5_000


@cache
def _shared() -> Path:
    """Return a folder whose store has the stages of the run, so that no case computes them again."""
    folder = scratch()
    outcome = carried_out(Case(command(*_COMMANDS[1], "--store", folder / "store", "--results", folder / "results")))
    assert outcome.code == 0, outcome.stderr
    return folder


def case(_: Draw, folder: Path) -> Case:
    """Load the plugin of this number and type one of the commands."""
    number = int(folder.name)
    name, is_run = list(PLUGINS)[number // 2 % len(PLUGINS)], number % 2 == 1
    (folder / "evil-1.dist-info").mkdir()
    (folder / "evil-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    (folder / "evil-1.dist-info" / "entry_points.txt").write_text("[bench]\nevil = evil_plugin\n")
    (folder / "evil_plugin.py").write_text(PLUGINS[name])
    places = ("--store", _shared() / "store", "--results", folder / "results") if is_run else ()
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
    if (len(outcome.stderr) == 0) != (name in SILENT) or (name not in SILENT and "evil" not in outcome.stderr):
        return f"it is named wrongly: {outcome.stderr[:200]!r}"
    if is_run:
        return "" if len(content["results"]) == 1 else "no row"
    states = {row["name"]: row["state"] for row in content["plugins"]}
    expected = "loaded" if name in HARMLESS else "broken"
    return "" if states.get("evil") == expected else f"it is {states.get('evil')}, expected {expected}"
