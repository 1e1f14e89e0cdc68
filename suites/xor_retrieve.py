"""XOR-Retrieve v1.1: questions in seven languages, answered from the English Wikipedia (Asai et al. 2021).

Protocol and counts: the card (`suites/cards/xor-retrieve.md`). The official files are looked for under the folder of
data as `xor-retrieve/xor_dev_retrieve_eng_span_v1_1.jsonl` and `xor-retrieve/enwiki_20190201_w100.tsv`. The questions
are served without the passages too, so that they can be counted and audited where only they are; asking for a passage
then says what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.data import official, passages, xor
from bench.errors import UsageError
from bench.hookspecs import hookimpl
from bench.publications import Release, Reported
from bench.types import Corpus, DataRequest, Item, Leg, Macro, Source, Suite, Task
from suites import readouts
from suites.tunings import MSM_XOR, NQ, NQ_MSM, SUPERVISED, single, then, tuning, xor_train

NAME = "xor-retrieve"
VERSION = "v1.1"
MEASURES = ("R@2kt", "R@5kt")
DEPTH = 100
OFFICIAL = ("xor",)
ENGLISH = "en"
URL = "https://nlp.cs.washington.edu/xorqa/XORQA_site/data"
WIKIPEDIA = "enwiki_20190201_w100.tsv"
LICENCE = "MIT"


@dataclass(frozen=True)
class Split:
    """One file of questions.

    Args:
        file: its name.
        rows: questions in all languages.
        size: bytes.
        sha256: of the file.
    """

    file: str
    rows: int
    size: int
    sha256: str


SPLITS = {
    "dev": Split(
        "xor_dev_retrieve_eng_span_v1_1.jsonl",
        2_110,
        426_987,
        "cfe569e4c6d3539c2111d97249f900318f9273b246a61fff95216ce2a2e1505c",
    ),
    "train": Split(
        "xor_train_retrieve_eng_span.jsonl",
        15_250,
        2_912_848,
        "f0c8202eebcef9fc129c9bb8e7a12fae1a7648163b249dc0a06df4318923f70b",
    ),
}
"""`dev` is scored, since the answers of `test` are hidden; `train` has questions to train on."""


@dataclass(frozen=True)
class Language:
    """The questions of a language.

    Args:
        dev: in the dev file.
        counted: of these, with an answer other than yes and no; the published fractions are over so many.
        train: in the training file, with such an answer.
    """

    dev: int
    counted: int
    train: int

    def queries(self, split: str) -> int:
        """Judged questions of a split."""
        return self.counted if split == "dev" else self.train


LANGUAGES = {
    "ar": Language(350, 309, 2_311),
    "bn": Language(312, 304, 2_476),
    "fi": Language(360, 314, 1_859),
    "ja": Language(296, 241, 1_933),
    "ko": Language(299, 285, 2_403),
    "ru": Language(255, 237, 1_746),
    "te": Language(238, 238, 1_308),
}
"""Counted in the released files; the counted dev questions also follow from the fractions that CCP's Table 4 prints."""


def task_names(data: str) -> tuple[str, ...]:
    """List the languages; official and mini data have the same."""
    return tuple(LANGUAGES) if data in SUITE.data else ()


def load(name: str, request: DataRequest) -> Task:
    """Find the dev questions of a language and the English passages.

    Raises:
        UsageError: if there is no such language or folder, or the file of questions is missing.
    """
    if request.data == "mini":
        official.known(NAME, name, task_names(request.data))
        return _mini(name, request.world)
    return _task(f"{NAME}/{name}", "official", leg(name, "dev", request), VERSION)


def leg(name: str, split: str, request: DataRequest) -> Leg:
    """Find the questions of a split of the official files with their answers; `train` serves training.

    Args:
        name: code of the language.
        split: one of `SPLITS`.
        request: says where the files lie.

    Raises:
        UsageError: as `load` does, and for an unknown split.
    """
    official.known(NAME, name, task_names(request.data))
    if split not in SPLITS:
        raise UsageError(f"{NAME} has no split {split!r} with answers; there are {', '.join(SPLITS)}")
    from bench.scoring.kilotokens import counted

    root, about, identity = official.folder(request, NAME), SPLITS[split], f"{NAME}/{name}"
    path = root / about.file
    if not path.is_file():
        raise UsageError(
            f"{path}: found no such file, expected the {about.rows:,} questions of {split} in {len(LANGUAGES)} "
            f"languages; fetch {URL}/{about.file} ({about.size:,} bytes, sha256 {about.sha256}) and put it there"
        )
    part = xor.Part(name, split, about.rows)
    return Leg(
        "",
        xor.questions(path, part, f"{identity} questions ({split})"),
        None,
        Corpus(f"{NAME}/enwiki-20190201", _wikipedia(root), ENGLISH),
        name,
        {"queries": LANGUAGES[name].queries(split)},
        answers=xor.answers(path, part, counted, f"{identity} answers ({split})"),
    )


def releases() -> Sequence[Release]:
    """Return the official files."""
    questions = [
        Release(f"{NAME}/{one.file}", (f"{URL}/{one.file}",), LICENCE, one.size, one.sha256) for one in SPLITS.values()
    ]
    passages_ = Release(f"{NAME}/{WIKIPEDIA}", (f"{URL}/models/{WIKIPEDIA}",), "Wikipedia (2019-02-01), CC BY-SA 3.0")
    return (*questions, passages_)


def reported() -> Sequence[Reported]:
    """Return what papers printed."""
    from suites.reported import of

    return of(NAME)


def card() -> str:
    """Return the protocol card, with the table of the languages filled in."""
    from importlib.resources import files

    text = files("suites").joinpath("cards/xor-retrieve.md").read_text(encoding="utf-8")
    rows = [f"| {code} | {one.dev:,} | {one.counted:,} | {one.train:,} |" for code, one in LANGUAGES.items()]
    ones = LANGUAGES.values()
    totals = (sum(one.dev for one in ones), sum(one.counted for one in ones), sum(one.train for one in ones))
    rows.append("| all | " + " | ".join(f"{total:,}" for total in totals) + " |")
    head = ["| task | dev questions | of these counted | train questions counted |", "|---|---:|---:|---:|"]
    return text.replace("<!-- languages -->", "\n".join(head + rows))


def _wikipedia(root: Path) -> Source[Item]:
    """Name the passages, plain or compressed; where there are none, a source that says so when read."""
    name = f"{NAME} passages"
    for path in (root / WIKIPEDIA, root / f"{WIKIPEDIA}.gz"):
        if path.is_file():
            return passages.passages(path, name)
    return passages.missing(
        root / WIKIPEDIA,
        name,
        "found no such file, expected the English Wikipedia of 2019-02-01 in passages of 100 tokens (about 18 million "
        f"rows of id, text, title); fetch {URL}/models/{WIKIPEDIA} and put it there. Without it nothing can be "
        "searched; the suites xor-mlqa-en and xor-afriqa-en ask the same kind of question over smaller English pools "
        "(their numbers are comparable with no published ones)",
    )


def _mini(name: str, world: str) -> Task:
    """Take a language of the embedded world."""
    from bench import mini
    from bench.mini.asking import answers_of, queries_of

    settings = mini.named(world)
    found = mini.cross_lingual(name, settings)
    corpus = Corpus(f"{settings.corpus}/{NAME}", found.corpus, ENGLISH)
    asked, accepted = queries_of(found.questions), answers_of(found.questions)
    return _task(
        f"{settings.corpus}/{NAME}/{name}", settings.corpus, Leg("", asked, None, corpus, name, answers=accepted)
    )


def _task(identity: str, data: str, one: Leg, release: str = "") -> Task:
    """Put a leg under XOR-Retrieve's rules."""
    return Task(
        identity, data, (one,), MEASURES, "list", DEPTH, official=OFFICIAL, release=release, readout=readouts.CCP
    )


_ENGLISH = {"nq": (NQ_MSM,), "nq-ccp": (NQ,), **single(SUPERVISED)}
_OWN = tuning("xor-train", xor_train, MSM_XOR, "MSM (ICLR'23): XOR-Retrieve's training questions, going on from NQ")

SUITE = Suite(
    name=NAME,
    version="1",
    title="XOR-Retrieve",
    summary="Questions in seven languages, answered from the English Wikipedia.",
    citation=(
        "Akari Asai, Jungo Kasai, Jonathan H. Clark, Kenton Lee, Eunsol Choi, Hannaneh Hajishirzi. XOR QA: "
        "Cross-lingual Open-Retrieval Question Answering. NAACL, 2021."
    ),
    licence="MIT; the passages are Wikipedia's, CC BY-SA 3.0.",
    settings=("unsupervised", "english", "multilingual"),
    data=("official", "mini"),
    task_names=task_names,
    load=load,
    folder=None,
    macros=(Macro("Avg. (7)", tuple(f"{NAME}/{name}" for name in LANGUAGES), "unweighted mean over the 7 languages"),),
    primary="R@2kt",
    card=card,
    releases=releases,
    reported=reported,
    recipes={"english": _ENGLISH, "multilingual": then(_ENGLISH, _OWN)},
)


@hookimpl
def bench_suites() -> Iterable[Suite]:
    """Bring XOR-Retrieve."""
    return (SUITE,)
