"""Nothing is lost: commands and flags, settings and their defaults, methods, suites, hooks, pages, public names.

The command line, `bench.__all__` and the hooks are compared with `tests/golden/inventory.json`. After an addition, or
a change that is meant, `BENCH_RECORD=1 python -m pytest tests/system/test_inventory.py` records anew; the commit says
what was lost, and why.
"""

import inspect
import json
import os
import shlex
import tarfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import click
import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORD = Path(__file__).parents[1] / "golden" / "inventory.json"
RECORDING = os.environ.get("BENCH_RECORD") == "1"
Answer = tuple[int, str, str]
Bench = Callable[[str], Any]

PROSE = {"allowed", "card", "citation", "help", "licence", "note", "owner", "reported", "source", "summary", "title"}
"""Fields that people read."""
PLAN = "plan --method bm25+crop --suite mrtydi --task sw --offline --device cpu --store store --json"
CANDIDATES = (1, 512, 0.5, True, "mean", "cos", "some text")
"""Values for a setting that has none by default; the first that is accepted is recorded."""


@pytest.fixture(scope="module")
def bench(pinned: tuple[Path, Callable[..., Answer]]) -> Bench:
    """Return what runs `bench …`, expects success, and gives the JSON that it printed."""

    def run(words: str) -> Any:
        status, out, err = pinned[1](*shlex.split(words))
        assert status == 0, err
        return json.loads(out)

    return run


@pytest.fixture(scope="module")
def place(pinned: tuple[Path, Callable[..., Answer]]) -> Path:
    """The folder in which commands are run."""
    return pinned[0]


@pytest.fixture(scope="module")
def recorded() -> Iterator[dict[str, Any]]:
    """What was recorded; what is found is written over it at the end, where `BENCH_RECORD` is 1."""
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    yield record
    if RECORDING:
        RECORD.write_text(_lines(record) + "\n", encoding="utf-8")


def _lines(record: Mapping[str, Any]) -> str:
    parts = []
    for name, entries in sorted(record.items()):
        if isinstance(entries, dict):
            rows = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in entries.items()]
            parts.append(f"{json.dumps(name)}: {{\n" + ",\n".join(rows) + "\n}")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(entries, indent=0, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}"


def _compare(part: str, current: Any, recorded: dict[str, Any]) -> None:
    """Record what was found, or expect all that was recorded in it."""
    if RECORDING:
        recorded[part] = current
    else:
        assert list(_lost(recorded[part], current, part)) == []


def _lost(old: Any, new: Any, at: str) -> Iterator[str]:
    """Yield what is not there as it was: a field, an item of a list (in whatever order), a value."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name, value in old.items():
            yield from _lost(value, new[name], f"{at} {name}") if name in new else [f"{at} {name} is lost"]
    elif isinstance(old, list) and isinstance(new, list):
        yield from (f"{at} {json.dumps(item)} is lost" for item in old if item not in new)
    elif old != new:
        yield f"{at}: recorded {json.dumps(old)}, found {json.dumps(new)}"


def _plain(value: Any) -> Any:
    """A value without what people read."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items() if name not in PROSE}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _commands(command: click.Command, name: str, context: click.Context) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (words, parameters) of a command and of those under it."""
    yield name, {"/".join(parameter.opts): _parameter(parameter) for parameter in command.params}
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            below = command.get_command(context, part)
            assert below is not None, f"{name} {part}"
            yield from _commands(below, f"{name} {part}", click.Context(below, parent=context))


def _parameter(parameter: click.Parameter) -> dict[str, Any]:
    """What may be typed for a parameter."""
    default = None if callable(parameter.default) else parameter.to_info_dict()["default"]
    description = {
        "type": parameter.type.name,
        "required": parameter.required,
        "multiple": parameter.multiple,
        "values": parameter.nargs,
        "default": default if isinstance(default, bool | int | float | str | None) else str(default),
    }
    if isinstance(parameter, click.Option):
        description |= {"flag": parameter.is_flag, "off": list(parameter.secondary_opts)}
    if isinstance(parameter.type, click.Choice):
        description["choices"] = [str(choice) for choice in parameter.type.choices]
    return description


def test_commands_and_flags(recorded: dict[str, Any]) -> None:
    """Every command, every parameter, its type, default and choices."""
    from bench.cli import bench as root

    commands = dict(_commands(root, "bench", click.Context(root)))
    _compare("commands", commands, recorded)


def test_settings_of_the_harness(bench: Bench, place: Path, recorded: dict[str, Any]) -> None:
    """Every setting is known, and typing all defaults at once changes no key; those without one take their value."""
    keys = {step["key"] for step in bench(PLAN)["steps"]}
    if RECORDING:
        recorded["settings"] = _settings(bench, place, recorded.get("settings", {}))
    settings: dict[str, dict[str, Any]] = recorded["settings"]
    defaults = {name: setting["default"] for name, setting in settings.items() if setting["default"] is not None}
    assert {step["key"] for step in bench(f"{PLAN} {_typed(defaults)}")["steps"]} == keys
    assert _accepted(
        bench, {name: setting["with others"] for name, setting in settings.items() if "with others" in setting}
    )
    exclusive = {name: setting["alone"] for name, setting in settings.items() if "alone" in setting}
    assert [name for name, value in exclusive.items() if not _accepted(bench, {name: value})] == []
    assert not _accepted(bench, {"search.unheard_of": 1})


def _settings(bench: Bench, place: Path, recorded_settings: Mapping[str, Any]) -> dict[str, Any]:
    """Defaults as the manifests of a store have them; for a setting without one a value that is accepted."""
    bench(f"run --method bm25 --suite beir --task {FIXTURES / 'tiny-beir'} --store kept --results kept --json")
    rows = {
        row["key"]: row["default"]
        for path in sorted((place / "kept" / "artefacts").glob("*/*/manifest.json"))
        for row in json.loads(path.read_text())["provenance"].get("settings", ())
        if not row["key"].startswith("method.")
    }
    together: dict[str, Any] = {}
    settings = {**recorded_settings, **{name: {"default": default} for name, default in rows.items()}}
    for name in (name for name, default in rows.items() if default is None):
        for value in CANDIDATES:
            if _accepted(bench, {name: value}):
                combination = "with others" if _accepted(bench, {**together, name: value}) else "alone"
                settings[name][combination] = value
                together |= {name: value} if combination == "with others" else {}
                break
    return settings


def _typed(values: Mapping[str, Any]) -> str:
    """Settings as words of a command."""
    return shlex.join(word for name, value in values.items() for word in ("--set", f"{name}={json.dumps(value)}"))


def _accepted(bench: Bench, values: Mapping[str, Any]) -> bool:
    """Whether a plan takes settings."""
    try:
        bench(f"{PLAN} {_typed(values)}")
    except AssertionError:
        return False
    return True


def test_lists_methods_and_suites(bench: Bench, recorded: dict[str, Any]) -> None:
    """Measures with their other names, profiles, presets with their cells, plugins."""
    lists = {
        kind: {row["name"]: _plain(row) for row in bench(f"list {kind} --json")[kind]}
        for kind in ("measures", "profiles", "presets", "plugins")
    }
    _compare("lists", lists, recorded)
    # Of methods versions, settings with their defaults, values of presets, search spaces; of suites tasks, settings,
    # headline measure, averages, recipes with their values, and how many numbers papers printed.
    found_methods = {}
    for row in bench("list methods --json")["methods"]:
        description = _plain(bench(f"show {row['name']} --json"))
        found_methods[row["name"]] = {
            **description,
            "config": {setting["key"]: setting["default"] for setting in description["config"]},
        }
    _compare("methods", found_methods, recorded)
    found_suites = {}
    for row in bench("list suites --json")["suites"]:
        description = bench(f"show {row['name']} --json")
        found_suites[row["name"]] = {**_plain(description), "numbers reported": len(description["reported"])}
    _compare("suites", found_suites, recorded)


def test_hooks_and_public_names(recorded: dict[str, Any]) -> None:
    """Hooks with their arguments, entry points, the names that `bench` promises."""
    import bench
    from bench import hookspecs

    hooks = {
        name: list(inspect.signature(hook).parameters)
        for name, hook in inspect.getmembers(hookspecs, inspect.isfunction)
        if name.startswith("bench_")
    }
    ours = distribution("retrieval-bench").entry_points
    _compare("hooks", hooks, recorded)
    _compare("entry points", sorted(f"{entry_point.group}: {entry_point.name}" for entry_point in ours), recorded)
    _compare("public names", sorted(bench.__all__), recorded)
    assert all(hasattr(bench, name) for name in bench.__all__)


def test_files_of_a_site(bench: Bench, place: Path, recorded: dict[str, Any]) -> None:
    """Every page, table and picture of the site that a small board makes."""
    for archive in sorted((FIXTURES / "board").glob("*.tar.xz")):
        with tarfile.open(archive) as packed:
            packed.extractall(place / "board", filter="data")
    bench("leaderboard build --results board --out site --store store --json")
    files = sorted(
        path.relative_to(place / "site").as_posix() for path in (place / "site").rglob("*") if path.is_file()
    )
    _compare("files of a site", files, recorded)
