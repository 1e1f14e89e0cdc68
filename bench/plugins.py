"""Plugins: found by entry points, loaded one by one, looked up by name; a broken one fails only what needs it.

Nothing is loaded before `load` is called. It loads all entry points of the group `bench` at once: plugins are light by
contract (no torch, no disk, no network), and only so can two owners of one name be told, whichever was asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Generic, TypeVar

import pluggy

from bench.errors import PluginError, UsageError
from bench.promises import KINDS, collect, mind_hooks, new_manager, reason_of
from bench.run_presets import RunPreset
from bench.types import Measure, Method, Suite
from bench.wording import canonical, unknown

GROUP = "bench"
"""The entry-point group; its names are the plugins' names."""

VARIABLE = "BENCH_PLUGINS"
"""Environment variable that restricts which plugins are loaded."""

OWN_DISTRIBUTION = "retrieval-bench"

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Owned(Generic[T]):
    """Something that a plugin brings, and which plugin.

    Args:
        value: the method, suite, measure or run preset.
        plugin: name of the entry point.
        distribution: what to uninstall to be rid of it; `given directly` for an object handed to `load`.
        module: where the plugin lives, e.g. `methods.bm25`.
    """

    value: T
    plugin: str
    distribution: str
    module: str

    @property
    def owner(self) -> str:
        """Distribution and module, as listings show them."""
        return f"{self.distribution} ({self.module})"


@dataclass(frozen=True)
class Broken:
    """A plugin that was set aside.

    Args:
        name: name of the entry point.
        distribution: what brought it.
        reason: one line.
        traceback: where it broke, for its author.
    """

    name: str
    distribution: str
    reason: str
    traceback: str = field(repr=False)


@dataclass(frozen=True)
class Duplicate:
    """A name that several plugins bring; none of them has it.

    Args:
        kind: `method`, `suite`, `measure` or `run`.
        name: the name.
        owners: distribution and module of each.
    """

    kind: str
    name: str
    owners: tuple[str, ...]

    @property
    def reason(self) -> str:
        """What stands in the way, and the remedy, in a sentence."""
        return (
            f"{self.kind} {self.name} is brought by {' and by '.join(self.owners)}; "
            f"uninstall all but one of them, or name in {VARIABLE} only the plugins that you want"
        )


@dataclass(frozen=True)
class Plugins:
    """What all sound plugins bring, and what is wrong with the others.

    Args:
        methods: by name; names with several owners are left out (see `duplicates`), and so below.
        suites: by name.
        measures: by name, without the cut.
        runs: run presets by name.
        loaded: plugin name → its owner, for every sound plugin.
        broken: plugins that were set aside.
        duplicates: names with several owners.
        restricted: what `BENCH_PLUGINS` named, or None where it was not set.
        manager: pluggy's manager of the sound plugins.
    """

    methods: Mapping[str, Owned[Method]]
    suites: Mapping[str, Owned[Suite]]
    measures: Mapping[str, Owned[Measure]]
    runs: Mapping[str, Owned[RunPreset]]
    loaded: Mapping[str, str]
    broken: tuple[Broken, ...]
    duplicates: tuple[Duplicate, ...]
    restricted: tuple[str, ...] | None
    manager: pluggy.PluginManager = field(repr=False)

    @property
    def hook(self) -> pluggy.HookRelay:
        """Pluggy's relay, unguarded: a plugin's exception comes through (`notify` holds it back)."""
        return self.manager.hook

    @property
    def measures_by_name(self) -> dict[str, Measure]:
        """The measures alone, without their owners."""
        return {name: owned.value for name, owned in self.measures.items()}

    def method(self, name: str) -> Method:
        """Return a method; `auto_mlm` finds `auto-mlm`.

        Raises:
            UsageError: nobody brings it.
            PluginError: several plugins bring it, or the plugin of that name is broken.
        """
        return self._find("method", name, self.methods)

    def suite(self, name: str) -> Suite:
        """Return a suite; raises as `method` does."""
        return self._find("suite", name, self.suites)

    def run_preset(self, name: str | None) -> RunPreset | None:
        """Return the run preset of a name; None where nobody brings one, as the name may be a method's preset."""
        owned = self.runs.get(canonical(name or ""))
        return owned.value if owned else None

    def notify(self, hook: str, **arguments: Any) -> None:
        """Call a tracker's hook in every plugin that has it; one that raises is told on the log and left behind.

        Raises:
            AttributeError: there is no hook of that name.
        """
        everyone = self.manager.get_plugins()
        for plugin in {one.plugin: one for one in getattr(self.hook, hook).get_hookimpls()}:
            try:
                self.manager.subset_hook_caller(hook, everyone - {plugin})(**arguments)
            except (Exception, SystemExit) as error:  # a tracker must not cost a run, whatever it does
                name = self.manager.get_name(plugin)
                _LOG.warning("plugin %s failed in %s and is passed over: %s", name, hook, reason_of(error))
                _LOG.debug("plugin %s", name, exc_info=True)

    def _find(self, kind: str, name: str, shelf: Mapping[str, Owned[T]]) -> T:
        """Return what stands on a shelf under a name, or say why nothing does."""
        wanted = canonical(name)
        if wanted in shelf:
            return shelf[wanted].value
        twice = [one for one in self.duplicates if one.kind == kind]
        for one in twice:
            if one.name == wanted:
                raise PluginError(one.reason)
        for other in self.broken:
            if canonical(other.name) == wanted:
                raise PluginError(f"plugin {other.name} of {other.distribution} is broken: {other.reason}")
        sentences = [unknown(kind, name, sorted([*shelf, *(one.name for one in twice)]))]
        if self.broken:
            told = "; ".join(f"{other.name} of {other.distribution}: {other.reason}" for other in self.broken)
            sentences.append(f"It may belong to a plugin that is broken ({told}).")
        if self.restricted is not None:
            sentences.append(f"{VARIABLE} restricts plugins to: {', '.join(self.restricted) or 'none'}.")
        elif not self.loaded:
            sentences.append(f"No plugin is installed; type pip install {OWN_DISTRIBUTION}.")
        raise UsageError(" ".join(sentences))


def load(
    environ: Mapping[str, str] = os.environ,
    *,
    extra: Iterable[object] = (),
    entries: Iterable[EntryPoint] | None = None,
) -> Plugins:
    """Load the plugins, one by one; one that breaks is set aside.

    Args:
        environ: where `BENCH_PLUGINS` is looked up: a comma list of plugin or distribution names, empty for none.
        extra: modules or objects with hooks that no entry point names; `BENCH_PLUGINS` does not touch them.
        entries: the entry points, by default those of the group `bench` that are installed.

    Raises:
        UsageError: `BENCH_PLUGINS` names a plugin that is not installed.
    """
    found = [_from_entry(entry) for entry in (entry_points(group=GROUP) if entries is None else entries)]
    # Ours first, so that listings begin with them; then an order that does not hang on the order of installation.
    found.sort(key=lambda one: (one.distribution != OWN_DISTRIBUTION, one.distribution, one.name))
    names = _restriction(environ, found)
    if names is not None:
        found = [one for one in found if {canonical(one.name), canonical(one.distribution)} & set(names)]
    vetted = [_vet(one) for one in _distinct([*found, *map(_from_object, extra)])]
    return _gather(
        [one for one in vetted if isinstance(one, _Sound)], [one for one in vetted if isinstance(one, Broken)], names
    )


def own_package(name: str) -> ModuleType:
    """Import a top-level package of ours (`methods`, `suites`, `leaderboard`), never a stranger of that name.

    Raises:
        PluginError: Python finds another package or module first, or none.
    """
    ours = Path(__file__).resolve().parent.parent / name
    places = _places(name)
    if not places:
        raise PluginError(f"found no package {name!r}, expected {ours}; install {OWN_DISTRIBUTION} again")
    if ours not in places:
        raise PluginError(
            f"the import name {name!r} is taken by {places[0]}, which hides {OWN_DISTRIBUTION}'s own; "
            "run from another folder or rename it"
        )
    return importlib.import_module(name)


def _places(name: str) -> list[Path]:
    """Return the folders of a top-level package, or the file of a module, as Python would import it now."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module that someone put into sys.modules by hand
        file = getattr(sys.modules[name], "__file__", None)
        return [Path(file).resolve()] if file else [Path(f"<{name} in sys.modules>")]
    if spec is None:
        return []
    return [Path(place).resolve() for place in spec.submodule_search_locations or [spec.origin or f"<{name}>"]]


@dataclass(frozen=True)
class _Candidate:
    """A plugin before it is loaded."""

    name: str
    distribution: str
    module: str
    fetch: Callable[[], object]


@dataclass(frozen=True)
class _Sound:
    """A plugin that keeps its promises, and all that it brings by kind."""

    candidate: _Candidate
    plugin: object
    brings: Mapping[str, Sequence[Any]]


def _from_entry(entry: EntryPoint) -> _Candidate:
    """Return the candidate that an entry point names; nothing is imported yet."""
    distribution = (entry.dist.name if entry.dist else "") or "an unknown distribution"
    # Not entry.module: it raises where a stranger's entry point is malformed, and that must wait until it is vetted.
    module = entry.value.partition(":")[0].strip()
    return _Candidate(entry.name, distribution, module, partial(_fetch, entry, canonical(distribution)))


def _fetch(entry: EntryPoint, distribution: str) -> object:
    """Import what an entry point names; one of ours only from where ours are."""
    if distribution == OWN_DISTRIBUTION:
        own_package(entry.module.partition(".")[0])
    return entry.load()


def _from_object(plugin: object) -> _Candidate:
    """Return the candidate that stands for an object given directly."""
    home = (
        plugin.__name__ if isinstance(plugin, ModuleType) else f"{type(plugin).__module__}.{type(plugin).__qualname__}"
    )
    return _Candidate(home.rpartition(".")[2], "given directly", home, lambda: plugin)


def _distinct(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Tell apart plugins of one name by their distribution (and number), so that listings show each."""
    seen: dict[str, _Candidate] = {}
    for one in candidates:
        label = one.name if one.name not in seen else f"{one.name} of {one.distribution}"
        number = 2
        while label in seen:
            label, number = f"{one.name} of {one.distribution} ({number})", number + 1
        seen[label] = _Candidate(label, one.distribution, one.module, one.fetch)
    return list(seen.values())


def _restriction(environ: Mapping[str, str], found: Iterable[_Candidate]) -> tuple[str, ...] | None:
    """Return the canonical names in `BENCH_PLUGINS`, None where it is not set."""
    if VARIABLE not in environ:
        return None
    typed = [name.strip() for name in environ[VARIABLE].split(",") if name.strip()]
    known = {canonical(name): name for one in found for name in (one.name, one.distribution)}
    for name in typed:
        if canonical(name) not in known:
            raise UsageError(f"{VARIABLE}={environ[VARIABLE]}: " + unknown("plugin", name, sorted(known.values())))
    return tuple(map(canonical, typed))


def _vet(candidate: _Candidate) -> _Sound | Broken:
    """Load one plugin, alone with the hooks, and collect what it brings; whatever goes wrong is its reason."""
    try:
        plugin = candidate.fetch()
        manager = new_manager()
        manager.register(plugin, candidate.name)
        mind_hooks(plugin, manager)
        return _Sound(candidate, plugin, {name: collect(manager, kind) for name, kind in KINDS.items()})
    except (Exception, SystemExit) as error:  # a stranger's code may raise anything
        return Broken(candidate.name, candidate.distribution, reason_of(error), traceback.format_exc())


def _gather(sound: Iterable[_Sound], broken: Iterable[Broken], names: tuple[str, ...] | None) -> Plugins:
    """Join the sound plugins; a name with several owners goes to none of them."""
    manager = new_manager()
    shelves: dict[str, dict[str, list[Owned[Any]]]] = {kind: {} for kind in KINDS}
    loaded: dict[str, str] = {}
    for one in sound:
        if one.plugin in manager.get_plugins():
            continue  # two entry points name the same object: one plugin
        manager.register(one.plugin, one.candidate.name)
        loaded[one.candidate.name] = f"{one.candidate.distribution} ({one.candidate.module})"
        for kind, things in one.brings.items():
            for thing in things:
                owned = Owned(thing, one.candidate.name, one.candidate.distribution, one.candidate.module)
                shelves[kind].setdefault(thing.name, []).append(owned)
    single = {
        kind: MappingProxyType({name: owners[0] for name, owners in shelf.items() if len(owners) == 1})
        for kind, shelf in shelves.items()
    }
    duplicates = tuple(
        Duplicate(kind, name, tuple(one.owner for one in owners))
        for kind, shelf in shelves.items()
        for name, owners in shelf.items()
        if len(owners) > 1
    )
    return Plugins(
        methods=single["method"],
        suites=single["suite"],
        measures=single["measure"],
        runs=single["run"],
        loaded=MappingProxyType(loaded),
        broken=tuple(broken),
        duplicates=duplicates,
        restricted=names,
        manager=manager,
    )
