"""What all substitutes share: tables of parts, files under the folder of data, the card, and how a suite is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from bench import Corpus, Leg, Suite, UsageError
from bench.suites import DataRequest, FineTuning, Release, beir, mark, official
from suites.common import Benchmark, Rules, average, markdown, table
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
    """One task of a substitute."""

    name: str
    language: str  # of its queries, ISO 639; empty where each query says its own
    documents: int  # in the corpus that it searches
    counts: Mapping[str, tuple[int, int]]  # by split: judged queries and judgements
    folder: str = ""  # where it lies under the suite's folder; empty for that folder itself
    averaged: bool = True  # whether it is a member of the suite's average


@dataclass(frozen=True)
class Place:
    """What a leg is made of: a split of a part of a suite, which lies in `folder`."""

    suite: str
    part: Part
    split: str
    folder: Path

    @property
    def identity(self) -> str:
        """Return the task's id."""
        return f"{self.suite}/{self.part.name}"

    @property
    def counts(self) -> dict[str, int]:
        """Return what the files of the split must hold."""
        return dict(zip(("queries", "qrels"), self.part.counts[self.split], strict=True))


def own_pool(place: Place) -> Leg:
    """Ask in the language of the passages; every part has its own."""
    return _leg(place, place.identity, place.part.language)


def english_pool(place: Place) -> Leg:
    """Ask in the part's language, answer in English; the passages of all parts are the same."""
    return _leg(place, f"{place.suite}/english", "en")


def described(name: str) -> dict[str, Any]:
    """Return what `described.json` says of a substitute: the fields of `Substitute` that are data."""
    found = table("substitutes/described")[name]
    return {**found, "parts": tuple(Part(**one) for one in found["parts"])}


@dataclass(frozen=True)
class Substitute:
    """A substitute as data; its fields are as in `suites.common.Benchmark`, and `average` has a name and a note."""

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

    @property
    def by_name(self) -> Mapping[str, Part]:
        """Return the parts by name."""
        return {part.name: part for part in self.parts}

    def suite(self) -> Suite:
        """Return what the plugin brings."""
        return self.benchmark().suite()

    def benchmark(self) -> Benchmark:
        """Return it as a benchmark that papers print nothing for."""
        averaged = (part.name for part in self.parts if part.averaged)
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
            macros=(average(self.name, self.average[0], averaged, self.average[1]),),
            tables=self.tables,
            releases=self.releases,
            recipes=self.recipes(),
            printed=False,
            stands_for=self.stands_for,
        )

    def _having(self, split: str) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts if split in part.counts)

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
        """Return a split's questions, what judges them, and passages; `UsageError` for what is missing."""
        there = tuple(self.by_name) if request.data == "official" else ()
        part = self.by_name[official.check_task(self.name, name, there)]
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
        found = []
        for line in files("suites").joinpath(_CHECKSUMS).read_text(encoding="utf-8").splitlines():
            sha256, size, path = line.split()
            suite, first, *_ = path.split("/")
            if suite == self.name:
                tasks = tuple(part.name for part in self.parts if part.name == first)
                made = Release(path, (), self.licence, int(size), sha256, tasks=tasks, instructions=INSTRUCTIONS)
                found.append(made)
        return tuple(found)

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
    return "{:,} / {:,}".format(*part.counts[split]) if split in part.counts else "—"


def _leg(place: Place, corpus: str, language: str) -> Leg:
    """Return the queries of a part over its passages, as a corpus of some id and language."""
    passages = beir.corpus(place.folder, place.identity)
    return Leg(
        "",
        beir.queries(place.folder, place.identity),
        beir.qrels(place.folder, place.split, place.identity),
        Corpus(corpus, passages, language, place.part.documents),
        place.part.language,
        place.counts,
    )
