"""The command `bench`: parse, call, print. Each command lives in a module of its own, imported when it is typed."""

import errno
import faulthandler
import os
import platform
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from contextvars import ContextVar
from importlib import import_module
from typing import Any, TextIO

import click

from bench.core.children import keep_children_out_of_the_folder

COMMANDS = {
    "run": "Run methods on suites: train, search and score what the store does not hold yet.",
    "plan": "Say what `run` would do: what is cached, what would run, how long it takes.",
    "list": "List methods, suites, tasks, measures, profiles, plugins, results.",
    "show": "Show a method, suite, task, profile or result file in full.",
    "score": "Score a TREC run file, from here or from elsewhere.",
    "compare": "Test which of several systems is better, and whether the comparison is fair.",
    "sweep": "Choose settings on dev questions, with as many trials for every method.",
    "few-shot": "Tune on more and more training pairs and draw the curve.",
    "curve": "Draw pretrainings over their budget, on dev questions: which method leads where.",
    "race": "Find the best of several pretrainings on dev questions, without training all of them to the end.",
    "ablate": "Vary settings of a method, or run the papers' ablation tables.",
    "reproduce": "Run a row again from its result file; say OK, close or differs.",
    "leaderboard": "Build a static site from results.",
    "data": "List, fetch, check and audit official data.",
    "plugin": "Start a plugin of your own, and check that a method or suite keeps its promises.",
    "export": "Write an encoder for transformers and sentence-transformers, with a model card.",
    "publish": "Put an encoder with its card and its results on the Hugging Face hub.",
    "doctor": "Examine this machine: versions, devices, plugins, data, store.",
    "gc": "Remove from the store what no result needs.",
    "verify": "Re-hash the store and the results; name what is damaged.",
    "skill": "Print what a coding agent must know to use this harness.",
    "completion": "Print the script that completes `bench` in bash, zsh or fish.",
}
_MODULES = {
    **dict.fromkeys(("sweep", "few-shot", "ablate"), "studies"),
    **dict.fromkeys(("doctor", "gc", "verify", "completion", "skill"), "maintenance"),
}
"""Modules that hold several commands, by command."""
_RENAMED = {"shots": ("few-shot",), "check": ("plugin", "check"), "new": ("plugin", "new")}
_RENAMED_OPTIONS = {"--setting": "--regime", "--leg": "--subset"}
"""Names of earlier versions, which still work and which no help mentions."""
_TRAINS = ("run", "sweep", "few-shot", "curve", "race", "ablate", "reproduce")
"""Commands for which processes that a launcher has started work together."""
_RESULT_STREAM: ContextVar[TextIO | None] = ContextVar("result_stream", default=None)
_LONG_WORD = re.compile(r"(\S{199})\S{2,}")
_FIELDS = ("where", "line", "found", "expected", "hint")
"""Of a `BenchError`: what a machine reads of a failure."""


_RESEND_DELAY = 0.05
"""Seconds after which a signal that was swallowed comes again."""
_LONGEST = 1_900
"""Bytes of the longest message; with what says how much is left out, below 2 kB."""
_END = 400
"""Bytes of these that are its end."""


_NOT_ON_WINDOWS = (
    "found Windows, expected Linux or macOS; install it under the Windows Subsystem for Linux (wsl --install)"
)


class CommandGroup(click.Group):
    """Commands; typed alone, the group prints its help with exit status 0."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, unless nothing was typed."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of use."""
        return [*self.commands]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does; fail with near names for an unknown one."""
        name, names = args[0], self.list_commands(ctx)
        if name not in names and not name.startswith("-"):
            from bench.core.messages import did_you_mean

            ctx.fail(f"no command {name!r}{did_you_mean(name, names)} `{ctx.command_path} --help` lists them.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with its whole first sentence."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, item.get_short_help_str(limit=10_000)) for name, item in self.commands.items()])


class LazyGroup(CommandGroup):
    """Commands that lie in modules of their own, imported when called, so that `--help` imports none of them.

    The module of a command, in turn, imports at its head what its options need, and the rest in the functions that use
    it, so that the help of a command reads no plugin and imports neither numpy nor pydantic.

    Args:
        listed: what each command does, by its name, in the order of the help.
        modules: the module of a command in `bench.cli` that holds it by its name, next to others. A command that is not
            named here has a module of its own, which holds it as `command`.
        attributes: the arguments of `click.Group`.
    """

    def __init__(
        self, *, listed: Mapping[str, str] | None = None, modules: Mapping[str, str] | None = None, **attributes: Any
    ) -> None:
        super().__init__(**attributes)
        self.places: dict[str, tuple[str, str]] = {}
        for name, text in (listed or {}).items():
            self.add_lazy(name, text, (modules or {}).get(name, ""))

    def add_lazy(self, name: str, text: str, module: str = "") -> None:
        """List a command that lies in a module of `bench.cli`, by its name; without one in its own, as `command`."""
        self.add_command(click.Command(name, short_help=text))
        self.places[name] = (module, name.replace("-", "_")) if module else (name, "command")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command, if it lies in another, and return it; None for a name that is not listed."""
        if cmd_name not in self.places:
            return super().get_command(ctx, cmd_name)
        module, attribute = self.places[cmd_name]
        command: click.Command = getattr(import_module(f"bench.cli.{module}"), attribute)
        return command


def examples(*lines: str) -> str:
    """Return the last lines of a help text, printed verbatim."""
    return "\b\n" + "\n".join(lines)


@click.group(
    cls=LazyGroup,
    listed=COMMANDS,
    modules=_MODULES,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "bench run --method bm25 --suite beir --task path/to/folder",
        'bench score --qrels FILE --run FILE --measures "nDCG@10 R@100"',
    ),
)
@click.version_option(package_name="retrieval-bench", prog_name="bench")
def bench() -> None:
    """Compare pretraining methods for dense retrieval under one protocol."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit.

    Args:
        arguments: what follows `bench` on the command line; by default that of this process.

    Exit status: 0 done, 2 a mistake that the user can fix, 1 a failure of ours or of the machine, 128 + N ended by
    signal N.
    """
    # Threads that wait by spinning take the cores from each other on a machine that is shared, and training crawls.
    # Must be set before anything loads OpenMP.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if platform.system() == "Windows":  # folders cannot be made durable there, nor children be bounded
        click.echo(f"bench: {_NOT_ON_WINDOWS}", err=True)
        sys.exit(2)
    if arguments is None:  # the process is the command's own
        keep_children_out_of_the_folder()
        if _wants_json(sys.argv):
            _keep_standard_output_for_the_result()
        with suppress(OSError, RuntimeError, ValueError):  # no stderr
            faulthandler.enable()  # a crash of the interpreter prints where it was, so that it names a plugin
    with _ended_by_signals():
        status = _status(current_names(sys.argv[1:] if arguments is None else arguments))
    sys.exit(status)


def current_names(arguments: Sequence[str]) -> list[str]:
    """Return a command line with earlier names under those of now, and `help COMMAND` as `COMMAND --help`."""
    command, *options = arguments or ("",)
    if command in ("help", "-h", "--help") and not any(option.startswith("-") for option in options):
        return [*current_names(options), "--help"]  # `bench help run`, `bench --help run`
    words = [*_RENAMED.get(command, (command,)), *options] if arguments else []
    renamed = []
    for word in words:
        option, equals, value = word.partition("=")
        renamed.append(f"{_RENAMED_OPTIONS.get(option, option)}{equals}{value}")
    return renamed


class _EndedBySignalError(KeyboardInterrupt):
    """A signal that asks this process to end."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command as an interrupt does, unless somebody has them ignored (`nohup`).

    A signal that came while a finalizer ran, where Python swallows what is raised, comes again shortly after.
    """

    def end(number: int, _: object) -> None:
        raise _EndedBySignalError(number)

    def resend(unraisable: "sys.UnraisableHookArgs") -> None:
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            before(unraisable)
            return
        number = getattr(unraisable.exc_value, "number", signal.SIGINT)
        threading.Timer(_RESEND_DELAY, os.kill, (os.getpid(), number)).start()

    before, sys.unraisablehook = sys.unraisablehook, resend
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            if signal.getsignal(number) == signal.SIG_DFL:
                handlers[number] = signal.signal(number, end)
    try:
        yield
    finally:
        sys.unraisablehook = before
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _status(arguments: list[str]) -> int:
    from bench.core.errors import BenchError
    from bench.core.installed import DENSE, without_dense
    from bench.core.machine import launch

    try:
        if launch().world == 1 or not arguments or arguments[0] not in _TRAINS:
            return _run_command(arguments)
        from bench.training.launched import worker_group

        with worker_group() as leads:
            return _run_command(arguments) if leads else 0
    except click.NoSuchOption as error:
        from bench.cli.instead import instead_of

        return _fail(arguments, "UsageError", instead_of(error, arguments), error.exit_code, error)
    except click.ClickException as error:
        return _fail(arguments, "UsageError", error.format_message(), error.exit_code, error)
    except BenchError as error:
        return _fail(arguments, type(error).__name__, str(error), error.exit_code, error)
    except (KeyboardInterrupt, click.exceptions.Abort) as error:
        causes = [cause for cause in (error, error.__cause__) if isinstance(cause, _EndedBySignalError)]
        end = causes[0] if causes else _EndedBySignalError(signal.SIGINT)
        ending = "interrupted" if end.number == signal.SIGINT else f"ended by {end}"
        with suppress(OSError):  # the terminal may be gone
            click.echo(f"bench: {ending}; finished stages are kept, type the same command to resume", err=True)
        return 128 + end.number
    except BrokenPipeError:
        # The reader went away (`bench list | head`): nothing is wrong, but Python must not flush into the closed pipe.
        _leave_stdout()
        return 0
    except Exception as error:  # the last line of defence: say whose fault it is
        if isinstance(error, OSError) and _is_of_output(error):
            _leave_stdout()
            from bench.core.files import explain

            click.echo(f"bench: cannot write to standard output: {explain(error)}; finished stages are kept", err=True)
            return 1
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            return _fail(arguments, "UsageError", "found a name longer than any file or folder may have", 2, error)
        if isinstance(error, ModuleNotFoundError) and error.name in DENSE:
            return _fail(arguments, "UsageError", str(without_dense(error.name)), 2, without_dense(error.name))
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}\nThis is a bug, ours or a plugin's; finished stages are kept."
        return _fail(arguments, type(error).__name__, text, 1, error)


def _is_of_output(error: OSError) -> bool:
    """Return whether an error came of printing: one without a file's name, from click or rich."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return error.filename is None and frames[-1].f_globals.get("__name__", "").partition(".")[0] in ("click", "rich")


def _leave_stdout() -> None:
    """Let nothing be written to standard output any more: Python flushes it once again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), result_stream().fileno())


def _run_command(arguments: list[str]) -> int:
    with _result_alone() if _wants_json(arguments) else nullcontext():
        # Click returns the status of `Exit` (from --help, or raised by a command) instead of raising it.
        status = bench.main(args=arguments, prog_name="bench", standalone_mode=False)
    return status if isinstance(status, int) else 0


def _wants_json(arguments: Sequence[str]) -> bool:
    return "--json" in arguments and not {"-h", "--help"}.intersection(arguments)


def result_stream() -> TextIO:
    """Return where the answer of a command goes; with `--json` nothing else gets there."""
    return _RESULT_STREAM.get() or sys.stdout


@contextmanager
def _result_alone() -> Iterator[None]:
    """Lead whatever else is printed, by a library, a plugin or a thread of theirs, to stderr."""
    token = _RESULT_STREAM.set(result_stream())
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _RESULT_STREAM.reset(token)


def _keep_standard_output_for_the_result() -> None:
    """Do the same to the end of this process, for C code and for processes that inherit standard output, too.

    C code may print into a buffer that is written when the process ends, and so may threads.
    """
    with suppress(AttributeError, OSError, ValueError):  # stdout or stderr is closed
        encoding, errors = sys.stdout.encoding, sys.stdout.errors
        copy = os.dup(1)
        os.dup2(2, 1)
        _RESULT_STREAM.set(open(copy, "w", encoding=encoding, errors=errors, closefd=False))  # noqa: SIM115 (for good)
        sys.stdout = sys.stderr


def _fail(arguments: list[str], kind: str, text: str, status: int, error: Exception) -> int:
    """Report a failure on stderr and, where `--json` was typed, as an object on stdout; return the status."""
    text = _shorten(text)
    usage = getattr(error, "ctx", None)
    if isinstance(error, click.UsageError) and usage is not None:
        click.echo(usage.get_usage(), err=True)
    click.echo(f"bench: {text}", err=True)
    if "--json" in arguments:
        import json

        values = ((name, getattr(error, name, None)) for name in _FIELDS)
        fields = {
            name: _shorten(value) if isinstance(value, str) else value
            for name, value in values
            if value not in (None, "")
        }
        failure = {"type": kind, "message": text, "exit_code": status, **fields}
        try:
            click.echo(json.dumps({"error": failure}, ensure_ascii=False), file=result_stream())
        except OSError:  # standard error has said what there is to say
            _leave_stdout()
    return status


def _shorten(text: str) -> str:
    """Return a text of at most 2 kB, and of no word more than 200 characters, whatever input it echoes.

    The middle is left out: the end has the hint, or how many more faults there are.
    """
    data = _LONG_WORD.sub(r"\1…", text).encode("utf-8", "replace")
    if len(data) <= _LONGEST:
        return data.decode()
    start, end = (part.decode("utf-8", "ignore") for part in (data[: _LONGEST - _END], data[-_END:]))
    return f"{start}… ({len(data) - _LONGEST:,} bytes left out) …{end}"


if __name__ == "__main__":
    main()
