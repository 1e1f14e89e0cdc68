"""Mr. TyDi v1.1: questions in 11 languages, each answered from the Wikipedia of its own language (Zhang et al. 2021).

Files are read unpacked in `mrtydi/mrtydi-v1.1-swahili/`, or from the released `mrtydi/mrtydi-v1.1-swahili.tar.gz`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import bench.suites as face
from bench import Corpus, Leg
from bench.suites import DataRequest, File, FineTuning, Member, Release, official, trec
from suites import readouts
from suites.common import Benchmark, Recipes, Rules, about, average, brings, find, markdown, published
from suites.readers import anserini
from suites.tunings import (
    MARCO,
    MARCO_MCONTRIEVER,
    MCONTRIEVER_MRTYDI,
    MSM_MRTYDI,
    NQ,
    NQ_MCONTRIEVER,
    SUPERVISED,
    languages,
    single,
    then,
    trained_on,
)

NAME = "mrtydi"
URL = "https://git.uwaterloo.ca/jimmylin/mr.tydi/-/raw/master/data"
LICENCE = "Apache-2.0; the passages are Wikipedia's, CC BY-SA"
COLLECTION = "collection/docs.jsonl"
RULES = Rules(("RR@100", "R@100"), official=("mrtydi-ccp",), readout=readouts.CCP, release="v1.1")


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


LANGUAGES = {one["code"]: Language(**one) for one in published(NAME)}
"""By code. Sources: the release's README and ir_datasets' catalogue; judgements of train were counted in the files."""


def leg(name: str, split: str, request: DataRequest) -> Leg:
    """Return a split's questions, judgements and passages. Raises `UsageError` if the folder or a file is missing."""
    one, root, identity = LANGUAGES[name], official.folder(request, NAME), f"{NAME}/{name}"
    queries, judgements = one.counts[split]

    def found(expected: str, *names: str) -> File:
        tarball = root / f"{one.folder}.tar.gz"
        hint = (
            f"fetch {URL}/{tarball.name} and put it there as it is. For orientation: the tarball of v1.0 has "
            f"{one.size:,} bytes and md5 {one.md5}; for v1.1 no checksum was published, so counts are checked instead"
        )
        expected = f"{expected} of Mr. TyDi v1.1 in one of the two"
        places = (root / one.folder / file for file in names)
        return find(*places, expected=expected, hint=hint, packed=Member(tarball, f"{one.folder}/{names[0]}"))

    collection = found(f"the {one.passages:,} passages", f"{COLLECTION}.gz", COLLECTION)
    topics = found(f"the {queries:,} questions of {split}", f"topic.{split}.tsv")
    qrels = found(f"the {judgements:,} judgements of {split}", f"qrels.{split}.txt")
    return Leg(
        "",
        trec.topics_source(topics, f"{identity} questions ({split})"),
        trec.qrels_source(qrels, f"{identity} qrels ({split})"),
        Corpus(identity, anserini.passages(collection, f"{identity} passages"), name, one.passages),
        name,
        {"queries": queries, "qrels": judgements},
    )


def mini_leg(name: str, split: str, world: face.WorldSettings) -> Leg:
    """Return the questions of a split in a language of the embedded world."""
    corpus = Corpus(f"{world.corpus}/{NAME}/{name}", face.mini.passages(name, world), name)
    return Leg("", face.mini.questions(name, split, world), face.mini.judgements(name, split, world), corpus, name)


def training_legs(request: DataRequest) -> dict[str, Leg]:
    """Return the training questions of every language by task."""
    return {f"{NAME}/{name}": leg(name, "train", request) for name in LANGUAGES}


def tables() -> dict[str, str]:
    """Return the card's table of languages."""
    rows = (
        (one.code, one.name, one.passages, *(f"{queries:,} / {rows:,}" for queries, rows in one.counts.values()))
        for one in LANGUAGES.values()
    )
    return {"languages": markdown("task|language|passages|train: queries / judgements|dev|test", rows, "ll")}


def releases() -> tuple[Release, ...]:
    """List the tarballs of v1.1; their sizes and checksums were not published."""
    return tuple(
        Release(f"{NAME}/{one.folder}.tar.gz", (f"{URL}/{one.folder}.tar.gz",), LICENCE, tasks=(one.code,))
        for one in LANGUAGES.values()
    )


_OWN = FineTuning(
    f"{NAME}-train",
    partial(languages, real=trained_on(training_legs, f"{NAME}-train"), names=tuple(LANGUAGES)),
    MSM_MRTYDI,
    "MSM (ICLR'23): all languages of Mr. TyDi's training questions, 40 epochs, batch 128, going on from English",
)
MCONTRIEVER = replace(
    _OWN,
    values=MCONTRIEVER_MRTYDI,
    source="mContriever (TMLR'22): Mr. TyDi with negatives mined by the tuned model, going on from MS MARCO",
)
_ENGLISH = single(MARCO, NQ, SUPERVISED)
_RECIPES: Recipes = {
    "english": {**_ENGLISH, "msmarco-mcontriever": (MARCO_MCONTRIEVER,), "nq-mcontriever": (NQ_MCONTRIEVER,)},
    "multilingual": {**then(_ENGLISH, _OWN), "msmarco-mcontriever": (MARCO_MCONTRIEVER, MCONTRIEVER)},
}
_TASKS = tuple(LANGUAGES)

BENCHMARK = Benchmark(
    **about("mrtydi"),
    rules=RULES,
    tasks=_TASKS,
    legs=lambda name, split, request: (leg(name, split, request),),
    mini=_TASKS,
    mini_legs=lambda name, split, world: (mini_leg(name, split, world),),
    dev={"official": _TASKS, "mini": _TASKS},
    macros=(average(NAME, "Avg. ({})", LANGUAGES, "unweighted mean over the 11 languages"),),
    tables=tables,
    releases=releases,
    recipes=_RECIPES,
)
SUITE = BENCHMARK.suite()
bench_suites = brings(SUITE)
