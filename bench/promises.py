"""What a plugin promises, checked when it is loaded: hooks that will be called, and sound things behind them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pluggy

from bench import hookspecs
from bench.config import check_config, check_preset
from bench.errors import PluginError
from bench.grids import grid_faults, space_faults
from bench.run_presets import RunPreset
from bench.types import SETTINGS, Measure, Method, Suite
from bench.wording import did_you_mean

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_MEASURE = re.compile(r"[A-Za-z]+")


def method_faults(method: Method) -> list[str]:
    """Return what is wrong with a method: its name, version, config, presets, settings or functions."""
    faults = [
        *_name_faults(method.name, _NAME, "lower-case letters, digits and hyphens"),
        *_version_faults(method.version),
        *_setting_faults(method.settings),
        *_callable_faults(method, "resolve", *_doors(method)),
        *(
            []
            if _doors(method)
            else ["brings neither a retriever nor the contract of an encoder, expected one of them"]
        ),
    ]
    config_faults = check_config(method.config)
    if config_faults:
        return faults + config_faults
    return (
        faults
        + [
            f"preset {name}: {fault}"
            for name, preset in method.presets.items()
            for fault in [
                *_name_faults(name, _NAME, "lower-case letters, digits and hyphens"),
                *check_preset(method.config, preset.values),
            ]
        ]
        + [*grid_faults(method), *space_faults(method)]
    )


def _doors(method: Method) -> list[str]:
    """Return the fields by which a method is entered: a retriever, or an encoder's contract and perhaps a trainer."""
    return _given(method, "retriever", "contract", "trainer")


def _given(thing: object, *fields: str) -> list[str]:
    """Return the fields that may be left out and are not."""
    return [name for name in fields if getattr(thing, name) is not None]


def suite_faults(suite: Suite) -> list[str]:
    """Return what is wrong with a suite: its name, version, settings, data or functions."""
    return [
        *_name_faults(suite.name, _NAME, "lower-case letters, digits and hyphens"),
        *_version_faults(suite.version),
        *_setting_faults(suite.settings),
        *([] if suite.data else ["serves no data, expected official, mini or both"]),
        *_callable_faults(suite, "task_names", "load", "card", *_given(suite, "dev", "dev_names")),
    ]


def measure_faults(measure: Measure) -> list[str]:
    """Return what is wrong with a measure: its name or its function."""
    return [*_name_faults(measure.name, _MEASURE, "letters"), *_callable_faults(measure, "value")]


def run_faults(preset: RunPreset) -> list[str]:
    """Return what is wrong with a run preset; whether its methods and suites are there shows when it is run."""
    lacking = [name for name in ("methods", "suites", "seeds") if not getattr(preset, name)]
    return [
        *_name_faults(preset.name, _NAME, "lower-case letters, digits and hyphens"),
        *_setting_faults(preset.settings),
        *(f"names no {name}, expected at least one" for name in lacking),
    ]


class Kind(NamedTuple):
    """A kind of thing that plugins bring.

    Attributes:
        hook: the hook that returns them.
        type: their class.
        faults: thing → what is wrong with it, as phrases.
    """

    hook: str
    type: type[Any]
    faults: Callable[[Any], list[str]]


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "method": Kind("bench_methods", Method, method_faults),
        "suite": Kind("bench_suites", Suite, suite_faults),
        "measure": Kind("bench_measures", Measure, measure_faults),
        "run": Kind("bench_runs", RunPreset, run_faults),
    }
)


def new_manager() -> pluggy.PluginManager:
    """Return a manager that knows the hooks and no plugin."""
    manager = pluggy.PluginManager("bench")
    manager.add_hookspecs(hookspecs)
    return manager


def mind_hooks(plugin: object, manager: pluggy.PluginManager) -> None:
    """Raise `PluginError` where a plugin's hooks would never be called: misspelt, unmarked, or none at all."""
    if type(plugin).__hash__ is None:
        raise PluginError(f"a {type(plugin).__name__} cannot be hashed, expected a module or a plain object")
    known = [name for name in vars(hookspecs) if name.startswith("bench_")]
    callers = manager.get_hookcallers(plugin) or []
    for caller in callers:
        if not caller.has_spec() and not all(one.optionalhook for one in caller.get_hookimpls()):
            raise PluginError(
                f"{caller.name} is no hook{did_you_mean(caller.name, known)} There are: {', '.join(known)}."
            )
    for name in dir(plugin):
        if name.startswith("bench_") and manager.parse_hookimpl_opts(plugin, name) is None:
            static = inspect.getattr_static(plugin, name)
            if inspect.isroutine(static) or isinstance(static, staticmethod | classmethod):
                raise PluginError(f"{name} lacks @bench.hookimpl")
    if not callers:
        raise PluginError(f"it has no hook, expected at least one of {', '.join(known)}, marked with @bench.hookimpl")


def collect(manager: pluggy.PluginManager, kind: Kind) -> list[Any]:
    """Return what the only plugin of a manager brings of a kind. Raises `PluginError` where it breaks a promise."""
    brought: list[Any] = []
    for answer in getattr(manager.hook, kind.hook)():
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            raise PluginError(f"{kind.hook} returned {answer!r:.80}, expected a list of {kind.type.__name__}")
        brought += answer
    for thing in brought:
        if not isinstance(thing, kind.type):
            raise PluginError(f"{kind.hook} returned {thing!r:.80} in its list, expected a {kind.type.__name__}")
        faults = kind.faults(thing)
        if faults:
            raise PluginError(f"{kind.type.__name__} {thing.name}: {'; '.join(faults)}")
    names = [thing.name for thing in brought]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PluginError(f"{kind.hook} returned {', '.join(twice)} more than once")
    return brought


def reason_of(error: BaseException) -> str:
    """Return one line about an exception; our own sentences stand without their class."""
    text = " ".join(str(error).split())
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    if isinstance(error, PluginError | pluggy.PluginValidationError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _name_faults(name: object, pattern: re.Pattern[str], allowed: str) -> list[str]:
    """Return the fault of a name that commands and tables cannot carry."""
    fits = isinstance(name, str) and pattern.fullmatch(name)
    return [] if fits else [f"is called {name!r}, expected {allowed} only"]


def _version_faults(version: object) -> list[str]:
    """Return the fault of a version that no key can tell from another."""
    return [] if isinstance(version, str) and version.strip() else [f"has the version {version!r}, expected text"]


def _setting_faults(settings: tuple[str, ...]) -> list[str]:
    """Return the faults of settings that the house does not know."""
    return [
        f"names the setting {one!r}, expected one of {', '.join(SETTINGS)}" for one in settings if one not in SETTINGS
    ]


def _callable_faults(thing: Any, *fields: str) -> list[str]:
    """Return the faults of fields that should be functions."""
    return [
        f"{field} is {getattr(thing, field)!r}, expected a function"
        for field in fields
        if not callable(getattr(thing, field))
    ]
