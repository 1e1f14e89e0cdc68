"""What all substitutes share: tables of parts, files under the folder of data, the card, and how a suite is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

from bench.data import beir, official
from bench.errors import UsageError
from bench.publications import Release
from bench.substitutes import mark
from bench.types import Corpus, DataRequest, FineTuning, Item, Leg, Macro, Readout, Source, Suite, Task, Tie
from suites.tunings import MSM_MRTYDI, SUPERVISED, single, then, trained_on

SPLITS = ("test", "dev", "train")
"""`test` is scored; the others, where there are any, have questions to choose by and to train on."""

INSTRUCTIONS = (
    "Nothing of it can be fetched: it was put together from several sources by the data kit that goes with this "
    "project. Ask the maintainers for the kit and run its `lay_out.py FOLDER`, with your folder of data for FOLDER "
    "(--data-dir, BENCH_DATA); its README names every source with its commit."
)
_CHECKSUMS = "checksums/substitutes.txt"


@dataclass(frozen=True)
class Part:
    """One task of a substitute.

    Args:
        name: of the task, without the suite's prefix.
        language: of its queries, ISO 639; empty where each query says its own.
        documents: in the corpus that it searches.
        counts: by split: judged queries and judgements.
        folder: where it lies under the suite's folder; empty for that folder itself.
        averaged: it is a member of the suite's average.
    """

    name: str
    language: str
    documents: int
    counts: Mapping[str, tuple[int, int]]
    folder: str = ""
    averaged: bool = True


def table(text: str, *, folders: bool) -> tuple[Part, ...]:
    """Read parts from lines of name, documents, and judged queries / judgements of test, dev and train.

    Args:
        text: the lines; `-` stands for a split that is not there. A name begins with its language's code.
        folders: every part lies in a folder of its name, instead of all in the suite's.
    """
    found = []
    for line in text.strip().splitlines():
        name, documents, *pairs = line.split()
        given = {split: pair.split("/") for split, pair in zip(SPLITS, pairs, strict=True) if pair != "-"}
        counts = {split: (int(queries), int(judgements)) for split, (queries, judgements) in given.items()}
        found.append(Part(name, name.partition("_")[0], int(documents), counts, name if folders else ""))
    return tuple(found)


@dataclass(frozen=True)
class Rules:
    """How a task is scored; see `bench.types.Task`."""

    measures: tuple[str, ...]
    tie: Tie = "trec"
    depth: int = 100
    official: tuple[str, ...] = ()
    similarity: Literal["cos", "dot"] | None = None
    readout: Readout | None = None


@dataclass(frozen=True)
class Place:
    """What a leg is made of.

    Args:
        suite: its name.
        part: of the suite.
        split: one that the part has.
        folder: where the part lies.
    """

    suite: str
    part: Part
    split: str
    folder: Path

    @property
    def identity(self) -> str:
        """Name of the task."""
        return f"{self.suite}/{self.part.name}"

    @property
    def counts(self) -> dict[str, int]:
        """What is asserted of the split."""
        queries, judgements = self.part.counts[self.split]
        return {"queries": queries, "qrels": judgements}


def own_pool(place: Place) -> Leg:
    """Ask in the language of the passages; every part has its own."""
    return _leg(place, Corpus(place.identity, _passages(place), place.part.language, place.part.documents))


def english_pool(place: Place) -> Leg:
    """Ask in the part's language, answer in English; the passages of all parts are the same."""
    return _leg(place, Corpus(f"{place.suite}/english", _passages(place), "en", place.part.documents))


@dataclass(frozen=True)
class Substitute:
    """A substitute as data; `suite` makes the plugin's part of it.

    Args:
        name: canonical; also of its folder under the folder of data, and of its card.
        stands_for: the benchmark whose rules it takes over.
        title: how pages call it.
        summary: one sentence.
        citation: of the data that it is made of.
        licence: in a phrase.
        parts: its tasks.
        rules: of all of them.
        leg: how a leg is made of a part.
        average: what the average is called, and its note.
    """

    name: str
    stands_for: str
    title: str
    summary: str
    citation: str
    licence: str
    parts: tuple[Part, ...]
    rules: Rules
    leg: Callable[[Place], Leg]
    average: tuple[str, str]
    by_name: Mapping[str, Part] = field(init=False)

    def __post_init__(self) -> None:
        """Index the parts."""
        object.__setattr__(self, "by_name", {part.name: part for part in self.parts})

    def suite(self) -> Suite:
        """Make the suite."""
        averaged = tuple(f"{self.name}/{part.name}" for part in self.parts if part.averaged)
        has_dev = bool(self.dev_names("official"))
        recipes = self.recipes()
        return Suite(
            name=self.name,
            version="1",
            title=self.title,
            summary=self.summary,
            citation=self.citation,
            licence=f"{self.licence}.",
            settings=("unsupervised", *recipes),
            data=("official",),
            task_names=self.task_names,
            load=self.load,
            folder=None,
            macros=(Macro(self.average[0], averaged, self.average[1]),),
            primary=self.rules.measures[0],
            card=self.card,
            dev=self.dev if has_dev else None,
            dev_names=self.dev_names if has_dev else None,
            stands_for=self.stands_for,
            releases=self.releases,
            recipes=recipes,
        )

    def recipes(self) -> dict[str, dict[str, tuple[FineTuning, ...]]]:
        """Name how encoders are tuned: on English pairs, then on the training questions of its tasks."""
        first = single(SUPERVISED)
        if not any("train" in part.counts for part in self.parts):
            return {"english": first}
        name = f"{self.name}-train"
        own = FineTuning(name, trained_on(self.training_legs, name), MSM_MRTYDI, "ours: under MSM's settings")
        return {"english": first, "multilingual": then(first, own)}

    def training_legs(self, request: DataRequest) -> dict[str, Leg]:
        """Find the training questions of the tasks that have some, by task."""
        names = [part.name for part in self.parts if "train" in part.counts]
        return {f"{self.name}/{name}": self.find(name, "train", request) for name in names}

    def task_names(self, data: str) -> tuple[str, ...]:
        """List the parts; there are none in other data than `official`."""
        return tuple(self.by_name) if data == "official" else ()

    def dev_names(self, data: str) -> tuple[str, ...]:
        """List the parts that have dev questions."""
        return tuple(name for name in self.task_names(data) if "dev" in self.by_name[name].counts)

    def load(self, name: str, request: DataRequest) -> Task:
        """Find the test questions of a part and its passages.

        Raises:
            UsageError: if there is no such part or folder, or a file is missing.
        """
        one, rules = self.find(name, "test", request), self.rules
        return Task(
            f"{self.name}/{name}",
            "official",
            (one,),
            rules.measures,
            rules.tie,
            rules.depth,
            official=rules.official,
            similarity=rules.similarity,
            readout=rules.readout,
        )

    def dev(self, name: str, request: DataRequest) -> Task:
        """Find the dev questions of a part, to choose settings by; raises as `find` does."""
        task = self.load(name, request)
        return replace(task, id=f"{task.id}@dev", legs=(self.find(name, "dev", request),), official=())

    def find(self, name: str, split: str, request: DataRequest) -> Leg:
        """Find the questions of a split with what judges them, and the passages; `train` serves training.

        Args:
            name: of the part.
            split: one of `SPLITS`.
            request: says where the files lie.

        Raises:
            UsageError: as `load` does, and for a split that the part does not have.
        """
        part = self.by_name[official.known(self.name, name, self.task_names(request.data))]
        if split not in part.counts:
            having = [one.name for one in self.parts if split in one.counts]
            raise UsageError(
                f"{self.name}/{name} has no {split} questions, only {', '.join(part.counts)}; parts that have some: "
                f"{', '.join(having) or 'none'}"
            )
        return self.leg(Place(self.name, part, split, official.folder(request, self.name) / part.folder))

    def releases(self) -> tuple[Release, ...]:
        """List the files that are read, each with size and checksum; none of them can be fetched."""
        return tuple(self._releases())

    def _releases(self) -> Iterator[Release]:
        """Read the table of checksums."""
        for line in files("suites").joinpath(_CHECKSUMS).read_text(encoding="utf-8").splitlines():
            sha256, size, path = line.split()
            suite, _, below = path.partition("/")
            if suite == self.name:
                first = below.partition("/")[0]
                tasks = (first,) if first in self.by_name else ()
                yield Release(path, (), self.licence, int(size), sha256, tasks=tasks, instructions=INSTRUCTIONS)

    def card(self) -> str:
        """Return the protocol card, with what the suite is and the table of its tasks filled in."""
        text = files("suites").joinpath(f"cards/{self.name}.md").read_text(encoding="utf-8")
        splits = [split for split in SPLITS if any(split in part.counts for part in self.parts)]
        head = f"| task | documents | {' | '.join(f'{split}: queries / judgements' for split in splits)} |"
        rows = (
            f"| {part.name} | {part.documents:,} | {' | '.join(_counted(part, split) for split in splits)} |"
            for part in self.parts
        )
        where = (
            f"The files lie in `{self.name}/` under the folder of data (`--data-dir`, `BENCH_DATA`); "
            f"`bench data fetch {self.name}` lists them and says where they come from."
        )
        lines = "\n".join([head, "|---|---:|" + "---:|" * len(splits), *rows, "", where])
        return text.replace("<!-- mark -->", f"**A {mark(self.stands_for)}.**").replace("<!-- tasks -->", lines)


def _counted(part: Part, split: str) -> str:
    """Print the counts of a split."""
    return "{:,} / {:,}".format(*part.counts[split]) if split in part.counts else "—"


def _passages(place: Place) -> Source[Item]:
    """Name the passages of a part."""
    return beir.corpus(place.folder, place.identity)


def _leg(place: Place, corpus: Corpus) -> Leg:
    """Ask the queries of a part's own folder."""
    return Leg(
        "",
        beir.queries(place.folder, place.identity),
        beir.qrels(place.folder, place.split, place.identity),
        corpus,
        place.part.language,
        place.counts,
    )
