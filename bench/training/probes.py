"""Signs of collapse, measured on held-out pairs with dropout off (warnings in the log; nothing is ever stopped).

Thresholds are specifications to calibrate: high cosine alone is a false alarm, so a collapse to a point needs both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature

import torch
from torch.nn import functional

from bench.training.batches import PairBatch
from bench.training.encoder import TrainableEncoder

CHANCE = 10.0  # loss by chance among 22,000 candidates: a first step may lie below it, as with MoCo's random queue
COSINE, NEAR_CHANCE, RANK, DIVERGED = 0.95, 2.0, 0.1, 3.0
"""Mean cosine above which, and multiple of chance below which, vectors are one point; least share of the full rank;
multiple of the first loss from which a training diverges."""
FEW_HINGES, LEAKED = 0.01, 0.05
"""Share of hinges below which a margin loss is saturated; loss in nats below which masked tokens are given away."""

COPIES, FEW = 0.9, 0.5
"""Accuracy on verbatim copies from which they are too easy; share of the negatives that is not most of them."""
UNMOVED = 0.9
"""Share of the accuracy that is left after shuffling neighbours, from which their order does not matter."""
LEAK, STALE, SHARP, FLAT, TELLING, ONE_LANGUAGE = 0.2, 0.8, 0.999, 2.0, 0.95, 0.99
"""Accuracy that batch statistics add; cosine of a bank's rows to their texts' vectors now; highest probability of a
softmax, and multiple of chance; accuracy in telling languages; share of the mass in a batch on the own language."""
SATURATED, MANY, TIMES = 0.8, 100, 5.0
"""Highest probability of a softmax over more than so many candidates from which each anchor learns from one of them
alone; multiple of the own language's share of the negatives from which its share of the softmax is too large."""


def in_float64(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in float64, on the processor where its device has none (MPS)."""
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()


def accuracy(queries: torch.Tensor, keys: torch.Tensor) -> float:
    """Return the share of queries `[n, d]` whose own key, row i of `[n, d]`, has the highest cosine; ties miss."""
    scores = (functional.normalize(queries.detach(), dim=1) @ functional.normalize(keys.detach(), dim=1).T).float()
    own = scores.diagonal()[:, None]
    rivals = scores >= own
    rivals.fill_diagonal_(fill_value=False)
    return float((~rivals.any(dim=1)).float().mean())


def mean_cosine(vectors: torch.Tensor) -> float:
    """Return the mean cosine between different rows of `[n, d]`, n ≥ 2."""
    unit = functional.normalize(in_float64(vectors), dim=1)
    n = len(unit)
    return float((unit.sum(0).square().sum() - unit.square().sum()) / (n * (n - 1)))


def deviation(vectors: torch.Tensor) -> float:
    """Return the standard deviation per dimension of `[n, d]` as unit vectors, averaged; about 1/√d if all is well."""
    return float(functional.normalize(in_float64(vectors), dim=1).std(dim=0, correction=0).mean())


def effective_rank(vectors: torch.Tensor) -> float:
    """Return `exp` of the entropy of the singular values of the centred `[n, d]`, as shares; 0 if all rows are equal.

    Source: Roy and Vetterli 2007, The effective rank.
    """
    wide = in_float64(vectors)
    values = torch.linalg.svdvals(wide - wide.mean(0))
    if float(values.max()) <= 1e-12 * max(1.0, float(wide.abs().max())):
        return 0.0
    shares = values / values.sum()
    return float(torch.special.entr(shares).sum().exp())


def probe(queries: torch.Tensor, keys: torch.Tensor) -> dict[str, float]:
    """Measure held-out pairs: row i of keys `[n, d]` belongs to row i of queries `[n, d]`."""
    return {
        "accuracy": accuracy(queries, keys),
        "chance": 1 / len(queries),
        "cosine": mean_cosine(queries),
        "deviation": deviation(queries),
        "rank": effective_rank(queries),
        "full_rank": float(min(len(queries) - 1, queries.shape[1])),
    }


@dataclass(frozen=True)
class Sign:
    """What looks like a failure: `shows`, of values by their logged names, and a sentence with these values as fields.

    Where one of the values was not logged, the sign says nothing.
    """

    shows: Callable[..., bool]
    sentence: str


SIGNS = (
    Sign(
        lambda cosine, accuracy, chance: cosine > COSINE and accuracy < NEAR_CHANCE * chance,
        "vectors fall onto one point: mean cosine {cosine:.3f}, accuracy {accuracy:.3f} where chance is {chance:.3f}; "
        "lower the learning rate or raise the temperature",
    ),
    Sign(
        lambda rank, full_rank: rank < RANK * full_rank,
        "vectors use few dimensions: effective rank {rank:.1f} of {full_rank:.0f}; "
        "raise the number of pairs or lower the learning rate",
    ),
    Sign(
        lambda loss, first_loss: loss > DIVERGED * max(first_loss, CHANCE),
        "the training diverges: loss {loss:.3g}, at the first step {first_loss:.3g}; "
        "lower the learning rate, or normalise vectors before the loss",
    ),
    Sign(
        lambda active_hinges: active_hinges < FEW_HINGES,
        "nearly every negative is beyond the margin: {active_hinges:.2%} of the hinges have a gradient; raise the "
        "margin or the number of pairs",
    ),
    Sign(
        lambda active_hinges, cosine: active_hinges == 1 and cosine > COSINE,
        "every hinge is active and the mean cosine is {cosine:.3f}: vectors fall onto one point; lower the learning "
        "rate",
    ),
    Sign(
        lambda automlm, accuracy, chance: automlm < LEAKED and accuracy < NEAR_CHANCE * chance,
        "hidden tokens are predicted (loss {automlm:.3f}) from vectors that identify no pair (accuracy "
        "{accuracy:.3f}, chance {chance:.3f}): the vector spells the sentence; hide more tokens",
    ),
    Sign(
        lambda context_accuracy, shuffled_accuracy, context_chance: (
            context_accuracy > NEAR_CHANCE * context_chance and shuffled_accuracy >= UNMOVED * context_accuracy
        ),
        "masked sentences are predicted as well from shuffled neighbours ({shuffled_accuracy:.3f}) as from those in "
        "order ({context_accuracy:.3f}): by their place or by the topic alone; nothing to do where documents have no "
        "order, else train longer or take more units a block",
    ),
    Sign(
        lambda masked_accuracy, unmasked_accuracy, block_chance: (
            unmasked_accuracy > COPIES and masked_accuracy < NEAR_CHANCE * block_chance
        ),
        "only copies are found: of sentences left in their block {unmasked_accuracy:.3f} are found, of those "
        "taken out {masked_accuracy:.3f}, where chance is {block_chance:.3f}; raise method.mask_rate",
    ),
    Sign(
        lambda same_language_mass, same_language_share: (
            same_language_mass > min(ONE_LANGUAGE, TIMES * same_language_share) and same_language_share < FEW
        ),
        "vectors encode the language: negatives of the same language have {same_language_mass:.3f} of the softmax, and "
        "are {same_language_share:.3f} of the negatives; raise the number of negatives, or train on fewer languages",
    ),
    Sign(
        lambda queue_filled: queue_filled < 1,
        "{queue_filled:.0%} of the queue are keys and the rest is random rows, which any encoder tells from texts: the "
        "budget so far cannot fill it; lower method.queue or raise the budget",
    ),
    Sign(
        lambda without_far: without_far > 0,
        "{without_far:.0%} of the sentences have no negative of another document, so nothing says how far near ones "
        "are let off; raise the number of documents in a batch",
    ),
    Sign(
        lambda bn_leak: bn_leak > LEAK,
        "batch statistics give pairs away: accuracy is {bn_leak:.2f} higher by them than by running statistics; "
        "normalise one view by running statistics (method.head.bn=asym), or not at all",
    ),
    Sign(
        lambda bank_agreement: bank_agreement < STALE,
        "the bank is stale: its rows have a cosine of {bank_agreement:.2f} to what their texts are now; lower the "
        "learning rate or the bank's capacity",
    ),
    Sign(
        lambda sharpest, candidates: (
            sharpest > (SATURATED if candidates > MANY else SHARP) or sharpest < FLAT / candidates
        ),
        "the temperature does not suit: the softmax over {candidates:.0f} candidates has a highest probability of "
        "{sharpest:.4f} on average; near 1 nothing is learnt any more (raise it), near chance nothing yet (lower it)",
    ),
    Sign(
        lambda same_language_mass, language_accuracy: same_language_mass > ONE_LANGUAGE and language_accuracy > TELLING,
        "vectors encode the language ({language_accuracy:.2f}); {same_language_mass:.3f} of the softmax is on the own "
        "one: other languages are too easy as negatives; keep to one language (method.inbatch_cross_language=false)",
    ),
)
"""Signs of failure, by the names of values as `fit` logs them (specs: failure modes and detectors)."""


def signs(values: Mapping[str, float]) -> list[str]:
    """Return what looks like a failure in logged values, as sentences."""
    found = []
    for sign in SIGNS:
        needs = signature(sign.shows).parameters
        if values.keys() >= needs.keys() and sign.shows(**{name: values[name] for name in needs}):
            found.append(sign.sentence.format(**values))
    return found


@torch.no_grad()
def measure(
    encode: TrainableEncoder, batches: Sequence[PairBatch], look: Callable[[], Mapping[str, float]] | None = None
) -> dict[str, float]:
    """Probe an encoder on held-out pairs with dropout off, averaged over batches; tokens do not count as spent."""
    training = encode.model.training
    encode.model.eval()
    with encode.meter.resting():
        try:
            found = [probe(*encode.together(pairs)) for pairs in batches]
            more = look() if look else {}
        finally:
            encode.model.train(training)
    means = {name: sum(values[name] for values in found) / len(found) for name in found[0]} if found else {}
    return {**means, **more}
