"""Mr. TyDi v1.1: questions in 11 languages, each answered from the Wikipedia of its own language (Zhang et al. 2021).

Files are read unpacked in `mrtydi/mrtydi-v1.1-swahili/`, or from the released `mrtydi/mrtydi-v1.1-swahili.tar.gz`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import bench.suites as face
from bench import Corpus, Item, Subset
from bench.suites import (
    DataRequest,
    File,
    FileSource,
    FineTuneStep,
    Format,
    Member,
    Release,
    check_id,
    file_source,
    jsonl,
    official,
    trec,
)
from suites import readouts
from suites.common import Benchmark, Recipes, ScoringProtocol, average, brings, find, markdown, metadata, published
from suites.tunings import (
    MARCO,
    MARCO_MCONTRIEVER,
    MCONTRIEVER_MRTYDI,
    MSM_MRTYDI,
    NQ,
    NQ_MCONTRIEVER,
    SUPERVISED,
    extended,
    languages,
    single,
    trained_on,
)

NAME = "mrtydi"
URL = "https://git.uwaterloo.ca/jimmylin/mr.tydi/-/raw/master/data"
LICENCE = "Apache-2.0; the passages are Wikipedia's, CC BY-SA"
COLLECTION = "collection/docs.jsonl"
PROTOCOL = ScoringProtocol(("RR@100", "R@100"), official=("mrtydi-ccp",), readout=readouts.CCP, release="v1.1")


@dataclass(frozen=True)
class Language:
    """One language of the release."""

    code: str  # ISO 639-1, which is the task's name
    name: str  # in the names of its files
    passages: int  # in its collection
    # by split, the judged queries and the judgements. `test` is scored, `train` and `dev` serve training.
    counts: Mapping[str, tuple[int, int]]
    md5: str  # of the tarball of v1.0; that of v1.1 was not published
    size: int  # of the tarball of v1.0, bytes

    @property
    def folder(self) -> str:
        """Return the folder in its tarball."""
        return f"mrtydi-v1.1-{self.name}"


LANGUAGES = {row["code"]: Language(**row) for row in published(NAME)}
"""By code. Sources: the release's README and ir_datasets' catalogue; judgements of train were counted in the files."""


def subset(name: str, split: str, request: DataRequest) -> Subset:
    """Return a split's questions, judgements and passages. Raises `UsageError` if the folder or a file is missing."""
    language, root, identity = LANGUAGES[name], official.folder(request, NAME), f"{NAME}/{name}"
    queries, judgements = language.counts[split]
    tarball = root / f"{language.folder}.tar.gz"
    hint = (
        f"fetch {URL}/{tarball.name} and put it there as it is. For orientation: the tarball of v1.0 has "
        f"{language.size:,} bytes and md5 {language.md5}; for v1.1 no checksum was published, so counts are checked "
        "instead"
    )

    def locate(content: str, *names: str) -> File:
        paths = (root / language.folder / file for file in names)
        member = Member(tarball, f"{language.folder}/{names[0]}")
        return find(*paths, expected=f"{content} of Mr. TyDi v1.1 in one of the two", hint=hint, packed=member)

    collection = locate(f"the {language.passages:,} passages", f"{COLLECTION}.gz", COLLECTION)
    topics = locate(f"the {queries:,} questions of {split}", f"topic.{split}.tsv")
    qrels = locate(f"the {judgements:,} judgements of {split}", f"qrels.{split}.txt")
    return Subset(
        "",
        trec.topics_source(topics, f"{identity} questions ({split})"),
        trec.qrels_source(qrels, f"{identity} qrels ({split})"),
        Corpus(identity, passages(collection, f"{identity} passages"), name, language.passages),
        name,
        {"queries": queries, "qrels": judgements},
    )


def passages(path: File, name: str = "") -> FileSource[Item]:
    """Return the passages of a file in Anserini's JSONL form, `{"id", "contents"}`.

    `contents` is title, an empty line, passage; it is cut at the first empty line only. Contents without one are a
    passage without title. Other keys are not read, and duplicate ids are not looked for (see
    `bench.data.formats.ids.IdCollector`).
    """
    return file_source(name or path.name, "anserini-contents/1", path, Format("document", _passage))


def _passage(text: str) -> Item:
    """Parse one row. Raises `RecordError`."""
    row = jsonl.json_object(text, ("id", "contents"))
    identity = check_id(jsonl.present(row, "id", "the document id"), "document id")
    title, gap, passage = jsonl.string(row, "contents").partition("\n\n")
    return Item(identity, passage, title) if gap else Item(identity, title)


def mini_subset(name: str, split: str, world: face.WorldSettings) -> Subset:
    """Return the questions of a split in a language of the embedded world."""
    corpus = Corpus(f"{world.corpus}/{NAME}/{name}", face.mini.passages(name, world), name)
    return Subset("", face.mini.questions(name, split, world), face.mini.judgements(name, split, world), corpus, name)


_TRAIN = FineTuneStep(
    f"{NAME}-train",
    partial(
        languages,
        released=trained_on(
            lambda request: {f"{NAME}/{name}": subset(name, "train", request) for name in LANGUAGES}, f"{NAME}-train"
        ),
        names=tuple(LANGUAGES),
    ),
    MSM_MRTYDI,
    "MSM (ICLR'23): all languages of Mr. TyDi's training questions, 40 epochs, batch 128, going on from English",
)
MCONTRIEVER = replace(
    _TRAIN,
    values=MCONTRIEVER_MRTYDI,
    source="mContriever (TMLR'22): Mr. TyDi with negatives mined by the tuned model, going on from MS MARCO",
)
_ENGLISH = single(MARCO, NQ, SUPERVISED)
_RECIPES: Recipes = {
    "english": {**_ENGLISH, "msmarco-mcontriever": (MARCO_MCONTRIEVER,), "nq-mcontriever": (NQ_MCONTRIEVER,)},
    "multilingual": {**extended(_ENGLISH, _TRAIN), "msmarco-mcontriever": (MARCO_MCONTRIEVER, MCONTRIEVER)},
}
_TASKS = tuple(LANGUAGES)

BENCHMARK = Benchmark(
    **metadata("mrtydi"),
    protocol=PROTOCOL,
    tasks=_TASKS,
    subsets=subset,
    mini=_TASKS,
    mini_subsets=mini_subset,
    dev={"official": _TASKS, "mini": _TASKS},
    macros=(average(NAME, "Avg. ({})", LANGUAGES, "unweighted mean over the 11 languages"),),
    tables={
        "languages": markdown(
            "task|language|passages|train: queries / judgements|dev|test",
            (
                (code, language.name, language.passages, *(f"{queries:,} / {rows:,}" for queries, rows in counts))
                for code, language in LANGUAGES.items()
                for counts in [language.counts.values()]
            ),
            "ll",
        )
    },
    releases=tuple(  # sizes and checksums of v1.1 were not published
        Release(
            f"{NAME}/{language.folder}.tar.gz", (f"{URL}/{language.folder}.tar.gz",), LICENCE, tasks=(language.code,)
        )
        for language in LANGUAGES.values()
    ),
    recipes=_RECIPES,
)
SUITE = BENCHMARK.suite()
bench_suites = brings(SUITE)
