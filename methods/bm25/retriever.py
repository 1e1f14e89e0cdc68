"""The retriever: a corpus to an index on disk, queries to rankings."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from bench import (
    Corpus,
    Item,
    Json,
    Ranking,
    StringArray,
    Tie,
    Workspace,
    best,
    canonical,
    cast_scores,
    top_k_positions,
    write_strings,
)
from methods.bm25 import BM25Config
from methods.bm25.analyzers import ANALYZERS, Tokenise, choose, describe
from methods.bm25.tokens import tokenise_corpus
from methods.bm25.vocabulary import number_terms

if TYPE_CHECKING:
    from methods.bm25.lucene import Lucene
    from methods.bm25.okapi import Okapi

_BLOCK = 256  # queries that are scored before any is ranked, which caches reward
_MAX_CACHED_IDS = 1 << 20
_METADATA, _IDS, _TERMS = "index.json", "ids", "terms"


class BM25Retriever:
    """BM25 as a `bench.types.Retriever`. An index records how it was made, so any config can search it."""

    def __init__(self, config: BM25Config) -> None:
        self._config = config
        self._opened: tuple[Path, Index] | None = None

    def index(self, corpus: Corpus, work: Workspace) -> Mapping[str, Json]:
        """Write the index of a corpus; see `bench.types.Retriever`.

        Raises `UsageError` if the analyzer needs something that is not installed, `DataError` if the corpus has no
        document or none has a word, and whatever its reader raises.
        """
        analyzer = choose(self._config.analyzer, corpus.language)
        tokens = tokenise_corpus(corpus, analyzer, work, title=self._config.title)
        write_strings(work.out, _IDS, tokens.ids())
        with TemporaryDirectory(dir=work.parts.folder) as between:
            vocabulary = number_terms(tokens.shards(), Path(between), work.out, _TERMS)
            if self._config.variant == "rank_bm25":
                from methods.bm25 import okapi

                okapi.write(tokens, vocabulary, work.out)
            else:
                from methods.bm25 import lucene

                lucene.write(tokens, vocabulary, work.out, k1=self._config.k1, b=self._config.b)
        counts: dict[str, Json] = {
            "documents": tokens.documents,
            "terms": len(vocabulary.frequencies),
            "tokens": tokens.tokens,
            "analyzer": analyzer.name,
        }
        metadata = {"config": self._config.model_dump(mode="json"), "analyzer": describe(analyzer), "facts": counts}
        (work.out / _METADATA).write_bytes(canonical(metadata))
        return counts

    def search(self, index: Path, queries: Sequence[Item], k: int, tie: Tie) -> Iterator[Ranking]:
        """Yield one ranking per query, maybe empty; see `bench.types.Retriever`. The index stays open.

        Raises `UsageError` if the analyzer needs something that is not installed, or k is below 1.
        """
        if self._opened is None or self._opened[0] != index:
            self._opened = index, Index(index)
        opened, size = self._opened[1], max(1, min(_BLOCK, _MAX_CACHED_IDS // max(1, k)))
        opened.expect(len(queries) * k)
        for start in range(0, len(queries), size):
            yield from opened.rank(queries[start : start + size], k, tie)


class Index:
    """An index that was opened for searching."""

    def __init__(self, folder: Path) -> None:
        metadata = json.loads((folder / _METADATA).read_text(encoding="utf-8"))
        self._tokenise: Tokenise = ANALYZERS[metadata["analyzer"]["analyzer"]].build()
        self._ids, self._terms = StringArray(folder, _IDS), StringArray(folder, _TERMS)
        self._names: list[str] = []  # all ids, where that pays
        self._numbers: dict[str, int | None] = {}
        config = BM25Config.model_validate(metadata["config"])
        self._matcher: Lucene | Okapi
        if config.variant == "rank_bm25":  # what the variant wrote is opened; its library is imported only then
            from methods.bm25.okapi import Okapi

            self._matcher = Okapi.load(folder, k1=config.k1, b=config.b, epsilon=config.epsilon)
        else:
            from methods.bm25.lucene import Lucene

            self._matcher = Lucene.load(folder)

    def expect(self, ids: int) -> None:
        """Prepare to name a number of documents: from as many as the corpus has, its ids are decoded once and kept."""
        if not self._names and len(self._ids) <= min(ids, _MAX_CACHED_IDS):
            self._names = self._ids.take(np.arange(len(self._ids)))

    def rank(self, queries: Sequence[Item], k: int, tie: Tie) -> Iterator[Ranking]:
        """Yield the best k documents of each query, ties in the task's order."""
        numbers = [[self._number(token) for token in self._tokenise(query.text)] for query in queries]
        terms = [[number for number in row if number is not None] for row in numbers]
        matches_by_query = [self._matcher.matches(tokens, k) if tokens else None for tokens in terms]
        for query, matches in zip(queries, matches_by_query, strict=True):
            if matches is None:
                yield Ranking(query.id, (), ())
                continue
            positions, scores = matches
            if len(positions) > 2 * k:  # few ids are read from the disk
                top = top_k_positions(cast_scores(scores, tie), k)
                positions, scores = positions[top], scores[top]
            names = self._names
            documents = [names[at] for at in positions.tolist()] if names else self._ids.take(positions)
            yield best(query.id, documents, scores, k, tie)

    def _number(self, term: str) -> int | None:
        """Return a term's number, None where no document has it; looked up on disk once, in code point order."""
        if term not in self._numbers:
            place = bisect_left(self._terms, term)
            exists = place < len(self._terms) and self._terms[place] == term
            self._numbers[term] = place if exists else None
        return self._numbers[term]
