"""The command `bench`: parse, call, print. Each command lives in a module of its own, imported when it is typed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

COMMANDS = {
    "run": "Run methods on suites: whatever the store lacks of training, search and scoring.",
    "plan": "Say what `run` would do: what is cached, what would run, how long it takes.",
    "list": "List methods, suites, tasks, measures, profiles, plugins, results.",
    "show": "Show a method, suite, task, profile or result file in full.",
    "score": "Score a TREC run file, from here or from elsewhere.",
    "compare": "Test which of several systems is better, and whether the comparison is fair.",
    "sweep": "Choose settings on dev questions, as many trials for every method.",
    "shots": "Tune on more and more training pairs and draw the curve.",
    "ablate": "Run the papers' ablation tables and hold their direction against ours.",
    "reproduce": "Make a row again from its result file; say OK, close or differs.",
    "leaderboard": "Build a static site from results.",
    "data": "List, fetch, check and audit official data.",
    "check": "Try what a method or suite promises, yours or ours.",
    "new": "Begin a plugin of your own.",
    "export": "Write an encoder for transformers and sentence-transformers, with a model card.",
    "doctor": "Examine this machine: versions, devices, plugins, data, store.",
    "gc": "Remove what no result rests on from the store.",
    "verify": "Re-hash the store and the results; name what is damaged.",
    "completion": "Print the script that completes `bench` in bash, zsh or fish.",
}


class LazyGroup(click.Group):
    """Commands by name, imported when called, so that `bench --help` imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The order of `COMMANDS`, which is the order of use."""
        return [*COMMANDS]  # not list(…): that name is the module of `bench list` once somebody has imported it

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return its `command`."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"bench.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with near names for an unknown command."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from bench.wording import did_you_mean

            ctx.fail(f"no command {name!r}{did_you_mean(name, COMMANDS)} `bench --help` lists them.")
        return super().resolve_command(ctx, args)


def examples(*lines: str) -> str:
    """The last lines of a help text, printed as they stand."""
    return "\b\n" + "\n".join(lines)


@click.group(
    cls=LazyGroup,
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
    """Run a command and exit: 0 done, 2 the user can mend it, 1 a failure of ours or of the machine."""
    # Threads that wait by spinning take the cores from each other on a machine that is shared, and training crawls.
    # Must be said before anything loads OpenMP.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    given = [*(sys.argv[1:] if arguments is None else arguments)]
    sys.exit(_status(given))


def _status(arguments: list[str]) -> int:
    """Run a command; turn every failure into a sentence and a status."""
    from bench.errors import BenchError

    try:
        # Click returns the status of `Exit` (from --help, or raised by a command) instead of raising it.
        status = bench.main(args=arguments, prog_name="bench", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        return _fail(arguments, "UsageError", error.format_message(), error.exit_code, error)
    except BenchError as error:
        return _fail(arguments, type(error).__name__, str(error), error.exit_code, error)
    except (KeyboardInterrupt, click.exceptions.Abort):
        click.echo("bench: interrupted; finished stages are kept, type the same command to go on", err=True)
        return 130
    except BrokenPipeError:
        # The reader went away (`bench list | head`): nothing is wrong, but Python must not flush into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # the last line of defence: whatever it is, say whose fault it is
        import traceback

        traceback.print_exc()
        text = f"{type(error).__name__}: {error}\nThis is a bug, ours or a plugin's; finished stages are kept."
        return _fail(arguments, type(error).__name__, text, 1, error)


def _fail(arguments: list[str], kind: str, text: str, status: int, error: Exception) -> int:
    """Tell a person on stderr and, where `--json` was typed, a machine on stdout."""
    usage = getattr(error, "ctx", None)
    if isinstance(error, click.UsageError) and usage is not None:
        click.echo(usage.get_usage(), err=True)
    click.echo(f"bench: {text}", err=True)
    if "--json" in arguments:
        import json

        click.echo(json.dumps({"error": {"type": kind, "message": text, "exit_code": status}}, ensure_ascii=False))
    return status


if __name__ == "__main__":
    main()
