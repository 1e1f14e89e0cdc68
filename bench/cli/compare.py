"""`bench compare`: which of several systems is better, how sure that is, and whether the comparison is fair."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli import examples
from bench.cli.options import data_dir_option, result_seeds_option, results_option
from bench.cli.output import json_option, notice, print_json, print_table, print_text
from bench.cli.run_file import SUFFIX, read_run_file
from bench.core.errors import UsageError
from bench.core.messages import bare, visible
from bench.core.publications import mark
from bench.evaluation.tables import as_latex, as_markdown, percent, points

if TYPE_CHECKING:
    from bench.evaluation.compare.comparison import Compared
    from bench.evaluation.compare.contrasts import Registered

_WIDTH = 160  # characters of a text that are shown


@click.command(
    name="compare",
    epilog=examples(
        "bench compare bm25 crop crop@init --suite mrtydi",
        "bench compare crop:english crop:unsupervised --suite mrtydi --per-task",
        "bench compare bm25 crop --suite mrtydi --queries 5",
        "bench compare bm25 crop --suite mrtydi --format latex",
        "bench compare crop results/mini/mrtydi/unsupervised/bm25-c04f5266/seed-0 --suite mrtydi --json",
        "bench compare --contrasts registered.toml",
        "bench compare crop crop@init ict ict@init --suite mrtydi --next",
        "bench compare experiment.toml",
    ),
)
@click.argument("systems", nargs=-1, metavar="SYSTEM SYSTEM...")
@click.option(
    "--suite",
    "-s",
    metavar="NAME",
    help="The suite whose results are compared; default: the only one on which all systems have some.",
)
@click.option(
    "--contrasts",
    "contrasts_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Compare the contrasts that a TOML file registers, instead of systems and a suite.",
)
@click.option("--data", metavar="NAME", help="Only results on official, mini or local data; default: all.")
@click.option("--regime", "regime", metavar="NAME", help="Only results in this regime; default: all.")
@result_seeds_option
@click.option("--measure", metavar="NAME", help="Default: the suite's headline measure.")
@click.option(
    "--per-task", "by_task", is_flag=True, help="Also test each task (language) separately; --json always does."
)
@click.option("--pairs", is_flag=True, help="List all pairs, with every statistic of pairs and gains.")
@click.option("--costs", is_flag=True, help="Show what training cost, and the settings that differ.")
@click.option(
    "--next",
    "next_purchase",
    is_flag=True,
    help="Say what would settle the undecided differences: seeds, tasks or questions, with the time that they take.",
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
    suite: str | None,
    contrasts_path: Path | None,
    by_task: bool,
    pairs: bool,
    costs: bool,
    queries: int,
    next_purchase: bool,
    form: str,
    results: Path,
    as_json: bool,
    **selection: Any,
) -> None:
    """Test systems against each other on the results of a folder, with what each of them cost.

    A system is a label (`bench list results`), the name of its folder, or a path to its result file. LABEL:REGIME
    compares a system's regimes: crop:english crop:unsupervised.

    Gains over a system's own start, and pairs of systems, are tested over questions, within tasks, and over training
    runs where both systems have three or more (otherwise the outcome is about these checkpoints only). p values are
    corrected for all gains together, and for all pairs together. The tests also give intervals of ranks, and letters
    that mark tied systems. Warnings name differences in budget, corpus, backbone, trials of tuning, seeds, precision
    and readout.

    A file of contrasts names the differences that a study is about before anybody has seen results; only these are
    tested, and corrected over all its suites: [[contrast]] tables with first, second, suites = ["NAME", ...] and name.

    With FILE.toml of `bench run` instead of systems, the rows that it makes are compared, on each of its suites.
    """
    from bench.evaluation.compare.comparison import CompareOptions, common_suite, compare
    from bench.evaluation.compare.contrasts import compare_contrasts
    from bench.plugins import load
    from bench.store.store import Store
    from bench.studies.made_rows import compare_made

    if as_json and form != "table":
        raise UsageError(found=f"--json and --format {form}", expected="one of them")
    if queries and form != "table":
        raise UsageError(
            found=f"--queries with --format {form}", expected="a table or --json: texts are for this screen"
        )
    if next_purchase and form == "csv":
        raise UsageError(found="--next with --format csv", expected="a table, markdown, latex or --json")
    if contrasts_path is not None:
        refused = {
            "systems": systems,
            "--suite": suite,
            "--measure": selection["measure"],
            "--seed": selection["seeds"],
            "--per-task": by_task,
            "--pairs": pairs,
            "--costs": costs,
            "--queries": queries,
            "--next": next_purchase,
        }
        if typed := next((name for name, value in refused.items() if value), None):
            raise UsageError(
                found=f"{typed} next to --contrasts",
                expected="the file alone: it says which systems are compared on which suites, by their headlines",
            )
        kinds = {name: selection[name] for name in ("data", "regime")}
        _print_contrasts(compare_contrasts(contrasts_path, results, load().suite, **kinds), form, as_json)
        return
    options = CompareOptions(
        by_task=by_task or as_json or form == "csv", queries=queries, next=next_purchase, **selection
    )
    run_file = next((name for name in systems if name.endswith(SUFFIX)), None)
    if run_file is None:
        comparisons = compare(systems, results, load().suite(suite or common_suite(systems, results)), options)
    else:
        refused = {"another system": systems[1:], "--suite": suite, "--data": options.data}
        refused |= {"--regime": options.regime, "--seed": options.seeds}
        if typed := next((name for name, value in refused.items() if value), None):
            raise UsageError(
                where=run_file,
                found=f"{typed} next to it",
                expected="the file alone: it says which systems are compared on what",
            )
        request = read_run_file(Path(run_file)).request(click.get_current_context())
        comparisons = compare_made(request, load(), Store(request.store, notice), options)
    _print_comparisons(comparisons, form, as_json, by_task=by_task, pairs=pairs, costs=costs)


def _print_comparisons(comparisons: Sequence[Compared], form: str, as_json: bool, **shown: bool) -> None:
    """Print comparisons in a form of `--format`, or as JSON; `shown` as `compare_formats.tables` takes it."""
    from bench.cli.compare_formats import brief, comparisons_csv, explained, latex, markdown, tables

    if as_json:
        print_json({"comparisons": [compared.as_json() for compared in comparisons]})
    elif form == "table":
        for compared in comparisons:
            laid_out = tables(compared, **shown)
            for table in laid_out:
                print_table(table)
                click.echo()
            _print_queries(compared)
            warnings = [f"warning: {sentence}" for sentence in compared.warnings]
            warnings = warnings or ["no difference in what the systems were given"]
            about = explained(compared) if shown["pairs"] else brief(compared, laid_out)
            for sentence in (*about, *compared.notes, *warnings):
                print_text(sentence)
    elif form == "csv":
        for compared in comparisons:  # what a reader must know, and CSV cannot hold
            for sentence in filter(None, (mark(compared.metadata["proxy_for"]), *compared.warnings)):
                notice(f"warning: {sentence}")
        click.echo(comparisons_csv(comparisons), nl=False)
    else:
        click.echo((markdown if form == "markdown" else latex)(comparisons, **shown))


def _print_contrasts(registered: Registered, form: str, as_json: bool) -> None:
    """Print registered contrasts in a form of `--format`, or as JSON."""
    from bench.cli.compare_formats import contrast_table, contrasts_csv

    if as_json:
        print_json(registered.as_json())
    elif form == "table":
        print_table(contrast_table(registered))
    elif form == "csv":
        for warning in registered.warnings:
            notice(f"warning: {warning}")
        click.echo(contrasts_csv(registered), nl=False)
    else:
        table = contrast_table(registered)
        click.echo(as_markdown(table, 2) if form == "markdown" else as_latex(table))


def _print_queries(compared: Compared) -> None:
    """Print the queries that differ most: the question, then the first passages by system, `*` the relevant ones."""
    for (first, second), queries in groupby(compared.query_differences, key=lambda query: (query.first, query.second)):
        click.echo(f"largest gains and losses, {first} − {second}, {compared.measure}, points")
        for query in queries:
            language = f" [{query.language}]" if query.language else ""
            task = f"{bare(query.task)}{'/' + query.subset if query.subset else ''}"
            change = f"{percent(query.values[0])} against {percent(query.values[1])}"
            head = f"{points(query.difference, sign=True):>7}  {task} {query.query}{language}: {change}"
            click.echo(f"{head}  {_short(query.text)}".rstrip())
            for label, passages in zip((first, second), query.passages, strict=True):
                click.echo(f"         {label}:{'' if passages else ' nothing found, or its run is not in the bundle'}")
                for rank, passage in enumerate(passages, 1):
                    star = "*" if passage.relevant else " "
                    click.echo(f"         {star} {rank}. {passage.id}  {_short(passage.text)}".rstrip())
        click.echo()


def _short(text: str) -> str:
    """Return a text on one line, cut to `_WIDTH`; what could steer a terminal is shown by its number."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…"
