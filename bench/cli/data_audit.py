"""`bench data audit`: what of a test occurs in training texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bench.cli import examples as example_lines
from bench.cli.options import all_of, data_dir_option, offline_option, requesting, store_option
from bench.cli.output import Reporter, json_option, notice, print_json, progress_options, table
from bench.config.request import Request
from bench.core.errors import ConfigError
from bench.data.contamination.index import AuditConfig

if TYPE_CHECKING:
    from bench.pipeline.audit import Prepared
    from bench.store.store import Artefact

_WAYS = {"equal": "as a whole", "contained": "whole, inside", "run": "in part", "alike": "much alike"}
_COLUMNS = ("queries", "gold passages", "answers")
_PLACES = ("where", "text", "said")


_rule_options = all_of(
    *(
        click.option(
            f"--{name}",
            type=field.annotation,
            default=field.default,
            show_default=True,
            help=f"{str(field.description)[:1].upper()}{str(field.description)[1:]}.",
        )
        for name, field in AuditConfig.model_fields.items()
    )
)
"""An option for every rule, as its config describes it."""


@click.command(
    name="audit",
    epilog=example_lines(
        "bench data audit --corpus mini --suite mrtydi",
        "bench data audit --corpus FOLDER --suite beir --task scifact --data official",
        "bench data audit --corpus pairs.jsonl --suite beir --task path/to/folder",
        "bench data audit --corpus path/to/folder:train --suite beir --task path/to/folder",
    ),
)
@click.option(
    "--corpus",
    required=True,
    metavar="ID",
    help="What is trained on: as `run --corpus`, or a file or folder of pairs (JSON lines or tab-separated, with "
    "`query`), or FOLDER:SPLIT of a folder in BEIR's layout.",
)
@click.option("--suite", "-s", "suites", required=True, metavar="NAMES", help="Suites, comma-separated.")
@click.option("--task", "tasks", metavar="NAMES", help="Tasks, comma-separated, or folders; default: the whole suite.")
@click.option("--data", metavar="NAME", help="official or mini (default).")
@offline_option
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="One setting: data.language=sw. Repeatable.")
@_rule_options
@click.option("--examples", type=click.IntRange(min=0), default=5, show_default=True, help="Examples shown per subset.")
@data_dir_option
@store_option
@progress_options
@json_option
@requesting
def audit(request: Request, examples: int, progress: Reporter, as_json: bool, **rules: Any) -> None:
    """Look for a test's questions, gold passages and answers in training texts.

    Only letters, marks and digits are compared. Exact: the same as a training sentence or document, or whole
    inside one. Near: a run of letters in common or, for questions, most of their grams in one training sentence. What
    was found is kept in the store, and results of systems trained on that corpus report it.
    """
    from bench.config.fields import LayerValue, build
    from bench.pipeline.audit import execute, prepare, sentence  # the pipeline is imported when it is needed
    from bench.pipeline.stages.audit import findings
    from bench.plugins import load
    from bench.store.store import Store

    config, errors = build(AuditConfig, [LayerValue(name, value, f"--{name}") for name, value in rules.items()])
    if errors:
        raise ConfigError("\n".join(errors))
    artefacts = Store(request.store, notice)
    ready = prepare(request, load(), artefacts, config)
    with progress(ready.steps(artefacts)) as lines:
        audits = execute(ready, artefacts, lines)
    if as_json:
        rows = [
            {
                "task": subset.task,
                "subset": subset.name or None,
                "audited": sentence(_counts(artefact)),
                **_counts(artefact),
                "training_texts": artefact.metadata["texts"],
                "key": subset.stage.key,
                "examples": findings(artefact.folder)[:examples],
            }
            for subset, artefact in zip(ready.subsets, audits, strict=True)
        ]
        print_json({"corpus": ready.training.name, "rules": config.model_dump(mode="json"), "subsets": rows})
    else:
        _print(ready, audits, examples)
    if config != AuditConfig():
        notice("results report audits by the default rules only; audit once without changing them")


def _counts(artefact: Artefact) -> dict[str, Mapping[str, int]]:
    from bench.pipeline.stages.audit import KINDS

    return {kind: artefact.metadata[kind] for kind in KINDS}


def _print(ready: Prepared, audits: Sequence[Artefact], most: int) -> None:
    """Print the counts of each subset, then up to `most` examples of each, and what was compared."""
    from bench.pipeline.stages.audit import findings

    names = [f"{subset.task} {subset.name}".strip() for subset in ready.subsets]
    rows = [
        (
            name,
            *(
                f"{count['exact']:,} + {count['near']:,} of {count['total']:,}" if count["total"] else "—"
                for count in _counts(artefact).values()
            ),
        )
        for name, artefact in zip(names, audits, strict=True)
    ]
    table("found, exact + near", ("task", *_COLUMNS), rows, numbers=_COLUMNS)
    for name, artefact in zip(names, audits, strict=True):
        cells = [
            (str(row["kind"]), str(row["id"]), _WAYS[str(row["how"])], *(str(row[key]) for key in _PLACES))
            for row in findings(artefact.folder)[:most]
        ]
        if cells:
            click.echo()
            table(name, ("of", "id", "found", "where", "the test says", "the training says"), cells)
    if short := sum(_counts(artefact)["answers"]["short"] for artefact in audits):
        click.echo(f"{short:,} answers of fewer than {ready.rules.contained} letters were not looked for")
    click.echo(f"{ready.training.name}: {audits[0].metadata['texts']:,} training texts compared")
