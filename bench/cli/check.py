"""`bench check`: the conformance kit."""

import tempfile
from pathlib import Path
from typing import Any

import click

from bench.cli import examples
from bench.cli.options import data_dir_option
from bench.cli.output import json_option, print_json
from bench.config.request import split
from bench.evaluation.tables import duration
from bench.plugins import load
from bench.studies.conformance.checks import run
from bench.studies.conformance.kit import Verdict
from bench.types import DataRequest

_MARKS = {"kept": "✓", "broken": "✗", "not applicable": "–"}


@click.command(
    name="check",
    epilog=examples(
        "bench check crop",
        "bench check my-method --only resumes-exactly,odd-texts",
        "bench check mrtydi --data official",
    ),
)
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="A setting of a method. Repeatable.")
@click.option("--only", metavar="CHECKS", help="Some checks, comma-separated; default: all.")
@click.option(
    "--learn-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens of the training that is to learn; default 400,000. Some methods learn late.",
)
@click.option(
    "--data",
    type=click.Choice(["mini", "official"]),
    default="mini",
    show_default=True,
    help="What a suite is tried on; of official data the tasks whose files are on this machine.",
)
@data_dir_option
@json_option
def command(
    names: tuple[str, ...], only: str | None, data: str, data_dir: Path | None, as_json: bool, **given: Any
) -> None:
    """Try what a method or suite promises, on a planted corpus or mini data. Exit status 1 if a promise is broken."""
    plugins, asked = load(), DataRequest(data, data_dir, offline=True)
    verdicts_of: dict[str, list[Verdict]] = {}
    for name in dict.fromkeys(names):
        verdicts_of[name] = []
        if not as_json and len(names) > 1:
            click.echo(name)
        with tempfile.TemporaryDirectory(prefix="bench-check-") as folder:
            for verdict in run(name, Path(folder), only=split(only), plugins=plugins, data=asked, **given):
                verdicts_of[name].append(verdict)
                if not as_json:
                    _print_verdict(verdict)
    broken = sum(verdict.state == "broken" for verdicts in verdicts_of.values() for verdict in verdicts)
    if as_json:
        print_json(
            {"checks": {name: list(map(_row, verdicts)) for name, verdicts in verdicts_of.items()}, "broken": broken}
        )
    else:
        every = [verdict for verdicts in verdicts_of.values() for verdict in verdicts]
        kept = sum(verdict.state == "kept" for verdict in every)
        seconds = duration(sum(verdict.seconds for verdict in every))
        click.echo(f"{kept} of {kept + broken} promises kept, {seconds}")
    if broken:
        raise click.exceptions.Exit(1)


def _print_verdict(verdict: Verdict) -> None:
    check = verdict.check
    click.echo(f"{_MARKS[verdict.state]} {check.name}: {check.promise}")
    if verdict.reason:
        click.echo(f"    {verdict.reason}")
    if verdict.state == "broken":
        click.echo(f"    what to do: {verdict.remedy}")


def _row(verdict: Verdict) -> dict[str, Any]:
    check = verdict.check
    return {
        "name": check.name,
        "promise": check.promise,
        "state": verdict.state,
        "reason": verdict.reason,
        "remedy": verdict.remedy,
        "seconds": round(verdict.seconds, 3),
    }
