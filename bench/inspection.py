"""Read a suite's official data through: every leg's corpus, questions and judgements, with their published counts.

The stages `validate` and `read` do it, through the store: what they found is kept, and a run need not do it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bench.config import resolve_run
from bench.errors import BenchError, DataError, DataFaultsError, UsageError
from bench.graph import Listener, Node, closure, make
from bench.plugins import Plugins
from bench.recipes import Recipes
from bench.request import Request
from bench.selection import tasks_of
from bench.store import Store
from bench.types import Suite

Verdict = Literal["ok", "missing", "wrong"]


@dataclass(frozen=True)
class Inspected:
    """A leg, and what came of reading it.

    Args:
        task: its id.
        leg: its name, empty where the task has one only.
        verdict: `missing` where files are, `wrong` where they are not what was published.
        counts: documents, queries, judgements, answers, as far as they were read.
        reason: in a sentence; empty where all is well.
    """

    task: str
    leg: str
    verdict: Verdict
    counts: dict[str, int] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Prepared:
    """Legs to be read.

    Args:
        legs: each with its last stage, or with what is known already.
    """

    legs: tuple[tuple[Inspected, Node | None], ...]

    @property
    def nodes(self) -> list[Node]:
        """The last stages."""
        return [node for _, node in self.legs if node is not None]


def prepare(suite: Suite, names: Sequence[str], data_dir: Path | None, plugins: Plugins, store: Store) -> Prepared:
    """Find the legs of tasks on official data; only the checksums of their files are read.

    Args:
        suite: the suite.
        names: its tasks, without its prefix; dev questions end with `@dev`.
        data_dir: the folder of data.
        plugins: for the stages.
        store: for checksums.
    """
    settings, own = resolve_run()
    recipes = Recipes(store, plugins, own)
    found: list[tuple[Inspected, Node | None]] = []
    for name in names:
        request = Request(methods=(), suites=(suite.name,), tasks=(f"{suite.name}/{name}",), data_dir=data_dir)
        try:
            (task,) = tasks_of(suite, request, "official", settings.mini.world)
        except (UsageError, DataError, DataFaultsError) as error:
            found.append((_fault(f"{suite.name}/{name}", "", error), None))
            continue
        for leg in task.legs:
            title = f"{task.id}{' ' + leg.name if leg.name else ''}"
            try:
                node = recipes.read(leg, title, settings.data.unknown_ids)
            except (UsageError, DataError, DataFaultsError) as error:
                found.append((_fault(task.id, leg.name, error), None))
            else:
                found.append((Inspected(task.id, leg.name, "ok"), node))
    return Prepared(tuple(found))


def carry_out(prepared: Prepared, store: Store, listener: Listener) -> list[Inspected]:
    """Read every leg; a fault in one does not keep the others from being read.

    Raises:
        StoreError: the store cannot be written.
    """
    faults: dict[str, BenchError] = {}
    return [leg if node is None else _read(leg, node, store, listener, faults) for leg, node in prepared.legs]


def _read(leg: Inspected, node: Node, store: Store, listener: Listener, faults: dict[str, BenchError]) -> Inspected:
    """Make what a leg's last stage rests on, and it; a corpus that failed once is not read again for every leg."""
    facts: dict[str, Any] = {}
    for item in closure([node]):
        if item.key in faults:
            return _fault(leg.task, leg.leg, faults[item.key])
        ready = store.open(item.recipe)
        try:
            facts |= (ready or make(item, store, listener)).facts
        except (UsageError, DataError, DataFaultsError) as error:
            faults[item.key] = error
            return _fault(leg.task, leg.leg, error)
    kinds = ("documents", "queries", "judgements", "answers")
    return Inspected(leg.task, leg.leg, "ok", {kind: facts[kind] for kind in kinds if kind in facts})


def _fault(task: str, leg: str, error: BenchError) -> Inspected:
    """A leg that cannot be read: files that are not there are a mistake that typing mends, all else is in the files."""
    return Inspected(task, leg, "missing" if isinstance(error, UsageError) else "wrong", reason=str(error))
