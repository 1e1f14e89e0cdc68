"""What all substitutes share: tables of parts, files under the folder of data, the card, and how a suite is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from bench import Corpus, Subset, Suite, UsageError
from bench.suites import DataRequest, FineTuneStep, Release, beir, mark, official
from suites.common import Benchmark, ScoringProtocol, average, markdown, table
from suites.tunings import MSM_MRTYDI, SUPERVISED, extended, single, trained_on

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
    """What a subset is made of: a split of a part of a suite, which lies in `folder`."""

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


def own_pool(place: Place, *, english: bool = False) -> Subset:
    """Return the subset of a part: its queries over its own passages.

    Args:
        place: the part, its split and its folder in BEIR's layout.
        english: whether the passages are English and the same for all parts (one corpus, which is encoded once);
            otherwise they are in the language of the queries.
    """
    passages = beir.corpus(place.folder, place.identity)
    pool, language = (f"{place.suite}/english", "en") if english else (place.identity, place.part.language)
    return Subset(
        "",
        beir.queries(place.folder, place.identity),
        beir.qrels(place.folder, place.split, place.identity),
        Corpus(pool, passages, language, place.part.documents),
        place.part.language,
        place.counts,
    )


english_pool = partial(own_pool, english=True)


def described(name: str) -> dict[str, Any]:
    """Return what `described.json` says of a substitute: the fields of `Substitute` that are data."""
    fields = table("substitutes/described")[name]
    return {**fields, "parts": tuple(Part(**part) for part in fields["parts"])}


@dataclass(frozen=True)
class Substitute:
    """A substitute as data; its fields are as in `suites.common.Benchmark`.

    Example:
        GOLDP = Substitute(**described("mrtydi-goldp"), protocol=PROTOCOL, subset=own_pool)
    """

    name: str
    proxy_for: str  # the benchmark in whose place it is
    title: str
    summary: str
    citation: str
    licence: str
    parts: tuple[Part, ...]
    protocol: ScoringProtocol
    subset: Callable[[Place], Subset]
    average: tuple[str, str]  # name and note

    def suite(self) -> Suite:
        """Return the plugin's suite."""
        return self.benchmark().suite()

    def benchmark(self) -> Benchmark:
        """Return it as a benchmark that papers print nothing for."""
        dev = self._parts_with("dev")
        return Benchmark(
            name=self.name,
            title=self.title,
            summary=self.summary,
            citation=self.citation,
            licence=f"{self.licence}.",
            protocol=self.protocol,
            tasks=tuple(part.name for part in self.parts),
            subsets=self.find,
            dev={"official": dev} if dev else {},
            macros=(
                average(
                    self.name, self.average[0], (part.name for part in self.parts if part.averaged), self.average[1]
                ),
            ),
            tables=self._tables(),
            releases=self.releases(),
            recipes=self.recipes(),
            printed=False,
            proxy_for=self.proxy_for,
        )

    def _parts_with(self, split: str) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts if split in part.counts)

    def recipes(self) -> dict[str, dict[str, tuple[FineTuneStep, ...]]]:
        """Return how encoders are tuned: on English pairs, then on the training questions of its tasks."""
        first = single(SUPERVISED)
        trained = self._parts_with("train")
        if not trained:
            return {"english": first}

        def subsets(request: DataRequest) -> dict[str, Subset]:
            return {f"{self.name}/{name}": self.find(name, "train", request) for name in trained}

        name = f"{self.name}-train"
        last = FineTuneStep(name, trained_on(subsets, name), MSM_MRTYDI, "ours: under MSM's settings")
        return {"english": first, "multilingual": extended(first, last)}

    def find(self, name: str, split: str, request: DataRequest) -> Subset:
        """Return the subset of a part's split: its questions, what judges them, and the passages.

        Raises:
            UsageError: no such part, a part without questions of that split, or files that are missing.
        """
        parts = {part.name: part for part in self.parts} if request.data == "official" else {}
        part = parts[official.check_task(self.name, name, tuple(parts))]
        if split not in part.counts:
            raise UsageError(
                where=f"{self.name}/{name}",
                found=f"no {split} questions, only {', '.join(part.counts)}",
                expected=f"a part that has some: {', '.join(self._parts_with(split)) or 'none'}",
            )
        return self.subset(Place(self.name, part, split, official.folder(request, self.name) / part.folder))

    def releases(self) -> tuple[Release, ...]:
        """List the files that are read, each with size and checksum; none of them can be fetched."""
        lines = files("suites").joinpath(_CHECKSUMS).read_text(encoding="utf-8").splitlines()
        rows = [(sha256, int(size), path) for sha256, size, path in map(str.split, lines)]
        return tuple(
            Release(
                path,
                (),
                self.licence,
                size,
                sha256,
                tasks=tuple(part.name for part in self.parts if part.name == path.split("/")[1]),
                instructions=INSTRUCTIONS,
                origin="the files that the data kit makes",
            )
            for sha256, size, path in rows
            if path.split("/")[0] == self.name
        )

    def _tables(self) -> dict[str, str]:
        """Return what the suite is and the table of its tasks, for its card."""
        splits = [split for split in SPLITS if self._parts_with(split)]
        head = "|".join(["task", "documents", *(f"{split}: queries / judgements" for split in splits)])
        cells = (
            (part, ("{:,} / {:,}".format(*part.counts[split]) if split in part.counts else "—" for split in splits))
            for part in self.parts
        )
        rows = ((part.name, part.documents, *counts) for part, counts in cells)
        note = (
            f"The files lie in `{self.name}/` under the folder of data (`--data-dir`, `BENCH_DATA`); "
            f"`bench data fetch {self.name}` lists them and says where they come from."
        )
        return {"mark": f"**A {mark(self.proxy_for)}.**", "tasks": f"{markdown(head, rows)}\n\n{note}"}
