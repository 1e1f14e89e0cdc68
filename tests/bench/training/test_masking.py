"""Hidden tokens: how many, which, and what stands in their place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.data.shards import Shards
from bench.errors import UsageError
from bench.training.config import MaskConfig, MlmConfig
from bench.training.masking import Masking

MASK, SPECIAL, POOL = 3, frozenset(range(5)), np.arange(5, 105)
LIMIT = 13.8  # of χ² with two degrees of freedom, p = 0.001


def masking(share: float = 0.15, keep: float = 0.1, random: float = 0.1) -> Masking:
    """One with a hundred words."""
    return Masking(MASK, SPECIAL, POOL, share, keep, random)


def test_the_rates_are_those_asked_for() -> None:
    """χ² over 10,000 chosen tokens: 80 % masked, 10 % kept, 10 % of the pool (a hundredth of which is the token)."""
    rng, counts, seen = np.random.default_rng(0), np.zeros(3), 0
    drawn = []
    while counts.sum() < 10_000:
        sequence = np.concatenate([[1], rng.integers(5, 105, 100), [2]])
        made = masking()([sequence], rng)
        placed = np.asarray(made.inputs[0])[made.place]
        kept, hidden = placed == made.targets, placed == MASK
        counts += [hidden.sum(), kept.sum(), (~kept & ~hidden).sum()]
        drawn += np.asarray(placed)[~kept & ~hidden].tolist()
        seen += 100
    expected = np.array([0.8, 0.101, 0.099]) * counts.sum()
    assert ((counts - expected) ** 2 / expected).sum() < LIMIT
    assert counts.sum() / seen == pytest.approx(0.15, abs=1e-3)
    assert len(set(drawn)) > 95  # the whole pool


def test_how_many_is_the_share_rounded_by_lot() -> None:
    """Of 10 tokens 1 or 2, in the mean 1.5; never none, never more than there are."""
    rng = np.random.default_rng(1)
    counts = [len(masking()([np.r_[1, np.arange(5, 15), 2]], rng).targets) for _ in range(2000)]
    assert set(counts) == {1, 2}
    assert np.mean(counts) == pytest.approx(1.5, abs=0.05)
    assert len(masking()([np.array([1, 9, 2])], rng).targets) == 1
    assert len(masking(share=1.0)([np.array([1, 9, 8, 2])], rng).targets) == 2
    assert len(masking()([np.array([1, 4, 2])], rng).targets) == 0  # an unknown token is special


def test_all_else_stays_and_is_told() -> None:
    """Special tokens and those not chosen stay; targets, places and sequences lead back to the originals."""
    rng = np.random.default_rng(2)
    sequences = [np.r_[1, rng.integers(5, 105, size), 2] for size in (3, 40, 7)]
    before = [sequence.copy() for sequence in sequences]
    made = masking(share=0.4)(sequences, rng)
    assert len(made) == 3
    assert (np.diff(made.sequence) >= 0).all()
    restored = [np.array(sequence) for sequence in made.inputs]
    for number, place, target in zip(made.sequence, made.place, made.targets, strict=True):
        assert target not in SPECIAL
        restored[number][place] = target
    for found, expected, given in zip(restored, before, sequences, strict=True):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(given, expected)  # what was given is not changed


def test_every_token_kept_or_every_one_random() -> None:
    """The ends of the shares."""
    rng, sequence = np.random.default_rng(3), np.r_[1, np.full(50, 7), 2]
    np.testing.assert_array_equal(masking(share=1.0, keep=1.0, random=0.0)([sequence], rng).inputs[0], sequence)
    replaced = masking(share=1.0, keep=0.0, random=1.0)([sequence], rng).inputs[0]
    assert MASK not in replaced
    assert np.isin(replaced[1:-1], POOL).all()


def test_the_pool_is_the_corpus_without_special_tokens(corpus: Path) -> None:
    """Random tokens are words that the corpus has, so that a cropped vocabulary knows them."""
    shards = Shards(corpus)
    made = Masking.of(shards, MlmConfig(mask=0.3, keep=0.2, random=0.3))
    assert set(made.pool.tolist()) == set(shards.used_ids().tolist()) - set(shards.special.values())
    assert (made.mask, made.share, made.keep, made.random) == (shards.special["mask"], 0.3, 0.2, 0.3)


def test_a_tokenizer_without_a_mask_is_refused(corpus: Path) -> None:
    """With what to type."""
    shards = Shards(corpus)
    shards.special = {name: at for name, at in shards.special.items() if name != "mask"}
    with pytest.raises(UsageError, match="has no mask token"):
        Masking.of(shards, MaskConfig())


def test_shares_beyond_all_are_refused() -> None:
    """Kept and random together."""
    with pytest.raises(ValueError, match="together they are at most 1"):
        MaskConfig(keep=0.6, random=0.5)
