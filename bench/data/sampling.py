"""Which language the next batch comes from: drawn by p_l ∝ n_l^α, resumable at any draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bench.data.shards import Shards


def probabilities(sizes: Mapping[str, int], exponent: float) -> dict[str, float]:
    """Return p_l ∝ n_l^α, languages sorted by code, those of size 0 left out.

    Args:
        sizes: n_l, how much there is of each language.
        exponent: α; 1 draws in proportion, 0 every language alike.
    """
    there = {language: float(sizes[language]) ** exponent for language in sorted(sizes) if sizes[language] > 0}
    total = sum(there.values())
    return {language: weight / total for language, weight in there.items()}


class LanguageSampler:
    """Draws languages of a prepared corpus, n_l being their tokens.

    Draw number i depends on the seed and on i alone, so that a state is one number.

    Args:
        shards: the corpus.
        exponent: α (see `probabilities`).
        seed: of the draws.

    Raises:
        ValueError: the corpus has no tokens.
    """

    def __init__(self, shards: Shards, exponent: float, seed: int) -> None:
        """Compute the bounds; draw nothing."""
        self.probabilities = probabilities({one: shards.tokens_of(one) for one in shards.languages}, exponent)
        if not self.probabilities:
            raise ValueError("a corpus without tokens, expected at least one language with some")
        self._languages = tuple(self.probabilities)
        self._bounds = np.cumsum(list(self.probabilities.values()))
        self._seed, self._drawn = seed, 0

    def draw(self) -> str:
        """Return the next language."""
        bits = np.random.SeedSequence((self._seed, self._drawn)).generate_state(1, np.uint64)[0]
        self._drawn += 1
        at = int(np.searchsorted(self._bounds, float(bits >> np.uint64(11)) * 2.0**-53, side="right"))
        return self._languages[min(at, len(self._languages) - 1)]  # the bounds may end just below 1

    def state(self) -> dict[str, int]:
        """Return what `restore` needs to go on at the same draw."""
        return {"drawn": self._drawn}

    def restore(self, state: Mapping[str, int]) -> None:
        """Go on where `state` was taken."""
        self._drawn = state["drawn"]
