"""The help of commands with many options, under headings: what, from what, where it runs, and where to."""

import click

from bench.core.errors import UsageError
from bench.core.messages import short

SECTIONS = {
    "What": ("method", "suite", "task", "regime", "seed", "preset", "config", "set", "label", "vary", "full"),
    "From what": ("data", "profile", "backbone", "corpus", "rerank", "readout", "data-dir", "offline"),
    "Where and how it runs": (
        *("store", "executor", "workers", "device", "devices", "processes", "shard-workers", "again", "stop-when"),
    ),
    "Output": ("results", "out", "save", "stages", "quiet", "log", "json", "help"),
}
"""Options by the heading under which they are; those of one command alone come first, without one of these."""


def no_file(command: str, word: str) -> UsageError:
    """Return the error for a word that a command takes for neither a file nor a method."""
    if word.endswith(".toml"):
        expected, hint = f"options alone: bench {command} takes no file", f"bench {command} --help"
    else:
        expected, hint = "options alone", f"--method {short(word)} for a method"
    return UsageError(found=short(word), expected=expected, hint=hint)


class SectionedCommand(click.Command):
    """A command whose help groups its options, and that says what to type for a word that it does not take."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what was typed. Raises `UsageError` for a word that is neither an option nor an argument."""
        ctx.allow_extra_args = True
        extra = super().parse_args(ctx, args)
        if ctx.resilient_parsing:  # a shell asks how a word may end
            return extra
        if extra and any(isinstance(parameter, click.Argument) for parameter in self.params):
            hint = "several methods have commas between them"
            raise UsageError(found=short(extra[0]), expected="one word besides options", hint=hint)
        if extra:
            raise no_file(str(ctx.info_name), extra[0])
        return extra

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings, in their order of the command."""
        heading_of = {f"--{name}": heading for heading, names in SECTIONS.items() for name in names}
        by_heading: dict[str, list[tuple[str, str]]] = {"Options": [], **{heading: [] for heading in SECTIONS}}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                headings = (heading_of[option] for option in parameter.opts if option in heading_of)
                by_heading[next(headings, "Options")].append(record)
        for heading, records in by_heading.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
