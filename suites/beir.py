"""BEIR: English retrieval in many domains, zero-shot (Thakur et al. 2021), and any folder in its layout.

Protocol and counts: the card (`suites/cards/beir.md`). A public set is looked for under the data folder first, then in
the download cache, then taken through ir_datasets, which downloads it when it is read.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import bench.suites as face
from bench import Corpus, Item, Judgement, Leg, Macro, Source, Task, UsageError
from bench.suites import DataRequest, Release, TrainingPair, beir, from_leg, official, with_dev
from suites import readouts
from suites.common import ENGLISH, Benchmark, Rules, average, brings, markdown
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
    PublicSet("webis-touche2020", "Touché-2020 v1", "test", 49, 382_545, 2_962, "−2 to 5"),
    *_CQADUPSTACK,
    PublicSet("quora", "Quora", "test", 10_000, 522_931, 15_675, "1", splits=True),
    PublicSet("dbpedia-entity", "DBPedia", "test", 400, 4_635_922, 43_515, "0 to 2", splits=True),
    PublicSet("scidocs", "SCIDOCS", "test", 1_000, 25_657, 29_928, "0, 1"),
    PublicSet("fever", "FEVER", "test", 6_666, 5_416_568, 7_937, "1", splits=True),
    PublicSet("climate-fever", "Climate-FEVER", "test", 1_535, 5_416_593, 4_681, "1"),
    PublicSet("scifact", "SciFact", "test", 300, 5_183, 339, "1", splits=True),
)
_BY_NAME = {one.name: one for one in SETS}
# Judged queries and judgements, as catalogued by ir_datasets.
TRAIN = {
    "msmarco": (502_939, 532_751),
    "nfcorpus": (2_590, 110_575),
    "hotpotqa": (85_000, 170_000),
    "fiqa": (5_500, 14_166),
    "fever": (109_810, 140_085),
    "scifact": (809, 919),
}
"""The sets whose release has training questions."""
DEV = {
    "nfcorpus": (324, 11_385),
    "hotpotqa": (5_447, 10_894),
    "fiqa": (500, 1_238),
    "quora": (5_000, 7_626),
    "dbpedia-entity": (67, 5_673),
    "fever": (6_666, 8_079),
}
"""The sets whose release has another dev part than the scored one."""

# Name, bytes, md5 of the archives. Source: ir_datasets' catalogue of downloads.
_ARCHIVES = """
msmarco          1082258632 444067daf65d982533ea17ebd59501e4
trec-covid         73876720 ce62140cb23feb9becf6270d0d1fe6d1
nfcorpus            2448432 a89dba18a62ef92f7d323ec890a0d38d
nq                498307926 d4d3d2e48787a744b6f6e691ff534307
hotpotqa          654025350 f412724f78b0d91183a0e86805e16114
fiqa               17948027 17918ed23cd04fb15047f73e6c3bd9d9
arguana             3773617 8ad3e3c2a5867cdced806d6503f29b99
webis-touche2020  227137373 5ec7f8b18481fc2e9b3964ad1b22dd28
cqadupstack      5343728040 4e41456d7df8ee7760a7f866133bda78
quora              15853968 18fb154900ba42a600f84b839c173167
dbpedia-entity    639285131 c2a39eb420a3164af735795df012ac2c
scidocs           142471588 38121350fc3a4d2f48850f6aff52e4a9
fever            1236988269 5a818580227bfb4b35bb6fa46d9b6c03
climate-fever    1228666652 8b66f0a9126c521bae2bde127b4dc99d
scifact             2816079 5f7d1de60b170fc8027bb7898e2efca1
"""

CAPPED = "R@100 (capped for Trec-COVID)"
"""The papers' average of R@100, in which TREC-COVID enters with Rcap@100."""
MINI = ("claims", "snippets", "articles")
"""The domains of the embedded world."""


def load(name: str, request: DataRequest) -> Task:
    """Return a public set, or a domain of the embedded world.

    Raises `UsageError` if there is no such set or data folder, a set's folder lacks a file, or the set would have to be
    downloaded and may not be.
    """
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

    The first record of corpus and queries is read for its language (`metadata.lang`). Raises `UsageError` if the folder
    or a file of it is missing, or the split is open; `DataError` or `DataFaultsError` if no record of the corpus or the
    queries can be read.
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
        for name, size, md5 in map(str.split, _ARCHIVES.strip().splitlines())
    )


def train_pairs(request: DataRequest, name: str) -> Source[TrainingPair] | None:
    """Return pairs of the training questions of a public set, but for those that some test asks; None without any.

    With them come pairs of its dev questions, where the release has some and they are at hand. (SciFact has none:
    Contriever's few-shot holds out a tenth of its training questions.) Raises `UsageError` where the set's files are
    not there.
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
    """Return the language of the first record, which may be empty."""
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
    """Whether a folder holds a corpus, plain or compressed."""
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
    """Return the averages that the papers print, the headline first."""
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
    name=NAME,
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
