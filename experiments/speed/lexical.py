"""BM25 compared with bm25s and rank_bm25, on synthetic passages."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

import bm25s
import numpy as np
import Stemmer
from rank_bm25 import BM25Okapi

from bench.core.workspace import Parts, Workspace
from bench.types import Corpus, Item, Source
from experiments.speed.measure import Row, Work
from methods.bm25 import BM25Config
from methods.bm25.retriever import BM25Retriever

VOCABULARY, QUERIES, FEW_QUERIES, K = 100_000, 400, 4, 100


@cache
def passages(size: int) -> list[str]:
    """Draw passages of 68 words in the mean, and words of which the r-th most frequent comes in proportion to 1/r."""
    return list(drawn(size, 0))


def drawn(size: int, seed: int) -> Iterator[str]:
    """Draw passages as `passages` does, which are held by nobody."""
    rng = np.random.default_rng(seed)
    weights = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    lengths = np.maximum(5, rng.lognormal(4.1, 0.5, size)).astype(int)
    ranks = np.searchsorted(weights, rng.random(lengths.sum()) * weights[-1])
    words = [f"w{rank}" for rank in ranks.tolist()]
    ends = np.cumsum(lengths).tolist()
    return (" ".join(words[start:end]) for start, end in zip([0, *ends], ends, strict=False))


def index(texts: Iterable[str], folder: Path) -> BM25Retriever:
    """Write our index of English passages."""
    items = Source("zipf", "zipf/1", (), lambda: (Item(f"d{at}", text) for at, text in enumerate(texts)))
    corpus = Corpus("zipf", items, language="en")
    (folder / "out").mkdir(parents=True)
    retriever = BM25Retriever(BM25Config())
    retriever.index(corpus, Workspace(folder / "out", Parts(folder / "parts")))
    return retriever


def library(texts: list[str]) -> tuple[bm25s.BM25, Stemmer.Stemmer]:
    """Index with bm25s, its tokens stemmed as ours are."""
    stemmer = Stemmer.Stemmer("porter")
    retriever = bm25s.BM25(method="lucene", k1=0.9, b=0.4, backend="numba")
    retriever.index(bm25s.tokenize(texts, stemmer=stemmer, stopwords=None, show_progress=False), show_progress=False)
    return retriever, stemmer


@contextmanager
def indexing(folder: Path, size: int) -> Iterator[Mapping[str, Work]]:
    """Tokens and writing included."""
    texts, numbers = passages(size), count()
    yield {"ours": lambda: index(texts, folder / f"{next(numbers)}"), "bm25s": lambda: library(texts)}


@contextmanager
def searching(folder: Path, size: int) -> Iterator[Mapping[str, Work]]:
    """Tokens, scores, the best hundred and their ids; rank_bm25 answers a hundredth of the questions."""
    texts, rng = passages(size), np.random.default_rng(1)
    picked = [texts[at].split() for at in rng.integers(0, size, QUERIES)]
    queries = [" ".join(rng.choice(words, rng.integers(6, 13))) for words in picked]
    items, retriever = [Item(f"q{at}", text) for at, text in enumerate(queries)], index(texts, folder)
    theirs, stemmer = library(texts)
    okapi = BM25Okapi([text.split() for text in texts])

    def bm25s_search() -> None:
        tokens = bm25s.tokenize(queries, stemmer=stemmer, stopwords=None, show_progress=False)
        theirs.retrieve(tokens, k=K, show_progress=False, n_threads=1)

    yield {
        "ours": lambda: list(retriever.search(folder / "out", items, K, "trec")),
        "bm25s": bm25s_search,
        f"rank_bm25, 1 question of {QUERIES // FEW_QUERIES}": lambda: [
            okapi.get_top_n(text.split(), range(size), K) for text in queries[:FEW_QUERIES]
        ],
    }


def rows(size: int) -> dict[str, Row]:
    """Return the rows for a number of passages."""
    rank = f"rank_bm25, 1 question of {QUERIES // FEW_QUERIES}"
    return {
        "BM25 index": Row(
            lambda at: indexing(at, size),
            "passages",
            size,
            {"bm25s": 1.0},
            3,
            "Unicode word boundaries, writing the index",
        ),
        "BM25 search": Row(
            lambda at: searching(at, size), "queries", QUERIES, {"bm25s": 0.91, rank: 1.0}, holds="ids and ties"
        ),
    }
