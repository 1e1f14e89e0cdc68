"""Numbers of a source of pairs."""

from __future__ import annotations

import json
from functools import partial

from bench.data.pairs import describe
from bench.data.pairs.rows import jsonl_pairs
from bench.data.pairs.sources import ALSO_POSITIVE
from bench.types import Source
from tests.conftest import Put


def test_numbers(put: Put) -> None:
    """By language and source, most first; negatives, and what was left out."""
    rows = [
        {"query": "a", "positive": ["b", "c"], "negative": ["d", "e", "b"], "lang": "sw", "source": "one"},
        {"query": "a", "positive": "b", "lang": "en", "source": "two"},
        {"query": "f", "positive": "g", "lang": "en", "source": "one", "negative": "h"},
        {"query": "i", "positive": "j"},
    ]
    found = describe(jsonl_pairs(put("p.jsonl", "\n".join(map(json.dumps, rows)))))
    assert found.facts() == {
        "pairs": 4,
        "languages": {"en": 2, "sw": 1, "unknown": 1},
        "sources": {"one": 2, "two": 1, "p.jsonl": 1},
        "positives": 5,
        "negatives": 3,
        "share_with_negatives": 0.5,
        "left_out": {ALSO_POSITIVE: 1},
    }
    assert list(found.languages) == ["en", "sw", "unknown"]


def test_nothing() -> None:
    """A source without pairs has a share of nothing."""
    assert describe(Source("x", "x/1", (), partial(iter, []))).share_with_negatives == 0
