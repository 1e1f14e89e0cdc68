"""The two views of a document, by variant: sentences, disjoint spans, or crops of tokens."""

import numpy as np
import numpy.typing as npt

from bench import UsageError
from bench.training import (
    Documents,
    Ids,
    PairBatch,
    RandomSource,
    Shards,
    add_special_tokens,
    partner_of,
    random_span,
    read_segment,
    segment_counts,
    segments,
    token_crop,
    two_sentences,
)
from methods.crop import CropConfig

_FRAME = 2  # first and last token of a sequence
_PAIR = 2  # sentences or spans


class CropViews(RandomSource[Shards, Documents]):
    """Draws documents, and two views of each; raises `UsageError` if no language has two that are long enough."""

    def __init__(self, shards: Shards, config: CropConfig, seed: int) -> None:
        self._config = config
        self._draw = {"sentence": self._sentences, "span": self._spans, "token": self._crops}[config.variant]
        if config.pack or config.partners == "of-each":
            size = config.document_pairs

            def blocks(language: str) -> npt.NDArray[np.int64]:
                counts = segment_counts(shards, language, config.sentence_tokens, config.pack)
                if config.partners == "of-each":
                    return counts // size + (counts % size >= _PAIR)
                return counts * (counts >= _PAIR)

            try:
                documents = Documents(shards, config, _PAIR, seed, blocks, config.pairs // size)
            except UsageError as error:
                raise UsageError(
                    f"{error}; here crop asks for two units of up to {config.sentence_tokens} tokens in a document: "
                    "lower method.sentence_tokens, or set method.pack to false"
                ) from error
        elif config.variant != "span":
            documents = Documents(shards, config, _PAIR if config.variant == "sentence" else 1, seed)
        else:

            def spans(language: str) -> npt.NDArray[np.int64]:
                counts = segment_counts(shards, language, config.span.tokens)
                return counts * (counts >= _PAIR)

            try:
                documents = Documents(shards, config, 1, seed, spans)
            except UsageError as error:
                raise UsageError(
                    f"{error}; crop's variant span asks for two spans of up to {config.span.tokens} tokens in a "
                    "document: lower method.span.tokens"
                ) from error
        super().__init__(shards, documents)

    def batch(self, rng: np.random.Generator) -> PairBatch:
        """Return two views of each of several documents."""
        per_document = self._config.document_pairs
        distinct = self._sampler.draw(self._config.pairs // per_document, rng)
        if self._config.partners == "of-each":
            drawn_pairs = [(document, pair) for document in distinct for pair in self._of_each(document, rng)]
        else:
            repeated = (document for document in distinct for _ in range(per_document))
            drawn_pairs = [(document, self._draw(document, rng)) for document in repeated]
        documents, pairs = zip(*drawn_pairs, strict=True)
        queries, keys = zip(*pairs, strict=True)
        return PairBatch(queries, keys, np.array(documents, np.int64), tuple(map(self.shards.language_of, documents)))

    def _of_each(self, document: int, rng: np.random.Generator) -> list[tuple[Ids, Ids]]:
        """Each unit of a block of a document, with a partner within the window. Source: shunyuzh/MSM."""
        config, most = self._config, self._config.sentence_tokens
        units, size = segments(self.shards, document, most, config.pack), config.document_pairs
        blocks = [units[at : at + size] for at in range(0, len(units), size)]
        blocks = [block for block in blocks if len(block) >= _PAIR]  # an end of one unit has no partner
        block = blocks[int(rng.integers(len(blocks)))]
        read = [read_segment(self.shards, document, unit, most) for unit in block]
        return [(ids, read[partner_of(at, len(read), rng, config.window)]) for at, ids in enumerate(read)]

    def _sentences(self, document: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
        most = self._config.sentence_tokens
        if self._config.pack:
            units = segments(self.shards, document, most)
            pair = two_sentences(len(units), rng, window=self._config.window)
            first, second = (read_segment(self.shards, document, units[at], most) for at in pair)
            return first, second
        count = self.shards.sentence_count(document)
        first_at, second_at = two_sentences(count, rng, window=self._config.window)
        special = self.shards.special
        first, second = (
            add_special_tokens(self.shards.take(document, at), special, most) for at in (first_at, second_at)
        )
        return first, second

    def _spans(self, document: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Two different spans; spans are cut once and for all, so they have no token in common."""
        most = self._config.span.tokens
        spans = segments(self.shards, document, most)
        first, second = (spans[at] for at in two_sentences(len(spans), rng))
        return read_segment(self.shards, document, first, most), read_segment(self.shards, document, second, most)

    def _crops(self, document: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Two crops of a stretch that begins at a sentence drawn uniformly; they may overlap."""
        token = self._config.token
        stretch = random_span(self.shards, document, token.stretch, rng)[: token.stretch]
        crops = [stretch[token_crop(len(stretch), rng, token.low, token.high)] for _ in range(2)]
        first, second = (add_special_tokens(crop, self.shards.special, len(crop) + _FRAME) for crop in crops)
        return first, second
