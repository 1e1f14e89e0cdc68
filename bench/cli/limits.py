"""A command that runs again in a process of its own, with bounds on memory and time: for what strangers hand in."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import click
from click.core import ParameterSource

from bench.core.errors import DataError

_INSIDE = "_BENCH_LIMITED"  # internal: set for the process with bounds
_ENDED = {-getattr(signal, name) for name in ("SIGKILL", "SIGXCPU", "SIGSEGV", "SIGABRT") if hasattr(signal, name)}


def bounded(context: click.Context, memory: int, minutes: int, where: str, run: Callable[[], None]) -> None:
    """Run a command in a process with bounds (GiB, minutes): there, `run`. Raises `DataError` beyond them."""
    most = f"at most {memory} GiB and {minutes} minutes (--memory, --minutes)"
    much = DataError(where, None, "a result that takes more memory or time", most)
    if os.environ.get(_INSIDE):
        _bound(memory, minutes)
        try:
            run()
        except MemoryError:
            raise much from None
        return
    typed = [sys.executable, "-m", "bench", *context.command_path.split()[1:], *_typed(context)]
    environment = {**os.environ, _INSIDE: "1"}
    done = subprocess.run(typed, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 (ourselves)
    if done.returncode in _ENDED:
        raise much
    click.echo(done.stderr, err=True, nl=False)
    click.echo(done.stdout, nl=False)
    if done.returncode:
        raise click.exceptions.Exit(done.returncode)


def _bound(memory: int, minutes: int) -> None:
    """Bound this process, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for what, most in ((resource.RLIMIT_AS, memory << 30), (resource.RLIMIT_CPU, 60 * minutes)):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _typed(context: click.Context) -> Iterator[str]:
    """Yield the options and arguments that a command was given, as words."""
    last = []
    for one in context.command.params:
        value = context.params.get(str(one.name))
        if isinstance(one, click.Argument):
            last += [str(part) for part in value or ()]
        elif context.get_parameter_source(str(one.name)) is not ParameterSource.COMMANDLINE:
            continue
        elif isinstance(one, click.Option) and one.is_flag:
            yield from one.opts[:1] if value else ()
        else:
            for part in value if isinstance(value, tuple) else (value,):
                yield from (one.opts[0], str(part))
    yield from ("--", *last)
