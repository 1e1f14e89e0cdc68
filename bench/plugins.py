"""Plugins: found by entry points, loaded one by one, looked up by name; a broken one fails only what needs it.

Nothing is loaded before `load` is called. It loads all entry points of the group `bench` at once: plugins are light by
contract (no torch, no disk, no network), and only then can two owners of one name be reported, whichever was asked for.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from itertools import islice
from types import MappingProxyType, ModuleType
from typing import Any, Generic, NamedTuple, TypeVar

import pluggy

from bench import hookspecs
from bench.config.plugin_faults import corpus_faults, measure_faults, method_faults, run_faults, suite_faults
from bench.config.plugin_sources import Sourced, with_sources
from bench.config.request import RunPreset
from bench.core.containment import contained, one_line, survived
from bench.core.errors import PluginError, UsageError
from bench.core.installed import DISTRIBUTION, own_package
from bench.core.messages import bare, canonical, close, did_you_mean, short, unknown, unknown_name
from bench.types import Measure, Method, PretrainingCorpus, Suite

GROUP = "bench"
"""The entry-point group; its names are the plugins' names."""

VARIABLE = "BENCH_PLUGINS"
"""Environment variable that restricts which plugins are loaded."""

_DIRECT = "given directly"
"""In place of the distribution, for an object that was handed to `load`."""

_MOST = 1_000
"""Things of a kind that a plugin may bring."""
_LOG = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Owned(Generic[T]):
    """Something that a plugin brings: the method, suite, measure, corpus or run preset, and which plugin."""

    value: T
    plugin: str  # name of the entry point
    distribution: str  # what to uninstall to be rid of it; `given directly` for an object handed to `load`
    module: str  # where the plugin lives, e.g. `methods.bm25`

    @property
    def owner(self) -> str:
        """Distribution and module, as listings show them."""
        return f"{self.distribution} ({self.module})"


@dataclass(frozen=True)
class Broken:
    """A plugin (entry point) that was set aside, with the reason in one line and, for its author, where it broke."""

    name: str
    distribution: str
    reason: str
    traceback: str = field(repr=False)


@dataclass(frozen=True)
class Duplicate:
    """A name that several plugins bring, so that none of them has it; each owner is a distribution and a module."""

    kind: str
    name: str
    owners: tuple[str, ...]

    @property
    def reason(self) -> str:
        """The conflict and its remedy, in a sentence."""
        return (
            f"{self.kind} {self.name} is brought by {' and by '.join(self.owners)}; "
            f"uninstall all but one of them, or name in {VARIABLE} only the plugins that you want"
        )


@dataclass(frozen=True)
class Plugins:
    """What all sound plugins bring, by name, and what is wrong with the others."""

    methods: Mapping[str, Owned[Method]]  # without names that have several owners (`duplicates`), and so below
    suites: Mapping[str, Owned[Suite]]
    measures: Mapping[str, Owned[Measure]]  # by name without the cut
    corpora: Mapping[str, Owned[PretrainingCorpus]]
    runs: Mapping[str, Owned[RunPreset]]
    loaded: Mapping[str, str]  # plugin name → its owner, for every sound plugin
    broken: tuple[Broken, ...]  # plugins that were set aside
    duplicates: tuple[Duplicate, ...]  # names with several owners
    restricted: tuple[str, ...] | None  # what `BENCH_PLUGINS` named, or None where it was not set
    manager: pluggy.PluginManager = field(repr=False)  # pluggy's manager of the sound plugins

    @property
    def hook(self) -> pluggy.HookRelay:
        """Pluggy's relay, unguarded: a plugin's exception comes through (`notify` holds it back)."""
        return self.manager.hook

    @property
    def measures_by_name(self) -> dict[str, Measure]:
        """The measures without their owners, in the versions that keys have."""
        return {name: _sourced(owned) for name, owned in self.measures.items()}

    @property
    def corpora_by_name(self) -> dict[str, PretrainingCorpus]:
        """The corpora without their owners."""
        return {name: owned.value for name, owned in self.corpora.items()}

    def method(self, name: str) -> Method:
        """Return a method; `auto_mlm` finds `auto-mlm`. Raises `UsageError`, or `PluginError` for broken ones.

        The version of one that another distribution brings has the digest of its files: `1+3f9a0c11d2`.
        """
        return _sourced(self._find("method", name, self.methods))

    def suite(self, name: str) -> Suite:
        """Return a suite; its version and errors are as those of `method`."""
        return _sourced(self._find("suite", name, self.suites))

    def run_preset(self, name: str | None) -> RunPreset | None:
        """Return the run preset of a name; None where nobody brings one, as the name may be a method's preset."""
        owned = self.runs.get(canonical(name or ""))
        return owned.value if owned else None

    def notify(self, hook: str, **arguments: Any) -> None:
        """Call a tracker's hook (`AttributeError` for none) in every plugin that has it; one that raises is logged."""
        everyone = self.manager.get_plugins()
        for plugin in {
            implementation.plugin: implementation for implementation in getattr(self.hook, hook).get_hookimpls()
        }:
            call = partial(self.manager.subset_hook_caller(hook, everyone - {plugin}), **arguments)
            with redirect_stdout(sys.stderr):  # standard output is the result's
                ending = survived(call)
            if ending.reason:  # a tracker must not cost a run, whatever it does
                name = self.manager.get_name(plugin)
                _LOG.warning("plugin %s failed in %s and is skipped: %s", name, hook, ending.reason)
                _LOG.debug("plugin %s: %s", name, ending.traceback)

    def _find(self, kind: str, name: str, owned: Mapping[str, Owned[T]]) -> Owned[T]:
        key = canonical(name)
        if key in owned:
            return owned[key]
        duplicates = [duplicate for duplicate in self.duplicates if duplicate.kind == kind]
        for duplicate in duplicates:
            if duplicate.name == key:
                raise PluginError(duplicate.reason)
        for plugin in self.broken:
            if canonical(plugin.name) == key:
                raise PluginError(f"plugin {plugin.name} of {plugin.distribution} is broken: {plugin.reason}")
        names = sorted([*owned, *(duplicate.name for duplicate in duplicates)])
        instead = self._meant(kind, name)
        sentences = [unknown(kind, name, names, instead)]
        if self.broken:
            reasons = "; ".join(f"{plugin.name} of {plugin.distribution}: {plugin.reason}" for plugin in self.broken)
            sentences.append(f"It may belong to a plugin that is broken ({reasons}).")
        if self.restricted is not None:
            sentences.append(f"{VARIABLE} restricts plugins to: {', '.join(self.restricted) or 'none'}.")
        elif not self.loaded:
            sentences.append(f"No plugin is installed; type pip install {DISTRIBUTION}.")
        hint = instead or did_you_mean(name, names).strip("; .")
        raise UsageError(" ".join(sentences), found=f"{kind} {name!r}", expected=", ".join(names), hint=hint)

    def _meant(self, kind: str, name: str) -> str:
        """Say what to type for an unknown method or suite that is the name of something else; nothing if it is none."""
        key = canonical(name)
        if kind == "suite" and key in self.methods:
            return f"it is a method: --method {key}"
        if kind == "suite" and (tasks := self.tasks_called(name)):
            suite, task = next(iter(tasks.items()))
            return f"it is a task of {', '.join(tasks)}: --suite {suite} --task {task}"
        if kind == "method" and key in self.suites:
            return f"it is a suite: --suite {key}"
        readers = self.readers_of_models()
        if kind == "method" and readers and ("/" in name or not close(name, self.methods)):
            model = short(name) if "/" in name else "OWNER/NAME"
            return f"a released model is --method {readers[0]} --set method.model={model}"
        return ""

    def tasks_called(self, name: str) -> dict[str, str]:
        """Return the tasks, by their suites, that a name with or without its suite means: `SciFact`, `beir/scifact`."""
        key, called = canonical(bare(name)), dict[str, str]()
        for suite, owned in self.suites.items():
            names = (task for data in owned.value.data for task in owned.value.task_names(data))
            if same := next((task for task in names if canonical(task) == key.removeprefix(f"{suite}/")), None):
                called[suite] = same
        return called

    def readers_of_models(self) -> list[str]:
        """Return the methods that take a model from a setting, rather than train one."""
        return [name for name, owned in self.methods.items() if "model" in owned.value.config.model_fields]


def _sourced(owned: Owned[Sourced]) -> Sourced:
    """Return what a plugin brings, in the version that keys have."""
    is_foreign = owned.distribution not in (DISTRIBUTION, _DIRECT)
    return with_sources(owned.value, owned.module) if is_foreign else owned.value


def load(
    environ: Mapping[str, str] = os.environ,
    *,
    extra: Iterable[object] = (),
    entries: Iterable[EntryPoint] | None = None,
) -> Plugins:
    """Load the plugins, one by one; one that breaks is set aside.

    `BENCH_PLUGINS` in `environ` is a comma list of plugin or distribution names, empty for none; it does not touch
    `extra`, modules or objects that no entry point names. `entries` are by default those of the group `bench` that are
    installed. Raises `UsageError` where the variable names a plugin that is not installed.
    """
    name_of = cache(lambda distribution: distribution.name if distribution else "")  # each time it parses a file
    installed = entry_points(group=GROUP) if entries is None else entries
    candidates = []
    for entry in installed:
        distribution = name_of(entry.dist) or "an unknown distribution"
        # Not entry.module: it raises where an entry point is malformed, and that must wait until it is vetted.
        module, fetch = entry.value.partition(":")[0].strip(), partial(_fetch, entry, canonical(distribution))
        candidates.append(_Candidate(one_line(entry.name), one_line(distribution), one_line(module), fetch))
    # Ours first, so that listings begin with them; then an order that does not hang on the order of installation.
    candidates.sort(
        key=lambda candidate: (candidate.distribution != DISTRIBUTION, candidate.distribution, candidate.name)
    )
    names = _restriction(environ, candidates)
    if names is not None:
        candidates = [
            candidate
            for candidate in candidates
            if {canonical(candidate.name), canonical(candidate.distribution)} & set(names)
        ]
    return _gather(_distinct([*candidates, *map(_from_object, extra)]), names)


@dataclass(frozen=True)
class _Candidate:
    """A plugin before it is loaded."""

    name: str
    distribution: str
    module: str
    fetch: Callable[[], object]


def _fetch(entry: EntryPoint, distribution: str) -> object:
    """Import what an entry point names; one of ours only from where ours are."""
    if distribution == DISTRIBUTION:
        own_package(entry.module.partition(".")[0])
    return entry.load()


def _from_object(plugin: object) -> _Candidate:
    home = (
        plugin.__name__ if isinstance(plugin, ModuleType) else f"{type(plugin).__module__}.{type(plugin).__qualname__}"
    )
    return _Candidate(home.rpartition(".")[2], _DIRECT, home, lambda: plugin)


def _distinct(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Distinguish plugins of one name by their distribution (and number), so that listings show each."""
    labelled: dict[str, _Candidate] = {}
    for candidate in candidates:
        label = candidate.name if candidate.name not in labelled else f"{candidate.name} of {candidate.distribution}"
        number = 2
        while label in labelled:
            label, number = f"{candidate.name} of {candidate.distribution} ({number})", number + 1
        labelled[label] = _Candidate(label, candidate.distribution, candidate.module, candidate.fetch)
    return list(labelled.values())


def _restriction(environ: Mapping[str, str], candidates: Iterable[_Candidate]) -> tuple[str, ...] | None:
    """Return the canonical names in `BENCH_PLUGINS`, None where it is not set."""
    if VARIABLE not in environ:
        return None
    typed = [name.strip() for name in environ[VARIABLE].split(",") if name.strip()]
    by_name = {canonical(name): name for candidate in candidates for name in (candidate.name, candidate.distribution)}
    for name in typed:
        if canonical(name) not in by_name:
            raise unknown_name("plugin", name, sorted(by_name.values()), where=f"{VARIABLE}={environ[VARIABLE]}")
    return tuple(map(canonical, typed))


def _gather(candidates: Iterable[_Candidate], names: tuple[str, ...] | None) -> Plugins:
    """Load plugins and join those that keep their promises; a name with several owners goes to none of them."""
    manager, broken = _new_manager(), list[Broken]()
    shelves: dict[str, dict[str, list[Owned[Any]]]] = {kind: {} for kind in _KINDS}
    loaded: dict[str, str] = {}
    for candidate in candidates:
        name, distribution = candidate.name, candidate.distribution
        call = partial(_brought, candidate, manager)
        # Ours are known to print nothing and to end, and a bound on each takes a millisecond.
        ending = survived(call) if distribution == DISTRIBUTION else contained(f"plugin {name}", call)
        for remark in ending.remarks:
            _LOG.warning("plugin %s, while it was loaded, %s", name, remark)
        if ending.reason:
            broken.append(Broken(name, distribution, ending.reason, ending.traceback))
            _LOG.warning("plugin %s of %s is broken: %s", name, distribution, ending.reason)
            with suppress(Exception):
                manager.unregister(name=name)  # it may have failed half way
            continue
        if not ending.value:
            continue  # two entry points name the same object: one plugin
        loaded[name] = f"{distribution} ({candidate.module})"
        for kind, items in ending.value.items():
            for item in items:
                shelves[kind].setdefault(item.name, []).append(Owned(item, name, distribution, candidate.module))
    single = {
        kind: MappingProxyType({name: owners[0] for name, owners in items.items() if len(owners) == 1})
        for kind, items in shelves.items()
    }
    duplicates = tuple(
        Duplicate(kind, name, tuple(owner.owner for owner in owners))
        for kind, items in shelves.items()
        for name, owners in items.items()
        if len(owners) > 1
    )
    for duplicate in duplicates:
        _LOG.warning("%s", duplicate.reason)
    return Plugins(
        methods=single["method"],
        suites=single["suite"],
        measures=single["measure"],
        corpora=single["corpus"],
        runs=single["run"],
        loaded=MappingProxyType(loaded),
        broken=tuple(broken),
        duplicates=duplicates,
        restricted=names,
        manager=manager,
    )


def _new_manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager("bench")
    manager.add_hookspecs(hookspecs)
    return manager


def _brought(candidate: _Candidate, manager: pluggy.PluginManager) -> dict[str, list[Any]]:
    """Import a plugin, ask what it brings, and register it; empty where it is registered under another name.

    Raises `PluginError` where it breaks a promise, and whatever its code raises.
    """
    plugin, name = candidate.fetch(), candidate.name
    brings = _vetted_once(plugin, name) if candidate.distribution == DISTRIBUTION else _vetted(plugin, name)
    if plugin in manager.get_plugins():
        return {}
    manager.register(plugin, candidate.name)
    return brings


def _vetted(plugin: object, name: str) -> dict[str, list[Any]]:
    """Return what a plugin brings. Raises `PluginError` where it breaks a promise, and whatever its code raises."""
    solitary = _new_manager()
    try:
        solitary.register(plugin, name)
    except pluggy.PluginValidationError as error:
        raise PluginError(str(error)) from error
    _check_hooks(plugin, solitary)
    return {key: _collect(solitary, kind) for key, kind in _KINDS.items()}


_vetted_once = cache(_vetted)
"""Ours are modules that stay as they are: whoever calls `bench.run` again need not wait for all of them again."""


def _check_hooks(plugin: object, manager: pluggy.PluginManager) -> None:
    """Raise `PluginError` where a plugin's hooks would never be called: misspelt, unmarked, or none at all."""
    if type(plugin).__hash__ is None:
        raise PluginError(f"a {type(plugin).__name__} cannot be hashed, expected a module or a plain object")
    hook_names = [name for name in vars(hookspecs) if name.startswith("bench_")]
    callers = manager.get_hookcallers(plugin) or []
    for caller in callers:
        if not caller.has_spec() and not all(implementation.optionalhook for implementation in caller.get_hookimpls()):
            raise PluginError(
                f"{caller.name} is no hook{did_you_mean(caller.name, hook_names)} There are: {', '.join(hook_names)}."
            )
    for name in dir(plugin):
        if name.startswith("bench_") and manager.parse_hookimpl_opts(plugin, name) is None:
            static = inspect.getattr_static(plugin, name)
            if inspect.isroutine(static) or isinstance(static, staticmethod | classmethod):
                raise PluginError(f"{name} lacks @bench.hookimpl")
    if not callers:
        raise PluginError(
            f"it has no hook, expected at least one of {', '.join(hook_names)}, marked with @bench.hookimpl"
        )


def _collect(manager: pluggy.PluginManager, kind: _Kind) -> list[Any]:
    """Return what the only plugin of a manager brings of a kind. Raises `PluginError` where it breaks a promise."""
    brought: list[Any] = []
    for answer in getattr(manager.hook, kind.hook)():
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            raise PluginError(f"{kind.hook} returned {answer!r:.80}, expected a list of {kind.type.__name__}")
        brought += islice(answer, _MOST + 1)
        if len(brought) > _MOST:
            raise PluginError(f"{kind.hook} returned more than {_MOST:,} {kind.type.__name__} objects")
    for item in brought:
        if not isinstance(item, kind.type):
            raise PluginError(f"{kind.hook} returned {item!r:.80} in its list, expected a {kind.type.__name__}")
        faults = kind.faults(item)
        if faults:
            raise PluginError(f"{kind.type.__name__} {item.name}: {'; '.join(faults)}")
    names = [item.name for item in brought]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise PluginError(f"{kind.hook} returned {', '.join(repeated)} more than once")
    return brought


class _Kind(NamedTuple):
    """A kind of thing that plugins bring: the hook that returns them, their class, and thing → its faults."""

    hook: str
    type: type[Any]
    faults: Callable[[Any], list[str]]


_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "method": _Kind("bench_methods", Method, method_faults),
        "suite": _Kind("bench_suites", Suite, suite_faults),
        "measure": _Kind("bench_measures", Measure, measure_faults),
        "corpus": _Kind("bench_corpora", PretrainingCorpus, corpus_faults),
        "run": _Kind("bench_runs", RunPreset, run_faults),
    }
)
