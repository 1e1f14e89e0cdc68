"""`bench score`: score a TREC run file, from here or from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bench.cli import examples
from bench.cli.options import FILE, data_dir_option, store_option
from bench.cli.output import json_option, notice, print_json, print_table


@click.command(
    name="score",
    epilog=examples(
        'bench score --qrels qrels.txt --run run.trec --measures "nDCG@10 R@100 RR@100"',
        "bench score --suite beir --task scifact --data official --run run.trec",
    ),
)
@click.option(
    "--run",
    "run_file",
    type=FILE,
    required=True,
    help="TREC run file, plain or compressed; `candidates` for the official order of a task that gives them.",
)
@click.option("--qrels", type=FILE, help="Judgements: TREC qrels or a BEIR .tsv.")
@click.option("--measures", help='For instance "nDCG@10 R@100 RR@100"; with --suite the default is the task\'s own.')
@click.option("--tie", type=click.Choice(["trec", "list"]), help="Order of equal scores with --qrels; default trec.")
@click.option("--suite", "-s", metavar="NAME", help="Score against a task of a suite, under its protocol.")
@click.option("--task", metavar="NAME", help="The task, or a folder.")
@click.option("--subset", metavar="NAME", help="The subset, where the task has several.")
@click.option("--data", metavar="NAME", help="official or mini; default: the default profile's.")
@data_dir_option
@store_option
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="data.unknown_ids=keep and the like.")
@click.option("--per-query", is_flag=True, help="With --json: the values of every query too.")
@json_option
def command(run_file: Path, as_json: bool, per_query: bool, store: Path, **options: Any) -> None:
    """Score a run against a file of judgements, or against a task under its official protocol."""
    from bench.plugins import load
    from bench.store.store import Store
    from bench.studies.external import score_run

    scores = score_run(run_file, load(), Store(store, notice), **options)
    notice(*scores.notices)
    if as_json:
        content: dict[str, Any] = {"measures": dict(scores.means), "queries": scores.queries}
        content |= {"official": dict(scores.official)} if scores.official else {}
        content |= {"per_query": {query: dict(row) for query, row in scores.per_query.items()}} if per_query else {}
        print_json(content | ({"notices": list(scores.notices)} if scores.notices else {}))
    else:
        print_table(scores.table())
