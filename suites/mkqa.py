"""MKQA as Contriever searches it: 6,619 questions in 26 languages, answered from DPR's English Wikipedia."""

from __future__ import annotations

from dataclasses import replace

import bench.suites as face
from bench import Corpus, Subset
from bench.suites import DataRequest, Release, official
from suites import dpr, mrtydi, readouts
from suites.common import ENGLISH, Benchmark, ScoringProtocol, answering, average, brings, find, metadata
from suites.readers import mkqa as reader
from suites.tunings import MARCO_MCONTRIEVER, NQ_MCONTRIEVER, SUPERVISED, extended, single

NAME = "mkqa"
FILE = "mkqa.jsonl.gz"
COMMIT = "651b8cc85c407270b024157aff06ee6ab8c4fc6d"
URLS = tuple(f"https://github.com/apple/ml-mkqa/raw/{at}/dataset/{FILE}" for at in ("main", COMMIT, "master"))
"""The branch, the commit that programs pin, and the branch's old name, by which Contriever's README has the file."""
QUERIES = 6_619
"""Questions that are left in each language, of 10,000: those whose last English answer can be looked for."""
# fmt: off
LANGUAGES = (
    "en", "ar", "fi", "ja", "ko", "ru", "es", "sv", "he", "th", "da", "de", "fr", "it", "nl", "pl", "pt", "hu", "vi",
    "ms", "km", "no", "tr", "zh_cn", "zh_hk", "zh_tw",
)
"""As the file spells them, in the order of the papers' tables."""
# fmt: on
MINI = ("en", "ar", "fi", "ja", "ko", "ru", "es", "th", "de", "fr")
"""The languages of the embedded world."""


def subsets(name: str, _split: str, request: DataRequest) -> Subset:
    """Return the questions of a language over the passages. Raises `UsageError` if the folder or file is missing."""
    path = find(
        official.folder(request, NAME) / FILE,
        expected=f"the 10,000 questions of MKQA in {len(LANGUAGES)} languages with their answers",
        hint=f"fetch {URLS[0]} and put it there as it is",
    )
    texts = dpr.wikipedia(request, NAME)
    return Subset(
        "",
        reader.prepared(reader.questions_source(path, name, f"{NAME}/{name} questions")),
        None,
        Corpus(f"{dpr.CORPUS}/normalised", reader.prepared(texts), ENGLISH, dpr.PASSAGES, texts),
        name.partition("_")[0],  # zh_cn is Chinese
        {"queries": QUERIES},
        answers=reader.answers_source(path, f"{NAME} answers"),
    )


def mini_subsets(name: str, _split: str, world: face.WorldSettings) -> Subset:
    """Return the questions of a language of the embedded world, prepared as the official ones are."""
    subset = answering(face.mini.mkqa(name, world), f"{world.corpus}/{NAME}", name)
    texts = subset.corpus.items
    corpus = replace(subset.corpus, items=reader.prepared(texts), texts=texts)
    return replace(subset, queries=reader.prepared(subset.queries), corpus=corpus)


_ENGLISH = single(MARCO_MCONTRIEVER, NQ_MCONTRIEVER, SUPERVISED)

BENCHMARK = Benchmark(
    **metadata("mkqa"),
    protocol=ScoringProtocol(
        ("answer-R@20", "answer-R@100"), "list", similarity="dot", lengths=(512, 512), readout=readouts.CONTRIEVER
    ),
    tasks=LANGUAGES,
    subsets=subsets,
    mini=MINI,
    mini_subsets=mini_subsets,
    macros=(
        average(NAME, "Avg. ({})", LANGUAGES, "unweighted mean over the 26 languages, English among them"),
        average(NAME, "Avg. ({})", MINI, "the languages of the embedded world; no paper prints it", mini=True),
    ),
    primary="answer-R@100",
    releases=(Release(f"{NAME}/{FILE}", URLS, "CC BY-SA 3.0"), dpr.RELEASE),
    recipes={"english": _ENGLISH, "multilingual": extended(_ENGLISH, mrtydi.MCONTRIEVER)},
    parallel="tasks",
)
SUITE = BENCHMARK.suite()
bench_suites = brings(SUITE)
