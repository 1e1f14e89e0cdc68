"""Hiding tokens: masked language modelling's inputs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.data.shards import Shards
from bench.encoding.packed import Ids
from bench.errors import UsageError
from bench.training.batches import Masked
from bench.training.config import MaskConfig


@dataclass(frozen=True)
class Masking:
    """How tokens are hidden.

    Args:
        mask: id of the mask token.
        special: ids that are never chosen.
        pool: ids that replace at random, int64 `[v]`.
        share: of the tokens that are chosen.
        keep: of the chosen ones, left as they are.
        random: of the chosen ones, replaced by one of the pool.
    """

    mask: int
    special: Collection[int]
    pool: npt.NDArray[np.int64]
    share: float
    keep: float
    random: float

    @staticmethod
    def of(shards: Shards, config: MaskConfig) -> Masking:
        """Mask as the config says, with the ids of a corpus.

        Raises:
            UsageError: the tokenizer has no mask token.
        """
        if "mask" not in shards.special:
            raise UsageError(
                f"the tokenizer of {shards.folder} has no mask token, which masked language modelling needs; type "
                "--set method.mlm.probability=0 for a method that can do without, or take another backbone"
            )
        special = frozenset(shards.special.values())
        pool = shards.used_ids()
        pool = pool[~np.isin(pool, np.asarray(sorted(special), np.int64))]
        return Masking(shards.special["mask"], special, pool, config.mask, config.keep, config.random)

    def __call__(self, sequences: Sequence[Ids], rng: np.random.Generator) -> Masked:
        """Hide tokens of every sequence.

        Of n tokens that are not special, ⌊share·n + u⌋ are chosen, u uniform in [0, 1), at least one where there is
        one, so that no batch is without a target.

        Source: Devlin et al. 2019 (BERT), section 3.1; the rounding is fairseq's, as in XLM-R.
        """
        inputs, owners, places, targets = [], [], [], []
        for number, sequence in enumerate(sequences):
            ids = np.array(sequence, np.int64)
            open_ = np.flatnonzero(~np.isin(ids, np.fromiter(self.special, np.int64)))
            count = min(len(open_), max(1, int(self.share * len(open_) + rng.random())))
            chosen = np.sort(rng.permutation(open_)[:count])
            owners.append(np.full(count, number, np.int64))
            places.append(chosen)
            targets.append(ids[chosen])
            ids[chosen] = self._replaced(ids[chosen], rng)
            inputs.append(ids)
        return Masked(inputs, np.concatenate(owners), np.concatenate(places), np.concatenate(targets))

    def _replaced(self, ids: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return what stands in the place of chosen ids `[m]`."""
        lot = rng.random(len(ids))
        drawn = self.pool[rng.integers(len(self.pool), size=len(ids))]
        return np.where(lot < self.keep, ids, np.where(lot < self.keep + self.random, drawn, self.mask))
