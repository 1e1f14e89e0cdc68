"""Run a command again in a process of its own, with bounds on memory and time: for untrusted submissions."""

import os
import signal
from collections.abc import Callable, Iterator

import click
from click.core import ParameterSource

from bench.cli import result_stream
from bench.core.children import end_with_parent, run_python
from bench.core.errors import DataError

_INSIDE = "_BENCH_LIMITED"  # internal: set for the process with bounds
_FATAL = {-getattr(signal, name) for name in ("SIGKILL", "SIGXCPU", "SIGSEGV", "SIGABRT") if hasattr(signal, name)}


def run_bounded(context: click.Context, memory: int, minutes: int, run: Callable[[], None]) -> None:
    """Run a command in a process with bounds.

    Args:
        context: of the command, which is typed again for the process; a message names the first of its `paths`.
        memory: bound on its address space, GiB.
        minutes: bound on its processor time.
        run: the command's work; called inside the process.

    Raises:
        DataError: the process exceeded a bound.
        click.exceptions.Exit: the command failed, with its exit status.
    """
    limits = f"at most {memory} GiB and {minutes} minutes (--memory, --minutes)"
    exceeded = DataError(context.params["paths"][0], None, "a result that takes more memory or time", limits)
    if os.environ.get(_INSIDE):
        end_with_parent()
        _set_limits(memory, minutes)
        try:
            run()
        except MemoryError:
            raise exceeded from None
        return
    words = *context.command_path.split()[1:], *_words(context)
    process = run_python("-m", "bench", *words, environment={_INSIDE: "1"})
    if process.returncode in _FATAL:
        raise exceeded
    click.echo(process.stderr, err=True, nl=False)
    click.echo(process.stdout, nl=False, file=result_stream())
    if process.returncode:
        raise click.exceptions.Exit(process.returncode)


def _set_limits(memory: int, minutes: int) -> None:
    """Bound this process, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, limit in ((resource.RLIMIT_AS, memory << 30), (resource.RLIMIT_CPU, 60 * minutes)):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _words(context: click.Context) -> Iterator[str]:
    """Yield the options and arguments that were typed for a command, as words."""
    arguments = []
    for parameter in context.command.params:
        name = str(parameter.name)
        value = context.params.get(name)
        if isinstance(parameter, click.Argument):
            arguments += [str(path) for path in value or ()]
        elif context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            flag = isinstance(parameter, click.Option) and parameter.is_flag
            for item in value if isinstance(value, tuple) else (value,):
                yield from (parameter.opts[0],) if flag else (parameter.opts[0], str(item))
    yield from ("--", *arguments)
