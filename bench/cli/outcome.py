"""What a person sees of a finished run: tables, tests, what does not apply, where the files are."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import click

from bench.cli.output import print_table, stage_count
from bench.core.messages import bare
from bench.core.publications import corpus_note, tabled, tokens_note
from bench.evaluation.compare.conclusions import Conclusion, Group
from bench.evaluation.compare.lineage import equal_starts
from bench.evaluation.results import Result
from bench.evaluation.results.marks import COLLAPSED, collapsed, stopped
from bench.evaluation.results.scores import laid_out
from bench.evaluation.tables import Column, Table, duration, points
from bench.pipeline.run import Outcome
from bench.studies.ablation import Ablation

_TESTS = 5
"""Tests of a group that are printed."""
_POOLED = {
    "mean": "the mean",
    "cls": "the first token",
    "pooler": "the pooler",
    "mean-but-first": "the mean but first",
    "last": "the last token",
}

Row = Mapping[str, Any]


def print_outcome(
    outcome: Outcome, ran: Sequence[Row], conclusions: Mapping[Group, Conclusion], grids: Sequence[Ablation]
) -> None:
    """Print a run: a table a suite, regime and data, and what it shows; then the grids and where the files are."""
    suites = {cell.suite.name: cell.suite for cell in outcome.plan.cells}
    contents = [result.content for result in outcome.published]
    for group, (rows, averages) in outcome.groups().items():
        suite, regime, data = group
        tasks = {row["task"] for row in rows}
        subsets = [
            subset
            for content in contents
            for task in tasks & content["tasks"].keys()
            for subset in content["tasks"][task].values()
        ]  # R@Nkt may have been counted in other than the official tokens, and passages may be anybody's
        notes = [tokens_note(subset["measures"], subset["libraries"]) for subset in subsets]
        notes += [corpus_note(subset["metadata"]) for subset in subsets]
        notes += [part for subset in subsets for part in subset.get("measures_by", "").split("; ")]
        note = " · ".join(filter(None, dict.fromkeys(notes)))
        title = tabled(suite, regime, data=data, proxy_for=suites[suite].proxy_for, note=note)
        hidden = _equal_starts(outcome, group)
        distinct = ([row for row in part if row["hash"] not in hidden] for part in (rows, averages))
        print_table(laid_out(title, suites[suite].primary, *distinct))
        of_group = [
            content for content in contents if (content["suite"]["name"], content["regime"], content["data"]) == group
        ]
        before = max((len(content["tasks"]) for content in of_group), default=0) - len(tasks)
        if averages and before > 0:
            click.echo(f"averages are over {before} more {'tasks' if before > 1 else 'task'}, which were run before")
        for sentence in (*readouts(of_group), *collapses(of_group)):
            click.echo(sentence)
        if group in conclusions:
            _print_conclusion(conclusions[group])
    for grid in grids:
        print_table(grid.table())
    for cell in outcome.plan.refused:
        click.echo(f"not applicable: {cell.system} on {cell.suite}: {cell.reason}")
    for failure in outcome.failed:
        click.echo(f"failed: {failure.cell.system.label} (seed {failure.cell.seed}): {failure.reason}")
    for result in outcome.published:
        click.echo(f"result: {result.path}")
    for sentence in audited(outcome):
        click.echo(sentence)
    work = [stage for stage in ran if stage["state"] == "ran"]
    ready = len(outcome.plan.steps) - len(work)
    click.echo(f"{stage_count(len(work))} run in {duration(sum(stage['seconds'] for stage in work))}, {ready} reused")


def readouts(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return how systems' texts became vectors, a line a readout; nothing where all are read alike, none by a guess."""
    labels_of: dict[str, list[str]] = {}
    for content in results:
        for subset in (subset for subsets in content["tasks"].values() for subset in subsets.values()):
            read = subset.get("resolved") or {}
            if "pooling" in read:
                words = f"{_POOLED[read['pooling']]}, {'dot product' if read['similarity'] == 'dot' else 'cosine'}"
                words += f" (our guess: {read['guess']})" if "guess" in read else ""
                labels = labels_of.setdefault(words, [])
                labels += [content["system"]["label"]] * (content["system"]["label"] not in labels)
    telling = len(labels_of) > 1 or any("(our guess: " in words for words in labels_of)
    return [f"read by {words}: {', '.join(labels)}" for words, labels in labels_of.items()] if telling else []


def collapses(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each system whose vectors are one for different texts, or whose training was stopped."""
    tasks_of: dict[str, dict[str, None]] = {}
    for content in results:
        if tasks := collapsed(content):
            tasks_of.setdefault(content["system"]["label"], {}).update(dict.fromkeys(tasks))
    return [
        f"{COLLAPSED}: {label} has one vector for different texts of {', '.join(tasks)}; its order is that of ids, and "
        "it has no rank"
        for label, tasks in tasks_of.items()
    ] + [
        f"{content['system']['label']}, seed {content['seed']}: {place} of its budget, for {why}"
        for content in results
        for place, why in stopped(content).items()
    ]


def audited(outcome: Outcome) -> list[str]:
    """Return how much of the tests each training text holds, or that nobody has looked, but for the embedded world."""
    badges_of: dict[tuple[str, str], dict[tuple[str, str], Row]] = defaultdict(dict)
    for result in outcome.published:
        for task, subsets in result.content["tasks"].items():
            for name, subset in subsets.items():
                for badge in subset.get("audits", ()):
                    if badge["audited"] or bare(task) == task:
                        badges_of[badge["corpus"], result.content["suite"]["name"]][task, name] = badge
    sentences = []
    for (corpus, suite), by_subset in badges_of.items():
        badges = list(by_subset.values())
        if any(badge["audited"] is None for badge in badges):
            sentences.append(f"not audited: {corpus} against {suite} (bench data audit --corpus … --suite {suite})")
            continue
        counts = {
            noun: tuple(sum(badge[kind][part] for badge in badges) for part in ("exact", "near", "total"))
            for kind, noun in (("queries", "questions"), ("passages", "gold passages"))
        }
        shares = ", ".join(f"{exact + near:,} of {of:,} {noun}" for noun, (exact, near, of) in counts.items())
        sentences.append(f"audited: {corpus} holds {shares} of {suite}")
    return sentences


def _equal_starts(outcome: Outcome, group: Group) -> set[str]:
    """Return the hashes of starts that are another one of a group under another name."""
    systems: dict[str, list[Result]] = defaultdict(list)
    for published in outcome.published:
        content = published.result.content
        if (content.suite.name, content.regime, content.data) == group:
            systems[content.system.hash].append(published.result)
    return {*equal_starts(systems)}


def _print_conclusion(conclusion: Conclusion) -> None:
    """Print at most eight lines: gains, or pairs where nothing was trained; what they decide, and what to type next."""
    tests, difference = conclusion.tests, attrgetter("comparison.difference")
    names = [Column("system", value=lambda test: test.first), Column("start", value=lambda test: test.second)]
    columns = (
        *(names if conclusion.gains else [Column("pair", value=lambda test: test.pair)]),
        Column("difference", f"{tests[0].measure} points", True, partial(points, sign=True), value=difference),
        Column("interval", "95 %", value=conclusion.interval),
        Column("seeds", number=True, value=lambda test: conclusion.fewest(test) or 1),
        Column("p", "p, corrected", value=conclusion.chance),
    )
    print_table(Table.from_items("", columns, tests[:_TESTS]))
    more = [f"{len(tests) - _TESTS} more: bench compare"] if len(tests) > _TESTS else []
    for sentence in (*conclusion.sentences(), *more):
        click.echo(sentence)
