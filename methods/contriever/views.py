"""Contriever's data: chunks of a language's stream, two crops of each, tokens deleted or replaced."""

import numpy as np
import numpy.typing as npt

from bench import UsageError
from bench.training import Chunk, Chunks, Ids, PairBatch, RandomSource, Shards, add_special_tokens, token_crop
from methods.contriever import ContrieverConfig

_NO_DOCUMENT = -1  # a chunk may touch several
_FRAME = 2  # first and last token of a sequence


class Augmentation:
    """Changes tokens at random.

    Args:
        shards: the corpus, for its special tokens and the ids that it uses.
        kind: `delete` tokens, but never the last one; `replace` them by ids of the corpus; `mask` them; or `none`.
        probability: of each token.

    Raises:
        UsageError: the tokenizer has no mask token, and one is needed.
    """

    def __init__(self, shards: Shards, kind: str, probability: float) -> None:
        if kind == "mask" and "mask" not in shards.special:
            raise UsageError(
                f"the tokenizer of {shards.folder} has no mask token; type --set method.augmentation=replace"
            )
        self._kind, self._probability = kind, probability
        corpus_ids = shards.used_ids() if kind == "replace" else np.empty(0, np.int64)
        self._pool = np.setdiff1d(corpus_ids, np.asarray(sorted(shards.special.values()), np.int64))
        self._mask = shards.special["mask"] if kind == "mask" else 0

    def __call__(self, tokens: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return what is left of tokens `[n]`, `[m]` with m ≥ 1, as Contriever's code draws."""
        if self._kind == "none":
            return tokens
        stay = rng.random(len(tokens)) > self._probability
        if self._kind == "delete":
            if not stay.any():
                stay[rng.integers(len(tokens))] = True
            return tokens[stay]
        if self._kind == "mask":
            return np.where(stay, tokens, self._mask)
        return np.where(stay, tokens, self._pool[rng.integers(len(self._pool), size=len(tokens))])


class CroppedPairs(RandomSource[Shards, Chunks]):
    """Two views of each of several chunks; raises `UsageError` as `Chunks` and `Augmentation` do."""

    def __init__(self, shards: Shards, config: ContrieverConfig, seed: int) -> None:
        super().__init__(shards, Chunks(shards, config, config.chunk_length, seed))
        self._config = config
        self._augment = Augmentation(shards, config.augmentation, config.augmentation_probability)

    def batch(self, rng: np.random.Generator) -> PairBatch:
        """Return a pair of each of `pairs` chunks."""
        chunks = self._sampler.draw(self._config.pairs, rng)
        queries, keys = zip(*(self._views(chunk, rng) for chunk in chunks), strict=True)
        return PairBatch(queries, keys, np.full(len(chunks), _NO_DOCUMENT), tuple(chunk.language for chunk in chunks))

    def _views(self, chunk: Chunk, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Draw the two views of a chunk, and read no more of it than they need."""
        low, high = self._config.ratio_min, self._config.ratio_max
        crop = token_crop(chunk.length, rng, low, high)
        independent = self._config.views == "crop"
        second_crops = [token_crop(chunk.length, rng, low, high)] if independent else complement(chunk.length, crop)
        queries = chunk.read(crop)
        keys = np.concatenate([chunk.read(part) for part in second_crops or [crop]])
        return self._framed(queries, rng), self._framed(keys, rng)

    def _framed(self, tokens: npt.NDArray[np.int64], rng: np.random.Generator) -> Ids:
        """Augment, and put first and last token around it."""
        changed = self._augment(tokens, rng)
        return add_special_tokens(changed, self.shards.special, len(changed) + _FRAME)


def complement(count: int, crop: slice) -> list[slice]:
    """Return the parts of `count` tokens that a crop leaves, in order; none where it leaves nothing."""
    return [part for part in (slice(0, crop.start), slice(crop.stop, count)) if part.start < part.stop]
