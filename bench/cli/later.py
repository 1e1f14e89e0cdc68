"""Commands whose names are taken but whose work is not in this release; they say so instead of pretending."""

from __future__ import annotations

import click

from bench.errors import UsageError


def later(name: str, purpose: str, meanwhile: str) -> click.Command:
    """Make a command that says that it is not in this release, whatever its arguments.

    Args:
        name: the command.
        purpose: what it will do.
        meanwhile: what to type today.
    """

    @click.command(
        name=name,
        help=f"{purpose} Not in this release. {meanwhile}",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
    def command() -> None:
        raise UsageError(f"`bench {name}` is not in this release. {purpose} {meanwhile}")

    return command
