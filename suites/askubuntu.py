"""AskUbuntu: rank the 20 questions that BM25 found for a question, duplicates first (Lei et al. 2016).

Without the texts, candidates and judgements are there, to score a run by; reading a text then raises an error.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import bench.suites as face
from bench import Corpus, Item, Leg, Source
from bench.suites import DataRequest, Release, official
from suites import readouts
from suites.common import ENGLISH, Benchmark, Rules, about, average, brings, find, missing, present
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

_RELEASED = (
    ("dev.txt", 74_744, "5c478af0db8998fd9517788c18f84bca96d0f79141cf80504544635f2c3437e0", ("dev",)),
    ("test.txt", 74_251, "5d659c24836bd8ad0a486d353386f1ca3780191e2df6abd58accbfcbb726c4ad", ("test", WITH_BODY)),
    ("heldout.txt", 13_451, "26dab391d0d8edf4e4dfaadfe6bc0f50081b9b57ed3b9872338104f5f35bbb44", ()),
)


def releases() -> tuple[Release, ...]:
    """List the released files; only those of the candidates have known checksums."""
    return (
        *(
            Release(f"{NAME}/{name}", (f"{FILES}/{name}",), LICENCE, size, sha256, tasks=tasks)
            for name, size, sha256, tasks in _RELEASED
        ),
        Release(f"{NAME}/{TEXTS}.gz", (f"{FILES}/{TEXTS}.gz",), LICENCE),
    )


def legs(name: str, _split: str, request: DataRequest) -> tuple[Leg, ...]:
    """Return the leg of a split. Raises `UsageError` if a folder or the file of candidates is missing."""
    return (leg("test", request, body=True) if name == WITH_BODY else leg(name, request),)


def leg(split: str, request: DataRequest, *, body: bool = False) -> Leg:
    """Return the leg of a split; `body` makes title and body a question's text (Lei et al.). Raises as `legs` does."""
    folder, counts = official.folder(request, NAME), SPLITS[split]
    identity = f"{NAME}/{split}{'-with-body' if body else ''}"
    path = find(
        folder / f"{split}.txt",
        expected="200 lines of query, similar and candidate questions and scores",
        hint=f"put the file of {URL} there",
    )
    lists = reader.candidates(path, f"{identity} candidates")
    text = _texts(folder, body=body)
    return Leg(
        "",
        reader.queries_of(text, lists),
        reader.judgements(path, f"{identity} qrels"),
        Corpus(identity, reader.pool_of(text, lists), ENGLISH, counts.candidates),
        ENGLISH,
        {"queries": counts.queries, "qrels": counts.positives},
        lists,
    )


def _texts(folder: Path, *, body: bool) -> Source[Item]:
    """Return the questions' texts, packed as released or not; reading them raises where there are none."""
    if path := present(folder / f"{TEXTS}.gz", folder / TEXTS):
        return reader.texts(path, f"{NAME} texts", body=body)
    return missing(
        folder / f"{TEXTS}.gz",
        f"{NAME} texts",
        "the text of the questions (id, title and body separated by tabs, about 167,000 lines)",
        f"put the file of {URL} there. Without it runs from elsewhere can be scored, but none can be made",
    )


def mini_legs(name: str, _split: str, world: face.WorldSettings) -> tuple[Leg, ...]:
    """Return the leg of a split of the embedded world."""
    found = face.mini.duplicates(name, world)
    corpus = Corpus(f"{world.corpus}/{NAME}/{name}", found.corpus, ENGLISH)
    return (Leg("", found.queries, found.qrels, corpus, ENGLISH, candidates=found.candidates),)


BENCHMARK = Benchmark(
    **about("askubuntu"),
    rules=Rules(("AP", "RR", "P@1", "P@5"), "list", 20, official=(NAME,), similarity="cos", readout=readouts.AUTO_MLM),
    tasks=(*SPLITS, WITH_BODY),
    legs=legs,
    mini=tuple(SPLITS),
    mini_legs=mini_legs,
    macros=(
        average(NAME, "Test", ("test",), "the split that the papers' numbers fit; dev is there to choose settings by"),
    ),
    releases=releases,
)
SUITE = replace(BENCHMARK.suite(), dev=BENCHMARK.load, dev_names=lambda _: ("dev",))
bench_suites = brings(SUITE)
