"""`bench compare`: which of several systems is better, how sure that is, and whether the comparison is fair."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from bench.cli import examples
from bench.cli.compare_formats import comparisons_csv, explained, latex, markdown, tables
from bench.cli.options import data_dir_option, results_option
from bench.cli.output import json_option, notice, print_json, print_table
from bench.core.errors import UsageError
from bench.core.messages import bare
from bench.core.publications import mark
from bench.evaluation.compare.comparison import Compared, CompareOptions, compare
from bench.evaluation.tables import percent, points, visible
from bench.plugins import load

_WIDTH = 160  # characters of a text that are shown


@click.command(
    name="compare",
    epilog=examples(
        "bench compare bm25 crop crop@init --suite mrtydi",
        "bench compare crop:english crop:unsupervised --suite mrtydi --per-task",
        "bench compare bm25 crop --suite mrtydi --queries 5",
        "bench compare bm25 crop --suite mrtydi --format latex",
        "bench compare crop results/mini/mrtydi/unsupervised/bm25-c04f5266/seed-0 --suite mrtydi --json",
    ),
)
@click.argument("systems", nargs=-1, required=True, metavar="SYSTEM SYSTEM...")
@click.option("--suite", required=True, metavar="NAME", help="The suite whose results are compared.")
@click.option("--data", metavar="NAME", help="Only results on official, mini or local data; default: all.")
@click.option("--regime", "setting", metavar="NAME", help="Only results in this regime; default: all.")
@click.option("--measure", metavar="NAME", help="Default: the suite's headline measure.")
@click.option(
    "--per-task", "by_task", is_flag=True, help="Test each task (language) by itself, too; --json always does."
)
@click.option(
    "--queries",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Show the N largest gains and losses of each pair, with their texts where the data are on this machine.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "markdown", "latex"]),
    default="table",
    show_default=True,
    help="How to print; csv holds the pairs and their tasks, fractions in full.",
)
@data_dir_option
@results_option
@json_option
def command(
    systems: tuple[str, ...],
    suite: str,
    by_task: bool,
    queries: int,
    form: str,
    results: Path,
    as_json: bool,
    **given: Any,
) -> None:
    """Test systems against each other on the results of a folder, with what each of them cost.

    A system is a label (`bench list results`), the name of its folder, or a path to its result file. LABEL:SETTING
    compares a system's settings: crop:english crop:unsupervised.

    Every pair is tested over questions, within tasks, and over training runs where both systems have three or more
    (else what is found holds for these checkpoints); p values are corrected for all pairs together. The tests give the
    ranks that are left open and the letters of systems that are tied.
    Differences in what the systems were given (budget, corpus, backbone, trials of tuning, seeds, precision, readout)
    are warnings; settings that differ are listed.
    """
    _check_options(form, queries, as_json=as_json)
    asked = CompareOptions(by_task=by_task or as_json or form == "csv", queries=queries, **given)
    found = compare(systems, results, load().suite(suite), asked)
    if as_json:
        print_json({"comparisons": [one.as_json() for one in found]})
    elif form == "table":
        for one in found:
            _print(one, by_task=by_task)
    else:
        _write(found, form, by_task=by_task)


def _check_options(form: str, queries: int, *, as_json: bool) -> None:
    """Raise `UsageError` for options that contradict each other."""
    if as_json and form != "table":
        raise UsageError(found=f"--json and --format {form}", expected="one of them")
    if queries and form != "table":
        raise UsageError(
            found=f"--queries with --format {form}", expected="a table or --json: texts are for this screen"
        )


def _write(found: Sequence[Compared], form: str, *, by_task: bool) -> None:
    """Print for another program: the text on stdout; what a reader must know, and it cannot hold, on stderr."""
    if form == "csv":
        for one in found:
            for sentence in filter(None, (mark(one.about["stands_for"]), *one.doubts)):
                notice(f"warning: {sentence}")
        click.echo(comparisons_csv(found), nl=False)
        return
    click.echo((markdown if form == "markdown" else latex)(found, by_task=by_task))


def _print(found: Compared, *, by_task: bool) -> None:
    """Print values and costs, then the tests, the differences and queries, then the doubts."""
    for one in tables(found, by_task=by_task):
        print_table(one)
        click.echo()
    _print_queries(found)
    for sentence in (*explained(found), *found.notes):
        click.echo(sentence)
    for sentence in found.doubts:
        click.echo(f"warning: {sentence}")
    if not found.doubts:
        click.echo("no difference in what the systems were given")
    click.echo()


def _print_queries(found: Compared) -> None:
    """Print the queries that differ most: the question, then the first passages by system, `*` the relevant ones."""
    for (first, second), own in groupby(found.extremes, key=lambda one: (one.first, one.second)):
        click.echo(f"largest gains and losses, {first} − {second}, {found.measure}, points")
        for one in own:
            language = f" [{one.language}]" if one.language else ""
            where = f"{bare(one.task)}{'/' + one.leg if one.leg else ''}"
            change = f"{percent(one.values[0])} against {percent(one.values[1])}"
            head = f"{points(one.difference, sign=True):>7}  {where} {one.query}{language}: {change}"
            click.echo(f"{head}  {_short(one.text)}".rstrip())
            for label, ranked in zip((first, second), one.passages, strict=True):
                click.echo(f"         {label}:{'' if ranked else ' nothing found, or its run is not in the bundle'}")
                for place, top in enumerate(ranked, 1):
                    mark_ = "*" if top.relevant else " "
                    click.echo(f"         {mark_} {place}. {top.id}  {_short(top.text)}".rstrip())
        click.echo()


def _short(text: str) -> str:
    """A text on one line, cut; what could steer a terminal is shown by its number."""
    flat = visible(" ".join(text.split()))
    return flat if len(flat) <= _WIDTH else f"{flat[:_WIDTH]}…"
