"""BEIR: English retrieval in many domains, zero-shot (Thakur et al. 2021), and any folder in its layout.

A public set is taken from the data folder, the download cache, or ir_datasets, which downloads it when it is read.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import bench.suites as face
from bench import Corpus, Item, Judgement, Macro, Source, Subset, Task, UsageError
from bench.suites import DataRequest, Release, TrainingPair, beir, from_subset, official, safe_name, with_dev
from suites import readouts
from suites.common import ENGLISH, Benchmark, ScoringProtocol, average, brings, markdown, metadata, table
from suites.tunings import MARCO_CONTRIEVER, SUPERVISED, few_shot, single, unleaked

NAME = "beir"
PROTOCOL = ScoringProtocol(
    ("nDCG@10", "R@100", "Rcap@100", "RR@10"),
    depth=1000,
    official=("beir",),
    drop_identical=True,
    readout=readouts.CONTRIEVER,
)
URL = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
OTHER_URLS = {"webis-touche2020": "https://macavaney.us/beir-webis-touche2020-v1.zip"}
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
SETS = tuple(PublicSet(*row) for row in _RELEASES["sets"])
_CQADUPSTACK = tuple(public for public in SETS if public.name.startswith("cqadupstack/"))
_BY_NAME = {public.name: public for public in SETS}
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
        forums = ",".join(forum.name for forum in _CQADUPSTACK)
        raise UsageError(where=name, found=f"{len(_CQADUPSTACK)} tasks", expected="their names", hint=f"type {forums}")
    return BENCHMARK.load(name, request)


def subsets(name: str, split: str, request: DataRequest) -> Subset:
    """Return the questions of a split of a public set, `test` being the scored one; raises as `load` does.

    A set is read from its archive as `bench data fetch` unpacks it, in the folder of data or the download cache, or
    from a folder of its name next to the other suites' folders, else through ir_datasets.
    """
    public, data_dir = _BY_NAME[name], request.data_dir
    split = public.split if split == "test" else split
    if data_dir is not None and official.files_required() and not data_dir.is_dir():
        raise UsageError(where=data_dir, found="no such folder", expected="the folder of data (--data-dir, BENCH_DATA)")
    unpacked = official.root_of("beir", official.roots(data_dir)) / "beir" / public.name
    siblings = () if data_dir is None else (data_dir / public.name,)
    folders = (unpacked, *siblings) if data_dir in unpacked.parents else (*siblings, unpacked)
    folder = next((folder for folder in folders if _holds_corpus(folder)), None)
    parts: tuple[Source[Item], Source[Item], Source[Judgement]]
    if folder is not None:
        parts = beir.corpus(folder, public.id), beir.queries(folder, public.id), beir.qrels(folder, split, public.id)
    else:
        if unpacked.is_dir() and any(unpacked.iterdir()):
            beir.find(unpacked, "corpus.jsonl")  # raises: it names what the folder lacks
        sources = _through_irds(public, split, folders, offline=request.offline)
        parts = sources.corpus, sources.queries, sources.qrels
    corpus, queries, qrels = parts
    counts = dict(zip(("queries", "qrels"), public.counts(split), strict=True))
    return Subset("", queries, qrels, Corpus(public.id, corpus, ENGLISH, public.documents), ENGLISH, counts)


def folder(path: Path) -> tuple[Task, ...]:
    """Return the task of a folder in BEIR's layout, with the split named behind a colon where there are several.

    Of a folder without a corpus, the folders in it that have one are tasks, such as one for each language. A task is
    called by the folder's name (`bench.suites.safe_name`), and by the split, unless that is `test` or the only
    one. The first records say their languages (`metadata.lang`).

    Raises:
        UsageError: the folder or a file is missing, or the split is open.
        DataError: no such record can be read; likewise `DataFaultsError`.
    """
    folder_part, colon, split_part = str(path).rpartition(":")
    root, split = (path, "") if path.is_dir() or not (colon and folder_part) else (Path(folder_part), split_part)
    if not _holds_corpus(root) and (
        below := [part for part in sorted(root.glob("*")) if part.is_dir() and _holds_corpus(part)]
    ):
        return tuple(_task_of(part, split) for part in below)
    return (_task_of(root, split),)


def _task_of(root: Path, split: str) -> Task:
    """Return the task of a folder with a corpus and of a split; empty for the only one."""
    name = root.resolve().name
    says_split = split not in {"", "test"} and len(beir.splits(root)) > 1
    identity, corpus_id = f"beir/{safe_name(f'{name}-{split}' if says_split else name)}", f"beir/{safe_name(name)}"
    items, queries = beir.corpus(root, corpus_id), beir.queries(root, identity)
    qrels = beir.qrels(root, split or _only_split(root), identity, drops_identical=PROTOCOL.drop_identical)
    language = _language(items) or ENGLISH
    corpus = Corpus(corpus_id, items, language)
    return PROTOCOL.task(identity, "local", Subset("", queries, qrels, corpus, _language(queries) or language))


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
    pairs = from_subset(subsets(name, split, request), f"beir/{name} {split}")
    return unleaked(pairs, request, (f"beir/{name}/qrels/{split}.tsv",))


def _language(source: Source[Item]) -> str:
    first = next(source.read(), None)
    return first.language if first else ""


def mini_subsets(name: str, _split: str, world: face.WorldSettings) -> Subset:
    """Return the subset of a domain of the embedded world."""
    parts = face.mini.beir(name, world)
    corpus = Corpus(f"{world.corpus}/beir/{name}", parts.corpus, ENGLISH)
    return Subset("", parts.queries, parts.qrels, corpus, ENGLISH)


def _through_irds(public: PublicSet, split: str, searched: tuple[Path, ...], *, offline: bool) -> face.irds.Sources:
    """Return a set from ir_datasets; offline only what it has fetched before. Raises `UsageError`."""
    cached = face.irds.home() / public.id
    required = (cached / "docs.pklz4", cached / "queries.json", cached / f"{split}.qrels")
    if offline and not all(path.exists() for path in required):
        places = ", ".join(map(str, (*searched, cached)))
        raise UsageError(
            f"{public.id} is not at hand and nothing may be downloaded; looked in {places}; expected a folder that "
            f"holds {beir.LAYOUT}; name its parent by --data-dir or BENCH_DATA, or allow downloads"
        )
    return face.irds.sources(public.irds(split))


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
    forums = Macro("CQADupStack", tuple(forum.id for forum in _CQADUPSTACK), "unweighted mean of the 12 forums")
    fifteen = tuple(dict.fromkeys(forums if public in _CQADUPSTACK else public.id for public in SETS))
    fourteen = fifteen[1:]  # MS MARCO is the first
    thirteen = tuple(member for member in fourteen if member is not forums)
    covid = f"in the papers' average of R@100, TREC-COVID enters with its capped recall: that is {CAPPED}"
    mixed = {CAPPED: {"": "R@100", "beir/trec-covid": "Rcap@100"}}
    return (
        Macro("Avg. (14)", fourteen, f"without MS MARCO; {covid}", mixed=mixed),
        Macro("Avg. (13) w/o CQADupStack", thirteen, f"without MS MARCO and CQADupStack; {covid}", mixed=mixed),
        Macro("Avg. (15) with MS MARCO", fifteen, f"that of Table 11 of Contriever; {covid}", mixed=mixed),
        forums,
        average(NAME, "Avg. ({})", MINI, "the domains of the embedded world; no paper prints it", mini=True),
    )


BENCHMARK = Benchmark(
    **metadata("beir"),
    protocol=PROTOCOL,
    special={
        "trec-covid": replace(PROTOCOL, official=("beir", "beir-capped")),  # whose recall the papers print capped
        "webis-touche2020": replace(PROTOCOL, release="v1"),
    },
    tasks=tuple(_BY_NAME),
    titles={public.name: public.title for public in SETS},
    subsets=subsets,
    mini=MINI,
    mini_subsets=mini_subsets,
    dev={"official": tuple(DEV)},
    dev_scorers=True,
    macros=_macros(),
    tables={
        "public sets": markdown(
            "task|in the papers|ir_datasets id|split|judged queries|documents|judgements|grades",
            (
                (
                    *(public.name, public.title, public.irds(public.split), public.split),
                    *(public.queries, public.documents, public.judgements, public.grades),
                )
                for public in SETS
            ),
            "llllrrrl",
        )
    },
    releases=tuple(  # one for each public set; CQADupStack's forums share one
        Release(
            path=f"beir/{name}.zip",
            urls=(OTHER_URLS.get(name, f"{URL}/{name}.zip"),),
            licence=LICENCES.get(name, "that of its source; see the card"),
            size=int(size),
            md5=md5,
            tasks=tuple(task for task in _BY_NAME if task.partition("/")[0] == name),
            unpack="beir",
            origin="the catalogue of ir_datasets 0.6.3",
        )
        for name, size, md5 in _RELEASES["archives"]
    ),
    recipes={"english": single(MARCO_CONTRIEVER, SUPERVISED), "few-shot": few_shot("beir-train", train_pairs)},
)
SUITE = replace(BENCHMARK.suite(), load=load, folder=folder)
bench_suites = brings(SUITE)
