"""Tatoeba: find a sentence's translation among at most 1,000, in LASER's 112 languages paired with English."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import bench.suites as face
from bench import Corpus, Item, Judgement, Macro, Subset
from bench.suites import DataRequest, Release, aligned, official
from suites import readouts
from suites.common import ENGLISH, Benchmark, ScoringProtocol, average, brings, find, metadata, published

NAME = "tatoeba"
URL = "https://github.com/facebookresearch/LASER/tree/main/data/tatoeba/v1"
FILES = (
    "https://raw.githubusercontent.com/facebookresearch/LASER/74bc6ae7ffb7cba670fe0f428d0ede9f666fb821/data/tatoeba/v1"
)
"""Where single files are had, at the commit whose checksums are those of `suites/checksums/tatoeba.txt`."""
LICENCE = "CC BY 2.0 FR (Tatoeba)"
PROTOCOL = ScoringProtocol(
    ("accuracy",), "list", 1, similarity="l2", readout=readouts.XTREME, release="LASER v1 (2018-11-17)"
)
_FULL = 1000
BOTH = "mean over the two directions of each pair, then over the pairs"


@dataclass(frozen=True)
class Pair:
    """One language and English."""

    code: str  # of the language in the files' names, ISO 639-3
    language: str  # ISO 639-1 where it has such a code, else `code`
    sentences: int  # in either file


_PUBLISHED = published(NAME)
PAIRS = {f"{code}-eng": Pair(code, language, sentences) for code, language, sentences in _PUBLISHED["pairs"]}
CCP: tuple[str, ...] = _PUBLISHED["ccp"]
"""The 14 languages of CCP's Table 1."""
XTREME: tuple[str, ...] = _PUBLISHED["xtreme"]
"""The 36 languages of XTREME."""
XTREME_R = (*XTREME, "aze", "lit", "pol", "ukr", "ron")
"""The 41 languages of XTREME-R."""
MINI: tuple[str, ...] = _PUBLISHED["mini"]
"""The languages of the embedded world other than English."""


def subsets(name: str, _split: str, request: DataRequest) -> tuple[Subset, ...]:
    """Return both directions of a pair; raises `UsageError` if there is no folder, or a file is missing."""
    pair, folder = PAIRS[name], official.folder(request, NAME) / "v1"
    paths = {code: folder / f"tatoeba.{name}.{code}" for code in (pair.code, "eng")}
    for path in paths.values():
        find(
            path,
            expected=f"{pair.sentences:,} sentences, one a line",
            hint=f"put the files of {URL} into {path.parent}",
        )
    return directions(f"{NAME}/{name}", paths, {pair.code: pair.language, "eng": ENGLISH}, pair.sentences)


def directions(
    identity: str, paths: Mapping[str, Path], languages: Mapping[str, str], sentences: int | None = None
) -> tuple[Subset, ...]:
    """Return the subsets of two aligned files, by the code in their names: each asks with one, searches the other."""
    counts = {} if sentences is None else {"queries": sentences, "qrels": sentences}
    left, right = paths
    subsets = []
    for source, target in ((left, right), (right, left)):
        name, pool = f"{source}-{target}", f"{identity}.{target}"
        queries = aligned.sentences(paths[source], f"{identity} {name} queries")
        qrels = aligned.same_line(paths[source], f"{identity} {name} qrels")
        corpus = Corpus(pool, aligned.sentences(paths[target], pool), languages[target], sentences)
        subsets.append(Subset(name, queries, qrels, corpus, languages[source], counts))
    return tuple(subsets)


def mini_subsets(name: str, _split: str, world: face.WorldSettings) -> tuple[Subset, ...]:
    """Return both directions of a bitext of the embedded world: the other language, then English."""
    pair, identity = PAIRS[name], f"{NAME}/{name}"
    sides = ((pair.code, pair.language), ("eng", ENGLISH))
    qrels = face.mini.source(world, f"{identity} qrels", _mini_qrels, pair.language)
    texts = [
        face.mini.source(world, f"{identity}.{code} sentences", _mini_sentences, pair.language, side)
        for side, (code, _) in enumerate(sides)
    ]
    subsets = []
    for source, target in ((0, 1), (1, 0)):
        code, language = sides[target]
        corpus = Corpus(f"{world.corpus}/{identity}.{code}", texts[target], language)
        subsets.append(Subset(f"{sides[source][0]}-{code}", texts[source], qrels, corpus, sides[source][1]))
    return tuple(subsets)


def _mini_sentences(world: face.WorldSettings, language: str, side: int) -> Iterator[Item]:
    for line, text in enumerate(face.mini.bitext(language, world)[side]):
        yield Item(str(line), text)


def _mini_qrels(world: face.WorldSettings, language: str) -> Iterator[Judgement]:
    return (Judgement(item.id, item.id, 1) for item in _mini_sentences(world, language, 0))


def _average(codes: Iterable[str], note: str, *, mini: bool = False) -> Macro:
    return average(NAME, "Avg. ({})", (f"{code}-eng" for code in codes), f"{note}; {BOTH}", mini=mini)


_FROM_ENGLISH = "XTREME's own direction: English sentences ask, the other language is searched, as its code does"
_FEWER = ", ".join(f"{pair.code} {pair.sentences}" for pair in PAIRS.values() if pair.sentences != _FULL)
_AT_FULL = ", ".join(pair.code for pair in PAIRS.values() if pair.sentences == _FULL)
_CHECKSUMS = files("suites").joinpath("checksums/tatoeba.txt").read_text(encoding="ascii")
"""Of LASER's repository: sha256, size and name of the 224 files."""

BENCHMARK = Benchmark(
    **metadata("tatoeba"),
    protocol=PROTOCOL,
    tasks=tuple(PAIRS),
    subsets=subsets,
    mini=tuple(f"{code}-eng" for code in MINI),
    mini_subsets=mini_subsets,
    macros=(
        _average(CCP, "the languages of CCP's Table 1"),
        _average((pair.code for pair in PAIRS.values()), "all pairs"),
        *(
            average(NAME, f"{name} ({{}})", (f"{code}-eng:eng-{code}" for code in codes), _FROM_ENGLISH)
            for name, codes in (("XTREME", XTREME), ("XTREME-R", XTREME_R))
        ),
        _average(XTREME, "the languages of XTREME"),
        _average(XTREME_R, "the languages of XTREME-R"),
        _average(MINI, "the languages of the embedded world", mini=True),
    ),
    tables={"pairs": f"{_FULL:,} sentence pairs each: {_AT_FULL}.\n\nFewer: {_FEWER}."},
    releases=tuple(
        Release(
            f"{NAME}/v1/{name}",
            (f"{FILES}/{name}",),
            LICENCE,
            int(size),
            sha256,
            tasks=(name.split(".")[1],),
            origin="the files of LASER's repository at that commit",
        )
        for sha256, size, name in map(str.split, _CHECKSUMS.splitlines())
    ),
    parallel="subsets",
)
SUITE = BENCHMARK.suite()
bench_suites = brings(SUITE)
