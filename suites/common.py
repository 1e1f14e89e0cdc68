"""What the suites share: a benchmark as data, its protocol, and where its official files are looked for.

A suite's module names its tasks, protocol, averages, recipes and releases, says how subsets come from official files
and the embedded world, and `Benchmark.suite` makes the plugin's `Suite` of that. The card is `cards/NAME.md`.
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
from bench import Corpus, Item, Macro, Source, Subset, Suite, Task, Tie, UsageError, hookimpl
from bench.suites import DataRequest, File, FineTuneStep, Member, PairFormat, Readout, Release, Reported, official

Recipes = Mapping[str, Mapping[str, tuple[FineTuneStep, ...]]]
"""By regime and name of the recipe: the fine-tunings, each of which goes on from the one before."""
Subsets = Subset | tuple[Subset, ...]
ENGLISH = "en"


@dataclass(frozen=True)
class ScoringProtocol:
    """How tasks are searched and scored; fields are as in `bench.types.Task`.

    `official` names scorers of `suites.scorers.OFFICIAL`, whose values are shown next to ours. `release` is the version
    of the official data, and not given for the embedded world.

    Example:
        >>> ScoringProtocol(("RR@100", "R@100")).task("mrtydi/sw", "official", subset).measures
        ('RR@100', 'R@100')
    """

    measures: tuple[str, ...]
    tie: Tie = "trec"
    depth: int = 100
    official: tuple[str, ...] = ()
    drop_identical: bool = False
    similarity: Literal["cos", "dot", "l2"] | None = None
    lengths: tuple[int, int] | None = None  # tokens of a query and of a passage
    readout: Readout | None = None
    release: str = ""
    measures_by: str = ""

    def task(self, identity: str, data: str, *subsets: Subset, notice: str = "") -> Task:
        """Return the task with id `identity` on `data` (`official`, `mini`, …) that consists of `subsets`."""
        from suites.scorers import OFFICIAL

        return Task(
            identity,
            data,
            subsets,
            self.measures,
            self.tie,
            self.depth,
            drop_identical=self.drop_identical,
            official=tuple(OFFICIAL[name] for name in self.official),
            similarity=self.similarity,
            lengths=self.lengths,
            release=self.release if data == "official" else "",
            readout=self.readout,
            measures_by=self.measures_by,
            notice=notice,
        )


@dataclass(frozen=True)
class Benchmark:
    """A suite as data; fields without a comment are as in `bench.types.Suite`.

    Example: `suites/mkqa.py` is a whole one; it ends with

        BENCHMARK = Benchmark(name="mkqa", protocol=ScoringProtocol(("answer-R@100",)), tasks=LANGUAGES, …)
        SUITE = BENCHMARK.suite()
        bench_suites = brings(SUITE)
    """

    name: str  # canonical; also of its folder under the folder of data, and of its card
    title: str
    summary: str
    citation: str
    licence: str
    protocol: ScoringProtocol  # of all tasks but those in `special`
    tasks: tuple[str, ...]  # names of the official ones
    # (task, split, request) → its subset or subsets on official data. Raises `UsageError` where a file is missing.
    subsets: Callable[[str, str, DataRequest], Subsets]
    macros: tuple[Macro, ...]
    mini: tuple[str, ...] = ()  # names of the tasks over the embedded world
    # (task, split, settings of the world) → its subset or subsets there
    mini_subsets: Callable[[str, str, face.WorldSettings], Subsets] | None = None
    dev: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by kind of data, the tasks with dev questions
    special: Mapping[str, ScoringProtocol] = field(default_factory=dict)
    dev_scorers: bool = False  # official scorers score dev questions too
    primary: str = ""  # default: the first measure
    titles: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)  # mark in the card → the table that replaces it
    releases: tuple[Release, ...] = ()
    recipes: Recipes = field(default_factory=dict)
    pair_formats: tuple[PairFormat, ...] = ()
    printed: bool = True  # papers print numbers for it
    also_reported: str = ""  # a paper whose numbers for no suite go with this one
    proxy_for: str = ""
    parallel: Literal["", "subsets", "tasks"] = ""

    def suite(self) -> Suite:
        """Return the plugin's suite, whose functions read this benchmark."""
        return Suite(
            name=self.name,
            version="1",
            title=self.title,
            summary=self.summary,
            citation=self.citation,
            licence=self.licence,
            regimes=("unsupervised", *self.recipes),
            data=("official", "mini") if self.mini else ("official",),
            task_names=self.task_names,
            load=self.load,
            folder=None,
            macros=self.macros,
            primary=self.primary or self.protocol.measures[0],
            card=self.card,
            titles=self.titles,
            dev=self.load_dev if self.dev else None,
            dev_names=(lambda data: self.dev.get(data, ())) if self.dev else None,
            proxy_for=self.proxy_for,
            parallel=self.parallel,
            releases=(lambda: self.releases) if self.releases else None,
            reported=self.reported if self.printed else None,
            recipes=self.recipes,
            pair_formats=self.pair_formats,
        )

    def task_names(self, data: str) -> tuple[str, ...]:
        """Return the names of the tasks for a kind of data, without the suite's prefix."""
        return {"official": self.tasks, "mini": self.mini}.get(data, ())

    def load(self, name: str, request: DataRequest, split: str = "test") -> Task:
        """Return a task on the questions of a split.

        Raises:
            UsageError: no task of that name, no folder of data, or a missing file.
        """
        official.check_task(self.name, name, self.task_names(request.data))
        protocol = self.special.get(name, self.protocol)
        if request.data != "mini" or self.mini_subsets is None:
            subsets, prefix, data = self.subsets(name, split, request), "", "official"
        else:
            world = face.mini.variant(request.world)
            subsets, prefix, data = self.mini_subsets(name, split, world), f"{world.corpus}/", world.corpus
        return protocol.task(
            f"{prefix}{self.name}/{name}", data, *((subsets,) if isinstance(subsets, Subset) else subsets)
        )

    def load_dev(self, name: str, request: DataRequest) -> Task:
        """Return a task on its dev questions, with the id `SUITE/NAME@dev`. Raises as `load` does."""
        official.check_task(self.name, name, self.dev.get(request.data, ()))
        task = self.load(name, request, "dev")
        return replace(task, id=f"{task.id}@dev", official=task.official if self.dev_scorers else ())

    def card(self) -> str:
        """Return the protocol card with its tables filled in."""
        text = files("suites").joinpath(f"cards/{self.name}.md").read_text(encoding="utf-8")
        for mark, table in self.tables.items():
            text = text.replace(f"<!-- {mark} -->", table)
        return text

    def reported(self) -> Sequence[Reported]:
        """List what papers printed."""
        from suites.reported import numbers, numbers_without_suite

        return (*numbers(self.name), *(numbers_without_suite(self.also_reported) if self.also_reported else ()))


def brings(*suites: Suite) -> Callable[[], Iterable[Suite]]:
    """Return the hook by which a module brings suites.

    Example:
        >>> bench_suites = brings(SUITE)
    """

    @hookimpl
    def bench_suites() -> Iterable[Suite]:
        return suites

    return bench_suites


def average(suite: str, name: str, tasks: Iterable[str], note: str, *, mini: bool = False) -> Macro:
    """Return an unweighted average over tasks of a suite.

    Args:
        suite: name of the suite.
        name: of the average; `{}` in it becomes the number of its members.
        tasks: its members, without the suite's prefix; `TASK:SUBSET` for one subset.
        note: what a reader must know.
        mini: whether it is for results on the embedded world alone.

    Example:
        >>> average("mrtydi", "Avg. ({})", ("sw", "te"), "two of 11").name
        'Avg. (2)'
    """
    members = tuple(f"{suite}/{task}" for task in tasks)
    return Macro(name.format(len(members)), members, note, mini=mini)


@cache
def table(name: str) -> Any:
    """Return the content of a JSON file below this package, lists as tuples."""
    return _frozen(json.loads(files("suites").joinpath(f"{name}.json").read_bytes()))


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(member) for key, member in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def metadata(name: str) -> dict[str, Any]:
    """Return fields of a `Benchmark` from `about.json`: its name, title, summary, citation, licence and the like."""
    return {"name": name, **table("about")[name]}


def published(name: str) -> Any:
    """Return what `published.json` says of a suite: languages, counts, sizes and checksums as they were published."""
    return table("published")[name]


def markdown(head: str, rows: Iterable[Iterable[object]], aligned: str = "l") -> str:
    """Return a Markdown table, with whole numbers as `1,234`.

    Args:
        head: titles of the columns, separated by `|`.
        rows: cells, row by row.
        aligned: `l` or `r` for the first columns; the others are aligned right.
    """
    names = head.split("|")
    rule = "".join("---|" if side == "l" else "---:|" for side in aligned.ljust(len(names), "r"))
    cells = ([f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows)
    return "\n".join([f"| {' | '.join(names)} |", f"|{rule}", *(f"| {' | '.join(row)} |" for row in cells)])


def find(*paths: Path, expected: str, hint: str, packed: Member | None = None) -> File:
    """Return the first path that is a file, else the member of an archive.

    Args:
        paths: where the file may lie, the place that messages name first.
        expected: what the file holds, in words.
        hint: where it can be had.
        packed: the member, if a release has the file in an archive.

    Raises:
        UsageError: none of these is there, and files have to be (`official.files_required`).
    """
    if path := first_file(*paths):
        return path
    if not official.files_required():
        return paths[0]
    if packed is not None and packed.archive.is_file():
        return packed
    missing = f"no such file, nor {packed.archive}" if packed else "no such file"
    raise UsageError(where=paths[0], found=missing, expected=expected, hint=hint)


def first_file(*paths: Path) -> Path | None:
    """Return the first path that is a file, None if there is none."""
    return next((path for path in paths if path.is_file()), None)


def plain_or_packed(folder: Path, name: str) -> tuple[Path, Path]:
    """Return the two places of a file that may be compressed: `NAME` and `NAME.gz`."""
    return folder / name, folder / f"{name}.gz"


def optional_source(
    read: Callable[[File, str], Source[Item]],
    paths: Sequence[Path],
    name: str,
    *,
    expected: str,
    hint: str,
    place: Path | None = None,
) -> Source[Item]:
    """Return a source of texts whose file may be missing, so that the rest of a task can be counted and scored.

    Args:
        read: (file, name) → the source.
        paths: where the file may lie, in the order of preference.
        name: of the source.
        expected: what the file holds, in words.
        hint: where it can be had.
        place: the path that messages name; default: the first.

    Returns:
        `read` of the first path that is a file; otherwise a source that raises `UsageError` when it is read.
    """
    if path := first_file(*paths):
        return read(path, name)
    place = place or paths[0]
    return Source(name, "missing/1", (place,), partial(_missing, place, expected, hint))


def _missing(path: Path, expected: str, hint: str) -> Iterator[Item]:
    raise UsageError(where=path, found="no such file", expected=expected, hint=hint)


def answering(questions: face.Answering, pool: str, language: str) -> Subset:
    """Return a subset of questions of the embedded world that English passages, of the id `pool`, answer by strings."""
    queries, answers = face.mini.queries_of(questions.questions), face.mini.answers_of(questions.questions)
    return Subset("", queries, None, Corpus(pool, questions.corpus, ENGLISH), language, answers=answers)
