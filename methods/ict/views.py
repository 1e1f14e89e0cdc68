"""The inverse cloze task's data: a sentence, and the block that it comes from, mostly without it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

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
    pack_sentences,
    segment_counts,
    sizes,
)
from methods.ict import IctConfig

_FRAME = 2  # first and last token of a sequence
_LEAST = 2  # examples in a batch: one alone has no negative
_TRIES = 100  # batches that are drawn before documents are called too short


@dataclass(frozen=True)
class Clozes(PairBatch):
    """Sentences (left) and their blocks (right)."""

    removed: npt.NDArray[np.bool_]  # whether each sentence was taken out of its block, `[n]`


def cloze(
    tokens: npt.NDArray[Any], starts: Sequence[int], query: int, *, remove: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """Return a sentence of a block, and the block with or without it.

    Args:
        tokens: ids of the block, `[n]`.
        starts: where its sentences begin.
        query: number of the sentence.
        remove: whether the block is without it.

    Returns:
        Ids of sentence and block; None if nothing would be left of the block.

    Source: Lee et al. 2019, section 5, as google-research/language (orqa) does it.
    """
    ends = [*starts[1:], len(tokens)]
    sentence = tokens[starts[query] : ends[query]]
    if not remove:
        return sentence, tokens
    remainder = np.concatenate([tokens[: starts[query]], tokens[ends[query] :]])
    return (sentence, remainder) if len(remainder) else None


class SentencesOfBlocks(RandomSource[Shards, Documents]):
    """A sentence and its block, of each of several documents, cut into blocks of whole sentences.

    Where it is to be removed and is alone, the example is dropped. Raises `UsageError` if no language has two
    documents.
    """

    def __init__(self, shards: Shards, config: IctConfig, seed: int) -> None:
        blocks = partial(segment_counts, shards, most=config.block_tokens)
        super().__init__(shards, Documents(shards, config, least=1, seed=seed, blocks=blocks))
        self._config = config

    def batch(self, rng: np.random.Generator) -> Clozes:
        """Return an example of each of several documents; raise `UsageError` if nearly all blocks are one sentence."""
        for _ in range(_TRIES):
            documents = self._sampler.draw(self._config.pairs, rng)
            examples = [(document, self._example(document, rng)) for document in documents]
            usable = [(document, *example) for document, example in examples if example is not None]
            if min(sizes(len(usable))) >= _LEAST:  # all processes draw again, or none
                rows, sentences, blocks, removed = zip(*usable, strict=True)
                languages = tuple(map(self.shards.language_of, rows))
                return Clozes(sentences, blocks, np.asarray(rows, np.int64), languages, np.asarray(removed))
        raise UsageError(
            f"nearly all documents of the corpus {self.shards.folder} are one sentence, which leaves nothing when it "
            "is taken out; type --set method.mask_rate=0.5, or take a corpus of longer texts"
        )

    def _example(self, document: int, rng: np.random.Generator) -> tuple[Ids, Ids, bool] | None:
        """Draw a block, a sentence of it and whether that is removed; read them."""
        lengths = self.shards.sentence_lengths(range(document, document + 1))
        blocks = pack_sentences(lengths, self._config.block_tokens - _FRAME)
        first, end = blocks[int(rng.integers(len(blocks)))]
        query = int(rng.integers(end - first))
        removed = bool(rng.random() < self._config.mask_rate)
        if removed and end - first == 1:
            return None
        sentences = [self.shards.take(document, at) for at in range(first, end)]
        starts = np.cumsum([0, *map(len, sentences)])[:-1].tolist()
        pair = cloze(np.concatenate(sentences), starts, query, remove=removed)
        assert pair is not None  # noqa: S101 (a block of several sentences has something left)
        sentence, block = pair
        config, special = self._config, self.shards.special
        return (
            add_special_tokens(sentence, special, config.sentence_tokens),
            add_special_tokens(block, special, config.block_tokens),
            removed,
        )
