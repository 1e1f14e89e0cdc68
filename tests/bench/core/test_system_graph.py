"""Sentences about the graphs of two systems."""

from typing import Any

from bench.core.files import digest
from bench.core.system_graph import DIGITS, differences_sentence


def test_a_sentence_shows_digests_by_their_first_digits_and_cuts_long_values_visibly() -> None:
    """What differs can be read: no half of a digest in quotes, and an ellipsis where a value goes on."""

    def graph(**choices: Any) -> dict[str, dict[str, Any]]:
        node: dict[str, Any] = {"stage": "rerank", "choices": choices, "inputs": {}}
        return {digest(node)[:DIGITS]: node}

    left = graph(depth=5, model="0123456789ab" + "c" * 52, text="x" * 70)
    right = graph(depth=10, model="ba9876543210" + "c" * 52, text="y")
    assert differences_sentence(left, right).split(", ") == [
        "rerank.depth is 5 and 10",
        "rerank.model is 0123456789ab… and ba9876543210…",
        f"rerank.text is '{'x' * 58}… and 'y'",
    ]
