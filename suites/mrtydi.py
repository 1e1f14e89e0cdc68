"""Mr. TyDi v1.1: questions in 11 languages, each answered from the Wikipedia of its own language (Zhang et al. 2021).

Protocol and counts: the card (`suites/cards/mrtydi.md`). The official files are looked for under the folder of data,
unpacked in `mrtydi/mrtydi-v1.1-swahili/` or in the released `mrtydi/mrtydi-v1.1-swahili.tar.gz`, file by file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.data import anserini, official, trec
from bench.data.archive import File, Member
from bench.errors import UsageError
from bench.hookspecs import hookimpl
from bench.publications import Release, Reported
from bench.types import Corpus, DataRequest, FineTuning, Leg, Macro, Suite, Task
from suites import readouts
from suites.tunings import MARCO, MSM_MRTYDI, NQ, SUPERVISED, languages, single, then, trained_on

NAME = "mrtydi"
MEASURES = ("RR@100", "R@100")
DEPTH = 100
OFFICIAL = ("mrtydi-ccp",)
SPLITS = ("test", "dev", "train")
"""`test` is scored; the others have questions to train on and to choose by."""
URL = "https://git.uwaterloo.ca/jimmylin/mr.tydi/-/raw/master/data"
RELEASE = "v1.1"
LICENCE = "Apache-2.0; the passages are Wikipedia's, CC BY-SA"
COLLECTION = "collection/docs.jsonl"


@dataclass(frozen=True)
class Language:
    """One language of the release.

    Args:
        code: ISO 639-1, which is the task's name.
        name: in the names of its files.
        passages: in its collection.
        counts: by split, how many queries are judged and how many judgements there are.
        md5: of the tarball of v1.0; that of v1.1 was not published.
        size: of the tarball of v1.0, bytes.
    """

    code: str
    name: str
    passages: int
    counts: Mapping[str, tuple[int, int]]
    md5: str
    size: int

    @property
    def folder(self) -> str:
        """Name of the unpacked release, and the first part of every name in its tarball."""
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


def _languages() -> dict[str, Language]:
    """Read the table."""
    found = {}
    for line in _TABLE.strip().splitlines():
        code, name, passages, *pairs, md5, size = line.split()
        queries = [pair.split("/") for pair in pairs]
        counts = {split: (int(q), int(j)) for split, (q, j) in zip(("train", "dev", "test"), queries, strict=True)}
        found[code] = Language(code, name, int(passages), counts, md5, int(size))
    return found


LANGUAGES = _languages()


def task_names(data: str) -> tuple[str, ...]:
    """List the languages; official and mini data have the same."""
    return tuple(LANGUAGES) if data in SUITE.data else ()


def load(name: str, request: DataRequest) -> Task:
    """Find the test questions of a language and its passages.

    Raises:
        UsageError: if there is no such language or folder, or a file is missing.
    """
    official.known(NAME, name, task_names(request.data))
    if request.data == "mini":
        one = _mini(name, "test", request.world)
        return _task(one.corpus.id, one.corpus.id.partition("/")[0], one)
    return _task(f"{NAME}/{name}", "official", leg(name, "test", request))


def dev(name: str, request: DataRequest) -> Task:
    """Find the dev questions of a language, to choose settings by; raises as `load` does."""
    one = leg(name, "dev", request)
    data = one.corpus.id.partition("/")[0] if request.data == "mini" else "official"
    return replace(_task(f"{one.corpus.id}@dev", data, one), official=())


def leg(name: str, split: str, request: DataRequest) -> Leg:
    """Find the questions of a split with their judgements and passages; `dev` and `train` serve training.

    Args:
        name: code of the language.
        split: one of `SPLITS`.
        request: says where the files lie.

    Raises:
        UsageError: as `load` does, and for an unknown split.
    """
    official.known(NAME, name, task_names(request.data))
    if split not in SPLITS:
        raise UsageError(f"{NAME} has no split {split!r}; there are {', '.join(SPLITS)}")
    if request.data == "mini":
        return _mini(name, split, request.world)
    one, root = LANGUAGES[name], official.folder(request, NAME)
    identity = f"{NAME}/{name}"
    collection = _find(root, one, (f"{COLLECTION}.gz", COLLECTION), f"the {one.passages:,} passages")
    queries, judgements = one.counts[split]
    topics = _find(root, one, (f"topic.{split}.tsv",), f"the {queries:,} questions of {split}")
    qrels = _find(root, one, (f"qrels.{split}.txt",), f"the {judgements:,} judgements of {split}")
    return Leg(
        "",
        trec.topics_source(topics, f"{identity} questions ({split})"),
        trec.qrels_source(qrels, f"{identity} qrels ({split})"),
        Corpus(identity, anserini.passages(collection, f"{identity} passages"), name, one.passages),
        name,
        {"queries": queries, "qrels": judgements},
    )


def releases() -> tuple[Release, ...]:
    """Name the tarballs of v1.1; their sizes and checksums were not published."""
    return tuple(
        Release(f"{NAME}/{one.folder}.tar.gz", (f"{URL}/{one.folder}.tar.gz",), LICENCE, tasks=(one.code,))
        for one in LANGUAGES.values()
    )


def reported() -> Sequence[Reported]:
    """What papers printed for it, and what MSM's printed of no suite."""
    from suites.reported import elsewhere, of

    return (*of(NAME), *elsewhere("MSM"))


def card() -> str:
    """Return the protocol card, with the table of the languages filled in."""
    from importlib.resources import files

    text = files("suites").joinpath("cards/mrtydi.md").read_text(encoding="utf-8")
    rows = [
        f"| {one.code} | {one.name} | {one.passages:,} | "
        + " | ".join(f"{queries:,} / {rows:,}" for queries, rows in one.counts.values())
        + " |"
        for one in LANGUAGES.values()
    ]
    head = [
        "| task | language | passages | train: queries / judgements | dev | test |",
        "|---|---|---:|---:|---:|---:|",
    ]
    return text.replace("<!-- languages -->", "\n".join(head + rows))


def _task(identity: str, data: str, one: Leg) -> Task:
    """Put a leg under Mr. TyDi's rules."""
    release = RELEASE if data == "official" else ""
    return Task(
        identity, data, (one,), MEASURES, "trec", DEPTH, official=OFFICIAL, release=release, readout=readouts.CCP
    )


def _mini(name: str, split: str, world: str) -> Leg:
    """Take a language of the embedded world."""
    from bench import mini

    settings = mini.named(world)
    corpus = Corpus(f"{settings.corpus}/{NAME}/{name}", mini.passages(name, settings), name)
    return Leg("", mini.questions(name, split, settings), mini.judgements(name, split, settings), corpus, name)


def _find(root: Path, one: Language, names: tuple[str, ...], what: str) -> File:
    """Find a file of a language: unpacked, else in the tarball.

    Args:
        root: the suite's folder.
        one: the language.
        names: inside the release; the first is the released one.
        what: it holds, for the message.

    Raises:
        UsageError: if neither is there.
    """
    unpacked = [root / one.folder / name for name in names]
    tarball = root / f"{one.folder}.tar.gz"
    for path in unpacked:
        if path.is_file():
            return path
    if tarball.is_file():
        return Member(tarball, f"{one.folder}/{names[0]}")
    raise UsageError(
        f"{unpacked[0]}: found no such file, nor {tarball}; expected {what} of Mr. TyDi v1.1 in one of the two; "
        f"fetch {URL}/{one.folder}.tar.gz and put it there as it is. For orientation: the tarball of v1.0 has "
        f"{one.size:,} bytes and md5 {one.md5}; for v1.1 no checksum was published, so the counts are held instead"
    )


def training_legs(request: DataRequest) -> dict[str, Leg]:
    """Find the training questions of every language, by task."""
    return {f"{NAME}/{name}": leg(name, "train", request) for name in task_names(request.data)}


_TRAIN = trained_on(training_legs, f"{NAME}-train")
_ENGLISH = single(MARCO, NQ, SUPERVISED)
_OWN = FineTuning(
    f"{NAME}-train",
    partial(languages, real=_TRAIN, names=tuple(LANGUAGES)),
    MSM_MRTYDI,
    "MSM (ICLR'23): all languages of Mr. TyDi's training questions, 40 epochs, batch 128, going on from English",
)

SUITE = Suite(
    name=NAME,
    version="1",
    title="Mr. TyDi",
    summary="Questions in 11 languages, each answered from the Wikipedia of its own language.",
    citation=(
        "Xinyu Zhang, Xueguang Ma, Peng Shi, Jimmy Lin. Mr. TyDi: A Multi-lingual Benchmark for Dense Retrieval. "
        "Proceedings of the 1st Workshop on Multilingual Representation Learning, 2021."
    ),
    licence=f"{LICENCE}.",
    settings=("unsupervised", "english", "multilingual"),
    data=("official", "mini"),
    task_names=task_names,
    load=load,
    folder=None,
    macros=(
        Macro("Avg. (11)", tuple(f"{NAME}/{name}" for name in LANGUAGES), "unweighted mean over the 11 languages"),
    ),
    primary="RR@100",
    card=card,
    dev=dev,
    releases=releases,
    reported=reported,
    recipes={"english": _ENGLISH, "multilingual": then(_ENGLISH, _OWN)},
)


@hookimpl
def bench_suites() -> Iterable[Suite]:
    """Bring Mr. TyDi."""
    return (SUITE,)
