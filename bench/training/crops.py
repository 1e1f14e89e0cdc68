"""Crops: contiguous pieces of a sequence, drawn by their share of it."""

from __future__ import annotations

import numpy as np


def crop_length(count: int, ratio: float) -> int:
    """Return how many of `count` tokens a share is, cut down to a whole number; 0 where that is less than one.

    Source: Contriever's code (facebookresearch/contriever); golden values `crop`.
    """
    return int(count * ratio)


def token_crop(count: int, rng: np.random.Generator, low: float, high: float) -> slice:
    """Draw a contiguous piece of `count` tokens: first its share of them, then its place, both uniformly.

    Args:
        count: tokens there are, at least 1.
        rng: chance.
        low: least share, from 0.
        high: largest share, from `low` to 1.

    Returns:
        From the first token to the one after the last; at least one token, though the share be less.

    Raises:
        ValueError: no token, or shares out of order.

    Source: Izacard et al. 2022 (Contriever), section 3.1, as facebookresearch/contriever draws it.
    """
    if count < 1 or not 0 <= low <= high <= 1:
        raise ValueError(f"found {count} tokens and shares {low} to {high}, expected tokens and 0 ≤ low ≤ high ≤ 1")
    length = max(1, crop_length(count, float(rng.uniform(low, high))))
    start = int(rng.integers(count - length + 1))
    return slice(start, start + length)
