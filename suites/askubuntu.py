"""AskUbuntu: rank the 20 questions that BM25 found for a question, duplicates first (Lei et al. 2016).

Without the texts, candidates and judgements are there, to score a run by; reading a text then raises an error.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import bench.suites as face
from bench import Corpus, Subset
from bench.suites import DataRequest, Release, official
from suites import readouts
from suites.common import (
    ENGLISH,
    Benchmark,
    ScoringProtocol,
    average,
    brings,
    find,
    metadata,
    optional_source,
)
from suites.readers import askubuntu as reader

NAME = "askubuntu"
TEXTS = "text_tokenized.txt"
URL = "https://github.com/taolei87/askubuntu"
FILES = "https://raw.githubusercontent.com/taolei87/askubuntu/master"
LICENCE = "none is stated; the texts are AskUbuntu's, CC BY-SA"
WITH_BODY = "test-with-body"
"""The test split with title and body as a question's text (Lei et al.), on official data."""


class Split(NamedTuple):
    """One file of candidates."""

    queries: int  # with a similar question among their candidates; the others leave every mean
    positives: int  # similar questions in all
    candidates: int  # without repetition


SPLITS = {"dev": Split(189, 1_177, 3_867), "test": Split(186, 1_078, 3_834)}
"""Counted in the released files, whose sha256 begin with 5c478af0db89 (dev) and 5d659c24836b (test)."""

_RELEASED = (  # name, size, sha256, tasks; of the texts no checksum was published
    ("dev.txt", 74_744, "5c478af0db8998fd9517788c18f84bca96d0f79141cf80504544635f2c3437e0", ("dev",)),
    ("test.txt", 74_251, "5d659c24836bd8ad0a486d353386f1ca3780191e2df6abd58accbfcbb726c4ad", ("test", WITH_BODY)),
    ("heldout.txt", 13_451, "26dab391d0d8edf4e4dfaadfe6bc0f50081b9b57ed3b9872338104f5f35bbb44", ()),
)


def subsets(name: str, _split: str, request: DataRequest) -> Subset:
    """Return the subset of a split; `UsageError` if the folder or the file of candidates is missing.

    The texts may be missing: then runs from elsewhere can be scored, and reading a text raises `UsageError`.
    """
    body = name == WITH_BODY
    split = "test" if body else name
    folder, counts, identity = official.folder(request, NAME), SPLITS[split], f"{NAME}/{name}"
    path = find(
        folder / f"{split}.txt",
        expected="200 lines of query, similar and candidate questions and scores",
        hint=f"put the file of {URL} there",
    )
    lists = reader.candidates(path, f"{identity} candidates")
    texts = optional_source(
        partial(reader.texts, body=body),
        (folder / f"{TEXTS}.gz", folder / TEXTS),
        f"{NAME} texts",
        expected="the text of the questions (id, title and body separated by tabs, about 167,000 lines)",
        hint=f"put the file of {URL} there. Without it runs from elsewhere can be scored, but none can be made",
    )
    return Subset(
        "",
        reader.select(texts, lists, "queries"),
        reader.judgements(path, f"{identity} qrels"),
        Corpus(identity, reader.select(texts, lists, "candidates"), ENGLISH, counts.candidates),
        ENGLISH,
        {"queries": counts.queries, "qrels": counts.positives},
        lists,
    )


def mini_subsets(name: str, _split: str, world: face.WorldSettings) -> Subset:
    """Return the subset of a split of the embedded world."""
    parts = face.mini.duplicates(name, world)
    corpus = Corpus(f"{world.corpus}/{NAME}/{name}", parts.corpus, ENGLISH)
    return Subset("", parts.queries, parts.qrels, corpus, ENGLISH, candidates=parts.candidates)


BENCHMARK = Benchmark(
    **metadata("askubuntu"),
    protocol=ScoringProtocol(
        ("AP", "RR", "P@1", "P@5"), "list", 20, official=(NAME,), similarity="cos", readout=readouts.AUTO_MLM
    ),
    tasks=(*SPLITS, WITH_BODY),
    subsets=subsets,
    mini=tuple(SPLITS),
    mini_subsets=mini_subsets,
    macros=(
        average(NAME, "Test", ("test",), "the split that the papers' numbers fit; dev is there to choose settings by"),
    ),
    releases=(
        *(
            Release(
                f"{NAME}/{name}",
                (f"{FILES}/{name}",),
                LICENCE,
                size,
                sha256,
                tasks=tasks,
                origin="the files of the repository",
            )
            for name, size, sha256, tasks in _RELEASED
        ),
        Release(f"{NAME}/{TEXTS}.gz", (f"{FILES}/{TEXTS}.gz",), LICENCE),
    ),
)
SUITE = replace(BENCHMARK.suite(), dev=BENCHMARK.load, dev_names=lambda _: ("dev",))
bench_suites = brings(SUITE)
