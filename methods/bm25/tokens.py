"""A corpus as token numbers: tokenised in parts that outlive a kill, gathered into the shards that are indexed.

A part holds a fixed number of documents, with a vocabulary of its own. A shard holds documents up to a fixed number of
tokens, so what is done with one shard takes the same memory whatever the corpus. Where a shard begins depends neither
on the parts nor on where the work was interrupted.
"""

from __future__ import annotations

import io
import json
import sys
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench import Corpus, DataError, Item, Workspace, canonical, map_in_processes, worker_loop
from methods.bm25.analyzers import ANALYZERS, Analyzer, Tokenise

PART = 8192
"""Documents a part. Never part of the bytes of an index."""

SHARD = 1 << 23
"""Tokens a shard, at most; a longer document is a shard of its own. Part of the bytes of an index, never of a score."""

Numbers = npt.NDArray[np.int32]
Ends = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """Some documents of a corpus, one after the other."""

    ids: Sequence[str]
    lengths: Numbers  # tokens of each document
    tokens: Numbers  # of all documents, as places in `terms`, `[sum of lengths]`
    terms: Sequence[str]  # the different tokens, in order of first use

    @classmethod
    def tokenised(cls, items: Sequence[Item], tokenise: Tokenise, *, title: bool) -> Part:
        """Tokenise documents; with `title`, a document's title, where it has one, and a blank precede its text."""
        terms = defaultdict[str, int]()
        terms.default_factory = terms.__len__
        tokens: list[int] = []
        lengths = []
        for item in items:
            text = f"{item.title} {item.text}" if title and item.title else item.text
            numbers = list(map(terms.__getitem__, tokenise(text)))
            lengths.append(len(numbers))
            tokens += numbers
        return cls([item.id for item in items], np.array(lengths, np.int32), np.array(tokens, np.int32), list(terms))

    def pack(self) -> bytes:
        """Return it as bytes: two arrays in numpy's format, then JSON."""
        stream = io.BytesIO()
        np.save(stream, self.lengths, allow_pickle=False)
        np.save(stream, self.tokens, allow_pickle=False)
        stream.write(canonical({"ids": self.ids, "terms": self.terms}))
        return stream.getvalue()

    @classmethod
    def unpack(cls, path: Path) -> Part:
        """Read what `pack` made."""
        with path.open("rb") as stream:
            lengths = np.load(stream, allow_pickle=False)
            tokens = np.load(stream, allow_pickle=False)
            strings = json.loads(stream.read())
        return cls(strings["ids"], lengths, tokens, strings["terms"])


@dataclass(frozen=True)
class Postings:
    """Which documents hold which term how often: term by term, documents in order."""

    starts: Ends  # where the documents of each term begin, and where all end, `[terms + 1]`
    documents: Numbers  # by their places in the shard, `[starts[-1]]`
    counts: Numbers  # how often each holds the term, at least once, as many

    @classmethod
    def from_documents(cls, lengths: Numbers, tokens: Numbers, terms: int) -> Postings:
        """Turn documents of terms into terms of documents; tokens are below `terms`, `[sum of lengths]`."""
        size = max(1, len(lengths))
        pairs = tokens.astype(np.int64)
        pairs *= size
        pairs += np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        pairs.sort()  # by term, then by document
        first = np.flatnonzero(np.diff(pairs, prepend=-1))
        counts = np.diff(first, append=len(pairs)).astype(np.int32)
        terms_of_pairs, documents = np.divmod(pairs[first], size)
        starts = np.searchsorted(terms_of_pairs, np.arange(terms + 1)).astype(np.int64)
        return cls(starts, documents.astype(np.int32), counts)

    @property
    def frequencies(self) -> Numbers:
        """Return how many documents hold each term, `[terms]`."""
        return np.diff(self.starts).astype(np.int32)


@dataclass(frozen=True)
class Shard:
    """Documents that are indexed together, one after the other; as in `Part`, but terms are in code point order."""

    lengths: Numbers
    tokens: Numbers
    terms: Sequence[str]

    def postings(self) -> Postings:
        """Return which documents hold which term."""
        return Postings.from_documents(self.lengths, self.tokens, len(self.terms))


class _Gathered:
    """The documents of a shard that is not full yet."""

    def __init__(self) -> None:
        self.size = 0  # tokens
        self._lengths: list[Numbers] = []
        self._tokens: list[Numbers] = []
        self._numbers: dict[str, int] = {}  # of terms, in order of first use

    def __bool__(self) -> bool:
        """Return whether there is a document."""
        return bool(self._lengths)

    def add(self, lengths: Numbers, tokens: Numbers, terms: Sequence[str]) -> None:
        """Add documents of a part: their lengths, their tokens as places in the part's terms."""
        distinct = np.unique(tokens)
        numbers = np.empty(len(terms), np.int32)
        numbers[distinct] = [self._numbers.setdefault(terms[at], len(self._numbers)) for at in distinct.tolist()]
        self._lengths.append(lengths)
        self._tokens.append(numbers[tokens])
        self.size += len(tokens)

    def close(self) -> Shard:
        """Return the shard, its terms sorted."""
        terms = sorted(self._numbers)
        places = np.empty(len(terms), np.int32)
        places[[self._numbers[term] for term in terms]] = np.arange(len(terms), dtype=np.int32)
        return Shard(np.concatenate(self._lengths), places[np.concatenate(self._tokens)], terms)


class Tokens:
    """The documents of a corpus in order, read from the files of its parts on every pass; and how much there is."""

    def __init__(self, parts: Sequence[Path], documents: int, tokens: int) -> None:
        self._parts, self.documents, self.tokens = parts, documents, tokens

    def ids(self) -> Iterator[str]:
        """Yield the id of each document."""
        for part in map(Part.unpack, self._parts):
            yield from part.ids

    def shards(self) -> Iterator[Shard]:
        """Yield the documents shard by shard; every call reads all parts once."""
        shard = _Gathered()
        for part in map(Part.unpack, self._parts):
            ends, first = np.concatenate([[0], np.cumsum(part.lengths, dtype=np.int64)]), 0
            while first < len(part.lengths):
                fit = int(np.searchsorted(ends, ends[first] + SHARD - shard.size, "right")) - 1
                if fit <= first and shard:
                    yield shard.close()
                    shard = _Gathered()
                    continue
                end = max(fit, first + 1)
                shard.add(part.lengths[first:end], part.tokens[ends[first] : ends[end]], part.terms)
                first = end
        if shard:
            yield shard.close()


def tokenise_corpus(corpus: Corpus, analyzer: Analyzer, work: Workspace, *, title: bool) -> Tokens:
    """Tokenise a corpus, part by part, in several processes where it is large; finished parts are not made again.

    Args:
        corpus: documents, in their order.
        analyzer: makes tokens of texts.
        work: keeps the parts; it advances by documents.
        title: whether a document's title precedes its text.

    Raises:
        DataError: the corpus has no document or no token.
    """
    stream, parts, documents, tokens = corpus.items.read(), list[str](), 0, 0
    waiting: deque[tuple[str, int]] = deque()

    def unfinished_parts() -> Iterator[list[Item]]:
        nonlocal documents
        for number in count():
            items = list(islice(stream, PART))
            if not items:
                return
            name = f"tokens-{number:06d}"
            parts.append(name)
            documents += len(items)
            if work.parts.done(name):
                work.advance(len(items))
            else:
                waiting.append((name, len(items)))
                yield items

    tokenise = analyzer.build()
    words = "methods.bm25.tokens", analyzer.name, "title" if title else ""
    purpose = "the processes that turn text into tokens"
    for packed in map_in_processes(
        unfinished_parts(), lambda items: Part.tokenised(items, tokenise, title=title).pack(), _packed, purpose, *words
    ):
        name, size = waiting.popleft()
        work.parts.write(name, packed)
        work.advance(size)
    paths = [work.parts.folder / name for name in parts]
    for path in paths:
        with path.open("rb") as file:
            tokens += int(np.load(file, allow_pickle=False).sum(dtype=np.int64))
    if not documents:
        raise DataError(corpus.items.name, None, "no document", "at least one document to index")
    if not tokens:
        raise DataError(
            corpus.items.name,
            None,
            f"{documents} documents without a single word",
            "words to index",
            "look at the texts, or choose another analyzer, e.g. --set method.analyzer=bigrams",
        )
    return Tokens(paths, documents, tokens)


def _packed(items: Sequence[Item]) -> bytes:
    """Return what of documents decides a part, for another process."""
    rows = [[item.id, item.text, item.title] for item in items]
    return json.dumps(rows, ensure_ascii=False).encode(errors="surrogatepass")  # no pair of halves becomes a letter


def main(name: str, title: str) -> None:
    """Answer documents with parts."""
    tokenise = ANALYZERS[name].build()

    def part(request: bytes) -> bytes:
        items = [Item(*row) for row in json.loads(request.decode(errors="surrogatepass"))]
        return Part.tokenised(items, tokenise, title=bool(title)).pack()

    worker_loop(part)


if __name__ == "__main__":
    main(*sys.argv[1:])
