"""The help of commands with many options, under headings: what, from what, where it runs, and where to."""

import click

SECTIONS = {
    "What": ("method", "suite", "task", "regime", "seed", "preset", "config", "set", "label", "vary", "full"),
    "From what": ("data", "profile", "backbone", "corpus", "rerank", "readout", "data-dir", "offline"),
    "Where and how it runs": (
        *("store", "executor", "workers", "device", "devices", "processes", "shard-workers", "again", "stop-when"),
    ),
    "Output": ("results", "out", "save", "stages", "quiet", "log", "json", "help"),
}
"""Options by the heading under which they are; those of one command alone come first, without one of these."""


class SectionedCommand(click.Command):
    """A command whose help groups its options."""

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
