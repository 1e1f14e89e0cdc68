"""`bench list`: what there is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli.options import results_option
from bench.cli.output import json_option, notice, print_json, table
from bench.core.publications import mark
from bench.evaluation.tables import percent

if TYPE_CHECKING:
    from bench.plugins import Plugins

Rows = list[dict[str, Any]]


KINDS = ("methods", "suites", "tasks", "measures", "corpora", "presets", "profiles", "plugins")


def rows_of(kind: str, plugins: Plugins) -> Rows:
    """Return what there is of a kind, as `--json` prints it."""
    from bench.config.profiles import PROFILES
    from bench.evaluation.measures.builtin import BUILTIN

    match kind:
        case "methods":
            return [
                {
                    "name": name,
                    "summary": owned.value.summary,
                    "presets": sorted(owned.value.presets),
                    "owner": owned.owner,
                }
                for name, owned in sorted(plugins.methods.items())
            ]
        case "suites":
            return [
                {
                    "name": name,
                    "title": owned.value.title,
                    "summary": owned.value.summary,
                    "data": list(owned.value.data),
                    "regimes": list(owned.value.regimes),
                    "tasks": sum(len(owned.value.task_names(kind)) for kind in owned.value.data),
                    "proxy_for": owned.value.proxy_for or None,
                    "note": mark(owned.value.proxy_for) or None,
                    "owner": owned.owner,
                }
                for name, owned in sorted(plugins.suites.items())
            ]
        case "tasks":
            return [
                {"task": f"{suite}/{name}", "data": kind, "note": mark(owned.value.proxy_for) or None}
                for suite, owned in sorted(plugins.suites.items())
                for kind in owned.value.data
                for name in owned.value.task_names(kind)
            ]
        case "measures":
            ours = [
                {"name": name, "also": list(measure.aliases), "summary": measure.summary, "owner": "bench"}
                for name, measure in BUILTIN.items()
            ]
            theirs = [
                {"name": name, "also": [], "summary": owned.value.summary, "owner": owned.owner}
                for name, owned in sorted(plugins.measures.items())
            ]
            return ours + theirs
        case "corpora":
            from bench.cli.output import about_size
            from bench.data.corpora.named import parse

            return [
                {
                    "name": name,
                    "summary": corpus.summary,
                    "languages": len({language for part in parse(name, corpora) for language in part.languages}),
                    "size": about_size(parse(name, corpora)),
                    "licence": corpus.licence,
                    "stands for": corpus.proxy_for or None,
                }
                for corpora in [plugins.corpora_by_name]
                for name, corpus in sorted(corpora.items())
            ]
        case "presets":
            runs = [
                {
                    "name": name,
                    "summary": owned.value.summary,
                    "cells": None,
                    "suite": ", ".join(owned.value.suites),
                    "source": owned.owner,
                }
                for name, owned in sorted(plugins.runs.items())
            ]
            return runs + [
                {
                    "name": f"{method}/{name}",
                    "summary": preset.summary,
                    "cells": len(preset.cells) or None,
                    "suite": "/".join(part for part in (preset.suite, preset.task) if part) or None,
                    "source": preset.source,
                }
                for method, owned in sorted(plugins.methods.items())
                for name, preset in owned.value.presets.items()
            ]
        case "profiles":
            columns = ("name", "data", "backbone", "hours", "summary")
            return [{column: getattr(profile, column) for column in columns} for profile in PROFILES.values()]
        case "plugins":
            sound = [
                {"name": name, "owner": owner, "state": "loaded", "reason": ""}
                for name, owner in plugins.loaded.items()
            ]
            broken = [
                {"name": plugin.name, "owner": plugin.distribution, "state": "broken", "reason": plugin.reason}
                for plugin in plugins.broken
            ]
            return sound + broken
    raise ValueError(kind)


_LONG = ("tasks", "corpora", "presets")
"""What is listed only where it is named."""

_OURS = ("retrieval-bench", "bench")
_OPTIONAL = ("note", "reason")
"""Columns of tables only where a row has something to say there; of `--json` always."""
_JSON_ONLY = "proxy_for"
"""A column of `--json` only, for `note` says it too."""


@click.command(name="list")
@click.argument("what", type=click.Choice([*KINDS, "results"]), required=False)
@results_option
@json_option
def command(what: str | None, results: Path, as_json: bool) -> None:
    """List methods, suites, tasks, measures, corpora, presets, profiles, plugins or results.

    By default all but tasks, corpora, presets and results.
    """
    from bench.plugins import load

    plugins = load()
    kinds = [what] if what else [kind for kind in KINDS if kind not in _LONG]
    rows_by_kind = {kind: rows_of(kind, plugins) for kind in kinds if kind != "results"}
    if what == "results":
        from bench.evaluation.results.scores import load_results

        rows_by_kind["results"] = load_results(results).subsets()
        if not rows_by_kind["results"]:
            notice(f"{results}: {'no results there yet' if results.is_dir() else 'no such folder'}")
    if as_json:
        print_json(rows_by_kind)
        return
    for kind, kind_rows in rows_by_kind.items():
        ours_too = what or kind != "plugins"  # what our own plugins bring is in the tables above
        rows = kind_rows if ours_too else [row for row in kind_rows if not _ours(row)]
        if not rows and not what:
            continue
        silent = {_JSON_ONLY, *(name for name in _OPTIONAL if not any(row.get(name) for row in rows))}
        if not any("reason" in row for row in rows) and all(map(_ours, rows)):
            silent.add("owner")  # of plugins it is what was asked; else it says something where others brought a thing
        columns = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in silent]
        table(kind, columns, [[_cell(row.get(name)) for name in columns] for row in rows])
        click.echo()


def _ours(row: dict[str, Any]) -> bool:
    return str(row.get("owner", _OURS[0])).partition(" ")[0] in _OURS


def _cell(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "—"
    return percent(value) if isinstance(value, float) else str(value)
