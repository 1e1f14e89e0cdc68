"""`bench compare`: which of several systems is better, and whether the comparison is fair."""

from __future__ import annotations

from pathlib import Path

import click

from bench.cli import examples
from bench.cli.options import results_option
from bench.cli.output import duration, json_option, percent, print_json, table
from bench.comparison import Compared, compare
from bench.plugins import load
from bench.scoring.significance import chance_text, points
from bench.substitutes import marked
from bench.wording import canonical

_MEGA, _THOUSAND = 1e6, 1e3


@click.command(
    name="compare",
    epilog=examples(
        "bench compare bm25 crop crop@init --suite mrtydi",
        "bench compare crop results/mini/mrtydi/unsupervised/bm25-c04f5266/seed-0 --suite mrtydi --json",
    ),
)
@click.argument("systems", nargs=-1, required=True, metavar="SYSTEM SYSTEM...")
@click.option("--suite", required=True, metavar="NAME", help="The suite whose results are compared.")
@click.option("--data", metavar="NAME", help="Only results on official, mini or local data; default: all.")
@click.option("--setting", metavar="NAME", help="Only results in this setting; default: all.")
@click.option("--measure", metavar="NAME", help="Default: the suite's headline measure.")
@results_option
@json_option
def command(
    systems: tuple[str, ...],
    suite: str,
    data: str | None,
    setting: str | None,
    measure: str | None,
    results: Path,
    as_json: bool,
) -> None:
    """Test systems against each other on the results of a folder, with what each of them cost.

    A system is a label (`bench list results`), the name of its folder, or a path to its result file. Every pair is
    tested by a paired randomisation test over queries, within tasks, on means over the seeds that both have, corrected
    for the number of pairs (Holm). Differences in what the systems were given (budget, corpus, backbone, trials of
    tuning, seeds, precision, readout) are told as warnings.
    """
    plugin = load().suite(suite)
    found = compare(
        systems,
        results,
        plugin,
        data=canonical(data) if data else None,
        setting=canonical(setting) if setting else None,
        measure=measure,
    )
    if as_json:
        print_json({"comparisons": [one.as_json() for one in found]})
        return
    for one in found:
        _print(one)


def _print(found: Compared) -> None:
    """Values and costs, then the tests, then the doubts."""
    about = found.about
    names = list(dict.fromkeys(name for side in found.sides for name in side.costs()))
    rows = []
    for side in found.sides:
        costs = side.costs()
        numbers = (_cost(name, costs[name]) if name in costs else "—" for name in names)
        rows.append((side.label, ",".join(map(str, side.seeds)), percent(found.values[side.label]), *numbers))
    value = f"{found.measure}, {found.where}, percent"
    columns = ("system", "seeds", value, *(name.replace("_", " ") for name in names))
    title = f"{about['suite']} · {about['setting']} · {about['data']} data · {len(found.tasks)} tasks"
    table(marked(title, about["stands_for"]), columns, rows, numbers=columns[2:])
    tests = [
        (
            f"{test.first} − {test.second}",
            points(test.comparison.difference, sign=True),
            f"[{points(test.comparison.low)}, {points(test.comparison.high)}]",
            chance_text(test.comparison.p_randomisation),
            "—" if test.corrected is None else chance_text(test.corrected),
            f"{test.comparison.n:,}",
        )
        for test in found.tests
    ]
    click.echo()
    heads = ("pair", f"{found.measure} points", "95 %", "randomisation test", "Holm", "queries")
    table("", heads, tests, numbers=(heads[1], "queries"))
    for sentence in found.doubts:
        click.echo(f"warning: {sentence}")
    if not found.doubts:
        click.echo("no difference in what the systems were given")
    click.echo()


def _cost(name: str, value: float) -> str:
    """A cost as a person reads it."""
    if name.endswith("seconds"):
        return duration(value)
    if name == "flops":
        return f"{value:.3g}"
    if name.endswith("_bytes"):
        return f"{value / _MEGA:,.0f} MB"
    return f"{value:,.0f}" if value >= _THOUSAND or value.is_integer() else f"{value:.4g}"
