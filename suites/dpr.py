"""Natural Questions and TriviaQA as DPR searches them: English questions, answered from DPR's Wikipedia.

Without the passages, questions are there, to be counted and audited; reading a passage then raises an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import bench.suites as face
from bench import Corpus, Item, Source, Subset
from bench.suites import DataRequest, Release, official
from suites import readouts
from suites.common import (
    ENGLISH,
    Benchmark,
    ScoringProtocol,
    answering,
    average,
    brings,
    find,
    optional_source,
    plain_or_packed,
    published,
)
from suites.readers import dpr
from suites.tunings import NQ, SUPERVISED, single

URL = "https://dl.fbaipublicfiles.com/dpr/data/retriever"
CATALOGUE = "the catalogue of ir_datasets 0.6.3"
CORPUS = "dpr-w100"
"""Id of DPR's Wikipedia, and its folder under the folder of data, shared by the suites that search it."""
PASSAGES = 21_015_324
RELEASE = Release(
    path=f"{CORPUS}/psgs_w100.tsv.gz",
    urls=("https://dl.fbaipublicfiles.com/dpr/wikipedia_split/psgs_w100.tsv.gz",),
    licence="Wikipedia (2018-12-20), CC BY-SA 3.0",
    size=4_694_541_059,
    md5="612fe66e0b6b41ee28f806140226c563",
    origin=CATALOGUE,
)
_PAIRS = (
    ("biencoder-nq-train.json.gz", 2_314_892_908, "a1c927b5adae71388eb064329387709f"),
    ("biencoder-nq-dev.json.gz", 256_239_282, "2640483dbe0df7ae29c6da419c551a80"),
)
PAIRS = {
    "nq": tuple(
        Release(f"nq/{name}", (f"{URL}/{name}",), "CC BY-SA 3.0", size, md5=md5, tasks=("pairs",), origin=CATALOGUE)
        for name, size, md5 in _PAIRS
    )
}
"""Training and dev pairs in DPR's form, which recipes of many suites read: `bench data fetch nq --task pairs`."""


@dataclass(frozen=True)
class Questions:
    """One of the two sets of questions: files and counts by split; the counts are those of Table 1 of DPR's paper."""

    name: str
    title: str
    files: Mapping[str, str]
    queries: Mapping[str, int]
    citation: str
    licence: str


SETS = {row["name"]: Questions(**row) for row in published("dpr")}


def subsets(suite: str, _task: str, split: str, request: DataRequest) -> Subset:
    """Return the questions of a split with their answers. Raises `UsageError` if the folder or file is missing."""
    questions, identity, folder = SETS[suite], f"{suite}/{split}", official.folder(request, suite)
    released = questions.files[split]
    path = find(
        *dict.fromkeys((folder / released, *plain_or_packed(folder, released.removesuffix(".gz")))),
        expected=f"the {questions.queries[split]:,} {split} questions of {questions.title}",
        hint=f"fetch {URL}/{released} and put it there as it is",
    )
    return Subset(
        "",
        dpr.questions(path, f"{identity} questions"),
        None,
        Corpus(CORPUS, wikipedia(request, suite), ENGLISH, PASSAGES),
        ENGLISH,
        {"queries": questions.queries[split]},
        answers=dpr.answers(path, f"{identity} answers"),
    )


def wikipedia(request: DataRequest, suite: str) -> Source[Item]:
    """Return the passages, in their own folder or the suite's; a source that raises when read where they are not.

    Raises `UsageError` if no folder of data is there at all.
    """
    suite_folder = official.folder(request, suite)
    folder = official.root_of(CORPUS, official.roots(request.data_dir)) / CORPUS
    return optional_source(
        dpr.passages,
        [path for root in (folder, suite_folder) for path in plain_or_packed(root, "psgs_w100.tsv")],
        f"{CORPUS} passages",
        expected=f"the {PASSAGES:,} passages of DPR's Wikipedia",
        hint=f"fetch {RELEASE.urls[0]} ({RELEASE.size:,} bytes, md5 {RELEASE.md5}) and put it there as it is, or "
        "unpacked, which is read faster",
        place=folder / "psgs_w100.tsv.gz",
    )


def mini_subsets(suite: str, _task: str, _split: str, world: face.WorldSettings) -> Subset:
    """Return English questions of the embedded world: MKQA's for `nq`, from which they come, else XOR-Retrieve's."""
    questions = face.mini.mkqa(ENGLISH, world) if suite == "nq" else face.mini.cross_lingual(ENGLISH, world)
    return answering(questions, f"{world.corpus}/{suite}", ENGLISH)


SUITES = tuple(
    Benchmark(
        name=questions.name,
        title=questions.title,
        summary=f"The questions of {questions.title.partition(' (')[0]}, answered from DPR's English Wikipedia.",
        citation=questions.citation,
        licence=f"{questions.licence}; the passages are Wikipedia's, CC BY-SA 3.0.",
        protocol=ScoringProtocol(("answer-R@5", "answer-R@20", "answer-R@100"), "list", readout=readouts.DPR_QUESTIONS),
        tasks=("test",),
        subsets=partial(subsets, questions.name),
        mini=("test",),
        mini_subsets=partial(mini_subsets, questions.name),
        dev={"official": ("test",)},
        macros=(average(questions.name, "Test", ("test",), "the split that the papers print"),),
        primary="answer-R@20",
        releases=(  # of the questions no checksum was published
            *(
                Release(f"{questions.name}/{file}", (f"{URL}/{file}",), questions.licence)
                for file in questions.files.values()
            ),
            RELEASE,
            *PAIRS.get(questions.name, ()),
        ),
        recipes={"english": single(NQ, SUPERVISED)},
    ).suite()
    for questions in SETS.values()
)
bench_suites = brings(*SUITES)
