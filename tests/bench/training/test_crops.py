"""Crops: how long, where, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from bench.training.crops import crop_length, token_crop


def test_the_length_is_within_the_shares() -> None:
    """5 to 50 % of 256 tokens: 12 to 128, both of which occur; always inside."""
    rng = np.random.default_rng(0)
    crops = [token_crop(256, rng, 0.05, 0.5) for _ in range(20_000)]
    lengths = np.array([crop.stop - crop.start for crop in crops])
    assert (lengths.min(), lengths.max()) == (12, 127)  # 128 needs a share of exactly one half
    assert min(crop.start for crop in crops) >= 0
    assert max(crop.stop for crop in crops) == 256
    assert lengths.mean() == pytest.approx(256 * 0.275 - 0.5, abs=1)


def test_every_start_is_as_likely() -> None:
    """Half of eight tokens begins at five places, each a fifth of the time (five standard deviations)."""
    rng = np.random.default_rng(1)
    starts = np.bincount([token_crop(8, rng, 0.5, 0.5).start for _ in range(10_000)], minlength=5)
    assert len(starts) == 5
    assert np.abs(starts - 2000).max() < 5 * np.sqrt(10_000 * 0.2 * 0.8)


def test_at_least_one_token_is_left() -> None:
    """A tenth of five tokens is none, and becomes one; the whole is the whole."""
    rng = np.random.default_rng(2)
    assert crop_length(5, 0.1) == 0
    assert {(crop.stop - crop.start) for crop in (token_crop(5, rng, 0.1, 0.1) for _ in range(50))} == {1}
    assert token_crop(5, rng, 1, 1) == slice(0, 5)


@pytest.mark.parametrize(("count", "low", "high"), [(0, 0.1, 0.5), (5, 0.5, 0.1), (5, 0.1, 1.5), (5, -0.1, 0.5)])
def test_nonsense_is_refused(count: int, low: float, high: float) -> None:
    """No tokens, or shares out of order."""
    with pytest.raises(ValueError, match="expected tokens and 0 ≤ low ≤ high ≤ 1"):
        token_crop(count, np.random.default_rng(0), low, high)
