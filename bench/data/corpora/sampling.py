"""Draws from a corpus, the same for the same input: texts for a tokenizer, sentences for a fit. Imports no torch."""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from bench.data.corpora import tokenizer
from bench.data.corpora.shards import Shards
from bench.types import Item, Source


def probabilities(sizes: Mapping[str, int], exponent: float) -> dict[str, float]:
    """Return p_l ∝ n_l^α, languages sorted by code, those of size n_l = 0 left out; `exponent` is α."""
    weights = {language: float(sizes[language]) ** exponent for language in sorted(sizes) if sizes[language] > 0}
    total = sum(weights.values())
    return {language: weight / total for language, weight in weights.items()}


class TokenizerSample:
    """The texts with the lowest fingerprints of every language, at most `most` characters a language."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._heaps: dict[str, list[tuple[int, str]]] = {}  # the worst fingerprint first
        self._held: Counter[str] = Counter()
        self._sizes: Counter[str] = Counter()

    def add(self, language: str, mark: int, sentences: Sequence[str]) -> None:
        """Offer a document by its fingerprint."""
        text = "\n".join(sentences)
        heap = self._heaps.setdefault(language, [])
        self._sizes[language] += len(text)
        if self._held[language] >= self._most and mark > -heap[0][0]:
            return
        heapq.heappush(heap, (-mark, text))
        self._held[language] += len(text)
        while self._held[language] - len(heap[0][1]) >= self._most:
            self._held[language] -= len(heapq.heappop(heap)[1])

    def texts(self, exponent: float) -> dict[str, list[str]]:
        """Return the texts by language, their characters in proportion to its size to the power of `exponent`."""
        shares = probabilities(self._sizes, exponent)
        largest = max(shares.values(), default=1.0)
        texts: dict[str, list[str]] = {}
        for language, heap in sorted(self._heaps.items()):
            texts[language], count = [], 0
            for _, text in sorted(set(heap), reverse=True):  # by their fingerprints, equal texts once
                if count >= self._most * shares[language] / largest:
                    break
                texts[language].append(text)
                count += len(text)
        return texts


VERSION = 1
_SEPARATOR = ":"


def sampled(shards: Shards, languages: Sequence[str], most: int) -> Iterator[Item]:
    """Yield at most `most` sentences of each language as training reads them, in order, with ids like `sw:1207`.

    The same corpus and number give the same draw. Raises `KeyError` for a language that the corpus lacks.
    """
    words = tokenizer.load(shards.tokenizer_folder)
    for language in languages:
        documents = shards.documents(language)
        ends = np.cumsum(shards.sentence_counts(documents))
        total = int(ends[-1])
        numbers = np.arange(total)
        if total > most:
            numbers = np.random.default_rng(total).choice(total, most, replace=False, shuffle=False)
        for number in sorted(numbers.tolist()):
            at = int(np.searchsorted(ends, number, side="right"))
            place = number - (int(ends[at - 1]) if at else 0)
            ids = shards.sentence(documents[at], place).tolist()
            text = words.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            yield Item(f"{language}{_SEPARATOR}{number}", str(text), language=language)


def source(shards: Shards, languages: Sequence[str], most: int) -> Source[Item]:
    """Return the sentences that `sampled` draws."""
    return Source("sample of the corpus", f"sample/{VERSION}", (), partial(sampled, shards, languages, most))


def language_of(name: str) -> str:
    """Return the language of a sample's sentence, from its id."""
    return name.partition(_SEPARATOR)[0]
