"""What a person sees of a finished run: tables, tests, what does not apply, where the files are."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import click

from bench.cli.output import print_table
from bench.core.messages import bare
from bench.core.publications import tabled, tokens_note
from bench.evaluation.compare.paired_tests import PairedTest
from bench.evaluation.results.scores import laid_out
from bench.evaluation.significance.families import summary
from bench.evaluation.tables import duration
from bench.pipeline.run import Outcome
from bench.studies.ablation import Ablation

_MAX_TESTS = 6  # tests between trained systems that are all printed: those of four
_START = "@init"
_POOLED = {"mean": "the mean", "cls": "the first token", "pooler": "the pooler", "mean-but-first": "the mean but first"}

Row = Mapping[str, Any]


def print_outcome(outcome: Outcome, ran: Sequence[Row], tests: Sequence[PairedTest], grids: Sequence[Ablation]) -> None:
    """Print a run: one table a suite, regime and data; then the grids, the tests and where the files are."""
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
        ]  # R@Nkt may have been counted in other than the official tokens
        note = next(filter(None, (tokens_note(subset["measures"], subset["libraries"]) for subset in subsets)), "")
        title = tabled(suite, regime, data=data, proxy_for=suites[suite].proxy_for, note=note)
        print_table(laid_out(title, suites[suite].primary, rows, averages))
        of_group = [
            content for content in contents if (content["suite"]["name"], content["regime"], content["data"]) == group
        ]
        before = max((len(content["tasks"]) for content in of_group), default=0) - len(tasks)
        if averages and before > 0:
            click.echo(f"averages are over {before} more {'tasks' if before > 1 else 'task'}, which were run before")
        for sentence in readouts(of_group):
            click.echo(sentence)
    for grid in grids:
        print_table(grid.table())
    shown = informative_pairs(tests)
    seeds = {contrast.metadata["seed"] for contrast in shown}
    for contrast in shown:
        of = f" (seed {contrast.metadata['seed']})" if len(seeds) > 1 else ""
        click.echo(summary(contrast.first, contrast.second, contrast.measure, contrast.comparison) + of)
    more = len(tests) - len(shown)
    if more:
        click.echo(f"{more} further pair{'s' if more > 1 else ''}: --json has all, `bench compare` tests what you name")
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
    click.echo(f"{len(work)} stages run in {duration(sum(stage['seconds'] for stage in work))}, {ready} reused")


def readouts(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return how the systems' texts became vectors, a line a readout; nothing where all are read alike."""
    labels_of: dict[str, list[str]] = {}
    for content in results:
        for subset in (subset for subsets in content["tasks"].values() for subset in subsets.values()):
            read = subset.get("resolved") or {}
            if "pooling" in read:
                words = f"{_POOLED[read['pooling']]}, {'dot product' if read['similarity'] == 'dot' else 'cosine'}"
                labels = labels_of.setdefault(words, [])
                labels += [content["system"]["label"]] * (content["system"]["label"] not in labels)
    return (
        [f"read by {words}: {', '.join(labels)}" for words, labels in labels_of.items()] if len(labels_of) > 1 else []
    )


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


def informative_pairs(tests: Sequence[PairedTest]) -> list[PairedTest]:
    """Choose what to print of the tests of a run: a few pairs as they are, of many those that say most.

    An untrained start is compared with its own method alone. Beyond that, where more than so many pairs are left in a
    group (suite, regime, data, seed), the best system is compared with each other one.
    """
    groups: dict[str, list[PairedTest]] = defaultdict(list)
    for contrast in tests:
        groups[repr(sorted(contrast.metadata.items()))].append(contrast)
    selection = []
    for group in groups.values():
        starts = [test for test in group if _START in test.first + test.second]
        own_starts = [
            test for test in starts if _method(test.first) == _method(test.second) or len({*_labels(group)}) <= 2
        ]
        trained = [test for test in group if test not in starts]
        if len(trained) > _MAX_TESTS:
            wins = {label: sum(test.first == label for test in trained) for label in _labels(trained)}
            best = max(wins, key=lambda label: wins[label])
            trained = [test for test in trained if best in (test.first, test.second)]
        selection += [test for test in group if test in own_starts or test in trained]
    return selection


def _method(label: str) -> str:
    return label.partition("@")[0]


def _labels(group: Sequence[PairedTest]) -> list[str]:
    return list(dict.fromkeys(label for test in group for label in (test.first, test.second)))
