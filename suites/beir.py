"""BEIR: English retrieval in many domains, zero-shot (Thakur et al. 2021), and any folder in its layout.

Protocol and counts: the card (`suites/cards/beir.md`). A public set is looked for under the data folder first, then in
the download cache, then taken through ir_datasets, which downloads it when it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.data import beir
from bench.errors import UsageError
from bench.hookspecs import hookimpl
from bench.publications import Release
from bench.types import Corpus, DataRequest, Item, Judgement, Leg, Macro, Source, Suite, Task
from suites import beir_releases, readouts
from suites.beir_pairs import DEV, train_pairs
from suites.tunings import FEW_SHOT, MARCO_CONTRIEVER, SUPERVISED, few_shot, single

MEASURES = ("nDCG@10", "R@100", "Rcap@100", "RR@10")
DEPTH = 1000
CAPPED = "trec-covid"
"""The set whose recall the papers print capped (R_cap)."""
LANGUAGE = "en"
"""Of the public sets, and of a folder whose records do not say."""


@dataclass(frozen=True)
class PublicSet:
    """One public data set as released.

    Args:
        name: of the task, and of its folder in the release.
        title: as the papers print it.
        split: whose judgements are scored.
        queries: judged queries of that split.
        documents: in the corpus.
        judgements: rows of the split's qrels.
        grades: that occur in the qrels, as printed in the card.
        splits: whether the release has other splits too; then ir_datasets' id ends with the split.
        release: version of the release, where there are several.
    """

    name: str
    title: str
    split: str
    queries: int
    documents: int
    judgements: int
    grades: str
    splits: bool = False
    release: str = ""

    @property
    def id(self) -> str:
        """Canonical task and corpus id."""
        return f"beir/{self.name}"

    @property
    def irds(self) -> str:
        """Id in ir_datasets."""
        return f"{self.id}/{self.split}" if self.splits else self.id


# Counts: BEIR's releases as catalogued by ir_datasets.
_FORUM_COUNTS = {
    "android": (699, 22_998, 1_696),
    "english": (1_570, 40_221, 3_765),
    "gaming": (1_595, 45_301, 2_263),
    "gis": (885, 37_637, 1_114),
    "mathematica": (804, 16_705, 1_358),
    "physics": (1_039, 38_316, 1_933),
    "programmers": (876, 32_176, 1_675),
    "stats": (652, 42_269, 913),
    "tex": (2_906, 68_184, 5_154),
    "unix": (1_072, 47_382, 1_693),
    "webmasters": (506, 17_405, 1_395),
    "wordpress": (541, 48_605, 744),
}
_CQADUPSTACK = tuple(
    PublicSet(f"cqadupstack/{forum}", f"CQADupStack {forum}", "test", *counts, "1")
    for forum, counts in _FORUM_COUNTS.items()
)
SETS = (
    PublicSet("msmarco", "MS MARCO", "dev", 6_980, 8_841_823, 7_437, "1", splits=True),
    PublicSet("trec-covid", "TREC-COVID", "test", 50, 171_332, 66_336, "−1 to 2"),
    PublicSet("nfcorpus", "NFCorpus", "test", 323, 3_633, 12_334, "1, 2", splits=True),
    PublicSet("nq", "NQ", "test", 3_452, 2_681_468, 4_201, "1"),
    PublicSet("hotpotqa", "HotpotQA", "test", 7_405, 5_233_329, 14_810, "1", splits=True),
    PublicSet("fiqa", "FiQA", "test", 648, 57_638, 1_706, "1", splits=True),
    PublicSet("arguana", "ArguAna", "test", 1_406, 8_674, 1_406, "1"),
    PublicSet("webis-touche2020", "Touché-2020 v1", "test", 49, 382_545, 2_962, "−2 to 5", release="v1"),
    *_CQADUPSTACK,
    PublicSet("quora", "Quora", "test", 10_000, 522_931, 15_675, "1", splits=True),
    PublicSet("dbpedia-entity", "DBPedia", "test", 400, 4_635_922, 43_515, "0 to 2", splits=True),
    PublicSet("scidocs", "SCIDOCS", "test", 1_000, 25_657, 29_928, "0, 1"),
    PublicSet("fever", "FEVER", "test", 6_666, 5_416_568, 7_937, "1", splits=True),
    PublicSet("climate-fever", "Climate-FEVER", "test", 1_535, 5_416_593, 4_681, "1"),
    PublicSet("scifact", "SciFact", "test", 300, 5_183, 339, "1", splits=True),
)
_BY_NAME = {one.name: one for one in SETS}
MINI = ("claims", "snippets", "articles")
"""The domains of the embedded world."""


def task_names(data: str) -> tuple[str, ...]:
    """List the public sets; in mini data, the domains of the embedded world."""
    if data == "mini":
        return MINI
    return tuple(_BY_NAME) if data == "official" else ()


def load(name: str, request: DataRequest) -> Task:
    """Find a public set: in the data folder, the cache or through ir_datasets; or a domain of the embedded world.

    Raises:
        UsageError: if there is no such set or data folder, a set's folder lacks a file, or the set would have to be
            downloaded and may not be.
    """
    if name not in task_names(request.data):
        raise UsageError(_no_task(name, request.data))
    if request.data == "mini":
        return _mini(name, request.world)
    return _load(_BY_NAME[name], request)


def dev_names(data: str) -> tuple[str, ...]:
    """List the public sets that have a dev part."""
    return tuple(DEV) if data == "official" else ()


def dev(name: str, request: DataRequest) -> Task:
    """Find the dev part of a public set, to choose settings by.

    Raises:
        UsageError: if the set has none, and as `load` does.
    """
    if name not in dev_names(request.data):
        raise UsageError(f"beir/{name} has no dev part; those that have one: {', '.join(DEV)}")
    return replace(_part(name, "dev", DEV[name], request), id=f"beir/{name}@dev")


def _part(name: str, split: str, counts: tuple[int, int], request: DataRequest) -> Task:
    """Find another part of a public set than the scored one. Raises as `load` does."""
    queries, judgements = counts
    return _load(replace(_BY_NAME[name], split=split, queries=queries, judgements=judgements), request)


def _load(one: PublicSet, request: DataRequest) -> Task:
    """Find a public set: in the data folder, the cache or through ir_datasets. Raises as `load` does."""
    if request.data_dir is not None and not request.data_dir.is_dir():
        raise UsageError(
            f"{request.data_dir}: found no such folder, expected the folder of data (--data-dir, BENCH_DATA)"
        )
    own, looked = _own(one, request.data_dir), _folders(one, request.data_dir)
    folder = next((folder for folder in looked if _holds_corpus(folder)), None)
    if folder is not None:
        return _public(
            one, beir.corpus(folder, one.id), beir.queries(folder, one.id), beir.qrels(folder, one.split, one.id)
        )
    if own.is_dir() and any(own.iterdir()):
        beir.find(own, "corpus.jsonl")  # says what it lacks
    return _through_irds(one, looked, offline=request.offline)


def folder(path: Path) -> Task:
    """Make a task of a folder in BEIR's layout, with the split named behind a colon where there are several.

    The first record of corpus and queries is read for its language (`metadata.lang`).

    Raises:
        UsageError: if the folder or a file of it is missing, or the split is open.
        DataError, DataFaultsError: if no record of the corpus or the queries can be read.
    """
    root, split = _root_and_split(path)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", root.resolve().name).strip("-") or "folder"
    if not _holds_corpus(root) and (below := [part.name for part in _subfolders(root) if _holds_corpus(part)]):
        raise UsageError(
            f"{root}: found no corpus.jsonl, but {len(below)} folders that hold one ({', '.join(below[:12])}); "
            f"name one of them, e.g. --task {root / below[0]}"
        )
    identity = f"beir/{name}"
    items, queries = beir.corpus(root, identity), beir.queries(root, identity)
    qrels = beir.qrels(root, split or _only_split(root), identity)
    language = _language(items) or LANGUAGE
    corpus = Corpus(identity, items, language)
    return _task(identity, "local", Leg("", queries, qrels, corpus, _language(queries) or language))


def card() -> str:
    """Return the protocol card, with the table of the public sets filled in."""
    from importlib.resources import files

    text = files("suites").joinpath("cards/beir.md").read_text(encoding="utf-8")
    rows = (
        f"| {one.name} | {one.title} | {one.irds} | {one.split} | {one.queries:,} | {one.documents:,} | "
        f"{one.judgements:,} | {one.grades} |"
        for one in SETS
    )
    head = "| task | in the papers | ir_datasets id | split | judged queries | documents | judgements | grades |"
    return text.replace("<!-- public sets -->", "\n".join((head, "|---|---|---|---|---:|---:|---:|---|", *rows)))


def releases() -> Sequence[Release]:
    """List the archives of the public sets."""
    return beir_releases.archives(task_names("official"))


def _language(source: Source[Item]) -> str:
    """The language that the first record says, empty where it says none."""
    first = next(source.read(), None)
    return first.language if first else ""


def _task(identity: str, data: str, leg: Leg) -> Task:
    """Put a leg under BEIR's rules."""
    return Task(
        identity,
        data,
        (leg,),
        MEASURES,
        "trec",
        DEPTH,
        drop_identical=True,
        official=("beir",),
        readout=readouts.CONTRIEVER,
    )


def _public(one: PublicSet, items: Source[Item], queries: Source[Item], qrels: Source[Judgement]) -> Task:
    """Make the task of a public set; its published counts are asserted when it is read."""
    corpus = Corpus(one.id, items, LANGUAGE, one.documents)
    counts = {"queries": one.queries, "qrels": one.judgements}
    task = replace(_task(one.id, "official", Leg("", queries, qrels, corpus, LANGUAGE, counts)), release=one.release)
    return replace(task, official=(*task.official, "beir-capped")) if one.name == CAPPED else task


def _mini(name: str, world: str) -> Task:
    """Take a domain of the embedded world."""
    from bench import mini

    settings = mini.named(world)
    identity, parts = f"{settings.corpus}/beir/{name}", mini.beir(name, settings)
    corpus = Corpus(identity, parts.corpus, LANGUAGE)
    return _task(identity, settings.corpus, Leg("", parts.queries, parts.qrels, corpus, LANGUAGE))


def _own(one: PublicSet, data_dir: Path | None) -> Path:
    """Return where a set lies as its archive unpacks: under the data folder, else in the download cache."""
    from bench.data import official

    return official.root_of("beir", official.roots(data_dir)) / "beir" / one.name


def _folders(one: PublicSet, data_dir: Path | None) -> tuple[Path, ...]:
    """List where a set may lie, also beside the other suites' folders; the data folder goes before the cache."""
    own = _own(one, data_dir)
    beside = () if data_dir is None else (data_dir / one.name,)
    return (*beside, own) if data_dir not in own.parents else (own, *beside)


def _through_irds(one: PublicSet, looked: tuple[Path, ...], *, offline: bool) -> Task:
    """Take a set from ir_datasets; what it has fetched before serves offline too."""
    from bench.data import irds

    cached = irds.home() / one.id
    needed = (cached / "docs.pklz4", cached / "queries.json", cached / f"{one.split}.qrels")
    if offline and not all(path.exists() for path in needed):
        places = ", ".join(map(str, (*looked, cached)))
        raise UsageError(
            f"{one.id} is not at hand and nothing may be downloaded; looked in {places}; expected a folder that holds "
            f"{beir.LAYOUT}; name its parent by --data-dir or BENCH_DATA, or allow downloads"
        )
    parts = irds.sources(one.irds)
    return _public(one, parts.corpus, parts.queries, parts.qrels)


def _no_task(name: str, data: str) -> str:
    """Say that there is no such task, and what was probably meant."""
    from bench.wording import unknown

    names = task_names(data)
    if not names:
        return f"beir has no {data!r} data; expected --data official or mini, or a folder by --task path/to/folder"
    if name == "cqadupstack" and data == "official":
        return f"cqadupstack is {len(_CQADUPSTACK)} tasks; name them: {','.join(one.name for one in _CQADUPSTACK)}"
    return unknown("task of beir", name, names)


def _holds_corpus(root: Path) -> bool:
    """Whether a folder holds a corpus, plain or compressed."""
    return any(root.glob("corpus.jsonl*"))


def _subfolders(root: Path) -> Iterable[Path]:
    """List the folders inside a folder, sorted; none where it does not exist."""
    return sorted(part for part in root.glob("*") if part.is_dir())


def _root_and_split(path: Path) -> tuple[Path, str]:
    """Take a split off the end of a path (`folder:dev`), unless a folder of that very name exists."""
    root, colon, split = str(path).rpartition(":")
    return (path, "") if path.is_dir() or not (colon and root) else (Path(root), split)


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
    """Make the averages that the papers print, the headline first."""
    forums = Macro("CQADupStack", tuple(one.id for one in _CQADUPSTACK), "unweighted mean of the 12 forums")
    single = [one.id for one in SETS if one not in _CQADUPSTACK]
    at = next(place for place, one in enumerate(SETS) if one in _CQADUPSTACK)
    everything: list[str | Macro] = [*single[:at], forums, *single[at:]]
    covid = "in the papers' average of R@100, TREC-COVID enters with its capped recall (here Rcap@100), not with R@100"
    return (
        Macro("Avg. (14)", tuple(everything[1:]), f"without MS MARCO; {covid}"),
        Macro(
            "Avg. (13) w/o CQADupStack",
            tuple(member for member in everything[1:] if member is not forums),
            f"without MS MARCO and CQADupStack; {covid}",
        ),
        Macro(
            "Avg. (15) with MS MARCO", tuple(everything), f"the average of Table 11 of the Contriever paper; {covid}"
        ),
        forums,
        Macro(
            f"Avg. ({len(MINI)})",
            tuple(f"beir/{name}" for name in MINI),
            "the domains of the embedded world; no paper prints it",
            mini=True,
        ),
    )


SUITE = Suite(
    name="beir",
    version="1",
    title="BEIR",
    summary="English queries against corpora of many domains, without training on them: 15 public data sets.",
    citation=(
        "Nandan Thakur, Nils Reimers, Andreas Rücklé, Abhishek Srivastava, Iryna Gurevych. BEIR: A Heterogeneous "
        "Benchmark for Zero-shot Evaluation of Information Retrieval Models. NeurIPS Datasets and Benchmarks, 2021."
    ),
    licence=(
        "Each data set keeps the licence of its source (SciFact: CC BY-NC 2.0, abstracts ODC-BY; NFCorpus: academic "
        "use only); see the card."
    ),
    settings=("unsupervised", "english", FEW_SHOT),
    data=("official", "mini"),
    task_names=task_names,
    load=load,
    folder=folder,
    macros=_macros(),
    primary="nDCG@10",
    card=card,
    dev=dev,
    dev_names=dev_names,
    releases=releases,
    recipes={
        "english": single(MARCO_CONTRIEVER, SUPERVISED),
        FEW_SHOT: few_shot("beir-train", partial(train_pairs, _part)),
    },
    reported=beir_releases.reported,
)


@hookimpl
def bench_suites() -> Iterable[Suite]:
    """Bring BEIR."""
    return (SUITE,)
