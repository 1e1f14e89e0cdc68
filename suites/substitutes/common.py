"""What all substitutes share: tables of parts, files under the folder of data, the card, and how a suite is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from bench import Corpus, Item, Leg, Source, Suite, UsageError
from bench.suites import DataRequest, FineTuning, Release, beir, mark, official
from suites.common import Benchmark, Rules, average, markdown
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
        text: the lines; `-` is a split that is not there. A name begins with its language's code.
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
        """Return what the plugin brings."""
        return self.benchmark().suite()

    def benchmark(self) -> Benchmark:
        """Return it as any other benchmark; papers print nothing for it."""
        return Benchmark(
            name=self.name,
            title=self.title,
            summary=self.summary,
            citation=self.citation,
            licence=f"{self.licence}.",
            rules=self.rules,
            tasks=tuple(self.by_name),
            legs=lambda name, split, request: (self.find(name, split, request),),
            dev={"official": dev} if (dev := self._having("dev")) else {},
            macros=(average(self.name, self.average[0], self._averaged(), self.average[1]),),
            tables=self.tables,
            releases=self.releases,
            recipes=self.recipes(),
            printed=False,
            stands_for=self.stands_for,
        )

    def _having(self, split: str) -> tuple[str, ...]:
        """Return the parts that have a split."""
        return tuple(part.name for part in self.parts if split in part.counts)

    def _averaged(self) -> tuple[str, ...]:
        """Return the members of the average."""
        return tuple(part.name for part in self.parts if part.averaged)

    def recipes(self) -> dict[str, dict[str, tuple[FineTuning, ...]]]:
        """Return how encoders are tuned: on English pairs, then on the training questions of its tasks."""
        first = single(SUPERVISED)
        if not self._having("train"):
            return {"english": first}
        name = f"{self.name}-train"
        own = FineTuning(name, trained_on(self.training_legs, name), MSM_MRTYDI, "ours: under MSM's settings")
        return {"english": first, "multilingual": then(first, own)}

    def training_legs(self, request: DataRequest) -> dict[str, Leg]:
        """Return the training questions of the tasks that have some, by task."""
        return {f"{self.name}/{name}": self.find(name, "train", request) for name in self._having("train")}

    def find(self, name: str, split: str, request: DataRequest) -> Leg:
        """Return the questions of a split with what judges them, and the passages; `train` serves training.

        Args:
            name: of the part.
            split: one of `SPLITS`.
            request: says where the files lie.

        Raises:
            UsageError: if there is no such part, split or folder, or a file is missing.
        """
        there = tuple(self.by_name) if request.data == "official" else ()
        part = self.by_name[official.known(self.name, name, there)]
        if split not in part.counts:
            having = ", ".join(self._having(split)) or "none"
            raise UsageError(
                where=f"{self.name}/{name}",
                found=f"no {split} questions, only {', '.join(part.counts)}",
                expected=f"a part that has some: {having}",
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

    def tables(self) -> dict[str, str]:
        """Return what the suite is and the table of its tasks, for its card."""
        splits = [split for split in SPLITS if self._having(split)]
        head = "|".join(["task", "documents", *(f"{split}: queries / judgements" for split in splits)])
        rows = ((part.name, part.documents, *(_counted(part, split) for split in splits)) for part in self.parts)
        where = (
            f"The files lie in `{self.name}/` under the folder of data (`--data-dir`, `BENCH_DATA`); "
            f"`bench data fetch {self.name}` lists them and says where they come from."
        )
        return {"mark": f"**A {mark(self.stands_for)}.**", "tasks": f"{markdown(head, rows)}\n\n{where}"}


def _counted(part: Part, split: str) -> str:
    """Print the counts of a split."""
    return "{:,} / {:,}".format(*part.counts[split]) if split in part.counts else "—"


def _passages(place: Place) -> Source[Item]:
    """Return the passages of a part."""
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
