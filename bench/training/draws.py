"""Which two sentences of a document make a pair, beside `bench.training.views.two_sentences`."""

from __future__ import annotations

import numpy as np

from bench.training.views import two_sentences


def in_a_window(count: int, rng: np.random.Generator, window: int) -> tuple[int, int]:
    """Draw a window of consecutive sentences uniformly, and two different places in it, each ordered pair alike.

    Args:
        count: sentences of the document, at least two; with fewer than `window`, all of them are the window.
        rng: chance.
        window: sentences of a window, at least two.

    Raises:
        ValueError: fewer than two sentences in the document or the window.

    Source: CCP (arXiv 2206.03281), algorithm 1; table 6 for what a window is.
    """
    size = min(count, window)
    start = int(rng.integers(count - size + 1)) if size > 0 else 0
    first, second = two_sentences(size, rng)
    return start + first, start + second


def adjacent(count: int, rng: np.random.Generator) -> tuple[int, int]:
    """Draw a sentence and the one after it, e.g. an utterance of a dialogue and its answer.

    Args:
        count: sentences of the document, at least two.
        rng: chance.

    Raises:
        ValueError: fewer than two sentences.
    """
    if count < 2:
        raise ValueError(f"found {count} sentences, expected at least 2")
    first = int(rng.integers(count - 1))
    return first, first + 1
