"""What is wrong with the things that plugins bring: methods, suites, measures, corpora and run presets.

Every rule on their declarations is here. A function returns faults as phrases, empty where a thing is sound;
`bench.plugins.load` sets a plugin aside that has one. What shows only at work is tried by `bench plugin check`.
"""

import importlib.util
import inspect
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from bench.config.fields import flat
from bench.config.grids import CellReference, ends
from bench.config.layers import check_config, check_preset
from bench.config.request import RunPreset
from bench.config.spaces import Choice, LogUniform, Uniform
from bench.core.messages import canonical
from bench.types import REGIMES, Measure, Method, Preset, PretrainingCorpus, Suite

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_COMMIT = re.compile("[0-9a-f]{40}")
_MEASURE = re.compile(r"[A-Za-z]+")
_CELL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=,-]*")
_DOOR = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):[A-Za-z_]\w*")
_LONGEST_NAME, _LONGEST_SUMMARY = 64, 300
"""Characters of a name, and of the sentence that listings show next to it."""
_MAX_LABEL = 80
"""Characters of a label, which appears in tables, paths and run files."""


def method_faults(method: Method) -> list[str]:
    """Return what is wrong with a method: its name, version, settings, functions, config, presets or search space."""
    faults = [
        *_name_faults(method.name),
        *_version_faults(method.version),
        *_summary_faults(method.summary),
        *_regime_faults(method.regimes),
        *_callable_faults(method, "resolve", *_set_fields(method, "encoder_config")),
        *_door_faults(method),
    ]
    if config_faults := check_config(method.config):
        return faults + config_faults
    for name, preset in method.presets.items():
        of_preset = [
            *_name_faults(name),
            *_summary_faults(preset.summary),
            *check_preset(method.config, preset.values),
        ]
        faults += [f"preset {name}: {fault}" for fault in of_preset]
        faults += _grid_faults(method, name, preset) if preset.cells else []
    for key, space in method.space.items():
        faults += [f"space {key}: {fault}" for fault in _space_faults(method, key, space)]
    return faults


def _door_faults(method: Method) -> list[str]:
    """Return the faults of doors: what can never be imported, and what would never be called next to the others."""
    faults = []
    for name in _set_fields(method, "retriever", "trainer", "encoder"):
        door = getattr(method, name)
        if not isinstance(door, str):
            faults += _callable_faults(method, name)
        elif (match := _DOOR.fullmatch(door)) is None:
            faults.append(f"{name} is {door!r}, expected package.module:Name")
        elif not _is_module(match[1]):
            faults.append(f"{name} is {door!r}, and there is no module {match[1]}")
    if not _set_fields(method, "retriever", "encoder_config", "encoder"):
        brings_none = "brings neither a retriever nor the config of an encoder nor an encoder, expected one of them"
        return [*faults, brings_none]
    if method.encoder is not None:
        unused = _set_fields(method, "retriever", "encoder_config", "trainer")
        faults += [f"brings an encoder, so its {name} would never be called" for name in unused]
        if method.trains or method.regimes != REGIMES[:1]:
            regimes = f'regimes=("{REGIMES[0]}",)'
            faults.append(f"brings an encoder, which is never trained or tuned; expected trains=False and {regimes}")
    elif method.trainer is not None and method.encoder_config is None:
        faults.append("brings a trainer without the config of an encoder, so it would never be called")
    if callable(method.retriever) and method.encoder_config is not None and not _takes(method.retriever, 2):
        faults.append(
            "brings a retriever that takes no encoder, so its encoder config and trainer would never be used; "
            "expected retriever(config, encoder)"
        )
    if callable(method.retriever) and method.encoder_config is None and not _takes(method.retriever, 1):
        faults.append("brings a retriever that does not take a config alone, and no config of an encoder for it")
    return faults


def _is_module(name: str) -> bool:
    """Return whether a module can be found; imports nothing but the packages around it."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Return whether a function can be called with `count` positional arguments; true where it has no signature."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        pass  # some built-in ones have no signature
    return True


def _grid_faults(method: Method, name: str, grid: Preset) -> list[str]:
    """Return the faults of a preset that has cells."""
    faults, place = [], f"preset {name}"
    counts = Counter(canonical(cell.name) for cell in grid.cells)
    repeated = sorted({cell.name for cell in grid.cells if counts[canonical(cell.name)] > 1})
    if repeated:
        faults.append(f"{place}: has the cell {', '.join(repeated)} more than once")
    if not grid.suite:
        faults.append(f"{place}: has cells and names no suite, expected where ours is looked at")
    labels = {label for cell in grid.cells for label in cell.reported}
    if len(labels) > 1 and grid.reported_measure not in labels:
        faults.append(f"{place}: reported_measure is {grid.reported_measure!r}, expected one of {sorted(labels)}")
    for cell in grid.cells:
        of_cell = []
        if not _CELL.fullmatch(cell.name):
            of_cell.append("expected letters, digits and . _ + = , - as a name, the first a letter or digit")
        if len(CellReference(f"{method.name}/{name}", cell.name).label) > _MAX_LABEL:
            of_cell.append(f"a label of more than {_MAX_LABEL} characters; shorten the name")
        of_cell += check_preset(method.config, dict(flat(grid.values)) | dict(flat(cell.values)))
        faults += [f"{place}, cell {cell.name!r}: {fault}" for fault in of_cell]
    return faults


def _space_faults(method: Method, key: str, space: object) -> list[str]:
    """Return the faults of the search space of one setting."""
    if isinstance(space, Choice):
        if None in space.values:
            return ["holds None, which a settings file cannot say"]
        if not space.values or len(set(map(repr, space.values))) < len(space.values):
            return ["expected values, all different"]
    elif not isinstance(space, Uniform | LogUniform):
        return [f"found {space!r:.80}, expected Choice, Uniform or LogUniform"]
    elif not (math.isfinite(space.low) and math.isfinite(space.high) and space.low < space.high):
        return [f"goes from {space.low} to {space.high}, expected two numbers, the lower one first"]
    elif isinstance(space, LogUniform) and space.low <= 0:
        return ["low is not above 0"]
    return [fault for value in ends(space) for fault in check_preset(method.config, {key: value})]


def suite_faults(suite: Suite) -> list[str]:
    """Return what is wrong with a suite: its name, version, settings, data or functions."""
    return [
        *_name_faults(suite.name),
        *_version_faults(suite.version),
        *_summary_faults(suite.summary),
        *_regime_faults(suite.regimes),
        *([] if suite.data else ["serves no data, expected official, mini or both"]),
        *_callable_faults(suite, "load", "card", *_set_fields(suite, "dev", "dev_names")),
        *(_callable_faults(suite, "task_names") or _task_faults(suite)),
    ]


def _task_faults(suite: Suite) -> list[str]:
    """Return the faults of the names of tasks, which listings ask of each suite."""
    faults = []
    for data in suite.data:
        names = suite.task_names(data)
        if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
            faults.append(f"task_names({data!r}) returned {names!r:.80}, expected a tuple of texts")
        elif any(len(name) > _LONGEST_NAME for name in names):
            faults.append(f"task_names({data!r}) has a name of more than {_LONGEST_NAME} characters")
    return faults


def measure_faults(measure: Measure) -> list[str]:
    """Return what is wrong with a measure: its name, version or function."""
    return [
        *_name_faults(measure.name, _MEASURE, "letters"),
        *_version_faults(measure.version),
        *_summary_faults(measure.summary),
        *_callable_faults(measure, "value"),
    ]


def corpus_faults(corpus: PretrainingCorpus) -> list[str]:
    """Return what is wrong with a corpus; what a mixture names shows when it is read."""
    faults = [*_name_faults(corpus.name), *_summary_faults(corpus.summary)]
    if bool(corpus.urls) == bool(corpus.mix):
        faults.append("has addresses and a mixture, or neither; expected one of them")
    if corpus.urls and not (corpus.languages and corpus.revision):
        faults.append("has addresses without languages or without a revision, which its key needs")
    if any("*" in url for url in corpus.urls) and not (len(corpus.urls) == 1 and _COMMIT.fullmatch(corpus.revision)):
        faults.append("has a pattern of files among other addresses or without a commit, whose files may change")
    return faults


def run_faults(preset: RunPreset) -> list[str]:
    """Return what is wrong with a run preset; whether its methods and suites are there shows when it is run."""
    empty = [name for name in ("methods", "suites", "seeds") if not getattr(preset, name)]
    unnamed = [suite for suite in preset.expects if suite not in preset.suites]
    return [
        *_name_faults(preset.name),
        *_summary_faults(preset.summary),
        *_regime_faults(preset.regimes),
        *(f"names no {name}, expected at least one" for name in empty),
        *(f"expects scores on {suite}, which it does not name" for suite in unnamed),
    ]


def _name_faults(
    name: object, pattern: re.Pattern[str] = _NAME, allowed: str = "lower-case letters, digits and hyphens"
) -> list[str]:
    """Return the fault of a name that commands and tables cannot carry."""
    if isinstance(name, str) and len(name) > _LONGEST_NAME:
        return [f"has a name of {len(name):,} characters, expected at most {_LONGEST_NAME}"]
    fits = isinstance(name, str) and pattern.fullmatch(name)
    return [] if fits else [f"is called {name!r:.80}, expected {allowed} only"]


def _summary_faults(summary: object) -> list[str]:
    """Return the fault of a summary that is no text, or that no table can show."""
    if not isinstance(summary, str):
        return [f"has the summary {summary!r:.80}, expected text"]
    if len(summary) <= _LONGEST_SUMMARY:
        return []
    return [f"has a summary of {len(summary):,} characters, expected at most {_LONGEST_SUMMARY}"]


def _version_faults(version: object) -> list[str]:
    """Return the fault of a version that no key can distinguish from another."""
    return [] if isinstance(version, str) and version.strip() else [f"has the version {version!r}, expected text"]


def _regime_faults(regimes: tuple[str, ...]) -> list[str]:
    """Return the faults of training regimes that do not exist."""
    unknown = [name for name in regimes if name not in REGIMES]
    return [f"names the regime {name!r}, expected one of {', '.join(REGIMES)}" for name in unknown]


def _set_fields(item: object, *fields: str) -> list[str]:
    return [name for name in fields if getattr(item, name) is not None]


def _callable_faults(item: object, *fields: str) -> list[str]:
    values = {name: getattr(item, name) for name in fields}
    return [f"{name} is {value!r}, expected a function" for name, value in values.items() if not callable(value)]
