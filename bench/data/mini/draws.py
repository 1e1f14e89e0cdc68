"""Chance from a key alone, by the raw bits of PCG64, which numpy promises never to change: the same everywhere."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TypeVar
from zlib import crc32

import numpy as np

T = TypeVar("T")

_BLOCK = 256


class Draws:
    """A stream of chance decided by its key: what is drawn, e.g. the kind of text, the language and its number."""

    def __init__(self, seed: int, *key: str | int) -> None:
        numbers = [crc32(part.encode()) if isinstance(part, str) else part for part in key]
        # The length comes in because numpy fills short keys up with zeros, so that (1,) and (1, 0) would be one key.
        state = np.random.PCG64(np.random.SeedSequence([seed, len(numbers), *numbers]))
        self.unit = _units(state).__next__

    def below(self, size: int) -> int:
        """Draw a whole number from 0 to `size` − 1, all alike."""
        return int(self.unit() * size)

    def between(self, least: int, most: int) -> int:
        """Draw a whole number, both ends included."""
        return least + int(self.unit() * (most - least + 1))

    def chance(self, share: float) -> bool:
        """Be true in that share of cases."""
        return self.unit() < share

    def pick(self, options: Sequence[T]) -> T:
        """Draw one of the options, all alike."""
        return options[int(self.unit() * len(options))]

    def weighted(self, cumulative: Sequence[float]) -> int:
        """Draw a position by weights, which are given as `cumulative_weights` makes them."""
        return bisect_right(cumulative, self.unit() * cumulative[-1])

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """Return the options in random order."""
        result = list(options)
        for last in range(len(result) - 1, 0, -1):
            swapped = self.below(last + 1)
            result[last], result[swapped] = result[swapped], result[last]
        return result


def cumulative_weights(size: int, exponent: float) -> tuple[float, ...]:
    """Return running sums of 1/rank^exponent over ranks 1 to `size`."""
    return tuple(accumulate(rank**-exponent for rank in range(1, size + 1)))


def _units(bits: np.random.PCG64) -> Iterator[float]:
    """Yield numbers from 0 to below 1 without end: the upper 53 of 64 bits."""
    while True:
        yield from ((bits.random_raw(_BLOCK) >> np.uint64(11)) * 2.0**-53).tolist()
