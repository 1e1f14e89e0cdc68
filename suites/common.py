"""What the suites share: a benchmark as data, its protocol, and where its official files are looked for.

A suite's module names its tasks, rules, averages, recipes and releases, says how a leg is made of official files and of
the embedded world, and `Benchmark.suite` makes the plugin's `Suite` of that. The card is `cards/NAME.md`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import bench.suites as face
from bench import Corpus, Item, Leg, Macro, Source, Suite, Task, Tie, UsageError, hookimpl
from bench.suites import DataRequest, File, FineTuning, Member, PairFormat, Readout, Release, Reported, official

Recipes = Mapping[str, Mapping[str, tuple[FineTuning, ...]]]
ENGLISH = "en"


@dataclass(frozen=True)
class Rules:
    """How tasks are scored (`bench.types.Task`); `official` names scorers of `suites.scorers.OFFICIAL`."""

    measures: tuple[str, ...]
    tie: Tie = "trec"
    depth: int = 100
    official: tuple[str, ...] = ()
    drop_identical: bool = False
    similarity: Literal["cos", "dot", "l2"] | None = None
    lengths: tuple[int, int] | None = None
    readout: Readout | None = None
    release: str = ""

    def task(self, identity: str, data: str, *legs: Leg) -> Task:
        """Return the task of some legs under these rules."""
        from suites.scorers import OFFICIAL

        return Task(
            identity,
            data,
            legs,
            self.measures,
            self.tie,
            self.depth,
            drop_identical=self.drop_identical,
            official=tuple(OFFICIAL[name] for name in self.official),
            similarity=self.similarity,
            lengths=self.lengths,
            release=self.release if data == "official" else "",
            readout=self.readout,
        )


@dataclass(frozen=True)
class Benchmark:
    """A suite as data; what is not explained here is as in `bench.types.Suite`."""

    name: str  # canonical; also of its folder under the folder of data, and of its card
    title: str
    summary: str
    citation: str
    licence: str
    rules: Rules  # of all tasks but those in `special`
    tasks: tuple[str, ...]  # names of the official ones
    # (task, split, request) → its legs on official data. Raises `UsageError` where a file is missing.
    legs: Callable[[str, str, DataRequest], tuple[Leg, ...]]
    macros: tuple[Macro, ...]
    mini: tuple[str, ...] = ()  # names of the tasks over the embedded world
    # (task, split, settings of the world) → its legs there
    mini_legs: Callable[[str, str, face.WorldSettings], tuple[Leg, ...]] | None = None
    dev: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by kind of data, the tasks with dev questions
    special: Mapping[str, Rules] = field(default_factory=dict)
    dev_scorers: bool = False  # official scorers score dev questions too
    primary: str = ""  # the first measure where empty
    tables: Callable[[], Mapping[str, str]] = dict  # → text by the mark in the card that it replaces
    releases: Callable[[], Sequence[Release]] | None = None
    recipes: Recipes = field(default_factory=dict)
    pair_formats: tuple[PairFormat, ...] = ()
    printed: bool = True  # papers print numbers for it
    elsewhere: str = ""  # a paper whose numbers for no suite go with this one
    stands_for: str = ""
    parallel: Literal["", "legs", "tasks"] = ""

    def suite(self) -> Suite:
        """Return what the plugin brings."""
        return Suite(
            name=self.name,
            version="1",
            title=self.title,
            summary=self.summary,
            citation=self.citation,
            licence=self.licence,
            settings=("unsupervised", *self.recipes),
            data=("official", "mini") if self.mini else ("official",),
            task_names=self.task_names,
            load=self.load,
            folder=None,
            macros=self.macros,
            primary=self.primary or self.rules.measures[0],
            card=self.card,
            dev=self.load_dev if self.dev else None,
            dev_names=self.dev_names if self.dev else None,
            stands_for=self.stands_for,
            parallel=self.parallel,
            releases=self.releases,
            reported=self.reported if self.printed else None,
            recipes=self.recipes,
            pair_formats=self.pair_formats,
        )

    def task_names(self, data: str) -> tuple[str, ...]:
        """Return the tasks for a kind of data."""
        return {"official": self.tasks, "mini": self.mini}.get(data, ())

    def dev_names(self, data: str) -> tuple[str, ...]:
        """Return the tasks with dev questions for a kind of data."""
        return self.dev.get(data, ())

    def load(self, name: str, request: DataRequest) -> Task:
        """Return a task on its test questions. Raises `UsageError` for no such task, folder or file."""
        official.check_task(self.name, name, self.task_names(request.data))
        return self._task(name, "test", request)

    def load_dev(self, name: str, request: DataRequest) -> Task:
        """Return a task on its dev questions, with an id of its own; raises as `load` does."""
        official.check_task(self.name, name, self.dev_names(request.data))
        task = self._task(name, "dev", request)
        return replace(task, id=f"{task.id}@dev", official=task.official if self.dev_scorers else ())

    def _task(self, name: str, split: str, request: DataRequest) -> Task:
        """Return a task on the questions of a split. Raises `UsageError`."""
        rules = self.special.get(name, self.rules)
        if request.data != "mini" or self.mini_legs is None:
            return rules.task(f"{self.name}/{name}", "official", *self.legs(name, split, request))

        world = face.mini.variant(request.world)
        return rules.task(f"{world.corpus}/{self.name}/{name}", world.corpus, *self.mini_legs(name, split, world))

    def card(self) -> str:
        """Return the protocol card with its tables filled in."""
        text = files("suites").joinpath(f"cards/{self.name}.md").read_text(encoding="utf-8")
        for mark, table in self.tables().items():
            text = text.replace(f"<!-- {mark} -->", table)
        return text

    def reported(self) -> Sequence[Reported]:
        """List what papers printed."""
        from suites.reported import elsewhere, of

        return (*of(self.name), *(elsewhere(self.elsewhere) if self.elsewhere else ()))


def brings(*suites: Suite) -> Callable[[], Iterable[Suite]]:
    """Return the hook by which a module brings suites."""

    @hookimpl
    def bench_suites() -> Iterable[Suite]:
        return suites

    return bench_suites


def average(suite: str, name: str, tasks: Iterable[str], note: str, *, mini: bool = False) -> Macro:
    """Return an average over tasks of a suite; `{}` in its name becomes their number."""
    members = tuple(f"{suite}/{task}" for task in tasks)
    return Macro(name.format(len(members)), members, note, mini=mini)


@cache
def table(name: str) -> Any:
    """Return the content of a JSON file below this package, lists as tuples."""
    return _frozen(json.loads(files("suites").joinpath(f"{name}.json").read_bytes()))


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(one) for key, one in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def about(name: str) -> dict[str, Any]:
    """Return a suite's name and what `about.json` says of it: title, summary, citation, licence and the like."""
    return {"name": name, **table("about")[name]}


def published(name: str) -> Any:
    """Return what `published.json` says of a suite: languages, counts, sizes and checksums as they were published."""
    return table("published")[name]


def markdown(head: str, rows: Iterable[Iterable[object]], aligned: str = "l") -> str:
    """Return a Markdown table; `head` separates columns by `|`, `aligned` is l or r for the first of them, then r."""
    names = head.split("|")
    rule = "".join("---|" if side == "l" else "---:|" for side in aligned.ljust(len(names), "r"))
    cells = ([f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows)
    return "\n".join([f"| {' | '.join(names)} |", f"|{rule}", *(f"| {' | '.join(row)} |" for row in cells)])


def find(*places: Path, expected: str, hint: str, packed: Member | None = None) -> File:
    """Return the first place that is a file, else inside an archive. Raises `UsageError` with the first for neither."""
    if found := present(*places):
        return found
    if not official.files_required():
        return places[0]
    if packed is not None and packed.archive.is_file():
        return packed
    lacking = f"no such file, nor {packed.archive}" if packed else "no such file"
    raise UsageError(where=places[0], found=lacking, expected=expected, hint=hint)


def present(*places: Path) -> Path | None:
    """Return the first place that is a file."""
    return next((path for path in places if path.is_file()), None)


def plain_or_packed(folder: Path, name: str) -> tuple[Path, Path]:
    """Return the two places of a file that may be compressed."""
    return folder / name, folder / f"{name}.gz"


def missing(path: Path, name: str, expected: str, hint: str) -> Source[Item]:
    """Return a source of texts that are not there, so that others can be read; reading it raises `UsageError`."""
    return Source(name, "missing/1", (path,), partial(_missing, path, expected, hint))


def _missing(path: Path, expected: str, hint: str) -> Iterator[Item]:
    raise UsageError(where=path, found="no such file", expected=expected, hint=hint)


def answering(found: face.Answering, pool: str, language: str) -> Leg:
    """Return a leg of questions of the embedded world that English passages, whose id is `pool`, answer by strings."""
    corpus = Corpus(pool, found.corpus, ENGLISH)
    asked, accepted = face.mini.queries_of(found.questions), face.mini.answers_of(found.questions)
    return Leg("", asked, None, corpus, language, answers=accepted)
