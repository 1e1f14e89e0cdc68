"""Which two sentences make a pair."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from bench.training.draws import adjacent, in_a_window


def test_a_window_of_two_is_the_next_sentence() -> None:
    """Either order, nothing else; every place as often as it is in windows."""
    rng = np.random.default_rng(0)
    found = Counter(in_a_window(4, rng, 2) for _ in range(6000))
    assert set(found) == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)}
    assert all(abs(count - 1000) < 150 for count in found.values())


def test_a_window_holds_both_and_a_short_document_is_one() -> None:
    """Never further apart than the window; all ordered pairs of a short document."""
    rng = np.random.default_rng(1)
    pairs = [in_a_window(9, rng, 4) for _ in range(3000)]
    assert {abs(a - b) for a, b in pairs} == {1, 2, 3}
    assert {at for pair in pairs for at in pair} == set(range(9))
    short = {in_a_window(3, rng, 5) for _ in range(300)}
    assert short == {(a, b) for a in range(3) for b in range(3) if a != b}


def test_adjacent_is_an_utterance_and_its_answer() -> None:
    """In order, all places alike."""
    rng = np.random.default_rng(2)
    found = Counter(adjacent(4, rng) for _ in range(3000))
    assert set(found) == {(0, 1), (1, 2), (2, 3)}
    assert all(abs(count - 1000) < 150 for count in found.values())


@pytest.mark.parametrize("count", [0, 1])
def test_one_sentence_is_no_pair(count: int) -> None:
    """Both refuse it."""
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="expected at least 2"):
        adjacent(count, rng)
    with pytest.raises(ValueError, match="expected at least 2"):
        in_a_window(count, rng, 5)
