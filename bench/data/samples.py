"""Sentences of a prepared corpus, drawn by lot: what post-processing is fitted on. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from bench.data import tokenizer
from bench.data.shards import Shards
from bench.types import Item, Source

VERSION = 1
_SEPARATOR = ":"


def sampled(shards: Shards, languages: Sequence[str], most: int) -> Iterator[Item]:
    """Yield sentences of each language in turn, in the order of the corpus, with ids like `sw:1207`.

    A sentence is the text that its tokens spell: as training reads it, which is cut at `prepare.max_tokens`. The same
    corpus and number give the same lot.

    Args:
        shards: the corpus.
        languages: of those that it has.
        most: sentences a language; all where there are fewer.

    Raises:
        KeyError: a language that is not there.
    """
    words = tokenizer.load(shards.tokenizer_folder)
    for language in languages:
        documents = shards.documents(language)
        ends = np.cumsum(shards.sentence_counts(documents))
        for number in _lot(int(ends[-1]), most):
            at = int(np.searchsorted(ends, number, side="right"))
            place = number - (int(ends[at - 1]) if at else 0)
            ids = shards.sentence(documents[at], place).tolist()
            text = words.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            yield Item(f"{language}{_SEPARATOR}{number}", str(text), language=language)


def source(shards: Shards, languages: Sequence[str], most: int) -> Source[Item]:
    """Name the sentences that `sampled` draws."""
    return Source("sample of the corpus", f"sample/{VERSION}", (), partial(sampled, shards, languages, most))


def language_of(name: str) -> str:
    """The language of a sample's sentence, from its id."""
    return name.partition(_SEPARATOR)[0]


def _lot(there: int, most: int) -> list[int]:
    """Draw at most so many of the first numbers, ascending."""
    if there <= most:
        return list(range(there))
    drawn = np.random.default_rng(there).choice(there, most, replace=False, shuffle=False)
    return sorted(drawn.tolist())
