"""Languages drawn by exponent: probabilities by hand, frequencies by statistics, resuming exactly."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

from bench.data.sampling import LanguageSampler, probabilities
from bench.data.shards import Shards

SIZES = {"en": 8100, "sw": 100, "de": 900}


def sampler(exponent: float, seed: int = 3, sizes: dict[str, int] = SIZES) -> LanguageSampler:
    """A sampler over a corpus of which only the sizes are asked."""
    corpus = SimpleNamespace(languages=tuple(sizes), tokens_of=sizes.__getitem__)
    return LanguageSampler(cast("Shards", corpus), exponent, seed)


def test_probabilities_by_hand() -> None:
    """n^1 : 81:9:1, n^½ : 9:3:1 (90:30:10), n^0 : alike; a language of size 0 is never drawn."""
    assert probabilities(SIZES, 1) == pytest.approx({"de": 9 / 91, "en": 81 / 91, "sw": 1 / 91})
    assert probabilities(SIZES, 0.5) == pytest.approx({"de": 3 / 13, "en": 9 / 13, "sw": 1 / 13})
    assert probabilities({**SIZES, "xx": 0}, 0) == pytest.approx({"de": 1 / 3, "en": 1 / 3, "sw": 1 / 3})


@pytest.mark.parametrize("exponent", [0, 0.3, 1])
def test_frequencies(exponent: float) -> None:
    """5,000 draws lie within 3 standard deviations of what is asked."""
    draws, source = 5000, sampler(exponent)
    counts = Counter(source.draw() for _ in range(draws))
    for language, p in source.probabilities.items():
        assert abs(counts[language] - draws * p) <= 3 * math.sqrt(draws * p * (1 - p))


def test_resuming_is_exact() -> None:
    """A sampler that is set to a state goes on as the one it was taken from; another seed draws otherwise."""
    whole = sampler(0.3)
    first = [whole.draw() for _ in range(37)]
    state = whole.state()
    rest = [whole.draw() for _ in range(50)]
    again = sampler(0.3)
    again.restore(state)
    assert [again.draw() for _ in range(50)] == rest
    fresh = sampler(0.3)
    assert [fresh.draw() for _ in range(37)] == first
    other = sampler(0.3, seed=4)
    assert [other.draw() for _ in range(37)] != first


def test_other_processes_draw_the_same() -> None:
    """Draws depend on the seed alone: 40 of them in a process of its own."""
    code = (
        "from types import SimpleNamespace as N; from bench.data.sampling import LanguageSampler as L\n"
        f"sizes = {SIZES!r}; s = L(N(languages=tuple(sizes), tokens_of=sizes.get), 0.3, 3)\n"
        "print(*(s.draw() for _ in range(40)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    source = sampler(0.3)
    assert found == [source.draw() for _ in range(40)]


def test_a_corpus_without_tokens_is_refused() -> None:
    """There is nothing to draw."""
    with pytest.raises(ValueError, match="without tokens"):
        sampler(1, sizes={"en": 0})
