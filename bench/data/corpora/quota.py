"""So many tokens of a language, of documents drawn by hash: the same ones in whatever order a source has them.

The rule: the documents of a language that `bench.data.corpora.dedupe` keeps are ranked by fingerprint and taken in that
order up to the one that reaches the quota, within the lowest fingerprints that hold `CHARACTERS` characters for each of
its tokens. A language with less is taken whole. Tokens are counted as training reads them, short sentences left out and
long ones cut. In the shards the documents are in order of rank, so that no byte depends on the order of the source.

One pass over the source keeps the text of what may be drawn (`Horizon`). Tokens are not known before a text is encoded,
so the ranks are encoded in turns (`Draw`), each as long as the turns before it let expect; what was encoded beyond the
quota is left out. Neither turns nor blocks show in a byte.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bench.core.files import atomic
from bench.data.corpora import encoding, shards
from bench.data.corpora.dedupe import Census, Mask, Numbers
from bench.data.corpora.shards import Stretch

CHARACTERS = 16
"""Characters that are looked at for each token of a quota; a token of natural text has 1 to 6."""

_BINS = 12  # bits of a fingerprint by which text is counted
_SHIFT = 64 - _BINS
_USUAL = 4  # characters of a token
_MORE = 1.01  # of what the tokens so far let expect


class Horizon:
    """Up to which fingerprint the texts of a language may be drawn; it falls while texts come."""

    def __init__(self, quota: int) -> None:
        self._most = CHARACTERS * quota
        self._held: dict[str, int] = {}  # characters within
        self._bins: dict[str, list[int]] = {}
        self._ends: dict[str, int] = {}  # the last bin within

    def add(self, language: str, mark: int, size: int) -> None:
        """Count a text by its fingerprint."""
        bins = self._bins.setdefault(language, [0] * (1 << _BINS))
        place, end = mark >> _SHIFT, self._ends.setdefault(language, len(bins) - 1)
        if place > end:
            return
        bins[place] += size
        within = self._held.get(language, 0) + size
        while within - bins[end] >= self._most:
            within, end = within - bins[end], end - 1
        self._held[language], self._ends[language] = within, end

    def holds(self, language: str, mark: int) -> bool:
        """Return whether the text of a fingerprint may be drawn, as far as is known by now."""
        return mark >> _SHIFT <= self._ends.get(language, 1 << _BINS)

    def mask(self, census: Census) -> Mask:
        """Return which documents of a census may be drawn."""
        within: Mask | None = None
        for language, members, prints in census.places():
            within = np.zeros(len(members), np.bool_) if within is None else within
            within |= members & (prints >> np.uint64(_SHIFT) <= np.uint64(self._ends.get(language, 1 << _BINS)))
        return np.zeros(0, np.bool_) if within is None else within


@dataclass(frozen=True)
class Ranks:
    """The documents that may be drawn, by language and rank."""

    documents: Mapping[str, Numbers]  # their places in the source
    sizes: Mapping[str, Numbers]  # characters of each
    stock: Mapping[str, int]  # characters of the language, those beyond the horizon included
    total: int  # documents of the source

    @classmethod
    def take(cls, census: Census, mask: Mask, horizon: Horizon) -> Ranks:
        """Rank what is kept of a census and within the horizon."""
        documents, sizes, stock = dict[str, Numbers](), dict[str, Numbers](), dict[str, int]()
        for language, _, all_sizes in census.ranked(mask):
            stock[language] = int(all_sizes.sum())
        for language, ranked, sizes_by_rank in census.ranked(mask & horizon.mask(census)):
            documents[language], sizes[language] = ranked, sizes_by_rank
        return cls(documents, sizes, stock, len(mask))

    def dump(self) -> bytes:
        """As the bytes of an .npz."""
        columns = {f"{language}.documents": numbers for language, numbers in self.documents.items()}
        columns |= {f"{language}.sizes": sizes for language, sizes in self.sizes.items()}
        columns |= {f"{language}.stock": np.array(characters) for language, characters in self.stock.items()}
        stream = io.BytesIO()
        np.savez(stream, allow_pickle=False, total=np.array(self.total), **columns)
        return stream.getvalue()

    @classmethod
    def load(cls, path: Path) -> Ranks:
        """Read what `dump` wrote."""
        with np.load(path, allow_pickle=False) as file:
            languages = [name.removesuffix(".stock") for name in file.files if name.endswith(".stock")]
            documents, sizes = (
                {language: file[f"{language}.{column}"] for language in languages} for column in ("documents", "sizes")
            )
            stock = {language: int(file[f"{language}.stock"]) for language in languages}
            return cls(documents, sizes, stock, int(file["total"]))


class Draw:
    """Draws by rank, in turns: `turn` says what is to be encoded next, `count` takes in what became of it."""

    def __init__(self, ranks: Ranks, quota: int) -> None:
        self._ranks, self._quota = ranks, quota
        self._ends = dict.fromkeys(ranks.documents, 0)  # ranks that were encoded
        self._asked = 0  # characters of the last turn
        self._sources, self._numbers = np.zeros(ranks.total, np.uint8), dict[str, int]()  # each one's; by name
        self.tokens = np.zeros(ranks.total, np.int64)
        self.sentences = np.zeros(ranks.total, np.int64)

    def turn(self) -> Mask | None:
        """Return which documents of the source to encode next; None where all languages have what they can have."""
        mask, self._asked = np.zeros(self._ranks.total, np.bool_), 0
        for language, documents in self._ranks.documents.items():
            end, sizes = self._ends[language], self._ranks.sizes[language]
            has, read = int(self.tokens[documents[:end]].sum()), int(sizes[:end].sum())
            if has >= self._quota or end == len(documents):
                continue
            a_token = min(_MORE * read / has, CHARACTERS) if has else CHARACTERS if end else 1.0
            characters = (self._quota - has) * a_token
            until = end + int(np.searchsorted(np.cumsum(sizes[end:]), characters)) + 1
            mask[documents[end:until]] = True
            self._asked += int(sizes[end:until].sum())
            self._ends[language] = min(until, len(documents))
        return mask if mask.any() else None

    def count(self, number: int, path: Path) -> None:
        """Take in the part of a block."""
        for column, document, ids, lengths in part_documents(number, path):
            _, source = encoding.language_and_source(column)
            self._sources[document] = self._numbers.setdefault(source, len(self._numbers))
            self.tokens[document], self.sentences[document] = len(ids), len(lengths)

    def share(self) -> float:
        """Return about which share of the work the last turn is."""
        total_characters = sum(min(int(sizes.sum()), _USUAL * self._quota) for sizes in self._ranks.sizes.values())
        return self._asked / (total_characters or 1)

    def by_source(self, documents: Numbers) -> dict[str, Numbers]:
        """Return documents by their source, sources sorted by name, the order of each one's documents kept."""
        numbers = self._sources[documents]
        groups = {source: documents[numbers == number] for source, number in sorted(self._numbers.items())}
        return {source: group for source, group in groups.items() if len(group)}

    def ranked_documents(self) -> Iterator[tuple[str, Numbers, int | None]]:
        """Yield language, documents by rank, and the tokens of the language, about, where some are left out."""
        for language, ranked in sorted(self._ranks.documents.items()):
            before = np.cumsum(self.tokens[ranked]) - self.tokens[ranked]
            in_quota = before < self._quota
            documents, read = ranked[in_quota], int(self._ranks.sizes[language][in_quota].sum())
            tokens, stock = int(self.tokens[documents].sum()), self._ranks.stock[language]
            with_text = documents[self.sentences[documents] > 0]
            if len(with_text):
                yield language, with_text, round(tokens * stock / read) if read < stock else None


def part_documents(number: int, path: Path) -> Iterator[tuple[str, int, Any, Any]]:
    """Yield column, place in the corpus, ids and lengths of sentences of each document in the part of a block."""
    with np.load(path, allow_pickle=False) as part:
        for column in (name.removesuffix(".counts") for name in part.files if name.endswith(".counts")):
            kinds = ("tokens", "lengths", "counts", "numbers")
            ids, lengths, counts, places = (part[f"{column}.{kind}"] for kind in kinds)
            sentences = np.concatenate([[0], np.cumsum(counts)])
            tokens = np.concatenate([[0], np.cumsum(lengths)])[sentences]
            for place, (first, last), (start, end) in zip(places, pairwise(sentences), pairwise(tokens), strict=True):
                yield column, number * encoding.BLOCK + int(place), ids[start:end], lengths[first:last]


def join(
    out: Path, parts: Iterable[tuple[int, Path]], draw: Draw, scale: Mapping[str, float], dtype: np.dtype[Any]
) -> tuple[Stretch, ...]:
    """Put what was drawn into shards, language by language, in a mixture source by source, and by rank.

    Return where each language lies.

    Args:
        out: the folder of the shards.
        parts: number of a block, and one of its parts.
        draw: after its last turn.
        scale: of a language whose files were not all taken, how much more all of them are.
        dtype: of an id.
    """
    tokens_at, sentences_at = np.full(len(draw.tokens), -1), np.full(len(draw.tokens), -1)
    stretches, counts = list[Stretch](), list[Numbers]()
    documents = sentences = tokens = 0
    for language, ranked, stock_tokens in draw.ranked_documents():
        groups = draw.by_source(ranked)
        documents_drawn = np.concatenate(list(groups.values()))
        sources = shards.documents_by_source({source: len(group) for source, group in groups.items()})
        ends, sentence_ends = np.cumsum(draw.tokens[documents_drawn]), np.cumsum(draw.sentences[documents_drawn])
        tokens_at[documents_drawn] = tokens + ends - draw.tokens[documents_drawn]
        sentences_at[documents_drawn] = sentences + sentence_ends - draw.sentences[documents_drawn]
        counts.append(draw.sentences[documents_drawn])
        size, times = int(ends[-1]), scale.get(language, 1.0)
        stock = None if stock_tokens is None and times == 1 else round((stock_tokens or size) * times)
        end = documents + len(documents_drawn)
        stretches.append(Stretch(language, documents, end, int(sentence_ends[-1]), size, stock, sources))
        documents, sentences, tokens = end, sentences + int(sentence_ends[-1]), tokens + size
    with shards.offsets(out / shards.DOCUMENTS, documents) as add:
        for column in counts:
            add(column)
    with atomic(out / shards.TOKENS) as ids_file, atomic(out / shards.SENTENCES) as ends_file:
        shards.begin_offsets(ends_file, sentences)
        begin = ends_file.tell()
        for number, path in parts:
            for _, document, ids, lengths in part_documents(number, path):
                if (at := int(tokens_at[document])) < 0:
                    continue
                ids_file.seek(at * dtype.itemsize)
                ids_file.write(ids.astype(dtype, copy=False).tobytes())
                ends_file.seek(begin + 8 * int(sentences_at[document]))
                ends_file.write((at + np.cumsum(lengths)).astype("<i8").tobytes())
    return tuple(stretches)
