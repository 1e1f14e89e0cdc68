"""Signs of collapse on held-out pairs: warnings in the log. High cosine alone is a false alarm; collapse needs both."""

import json
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path

import torch
from torch.nn import functional

from bench.training.batches import PairBatch
from bench.training.encoder import TrainableEncoder
from bench.training.optimisation import full_float32, inner_products

CHANCE = 10.0  # loss by chance among 22,000 candidates: a first step may lie below it, as with MoCo's random queue
COSINE, NEAR_CHANCE, RANK, DIVERGED = 0.95, 2.0, 0.1, 3.0
"""Mean cosine above which, and multiple of chance below which, vectors are one point; least share of the full rank;
multiple of the first loss from which a training diverges."""
FEW_HINGES, LEAKED = 0.01, 0.05
"""Share of hinges below which a margin loss is saturated; loss in nats below which masked tokens are given away."""

COPIES, MINORITY = 0.9, 0.5
"""Accuracy on verbatim copies from which they are too easy; share of the negatives that is not most of them."""
HALF, ROOM = 0.5, 0.9
"""Share of the budget from which a training must have learnt something; accuracy at the start that leaves little."""
AT_START = ("accuracy", "document_accuracy")
"""What signs compare with its value before the first step, which they know with `first_` before the name."""
UNMOVED = 0.9
"""Share of the accuracy that is left after shuffling neighbours, from which their order does not matter."""
LEAK, STALE, SHARP, FLAT, TELLING, ONE_LANGUAGE = 0.2, 0.8, 0.999, 2.0, 0.95, 0.99
"""Accuracy that batch statistics add; cosine of a bank's rows to their texts' vectors now; highest probability of a
softmax, and multiple of chance; accuracy in telling languages; share of the mass in a batch on the own language."""
SATURATED, LARGE, TIMES = 0.8, 100, 5.0
"""Highest probability of a softmax over more than so many candidates from which each anchor learns from one of them
alone; multiple of the own language's share of the negatives from which its share of the softmax is too large."""


def in_float64(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in float64, on the processor where its device has none (MPS)."""
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()


def accuracy(queries: torch.Tensor, keys: torch.Tensor) -> float:
    """Return the share of queries `[n, d]` whose own key, row i of `[n, d]`, has the highest cosine; ties miss.

    Example:
        >>> accuracy(torch.eye(3), torch.eye(3))
        1.0
    """
    scores = inner_products(*(functional.normalize(part.detach(), dim=1) for part in (queries, keys))).float()
    positive = scores.diagonal()[:, None]
    rivals = scores >= positive
    rivals.fill_diagonal_(fill_value=False)
    return float((~rivals.any(dim=1)).float().mean())


def mean_cosine(vectors: torch.Tensor) -> float:
    """Return the mean cosine between different rows of `[n, d]`, n ≥ 2."""
    unit = functional.normalize(in_float64(vectors), dim=1)
    n = len(unit)
    return float((unit.sum(0).square().sum() - unit.square().sum()) / (n * (n - 1)))


def deviation(vectors: torch.Tensor) -> float:
    """Return the standard deviation per dimension of `[n, d]` as unit vectors, averaged.

    About 1/√d where vectors are spread evenly, 0 where they have collapsed to a point.

    Source: Chen and He 2021 (SimSiam), section 4.1.
    """
    return float(functional.normalize(in_float64(vectors), dim=1).std(dim=0, correction=0).mean())


def effective_rank(vectors: torch.Tensor) -> float:
    """Return `exp` of the entropy of the centred singular values `[n, d]` (Roy and Vetterli 2007), 0 for a point."""
    wide = in_float64(vectors)
    values = torch.linalg.svdvals(wide - wide.mean(0))
    if float(values.max()) <= 1e-12 * max(1.0, float(wide.abs().max())):
        return 0.0
    shares = values / values.sum()
    return float(torch.special.entr(shares).sum().exp())


def collapse_metrics(queries: torch.Tensor, keys: torch.Tensor) -> dict[str, float]:
    """Measure held-out pairs: row i of keys `[n, d]` belongs to row i of queries `[n, d]`."""
    return {
        "accuracy": accuracy(queries, keys),
        "chance": 1 / len(queries),
        "cosine": mean_cosine(queries),
        "deviation": deviation(queries),
        "rank": effective_rank(queries),
        "full_rank": float(min(len(queries) - 1, queries.shape[1])),
    }


SIGNS: Mapping[str, Callable[..., bool]] = {
    "one-point": lambda cosine, accuracy, chance: cosine > COSINE and accuracy < NEAR_CHANCE * chance,
    "learnt-nothing": lambda accuracy, first_accuracy, document_accuracy, first_document_accuracy, spent, candidates: (
        spent >= HALF
        and candidates > 0
        and accuracy <= first_accuracy < ROOM
        and document_accuracy <= first_document_accuracy
    ),
    "few-dimensions": lambda rank, full_rank: rank < RANK * full_rank,
    "diverges": lambda loss, first_loss: loss > DIVERGED * max(first_loss, CHANCE),
    "idle-hinges": lambda active_hinges: active_hinges < FEW_HINGES,
    "active-hinges": lambda active_hinges, cosine: active_hinges == 1 and cosine > COSINE,
    "spelt": lambda automlm, accuracy, chance: automlm < LEAKED and accuracy < NEAR_CHANCE * chance,
    "shuffled": lambda context_accuracy, shuffled_accuracy, context_chance: (
        context_accuracy > NEAR_CHANCE * context_chance and shuffled_accuracy >= UNMOVED * context_accuracy
    ),
    "copies": lambda masked_accuracy, unmasked_accuracy, block_chance: (
        unmasked_accuracy > COPIES and masked_accuracy < NEAR_CHANCE * block_chance
    ),
    "language-mass": lambda same_language_mass, same_language_share: (
        same_language_mass > min(ONE_LANGUAGE, TIMES * same_language_share) and same_language_share < MINORITY
    ),
    "random-queue": lambda queue_filled: queue_filled < 1,
    "no-far-negative": lambda without_far: without_far > 0,
    "batch-statistics": lambda bn_leak: bn_leak > LEAK,
    "stale-bank": lambda bank_agreement: bank_agreement < STALE,
    "temperature": lambda sharpest, candidates: (
        sharpest > (SATURATED if candidates > LARGE else SHARP) or sharpest < FLAT / candidates
    ),
    "own-language": lambda same_language_mass, language_accuracy: (
        same_language_mass > ONE_LANGUAGE and language_accuracy > TELLING
    ),
}
"""Signs of failure (specs: failure modes and detectors): what they show in values by the names that `fit` logs.

A sign is silent where one of its values was not logged. Sentences, with the values as fields: `signs.json`.
"""


COLLAPSE = ("one-point", "active-hinges")
"""Signs from which a training does not come back: its vectors fall onto one point."""


def signs(values: Mapping[str, float], names: Sequence[str] = tuple(SIGNS)) -> list[str]:
    """Return what looks like a failure in logged values, as sentences, of all signs or those with some names."""
    sentences, warnings = json.loads(Path(__file__).with_name("signs.json").read_bytes()), []
    for name in names:
        shows = SIGNS[name]
        needs = signature(shows).parameters
        if values.keys() >= needs.keys() and shows(**{need: values[need] for need in needs}):
            warnings.append(sentences[name].format(**values))
    return warnings


def _document_accuracy(encode: TrainableEncoder, pairs: PairBatch) -> dict[str, float]:
    """Return how many halves of held-out documents find the other half, where there are halves."""
    return {} if pairs.halves is None else {"document_accuracy": accuracy(*encode.encode_views(pairs.halves))}


@torch.no_grad()
def evaluate_probes(
    encode: TrainableEncoder, batches: Sequence[PairBatch], probe: Callable[[], Mapping[str, float]] | None = None
) -> dict[str, float]:
    """Probe an encoder on held-out pairs with dropout off, averaged over batches; tokens do not count as spent."""
    training = encode.model.training
    encode.model.eval()
    with encode.meter.resting(), full_float32():
        try:
            per_batch = [
                {**collapse_metrics(*encode.encode_views(pairs)), **_document_accuracy(encode, pairs)}
                for pairs in batches
            ]
            more = probe() if probe else {}
        finally:
            encode.model.train(training)
    means = (
        {name: sum(values[name] for values in per_batch) / len(per_batch) for name in per_batch[0]} if per_batch else {}
    )
    return {**means, **more}
