"""BEIR: English retrieval in many domains, zero-shot (Thakur et al. 2021), and any folder in its layout.

A public set is taken from the data folder, the download cache, or ir_datasets, which downloads it when it is read.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import bench.suites as face
from bench import Corpus, Item, Judgement, Leg, Macro, Source, Task, UsageError
from bench.suites import DataRequest, Release, TrainingPair, beir, from_leg, official, with_dev
from suites import readouts
from suites.common import ENGLISH, Benchmark, Rules, about, average, brings, markdown, table
from suites.tunings import MARCO_CONTRIEVER, SUPERVISED, few_shot, single, unleaked

NAME = "beir"
RULES = Rules(
    ("nDCG@10", "R@100", "Rcap@100", "RR@10"),
    depth=1000,
    official=("beir",),
    drop_identical=True,
    readout=readouts.CONTRIEVER,
)
URL = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
ELSEWHERE = {"webis-touche2020": "https://macavaney.us/beir-webis-touche2020-v1.zip"}
"""The archives that are not with the others, where the one of that name is of version 2."""
LICENCES = {"scifact": "CC BY-NC 2.0, abstracts ODC-BY", "nfcorpus": "academic use only"}


@dataclass(frozen=True)
class PublicSet:
    """One public data set as released; `split` is scored, and queries and judgements are those of it."""

    name: str  # of the task, and of its folder in the release
    title: str  # as the papers print it
    split: str
    queries: int
    documents: int
    judgements: int
    grades: str  # that occur in the judgements, as printed in the card
    splits: bool = False  # whether the release has other splits too; then ir_datasets' id ends with the split

    @property
    def id(self) -> str:
        """Canonical task and corpus id."""
        return f"beir/{self.name}"

    def irds(self, split: str) -> str:
        """Return the id of a split in ir_datasets."""
        return f"{self.id}/{split}" if self.splits or split != self.split else self.id

    def counts(self, split: str) -> tuple[int, int]:
        """Return the judged queries and the judgements of a split."""
        if split == self.split:
            return self.queries, self.judgements
        return {"dev": DEV, "train": TRAIN}[split][self.name]


_RELEASES: Any = table("beir")
SETS = tuple(PublicSet(*one) for one in _RELEASES["sets"])
_CQADUPSTACK = tuple(one for one in SETS if one.name.startswith("cqadupstack/"))
_BY_NAME = {one.name: one for one in SETS}
TRAIN: dict[str, tuple[int, int]] = _RELEASES["train"]
"""The sets whose release has training questions: judged queries and judgements."""
DEV: dict[str, tuple[int, int]] = _RELEASES["dev"]
"""The sets whose release has another dev part than the scored one, as above."""

CAPPED = "R@100 (capped for Trec-COVID)"
"""The papers' average of R@100, in which TREC-COVID enters with Rcap@100."""
MINI = ("claims", "snippets", "articles")
"""The domains of the embedded world."""


def load(name: str, request: DataRequest) -> Task:
    """Return a public set or a domain of the embedded world; `UsageError` for none, or one that may not be fetched."""
    if name == "cqadupstack" and request.data == "official":
        forums = ",".join(one.name for one in _CQADUPSTACK)
        raise UsageError(where=name, found=f"{len(_CQADUPSTACK)} tasks", expected="their names", hint=f"type {forums}")
    return BENCHMARK.load(name, request)


def legs(name: str, split: str, request: DataRequest) -> tuple[Leg, ...]:
    """Return the questions of a split of a public set, `test` being the scored one; raises as `load` does."""
    one = _BY_NAME[name]
    split = one.split if split == "test" else split
    if request.data_dir is not None and not request.data_dir.is_dir():
        raise UsageError(
            where=request.data_dir, found="no such folder", expected="the folder of data (--data-dir, BENCH_DATA)"
        )
    own, looked = _own(one, request.data_dir), _folders(one, request.data_dir)
    folder = next((folder for folder in looked if _holds_corpus(folder)), None)
    parts: tuple[Source[Item], Source[Item], Source[Judgement]]
    if folder is not None:
        parts = beir.corpus(folder, one.id), beir.queries(folder, one.id), beir.qrels(folder, split, one.id)
    else:
        if own.is_dir() and any(own.iterdir()):
            beir.find(own, "corpus.jsonl")  # raises: it names what the folder lacks
        found = _through_irds(one, split, looked, offline=request.offline)
        parts = found.corpus, found.queries, found.qrels
    corpus, asked, judged = parts
    counts = dict(zip(("queries", "qrels"), one.counts(split), strict=True))
    return (Leg("", asked, judged, Corpus(one.id, corpus, ENGLISH, one.documents), ENGLISH, counts),)


def folder(path: Path) -> Task:
    """Return a task of a folder in BEIR's layout, with the split named behind a colon where there are several.

    The first records say their languages (`metadata.lang`). Raises `UsageError` if the folder or a file is missing, or
    the split is open; `DataError` or `DataFaultsError` if no such record can be read.
    """
    rest, colon, named = str(path).rpartition(":")
    root, split = (path, "") if path.is_dir() or not (colon and rest) else (Path(rest), named)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", root.resolve().name).strip("-") or "folder"
    if not _holds_corpus(root) and (
        below := [part.name for part in sorted(root.glob("*")) if part.is_dir() and _holds_corpus(part)]
    ):
        raise UsageError(
            f"{root}: found no corpus.jsonl, but {len(below)} folders that hold one ({', '.join(below[:12])}); "
            f"name one of them, e.g. --task {root / below[0]}"
        )
    identity = f"beir/{name}"
    items, queries = beir.corpus(root, identity), beir.queries(root, identity)
    qrels = beir.qrels(root, split or _only_split(root), identity)
    language = _language(items) or ENGLISH
    corpus = Corpus(identity, items, language)
    return RULES.task(identity, "local", Leg("", queries, qrels, corpus, _language(queries) or language))


def tables() -> dict[str, str]:
    """Return the card's table of public sets."""
    head = "task|in the papers|ir_datasets id|split|judged queries|documents|judgements|grades"
    rows = (
        (one.name, one.title, one.irds(one.split), one.split, one.queries, one.documents, one.judgements, one.grades)
        for one in SETS
    )
    return {"public sets": markdown(head, rows, "llllrrrl")}


def releases() -> tuple[Release, ...]:
    """List the archives of the public sets, each with the tasks that need it; CQADupStack's forums share one."""
    return tuple(
        Release(
            path=f"beir/{name}.zip",
            urls=(ELSEWHERE.get(name, f"{URL}/{name}.zip"),),
            licence=LICENCES.get(name, "that of its source; see the card"),
            size=int(size),
            md5=md5,
            tasks=tuple(task for task in _BY_NAME if task.partition("/")[0] == name),
            unpack="beir",
        )
        for name, size, md5 in _RELEASES["archives"]
    )


def train_pairs(request: DataRequest, name: str) -> Source[TrainingPair] | None:
    """Return pairs of a public set's training questions that no test asks, with dev pairs if at hand; or None.

    SciFact has no dev questions. Raises `UsageError` where the set's files are not there.
    """
    if request.data != "official" or name not in TRAIN:
        return None
    train, dev = _pairs(request, name, "train"), None
    if name in DEV:
        with suppress(UsageError):  # a share of the training questions is held out instead, and the result says so
            dev = _pairs(request, name, "dev")
    return with_dev(train, dev)


def _pairs(request: DataRequest, name: str, split: str) -> Source[TrainingPair]:
    """Return pairs of the questions of a split, without those that some test asks. Raises `UsageError`."""
    (leg,) = legs(name, split, request)
    return unleaked(from_leg(leg, f"beir/{name} {split}"), request, (f"beir/{name}/qrels/{split}.tsv",))


def _language(source: Source[Item]) -> str:
    first = next(source.read(), None)
    return first.language if first else ""


def mini_legs(name: str, _split: str, world: face.WorldSettings) -> tuple[Leg, ...]:
    """Return the leg of a domain of the embedded world."""
    parts = face.mini.beir(name, world)
    corpus = Corpus(f"{world.corpus}/beir/{name}", parts.corpus, ENGLISH)
    return (Leg("", parts.queries, parts.qrels, corpus, ENGLISH),)


def _own(one: PublicSet, data_dir: Path | None) -> Path:
    """Return where a set's archive is unpacked: under the data folder, else in the download cache."""
    return official.root_of("beir", official.roots(data_dir)) / "beir" / one.name


def _folders(one: PublicSet, data_dir: Path | None) -> tuple[Path, ...]:
    """Return where a set may lie, also next to the other suites' folders; the data folder goes before the cache."""
    own = _own(one, data_dir)
    near = () if data_dir is None else (data_dir / one.name,)
    return (*near, own) if data_dir not in own.parents else (own, *near)


def _through_irds(one: PublicSet, split: str, looked: tuple[Path, ...], *, offline: bool) -> face.irds.Sources:
    """Return a set from ir_datasets; offline only what it has fetched before. Raises `UsageError`."""
    cached = face.irds.home() / one.id
    needed = (cached / "docs.pklz4", cached / "queries.json", cached / f"{split}.qrels")
    if offline and not all(path.exists() for path in needed):
        places = ", ".join(map(str, (*looked, cached)))
        raise UsageError(
            f"{one.id} is not at hand and nothing may be downloaded; looked in {places}; expected a folder that holds "
            f"{beir.LAYOUT}; name its parent by --data-dir or BENCH_DATA, or allow downloads"
        )
    return face.irds.sources(one.irds(split))


def _holds_corpus(root: Path) -> bool:
    return any(root.glob("corpus.jsonl*"))


def _only_split(root: Path) -> str:
    """Choose `test`, or the only split that there is."""
    splits = beir.splits(root)
    if "test" in splits:
        return "test"
    if not splits:
        raise UsageError(f"{root}: found no judgements (qrels/*.tsv), expected a folder that holds {beir.LAYOUT}")
    if len(splits) > 1:
        raise UsageError(
            f"{root}: found judgements for {', '.join(splits)} and none for test; name the split that you mean "
            f"behind a colon, e.g. --task {root}:{splits[0]}"
        )
    return splits[0]


def _macros() -> tuple[Macro, ...]:
    forums = Macro("CQADupStack", tuple(one.id for one in _CQADUPSTACK), "unweighted mean of the 12 forums")
    single = [one.id for one in SETS if one not in _CQADUPSTACK]
    at = next(place for place, one in enumerate(SETS) if one in _CQADUPSTACK)
    everything: list[str | Macro] = [*single[:at], forums, *single[at:]]
    thirteen = tuple(member for member in everything[1:] if member is not forums)
    covid = f"in the papers' average of R@100, TREC-COVID enters with its capped recall: that is {CAPPED}"
    mixed = {CAPPED: {"": "R@100", "beir/trec-covid": "Rcap@100"}}
    return (
        Macro("Avg. (14)", tuple(everything[1:]), f"without MS MARCO; {covid}", mixed=mixed),
        Macro("Avg. (13) w/o CQADupStack", thirteen, f"without MS MARCO and CQADupStack; {covid}", mixed=mixed),
        Macro("Avg. (15) with MS MARCO", tuple(everything), f"that of Table 11 of Contriever; {covid}", mixed=mixed),
        forums,
        average(NAME, "Avg. ({})", MINI, "the domains of the embedded world; no paper prints it", mini=True),
    )


BENCHMARK = Benchmark(
    **about("beir"),
    rules=RULES,
    special={
        "trec-covid": replace(RULES, official=("beir", "beir-capped")),  # whose recall the papers print capped
        "webis-touche2020": replace(RULES, release="v1"),
    },
    tasks=tuple(_BY_NAME),
    legs=legs,
    mini=MINI,
    mini_legs=mini_legs,
    dev={"official": tuple(DEV)},
    dev_scorers=True,
    macros=_macros(),
    tables=tables,
    releases=releases,
    recipes={"english": single(MARCO_CONTRIEVER, SUPERVISED), "few-shot": few_shot("beir-train", train_pairs)},
)
SUITE = replace(BENCHMARK.suite(), load=load, folder=folder)
bench_suites = brings(SUITE)
