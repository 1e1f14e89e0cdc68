"""Signs of failure in what the methods log: each shows by itself, and a healthy training shows none."""

import pytest

from bench.training.probes import signs

Values = dict[str, float]
HINGES: Values = {"active_hinges": 0.4, "cosine": 0.3, "accuracy": 0.6, "chance": 0.1, "automlm": 3.0}
CONTEXT: Values = {"context_accuracy": 0.5, "shuffled_accuracy": 0.4, "context_chance": 0.01}
MOCO: Values = {"sharpest": 0.3, "candidates": 2049.0, "same_language_mass": 0.3, "same_language_share": 0.07}
CLOZE: Values = {"masked_accuracy": 0.5, "unmasked_accuracy": 0.99, "block_chance": 1 / 64}
CCP: Values = {"bn_leak": 0.1, "bank_agreement": 0.9, "sharpest": 0.1, "candidates": 300.0, "same_language_mass": 0.9}
TELLING: Values = {**CCP, "language_accuracy": 1.0}


@pytest.mark.parametrize(
    ("healthy", "changed", "sentence"),
    [
        (HINGES, {"active_hinges": 0.005}, "beyond the margin: 0.50%"),
        (HINGES, {"active_hinges": 1.0, "cosine": 0.99}, "every hinge is active"),
        (HINGES, {"active_hinges": 1.0}, ""),  # early in a healthy training
        (HINGES, {"automlm": 0.01, "accuracy": 0.11}, "the vector spells the sentence"),
        (CONTEXT, {"shuffled_accuracy": 0.46}, "shuffled neighbours"),
        (CONTEXT, {"context_accuracy": 0.015, "shuffled_accuracy": 0.015}, ""),  # at chance there is nothing to say
        ({"without_far": 0.0}, {"without_far": 0.25}, "raise the number of documents"),
        (CLOZE, {"masked_accuracy": 0.02}, "only copies are found"),
        (CLOZE, {"masked_accuracy": 0.02, "unmasked_accuracy": 0.3}, ""),
        (TELLING, {"bn_leak": 0.3}, "batch statistics give pairs away: accuracy is 0.30 higher"),
        (TELLING, {"bank_agreement": 0.5}, "the bank is stale: its rows have a cosine of 0.50"),
        (TELLING, {"sharpest": 0.9995}, "the temperature does not suit"),
        (MOCO, {"sharpest": 0.9}, "over 2049 candidates has a highest probability of 0.9000"),
        (MOCO, {"sharpest": 0.9, "candidates": 100.0}, ""),  # of few one may well be the only good one
        (MOCO, {"same_language_mass": 0.84}, "negatives of the same language have 0.840 of the softmax"),
        (MOCO, {"same_language_mass": 0.84, "same_language_share": 0.2}, ""),
        (MOCO, {"same_language_mass": 0.995, "same_language_share": 0.4}, "are 0.400 of the negatives"),
        ({"queue_filled": 1.0}, {"queue_filled": 0.5}, "50% of the queue are keys"),
        (TELLING, {"sharpest": 0.005}, "over 300 candidates has a highest probability of 0.0050"),
        (TELLING, {"same_language_mass": 0.999}, "0.999 of the softmax is on the own one"),
    ],
)
def test_signs(healthy: Values, changed: Values, sentence: str) -> None:
    """Each value shows by itself; healthy ones say nothing."""
    assert signs(healthy) == []
    found = signs({**healthy, **changed})
    assert len(found) == bool(sentence)
    assert all(sentence in one for one in found)
