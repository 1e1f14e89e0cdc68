"""A corpus as token numbers: tokenised in parts that outlive a kill, numbered when all parts are there.

A part holds a fixed number of documents, with a vocabulary of its own. The numbers of the whole are the places of the
terms in code point order, so they depend neither on the parts nor on where the work was interrupted.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.errors import DataError
from bench.fsio import canonical
from bench.types import Corpus, Item
from bench.workspace import Workspace
from methods.bm25.analyzers import Tokenise

PART = 8192
"""Documents a part. Never part of the bytes of an index."""

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Part:
    """Some documents of a corpus, one after the other.

    Args:
        ids: their ids.
        lengths: tokens of each, `[documents]`.
        tokens: the tokens of all, as places in `terms`, `[sum of lengths]`.
        terms: the different tokens, in order of first use.
    """

    ids: Sequence[str]
    lengths: Numbers
    tokens: Numbers
    terms: Sequence[str]

    @classmethod
    def of(cls, items: Sequence[Item], tokenise: Tokenise, *, title: bool) -> Part:
        """Tokenise documents.

        Args:
            items: the documents.
            tokenise: the analyzer's function.
            title: put the title, where there is one, and a blank before the text.
        """
        terms: dict[str, int] = {}
        tokens: list[int] = []
        lengths = []
        for item in items:
            text = f"{item.title} {item.text}" if title and item.title else item.text
            numbers = [terms.setdefault(token, len(terms)) for token in tokenise(text)]
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
            rest = json.loads(stream.read())
        return cls(rest["ids"], lengths, tokens, rest["terms"])


class Tokens(Collection[Sequence[int]]):
    """The documents of a corpus in order, each as the numbers of its tokens; parts are read when they are passed.

    Args:
        parts: the files of its parts, in order.

    Attributes:
        terms: the different tokens in code point order; a token's number is its place.
        documents: how many documents.
        tokens: how many tokens in all.
    """

    def __init__(self, parts: Sequence[Path]) -> None:
        self._parts = parts
        terms: set[str] = set()
        self.documents = self.tokens = 0
        for part in map(Part.unpack, parts):
            terms.update(part.terms)
            self.documents += len(part.ids)
            self.tokens += len(part.tokens)
        self.terms = sorted(terms)
        self._number = {term: number for number, term in enumerate(self.terms)}

    def __len__(self) -> int:
        """Return how many documents there are."""
        return self.documents

    def __contains__(self, document: object) -> bool:
        """Tell whether a document has exactly these tokens."""
        return any(document == one for one in self)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the token numbers of each document."""
        for lengths, numbers in self.blocks():
            flat, start = numbers.tolist(), 0
            for length in lengths.tolist():
                yield flat[start : start + length]
                start += length

    def blocks(self) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield the lengths of some documents and the numbers of all their tokens, part by part."""
        for part in map(Part.unpack, self._parts):
            numbers = np.array([self._number[term] for term in part.terms], np.int32)
            yield part.lengths, numbers[part.tokens]

    def ids(self) -> Iterator[str]:
        """Yield the id of each document."""
        for part in map(Part.unpack, self._parts):
            yield from part.ids


def tokenise_corpus(corpus: Corpus, tokenise: Tokenise, work: Workspace, *, title: bool) -> Tokens:
    """Tokenise a corpus, part by part; finished parts are not tokenised again.

    Args:
        corpus: the documents.
        tokenise: the analyzer's function.
        work: where finished parts lie, and who hears of progress (in documents).
        title: as in `Part.of`.

    Raises:
        DataError: the corpus has no document, or none has a token. And whatever its reader raises.
    """
    stream = corpus.items.read()
    parts = []
    for number in count():
        items = list(islice(stream, PART))
        if not items:
            break
        name = f"tokens-{number:06d}"
        done = work.parts.done(name)
        parts.append(done or work.parts.write(name, Part.of(items, tokenise, title=title).pack()))
        work.advance(len(items))
    tokens = Tokens(parts)
    if not tokens.documents:
        raise DataError(corpus.items.name, None, "no document", "at least one document to index")
    if not tokens.tokens:
        raise DataError(
            corpus.items.name,
            None,
            f"{tokens.documents} documents without a single word",
            "words to index",
            "look at the texts, or choose another analyzer, e.g. --set method.analyzer=bigrams",
        )
    return tokens
