"""Languages by exponent: probabilities by hand."""

from __future__ import annotations

import pytest

from bench.data.corpora.sampling import probabilities

SIZES = {"en": 8100, "sw": 100, "de": 900}


def test_probabilities_by_hand() -> None:
    """n^1 : 81:9:1, n^½ : 9:3:1 (90:30:10), n^0 : alike; a language of size 0 is never drawn."""
    assert probabilities(SIZES, 1) == pytest.approx({"de": 9 / 91, "en": 81 / 91, "sw": 1 / 91})
    assert probabilities(SIZES, 0.5) == pytest.approx({"de": 3 / 13, "en": 9 / 13, "sw": 1 / 13})
    assert probabilities({**SIZES, "xx": 0}, 0) == pytest.approx({"de": 1 / 3, "en": 1 / 3, "sw": 1 / 3})
