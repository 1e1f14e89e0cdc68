"""`bench show`: one thing in full."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli import examples
from bench.cli.options import result_seeds_option, results_option
from bench.cli.output import json_option, notice, print_json, print_table, print_text, table
from bench.core.errors import StoreError, UsageError
from bench.core.files import unread
from bench.core.messages import bare, canonical, did_you_mean, shown, unknown_name
from bench.core.publications import mark
from bench.types import DataRequest, Method, Preset, Suite

if TYPE_CHECKING:
    from bench.config.spaces import Space
    from bench.evaluation.results.scores import Results
    from bench.plugins import Plugins


@click.command(
    name="show",
    epilog=examples(
        "bench show bm25",
        "bench show beir",
        "bench show irds:miracl/sw/dev",
        "bench show xor-retrieve --reported",
        "bench show crop@init --seed 0",
        "bench show results/official/beir/…/result.json",
    ),
)
@click.argument("name")
@click.option("--reported", is_flag=True, help="Of a suite: what papers printed, with known errors.")
@click.option("--result", is_flag=True, help="Show the results of a label, even if a method has the same name.")
@result_seeds_option
@results_option
@json_option
def command(name: str, reported: bool, result: bool, seeds: tuple[int, ...], results: Path, as_json: bool) -> None:
    """Show a method, suite, task, corpus, profile, run preset, result file, or the results of a label in full."""
    from bench.plugins import load

    content, lines = _find(name, load(), results, result=result or bool(seeds), reported=reported, seeds=seeds)
    if as_json:
        print_json(content)
    else:
        lines()


def _find(
    name: str, plugins: Plugins, results: Path, *, result: bool, reported: bool, seeds: tuple[int, ...]
) -> tuple[dict[str, Any], Any]:
    """Return the thing of a name as JSON, and how to print it."""
    from bench.config.profiles import PROFILES
    from bench.evaluation.results.scores import load_results

    if reported and canonical(name) not in plugins.suites:
        raise UsageError(found=f"--reported with {name}", expected=f"a suite: {', '.join(sorted(plugins.suites))}")
    if name.endswith(".json") and not seeds:
        content = _read_result(Path(name))

        def print_result() -> None:
            print_json(content)
            if note := mark(content.get("suite", {}).get("proxy_for", "")):
                notice(note)

        return content, print_result
    if result:
        return _results(load_results(results, name, seeds))
    key_name = canonical(name)
    if key_name in plugins.methods:
        method = plugins.method(key_name)
        return _method_json(method), lambda: _print_method(method)
    if key_name in plugins.suites:
        suite = plugins.suite(key_name)
        return _suite_json(suite), lambda: _print_suite(suite, reported=reported)
    if key_name in plugins.corpora:
        from bench.cli.output import about_size
        from bench.data.corpora.named import parse

        corpus = asdict(plugins.corpora_by_name[key_name])
        parts = parse(key_name, plugins.corpora_by_name)
        spoken = list(dict.fromkeys(language for part in parts for language in part.languages))
        rows = [(key, shown(value)) for key, value in corpus.items() if value and key not in ("languages", "shards")]
        rows += [("languages", ", ".join(spoken)), ("to fetch", about_size(parts))]
        return corpus, lambda: table(f"--corpus {key_name}[:LANGUAGES]", ("what", "value"), rows)
    if key_name in PROFILES:
        run_profile = PROFILES[key_name]
        content = _fields(run_profile, "name", "data", "backbone", "device", "budget", "hours", "summary")
        return content, lambda: table("", ("what", "value"), [(key, shown(value)) for key, value in content.items()])
    if (run := plugins.run_preset(name)) is not None:
        summary = run.about()
        rows = [(key, shown(value) if value else "—") for key, value in summary.items()]
        return summary, lambda: table(f"bench run --preset {run.name}", ("what", "value"), rows)
    suite_name, colon, identity = name.partition(":")
    if colon and suite_name in plugins.suites and plugins.suite(suite_name).by_id:
        return _task_by_id(plugins.suite(suite_name), identity)
    suite_name, slash, task = bare(name).partition("/")
    if slash and canonical(suite_name) in plugins.suites:
        suite = plugins.suite(suite_name)
        kinds = [kind for kind in suite.data if task in suite.task_names(kind)]
        if kinds:
            content = {"task": f"{suite.name}/{task}", "suite": suite.name, "data": kinds, **_substitute(suite)}
            rows = [(key, ", ".join(value) if key == "data" else value) for key, value in content.items() if value]
            return content, lambda: table("", ("what", "value"), [row for row in rows if row[0] != "proxy_for"])
        tasks = dict.fromkeys(
            f"{suite.name}/{task_name}" for kind in suite.data for task_name in suite.task_names(kind)
        )
        raise unknown_name("task", name, tasks)
    try:
        return _results(load_results(results, name))
    except UsageError:
        pass  # no label either
    names = [*plugins.methods, *plugins.suites, *plugins.corpora, *PROFILES, *plugins.runs]
    called = [f"{owner}/{task_called}" for owner, task_called in plugins.tasks_called(name).items()]
    offer = f"; it is a task: bench show {' or '.join(called)}." if called else did_you_mean(name, names)
    raise UsageError(
        f"nothing is called {name!r}{offer} There are the methods "
        f"{', '.join(sorted(plugins.methods))}, the suites {', '.join(sorted(plugins.suites))}, the profiles "
        f"{', '.join(PROFILES)} and the run presets {', '.join(sorted(plugins.runs))}; a result file ends in .json.",
        found=repr(name),
        expected=", ".join(names),
        hint=offer.strip("; ."),
    )


def _read_result(path: Path) -> dict[str, Any]:
    from bench.evaluation.results.read import read_result

    try:
        return read_result(path)
    except OSError as error:
        raise UsageError(where=path, found=error.strerror or str(error), expected="a result file") from error
    except ValueError as error:
        hint = "run the command that made it again"
        raise StoreError(where=path, found=str(error), expected="a result file as it was written", hint=hint) from error


def _results(stored: Results) -> tuple[dict[str, Any], Any]:
    """Return the results of a label as JSON, and how to print them."""

    def lines() -> None:
        for item in stored.tables():
            print_table(item)
        for file in stored.files:
            click.echo(f"result: {file.path}")

    return {"results": [dict(file.whole) for file in stored.files]}, lines


def _substitute(suite: Suite) -> dict[str, Any]:
    return {"proxy_for": suite.proxy_for or None, "note": mark(suite.proxy_for) or None}


def _settings(method: Method) -> list[dict[str, Any]]:
    from bench.config.layers import describe

    columns = ("key", "default", "allowed", "help", "source")
    return [_fields(row, *columns) for row in describe(method.config(), prefix="method.")]


def _fields(item: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(item, name) for name in names}


def _method_json(method: Method) -> dict[str, Any]:
    return {
        **_fields(method, "name", "version", "summary", "citation", "licence", "code", "deterministic"),
        "regimes": list(method.regimes),
        "config": _settings(method),
        "presets": {name: _preset_json(preset) for name, preset in method.presets.items()},
        "space": {key: _space(space) for key, space in method.space.items()},
    }


def _preset_json(preset: Preset) -> dict[str, Any]:
    """Return a preset; with its cells where it is a grid."""
    row = {"values": dict(preset.values), "source": preset.source, "summary": preset.summary}
    if not preset.cells:
        return row
    cells = [
        {"name": cell.name, "values": dict(cell.values), "reported": dict(cell.reported), "fails": cell.fails}
        for cell in preset.cells
    ]
    location = _fields(preset, "suite", "task", "measure", "regime")
    return {**row, **location, "reported_measure": preset.label, "cells": cells}


def _space(space: Space) -> str:
    from bench.config.spaces import Choice, LogUniform

    if isinstance(space, Choice):
        return f"one of {', '.join(map(shown, space.values))}"
    return f"from {space.low:g} to {space.high:g}" + (", logarithmic" if isinstance(space, LogUniform) else "")


def _print_method(method: Method) -> None:
    from bench.config.fields import flat
    from bench.config.grids import grids

    sentences = filter(None, (method.citation, method.licence and f"Licence: {method.licence}", method.code))
    print_text("\n".join([f"{method.name} {method.version}: {method.summary}", *sentences, ""]))
    rows = [
        (row["key"], shown(row["default"]), row["allowed"], row["help"], row["source"]) for row in _settings(method)
    ]
    table("settings (--set KEY=VALUE)", ("key", "default", "allowed", "what it does", "source of the default"), rows)
    presets = [
        (name, preset.summary + (f" ({len(preset.cells)} cells)" if preset.cells else ""), preset.source)
        for name, preset in method.presets.items()
    ]
    if presets:
        click.echo()
        table(f"presets (--preset {method.name}/NAME)", ("name", "what", "source"), presets)
    for name, preset in grids(method).items():
        click.echo()
        cells = [
            (cell.name, ", ".join(f"{key}={shown(value)}" for key, value in flat(cell.values))) for cell in preset.cells
        ]
        table(f"cells of {name} (--preset {name}=CELL runs one of them)", ("cell", "settings"), cells)
    if method.space:
        click.echo()
        spaces = [(f"method.{key}", _space(space)) for key, space in method.space.items()]
        table("search space (bench sweep)", ("key", "values"), spaces)


def _task_by_id(suite: Suite, identity: str) -> tuple[dict[str, Any], Any]:
    """Return what is known of a task of a catalogue without its files, and how to print it."""
    with unread():
        task = suite.load(identity, DataRequest("official"))
    content = {
        "task": task.id,
        "suite": suite.name,
        "data": [task.data],
        "measures": list(task.measures),
        "measures_by": task.measures_by,
        "depth": task.depth,
        "subsets": [
            {
                "queries_in": subset.language,
                "documents_in": subset.corpus.language,
                "documents": subset.corpus.documents,
                **subset.counts,
            }
            for subset in task.subsets
        ],
        "notice": task.notice,
    }
    rows = [
        ("task", task.id),
        ("measures", task.measures_by),
        ("documents a query", f"{task.depth:,}"),
        *(("what it is", part) for part in task.notice.split("; ")),
    ]
    return content, lambda: table("", ("what", "value"), rows)


def _suite_json(suite: Suite) -> dict[str, Any]:
    return {
        **_fields(suite, "name", "version", "title", "summary", "citation", "licence"),
        **_substitute(suite),
        "regimes": list(suite.regimes),
        "data": list(suite.data),
        "tasks": {kind: list(suite.task_names(kind)) for kind in suite.data},
        "primary": suite.primary,
        "macros": [{"name": macro.name, "note": macro.note} for macro in suite.macros],
        "recipes": {
            regime: {
                name: [{"pairs": stage.name, "values": dict(stage.values), "source": stage.source} for stage in stages]
                for name, stages in recipes.items()
            }
            for regime, recipes in suite.recipes.items()
        },
        "reported": [asdict(row) for row in suite.reported()] if suite.reported else [],
        "card": suite.card(),
    }


def _print_suite(suite: Suite, *, reported: bool) -> None:
    if reported:
        _print_reported(suite)
        return
    print_text(suite.card())
    if note := mark(suite.proxy_for):
        click.echo(f"\n{note}")
    rows = [
        (regime, name, ", then ".join(stage.name for stage in stages), "; ".join(stage.source for stage in stages))
        for regime, recipes in suite.recipes.items()
        for name, stages in recipes.items()
    ]
    if rows:
        click.echo()
        title = "recipes (--regime REGIME --set tune.recipe=NAME; the first is the default)"
        table(title, ("setting", "name", "pairs", "source"), rows)


def _print_reported(suite: Suite) -> None:
    """Print what papers printed, table by table; a known error is printed with its number."""
    rows = suite.reported() if suite.reported else ()
    if not rows:
        click.echo(f"no paper's number is known for {suite.name}")
        return
    columns = ("paper", "table", "setting", "model", "column", "measure", "printed", "unit", "our task", "error")
    table(
        f"{suite.title} · reported",
        columns,
        [
            (
                *(row.paper, row.table, row.setting, row.model, row.dataset, row.measure),
                row.printed + (f" (right: {row.corrected:g})" if row.corrected is not None else ""),
                *(row.unit, row.task or row.average, row.error),
            )
            for row in rows
        ],
        numbers=("printed",),
    )
    wrong = {row.error: row.wrong for row in rows if row.error}
    for name, sentence in wrong.items():
        click.echo(f"{name}: {sentence}")
    for kind in suite.data:
        click.echo(f"\ntasks ({kind} data): {', '.join(suite.task_names(kind))}")
