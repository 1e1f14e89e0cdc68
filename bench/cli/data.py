"""`bench data`: official files. Each command lies in a module of its own, imported when it is typed."""

from __future__ import annotations

from importlib import import_module

import click

from bench.cli import examples

COMMANDS = {
    "list": "Say which official files a suite needs, and what of them is here.",
    "fetch": "Fetch a suite's official files; size and licence are shown before.",
    "check": "Hold checksums and counts of a suite's files against what was published.",
    "audit": "Look for a suite's questions, passages and answers in training text.",
}


class _Commands(click.Group):
    """The commands by name, so that `bench data --help` imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The order of use."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(f"bench.cli.data_{cmd_name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with near names for an unknown command."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from bench.wording import unknown

            ctx.fail(unknown("command of `bench data`", args[0], COMMANDS))
        return super().resolve_command(ctx, args)


@click.command(
    name="data",
    cls=_Commands,
    epilog=examples(
        "bench data list", "bench data fetch beir --task scifact,nfcorpus", "bench data check tatoeba --data-dir FOLDER"
    ),
)
def command() -> None:
    """List, fetch and check official data.

    A suite's files lie in SUITE/ under the folder of data (--data-dir, BENCH_DATA) or, where that holds no such
    folder, under the download cache (BENCH_CACHE, else the platform's place for caches).
    """
