"""What the tests of BM25 share: corpora made of texts, and an index in one call."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bench.core.workspace import Parts, Workspace
from bench.types import Corpus, Item, Json, Retriever, Source
from methods.bm25 import BM25Config
from methods.bm25.retriever import BM25Retriever

TOKENS = json.loads((Path(__file__).parents[2] / "fixtures" / "methods" / "tokens.json").read_text(encoding="utf-8"))
"""What analyzers make of texts, by the test that reads it."""


class Indexed(NamedTuple):
    """A retriever, its index, and what `index` said of it."""

    retriever: Retriever
    folder: Path
    metadata: Mapping[str, Json]

    def search(self, text: str, k: int = 10, tie: Any = "trec") -> list[tuple[str, float]]:
        """Search one query; return its documents and scores."""
        (ranking,) = self.retriever.search(self.folder, [Item("q", text)], k, tie)
        return list(zip(ranking.documents, ranking.scores, strict=True))


CorpusOf = Callable[..., Corpus]
IndexOf = Callable[..., Indexed]


@pytest.fixture
def corpus_of() -> CorpusOf:
    """Make a corpus of texts (ids `d0`, `d1`, …) or of items."""

    def make(texts: Iterable[str | Item], language: str = "") -> Corpus:
        items = [text if isinstance(text, Item) else Item(f"d{at}", text) for at, text in enumerate(texts)]

        def read() -> Iterator[Item]:
            return iter(items)

        return Corpus("test", Source("test corpus", "test/1", (), read), language)

    return make


@pytest.fixture
def index_of(tmp_path: Path, corpus_of: CorpusOf) -> IndexOf:
    """Index texts, or a corpus, under a config given by its keys."""
    numbers = iter(range(1000))

    def make(texts: Iterable[str | Item] | Corpus, language: str = "", **config: Any) -> Indexed:
        folder = tmp_path / f"index{next(numbers)}"
        (folder / "out").mkdir(parents=True)
        retriever = BM25Retriever(BM25Config(**config))
        corpus = texts if isinstance(texts, Corpus) else corpus_of(texts, language)
        metadata = retriever.index(corpus, Workspace(folder / "out", Parts(folder / "parts")))
        return Indexed(retriever, folder / "out", metadata)

    return make
