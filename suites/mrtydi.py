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
from suites.common import Benchmark, Recipes, Rules, about, average, brings, find, markdown
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


# Passages; then queries / judgements of train, dev, test; then md5 and size of the v1.0 tarball. Sources: the release's
# README and ir_datasets' catalogue; the judgements of train were counted in the files of v1.1.
_TABLE = """
ar arabic      2106586 12377/12377 3115/3115 1081/1257 a0dd1e06c27486b09762c033bde42b70  321016840
bn bengali      304059   1713/1719   440/443   111/130 06ed183ce7c407f851e5f07370fdbbbb   59707233
en english    32907100   3547/3547   878/878   744/935 031277b7a7912aedb3a5ae58b93ec2c0 4964684589
fi finnish     1908757   6561/6561 1738/1738 1254/1451 92579475f609bc986aa3eb8260a7328a  268373209
id indonesian  1469399   4902/4902 1224/1224   829/961 708610c85ce2953ab281fd66c34d4f84  168175031
ja japanese    7000027   3697/3697   928/928   720/923 feff865aada3a55cafb8756bd2bf89af 1054574801
ko korean      1496126   1295/1317   303/307   421/492 ccf88f800e87cb62b735cb283ab6f50c  222544514
ru russian     9597504   5366/5366 1375/1375  995/1168 fab64459133bc93a0bec2f0559bfb423 1549150495
sw swahili      136689   2072/2401   526/623   670/743 1042af38a358bd3a60e0f548f9986f8a   10452957
te telugu       548224   3880/3880   983/983   646/677 a2174529c3154fe9fa50179cb1584a0d   73416550
th thai         568855   3319/3360   807/817 1190/1368 351d17d7e8614447f2d350bb736ea718  112677400
"""


def _language(line: str) -> Language:
    """Parse a row of the table."""
    code, name, passages, *pairs, md5, size = line.split()
    counted = [(int(queries), int(rows)) for queries, _, rows in (pair.partition("/") for pair in pairs)]
    counts = dict(zip(("train", "dev", "test"), counted, strict=True))
    return Language(code, name, int(passages), counts, md5, int(size))


LANGUAGES = {one.code: one for one in map(_language, _TABLE.strip().splitlines())}


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
