"""Questions that were asked before in other words: AskUbuntu in miniature, in English."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bench.errors import UsageError
from bench.mini.articles import asked
from bench.mini.draws import Draws
from bench.mini.latent import story
from bench.mini.records import Retrieval, source
from bench.mini.settings import DEFAULT, WorldSettings
from bench.mini.writer import writer
from bench.types import Candidates, Item, Judgement
from bench.wording import unknown

SPLITS = ("dev", "test")
CANDIDATES = 20
"""Of every query."""

_MOST = 7
_LONELY = 15
_OTHERS = 4


@dataclass(frozen=True)
class _Board:
    """All questions of a split; the first of each of the first clusters is a query.

    Args:
        clusters: numbers of the questions that ask the same.
        texts: by number.
        queries: how many clusters have a query.
    """

    clusters: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...]
    queries: int


def duplicates(split: str, settings: WorldSettings = DEFAULT) -> Retrieval:
    """Name queries, questions, judgements and the 20 candidates of each query.

    Candidates stand in the order of their BM25 scores, which are given. All duplicates of a query are among them. One
    query in fifteen has none and so no judgement, as in the release, whose scorer leaves such queries out.

    Raises:
        UsageError: there is no such split.
    """
    if split not in SPLITS:
        raise UsageError(unknown("split", split, SPLITS))
    return Retrieval(
        source(settings, f"askubuntu/{split} questions", _questions, split),
        source(settings, f"askubuntu/{split} queries", _queries, split),
        source(settings, f"askubuntu/{split} judgements", _judgements, split),
        source(settings, f"askubuntu/{split} candidates", _candidates, split),
    )


@lru_cache(maxsize=8)
def _board(settings: WorldSettings, split: str) -> _Board:
    """Write the questions."""
    write = writer(settings, "en")
    texts: list[str] = []
    clusters: list[tuple[int, ...]] = []
    for number in range(settings.questions * _OTHERS):
        draws = Draws(settings.seed, "duplicates", split, number)
        said = story(settings, draws, 1).thoughts[0]
        size = 1 if number % _LONELY == _LONELY - 1 else draws.between(2, _MOST)
        clusters.append(tuple(range(len(texts), len(texts) + size)))
        texts += [write.question(asked(said, draws), draws) for _ in range(size)]
    return _Board(tuple(clusters), tuple(texts), settings.questions)


def _item(split: str, number: int, text: str) -> Item:
    return Item(f"{split}-{number}", text, language="en")


def _questions(settings: WorldSettings, split: str) -> Iterator[Item]:
    for number, text in enumerate(_board(settings, split).texts):
        yield _item(split, number, text)


def _queries(settings: WorldSettings, split: str) -> Iterator[Item]:
    board = _board(settings, split)
    for cluster in board.clusters[: board.queries]:
        yield _item(split, cluster[0], board.texts[cluster[0]])


def _judgements(settings: WorldSettings, split: str) -> Iterator[Judgement]:
    board = _board(settings, split)
    for query, *others in board.clusters[: board.queries]:
        for other in others:
            yield Judgement(f"{split}-{query}", f"{split}-{other}", 1)


def _candidates(settings: WorldSettings, split: str) -> Iterator[Candidates]:
    """Yield all duplicates of each query and the best of the other questions, by score."""
    board = _board(settings, split)
    texts = [re.findall(r"\w+", text.lower()) for text in board.texts]
    index = _Index(texts)
    for query, *others in board.clusters[: board.queries]:
        scores = index.scores(texts[query])
        best = sorted((number for number in range(len(texts)) if number != query), key=lambda at: (-scores[at], at))
        kept = set(others)
        kept.update([at for at in best if at not in kept][: CANDIDATES - len(others)])
        listed = [at for at in best if at in kept]
        yield Candidates(
            f"{split}-{query}", tuple(f"{split}-{at}" for at in listed), tuple(scores[at] for at in listed)
        )


class _Index:
    """BM25 (k1 1.2, b 0.75, idf after Lucene) over short texts.

    Args:
        texts: their words.
    """

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self._postings: dict[str, list[tuple[int, float]]] = {}
        mean = sum(map(len, texts)) / len(texts)
        for number, words in enumerate(texts):
            for word, count in Counter(words).items():
                weight = count / (count + 1.2 * (0.25 + 0.75 * len(words) / mean))
                self._postings.setdefault(word, []).append((number, weight))
        self._size = len(texts)

    def scores(self, words: Sequence[str]) -> list[float]:
        """Return the score of every text, rounded so that no platform's logarithm can change the order."""
        scores = [0.0] * self._size
        for word in words:
            postings = self._postings.get(word, [])
            idf = math.log(1 + (self._size - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, weight in postings:
                scores[number] += idf * weight
        return [round(score, 6) for score in scores]
