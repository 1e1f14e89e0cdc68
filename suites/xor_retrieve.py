"""XOR-Retrieve v1.1: questions in seven languages, answered from the English Wikipedia (Asai et al. 2021).

Without the passages, questions are there, to be counted and audited; reading a passage then raises an error.
"""

from __future__ import annotations

from typing import NamedTuple

import bench.suites as face
from bench import Corpus, Subset
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
    markdown,
    metadata,
    optional_source,
    plain_or_packed,
    published,
)
from suites.readers import dpr, xor
from suites.tunings import MSM_XOR, NQ, NQ_MSM, SUPERVISED, extended, single, tuning, xor_train

NAME = "xor-retrieve"
URL = "https://nlp.cs.washington.edu/xorqa/XORQA_site/data"
WIKIPEDIA = "enwiki_20190201_w100.tsv"
LICENCE = "MIT"
UNVERIFIED = "passages put there by hand, of which nobody published size, checksum or count"
"""The mark of rows over them; what `bench data fetch` brings is counted when it comes, and held to that count."""

SPLITS = {
    split: Release(f"{NAME}/{name}", (f"{URL}/{name}",), LICENCE, size, sha256, origin="the released files")
    for split, name, size, sha256 in (
        (
            "dev",
            "xor_dev_retrieve_eng_span_v1_1.jsonl",
            426_987,
            "cfe569e4c6d3539c2111d97249f900318f9273b246a61fff95216ce2a2e1505c",
        ),
        (
            "train",
            "xor_train_retrieve_eng_span.jsonl",
            2_912_848,
            "f0c8202eebcef9fc129c9bb8e7a12fae1a7648163b249dc0a06df4318923f70b",
        ),
    )
}
"""`dev` is scored, since the answers of `test` are hidden; `train` has questions to train on."""
ROWS = {"dev": 2_110, "train": 15_250}
"""Questions of a split in all languages."""


class Language(NamedTuple):
    """The questions of a language."""

    dev: int  # in the dev file
    counted: int  # of these, with an answer other than yes and no; the published fractions are over so many
    train: int  # in the training file, with such an answer


LANGUAGES = {code: Language(*counts) for code, counts in published(NAME).items()}
"""Counted in the released files; the counted dev questions also follow from the fractions that CCP's Table 4 prints."""


def subset(name: str, split: str, request: DataRequest) -> Subset:
    """Return a split's questions with their answers. Raises `UsageError` if the folder or file is missing."""
    root, file, identity = official.folder(request, NAME), SPLITS[split], f"{NAME}/{name}"
    path = find(
        root.parent / file.path,
        expected=f"the {ROWS[split]:,} questions of {split} in {len(LANGUAGES)} languages",
        hint=f"fetch {file.urls[0]} ({file.size:,} bytes, sha256 {file.sha256}) and put it there",
    )
    part = xor.Part(name, split, ROWS[split])
    lines = official.recorded_lines(root.parent, f"{NAME}/{WIKIPEDIA}")
    count = None if lines is None else lines - dpr.has_header(root / WIKIPEDIA)
    passages = optional_source(
        dpr.passages,
        plain_or_packed(root, WIKIPEDIA),
        f"{NAME} passages",
        expected="the English Wikipedia of 2019-02-01 in passages of 100 tokens (about 18 million rows of id, text, "
        "title)",
        hint=f"fetch {URL}/models/{WIKIPEDIA} and put it there. Without it nothing can be searched; the suites "
        "xor-mlqa-en and xor-afriqa-en ask the same kind of question over smaller English pools (their numbers are "
        "comparable with no published ones)",
    )
    return Subset(
        "",
        xor.questions(path, part, f"{identity} questions ({split})"),
        None,
        Corpus(f"{NAME}/enwiki-20190201", passages, ENGLISH, count, unverified="" if count else UNVERIFIED),
        name,
        {"queries": LANGUAGES[name].counted if split == "dev" else LANGUAGES[name].train},
        answers=xor.answers(path, part, f"{identity} answers ({split})"),
    )


def mini_subsets(name: str, _split: str, world: face.WorldSettings) -> Subset:
    """Return the questions of a language of the embedded world."""
    return answering(face.mini.cross_lingual(name, world), f"{world.corpus}/{NAME}", name)


_ROWS = (*LANGUAGES.items(), ("all", map(sum, zip(*LANGUAGES.values(), strict=True))))
_ENGLISH = {"nq": (NQ_MSM,), "nq-ccp": (NQ,), **single(SUPERVISED)}
_TRAIN = tuning("xor-train", xor_train, MSM_XOR, "MSM (ICLR'23): XOR-Retrieve's training questions, going on from NQ")

BENCHMARK = Benchmark(
    **metadata("xor-retrieve"),
    protocol=ScoringProtocol(("R@2kt", "R@5kt"), "list", official=("xor-asked",), readout=readouts.CCP, release="v1.1"),
    tasks=tuple(LANGUAGES),
    subsets=lambda name, _split, request: subset(name, "dev", request),
    mini=tuple(LANGUAGES),
    mini_subsets=mini_subsets,
    macros=(average(NAME, "Avg. ({})", LANGUAGES, "unweighted mean over the 7 languages"),),
    tables={
        "languages": markdown(
            "task|dev questions|of these counted|train questions counted", ((code, *counts) for code, counts in _ROWS)
        )
    },
    releases=(
        *SPLITS.values(),
        Release(f"{NAME}/{WIKIPEDIA}", (f"{URL}/models/{WIKIPEDIA}",), "Wikipedia (2019-02-01), CC BY-SA 3.0"),
    ),
    recipes={"english": _ENGLISH, "multilingual": extended(_ENGLISH, _TRAIN)},
)
SUITE = BENCHMARK.suite()
bench_suites = brings(SUITE)
