"""LAReQA on XQuAD-R: a question in any of 11 languages, answered by sentences of all of them (Roy et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import bench.suites as face
from bench import Corpus, Item, Subset
from bench.suites import DataRequest, Release, official, squad
from suites import readouts
from suites.common import Benchmark, ScoringProtocol, average, brings, find, markdown, metadata, published
from suites.readers import xquad
from suites.tunings import SQUAD, SUPERVISED, single

NAME = "lareqa"
BARE = "lareqa-sentences"
"""The variant whose candidates are sentences without their paragraphs."""
URL = "https://github.com/google-research-datasets/lareqa/raw/master/xquad-r"
LICENCE = "CC BY-SA 4.0"
_FOLDER = "xquad-r"

LANGUAGES: dict[str, int] = {code: counts["candidates"] for code, counts in published(NAME).items()}
"""Sentences that each gives to the pool, by ISO 639-1 code. Sources: the release's README, else the files."""
RELEASES = {
    code: Release(
        f"{NAME}/{_FOLDER}/{code}.json",
        (f"{URL}/{code}.json",),
        LICENCE,
        file["size"],
        file["sha256"],
        origin="the files of the repository",
    )
    for code, file in published(NAME).items()
}
"""Every task needs all of them."""
QUESTIONS = 1190
"""Of each language."""
CANDIDATES = 13_014
"""In the pool."""
MINI = ("ar", "de", "en", "es", "ru", "th")
"""The languages of the embedded world."""


def subsets(suite: str, name: str, _split: str, request: DataRequest) -> Subset:
    """Return the questions of a language over the pool, of `BARE` without paragraphs; `UsageError` without a file."""
    folder, identity = official.folder(request, NAME) / _FOLDER, f"{suite}/{name}"
    files = {code: folder / f"{code}.json" for code in LANGUAGES}
    for code, release in RELEASES.items():
        find(
            files[code],
            expected=f"a language of XQuAD-R; the pool needs all {len(LANGUAGES)}",
            hint=f"fetch {release.urls[0]} and put it there as it is (sha256 {release.sha256})",
        )
    return Subset(
        "",
        xquad.questions(name, files[name], f"{identity} questions"),
        xquad.judgements(name, files, f"{identity} judgements"),
        Corpus(suite, xquad.candidates(files, f"{suite} candidates", bare=suite == BARE), "", CANDIDATES),
        name,
        {"queries": QUESTIONS, "qrels": QUESTIONS * len(LANGUAGES)},
    )


def mini_subsets(name: str, _split: str, world: face.WorldSettings) -> Subset:
    """Return the questions of a language of the embedded world; the pool is one for all."""
    parts = face.mini.sentence_answers(name, world)
    pool = face.mini.source(world, f"{NAME} pool", _mini_pool)
    return Subset("", parts.queries, parts.qrels, Corpus(f"{world.corpus}/{NAME}", pool), name)


def _mini_pool(world: face.WorldSettings) -> Iterator[Item]:
    """Stream the pool of the embedded world, each sentence joined with its paragraph as in the official one."""
    for item in face.mini.sentence_answers(MINI[0], world).corpus.read():
        yield Item(item.id, squad.in_context(item.title, item.text), language=item.language)


BENCHMARK = Benchmark(
    **metadata("lareqa"),
    protocol=ScoringProtocol(
        ("AP@20",), "list", 20, official=("lareqa",), similarity="cos", lengths=(96, 256), readout=readouts.XTREME_R
    ),
    tasks=tuple(LANGUAGES),
    subsets=partial(subsets, NAME),
    mini=MINI,
    mini_subsets=mini_subsets,
    macros=(
        average(NAME, "Avg. ({})", LANGUAGES, "mean over the languages of the questions; equals that over all 13,090"),
        average(NAME, "Avg. ({})", MINI, "the languages of the embedded world; no paper prints it", mini=True),
    ),
    tables={
        "languages": markdown(
            "task|questions|candidates", ((code, QUESTIONS, candidates) for code, candidates in LANGUAGES.items())
        )
    },
    releases=tuple(RELEASES.values()),
    recipes={"english": single(SQUAD, SUPERVISED)},
    parallel="tasks",
)
SUITE = BENCHMARK.suite()
SENTENCES = replace(
    BENCHMARK,
    name=BARE,
    title="LAReQA with bare sentences",
    summary="LAReQA's questions, answered by sentences without the paragraphs around them.",
    subsets=partial(subsets, BARE),
    mini=(),
    mini_subsets=None,
    macros=(average(BARE, "Avg. ({})", LANGUAGES, "mean over the languages of the questions; no paper prints it"),),
    printed=False,
    proxy_for=NAME,
)
bench_suites = brings(SUITE, SENTENCES.suite())
