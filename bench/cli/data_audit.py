"""`bench data audit`: what of a test occurs in training texts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from bench.cli import examples as example_lines
from bench.cli.options import data_dir_option, offline_option, requesting, store_option
from bench.cli.output import Lines, json_option, notice, print_json, table
from bench.config.fields import LayerValue, build
from bench.config.request import Request
from bench.core.errors import ConfigError
from bench.data.contamination.index import AuditConfig
from bench.pipeline.audit import Audited, Prepared, carry_out, prepare, sentence
from bench.pipeline.stages.audit import KINDS, findings
from bench.plugins import load
from bench.store.store import Store

_WAYS = {"equal": "as a whole", "contained": "whole, inside", "run": "in part", "alike": "much alike"}
_COLUMNS = ("queries", "gold passages", "answers")


def _rule_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command an option for every rule, as its config describes it."""
    for name, field in reversed(AuditConfig.model_fields.items()):
        description = str(field.description)
        parameters: dict[str, Any] = {"type": field.annotation, "default": field.default, "show_default": True}
        command = click.option(f"--{name}", help=f"{description[:1].upper()}{description[1:]}.", **parameters)(command)
    return command


@click.command(
    name="audit",
    short_help="Look for a suite's questions, passages and answers in training text.",
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
@click.option("--suite", "suites", required=True, metavar="NAMES", help="Suites, comma-separated.")
@click.option("--task", "tasks", metavar="NAMES", help="Tasks, comma-separated, or folders; default: the whole suite.")
@click.option("--data", metavar="NAME", help="official or mini (default).")
@offline_option
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="One setting: data.language=sw. Repeatable.")
@_rule_options
@click.option("--examples", type=click.IntRange(min=0), default=5, show_default=True, help="Examples shown per leg.")
@data_dir_option
@store_option
@json_option
@requesting
def audit(request: Request, examples: int, as_json: bool, **rules: Any) -> None:
    """Look for a test's questions, gold passages and answers in training texts.

    Texts are compared by letters, marks and digits alone. Exact: the same as a training sentence or document, or whole
    inside one. Near: a run of letters in common or, for questions, most of their grams in one training sentence. What
    was found is kept in the store, and results of systems trained on that corpus report it.
    """
    artefacts, chosen_rules = Store(request.store, notice), _rules(rules)
    ready = prepare(request, load(), artefacts, chosen_rules)
    with Lines(ready.steps(artefacts)) as lines:
        legs = carry_out(ready, artefacts, lines)
    if as_json:
        print_json(_json(ready, legs, examples))
    else:
        _print(ready, legs, examples)
    if chosen_rules != AuditConfig():
        notice("results report audits by the default rules only; audit once without changing them")


def _rules(typed_values: Mapping[str, Any]) -> AuditConfig:
    """Return the rules as typed. Raises `ConfigError` for values out of range."""
    rules, errors = build(AuditConfig, [LayerValue(name, value, f"--{name}") for name, value in typed_values.items()])
    if errors:
        raise ConfigError("\n".join(errors))
    return rules


def _json(ready: Prepared, legs: Sequence[Audited], most: int) -> dict[str, Any]:
    return {
        "corpus": ready.training.name,
        "rules": ready.rules.model_dump(mode="json"),
        "legs": [
            {
                "task": audited.task,
                "leg": audited.leg or None,
                "audited": sentence(_counts(audited)),
                **_counts(audited),
                "training_texts": audited.artefact.facts["texts"],
                "key": audited.key,
                "examples": findings(audited.artefact.folder)[:most],
            }
            for audited in legs
        ],
    }


def _counts(audited: Audited) -> dict[str, Mapping[str, int]]:
    return {kind: audited.artefact.facts[kind] for kind in KINDS}


def _print(ready: Prepared, legs: Sequence[Audited], most: int) -> None:
    rows = [
        (
            _name(audited),
            *(
                f"{of['exact']:,} + {of['near']:,} of {of['of']:,}" if of["of"] else "—"
                for of in _counts(audited).values()
            ),
        )
        for audited in legs
    ]
    table("found, exact + near", ("task", *_COLUMNS), rows, numbers=_COLUMNS)
    for audited in legs:
        examples = findings(audited.artefact.folder)[:most]
        if examples:
            cells = [[str(row[key]) for key in ("kind", "id", "how", "where", "text", "said")] for row in examples]
            words = [(kind, name, _WAYS[way], *texts) for kind, name, way, *texts in cells]
            click.echo()
            table(_name(audited), ("of", "id", "found", "where", "the test says", "the training says"), words)
    short = sum(_counts(audited)["answers"]["short"] for audited in legs)
    if short:
        click.echo(f"{short:,} answers of fewer than {ready.rules.contained} letters were not looked for")
    click.echo(f"{ready.training.name}: {legs[0].artefact.facts['texts']:,} training texts compared")


def _name(audited: Audited) -> str:
    return f"{audited.task}{' ' + audited.leg if audited.leg else ''}"
