"""`bench run`: the main job."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import Any

import click

from bench.cli import examples
from bench.cli.options import plan_options
from bench.cli.output import Lines, duration, json_option, notice, percent, print_json, table
from bench.installed import faiss_conflict
from bench.pipeline import Outcome, plan, run
from bench.plugins import load
from bench.request import Request
from bench.store import Store


@click.command(
    name="run",
    epilog=examples(
        "bench run --method bm25 --suite beir --task path/to/folder",
        "bench run --method bm25 --suite beir --task scifact,nfcorpus --data official",
    ),
)
@plan_options
@json_option
def command(request: Request, as_json: bool) -> None:
    """Run methods on suites: whatever the store lacks of training, search and scoring."""
    conflict = faiss_conflict()
    if conflict:
        notice(conflict)
    plugins, store = load(), Store(request.store, notice)
    ready = plan(request, plugins, store)
    for sentence in ready.warnings:
        notice(sentence)
    if ready.seconds > 1 and sys.stderr.isatty():
        notice(f"about {duration(ready.seconds)} of work; `bench plan` says what")
    with Lines(ready.steps) as lines:
        outcome = run(request, plugins, store, lines, ready)
    for done in outcome.published:
        for sentence in done.notices:
            notice(sentence)
    if as_json:
        print_json(_json(outcome, lines.outcomes))
    else:
        _print(outcome, lines.outcomes)


def _json(outcome: Outcome, ran: list[dict[str, Any]]) -> dict[str, Any]:
    """The machine's view; `stages` tells of every stage that this run touched or found ready."""
    seen = {stage["key"]: stage for stage in ran}
    stages = [
        seen.get(step.node.key)
        or {
            "stage": step.node.recipe.stage,
            "title": step.node.recipe.title,
            "key": step.node.key,
            "state": "cached" if step.state == "cached" else "not needed",
            "seconds": 0.0,
        }
        for step in outcome.plan.steps
    ]
    refused = [
        {"system": cell.system, "suite": cell.suite, "setting": cell.setting, "reason": cell.reason}
        for cell in outcome.plan.refused
    ]
    return {
        "results": list(outcome.rows),
        "macro": list(outcome.macro),
        "not_applicable": refused,
        "stages": stages,
    }


def _print(outcome: Outcome, ran: list[dict[str, Any]]) -> None:
    """The person's view: a table a suite and setting, averages, what does not apply, where the files are."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in outcome.rows:
        groups[row["suite"], row["setting"], row["data"]].append(row)
    for (suite, setting, data), rows in groups.items():
        measures = list(dict.fromkeys(name for row in rows for name in row["measures"]))
        lines = [
            (
                row["system"],
                row["task"] + (f" {row['leg']}" if row["leg"] else ""),
                f"{row['queries']:,}",
                *(percent(row["measures"][name]) if name in row["measures"] else "—" for name in measures),
            )
            for row in rows
        ]
        means = [
            (
                average["system"],
                average["name"],
                "",
                *(percent(average["measures"][name]) if name in average["measures"] else "—" for name in measures),
            )
            for average in outcome.macro
            if (average["suite"], average["setting"], average["data"]) == (suite, setting, data)
        ]
        title = f"{suite} · {setting} · {data} data · percent"
        table(title, ("system", "task", "queries", *measures), [*lines, *means], numbers=("queries", *measures))
    for cell in outcome.plan.refused:
        click.echo(f"not applicable: {cell.system} on {cell.suite}: {cell.reason}")
    for done in outcome.published:
        click.echo(f"result: {done.path}")
    click.echo(_summary(outcome, ran))


def _summary(outcome: Outcome, ran: list[dict[str, Any]]) -> str:
    """One line on what was done and what was there already."""
    work = [stage for stage in ran if stage["state"] == "ran"]
    ready = len(outcome.plan.steps) - len(work)
    return f"{len(work)} stages run in {duration(sum(stage['seconds'] for stage in work))}, {ready} reused"
