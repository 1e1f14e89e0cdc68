"""Signs of collapse, measured on held-out pairs with dropout off (warnings in the log; nothing is ever stopped).

Thresholds are specifications to calibrate: high cosine alone is a false alarm, so a collapse to a point needs both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch.nn import functional

from bench.training.encoder import TrainableEncoder, Views

COSINE, NEAR_CHANCE, RANK = 0.95, 2.0, 0.1
"""Mean cosine above which, and multiple of chance below which, vectors are one point; least share of the full rank."""


def accuracy(queries: torch.Tensor, keys: torch.Tensor) -> float:
    """Share of queries `[n, d]` whose own key, row i of `[n, d]`, has the highest cosine; ties count as misses."""
    scores = (functional.normalize(queries.detach(), dim=1) @ functional.normalize(keys.detach(), dim=1).T).float()
    own = scores.diagonal()[:, None]
    rivals = scores >= own
    rivals.fill_diagonal_(fill_value=False)
    return float((~rivals.any(dim=1)).float().mean())


def mean_cosine(vectors: torch.Tensor) -> float:
    """Mean cosine between different rows of `[n, d]`, n ≥ 2."""
    unit = functional.normalize(vectors.double(), dim=1)
    n = len(unit)
    return float((unit.sum(0).square().sum() - unit.square().sum()) / (n * (n - 1)))


def deviation(vectors: torch.Tensor) -> float:
    """Standard deviation per dimension of the unit vectors of `[n, d]`, averaged; about 1/√d where all is well."""
    return float(functional.normalize(vectors.double(), dim=1).std(dim=0, correction=0).mean())


def effective_rank(vectors: torch.Tensor) -> float:
    """`exp` of the entropy of the singular values of the centred `[n, d]`, as shares; 0 where all rows are equal.

    Source: Roy and Vetterli 2007, The effective rank.
    """
    wide = vectors.double()
    values = torch.linalg.svdvals(wide - wide.mean(0))
    if float(values.max()) <= 1e-12 * max(1.0, float(wide.abs().max())):
        return 0.0
    shares = values / values.sum()
    return float(torch.special.entr(shares).sum().exp())


def probe(queries: torch.Tensor, keys: torch.Tensor) -> dict[str, float]:
    """Measure one batch of held-out pairs.

    Args:
        queries: `[n, d]`.
        keys: `[n, d]`; row i belongs to query i.

    Returns:
        `accuracy`, `chance`, `cosine` (between sentences of different pairs), `deviation` and `rank` of the queries.
    """
    return {
        "accuracy": accuracy(queries, keys),
        "chance": 1 / len(queries),
        "cosine": mean_cosine(queries),
        "deviation": deviation(queries),
        "rank": effective_rank(queries),
        "full_rank": float(min(len(queries) - 1, queries.shape[1])),
    }


def signs(values: Mapping[str, float]) -> list[str]:
    """Return what looks like collapse in the values of `probe`, as sentences."""
    found = []
    near_chance = values["accuracy"] < NEAR_CHANCE * values["chance"]
    if values["cosine"] > COSINE and near_chance:
        found.append(
            f"vectors fall onto one point: mean cosine {values['cosine']:.3f}, accuracy {values['accuracy']:.3f} where "
            f"chance is {values['chance']:.3f}; lower the learning rate or raise the temperature"
        )
    if values["rank"] < RANK * values["full_rank"]:
        found.append(
            f"vectors use few dimensions: effective rank {values['rank']:.1f} of {values['full_rank']:.0f}; "
            "raise the number of pairs or lower the learning rate"
        )
    return found


@torch.no_grad()
def measure(encode: TrainableEncoder, batches: Sequence[Views]) -> dict[str, float]:
    """Probe an encoder with dropout off and average over batches; its tokens do not count against the budget.

    Args:
        encode: the encoder; afterwards in training mode again if it was.
        batches: held-out pairs, two views each; at least one batch.

    Returns:
        Means of the values of `probe`.
    """
    training, seen = encode.model.training, encode.meter.tokens
    encode.model.eval()
    try:
        found = [probe(*encode.together(views)[:2]) for views in batches]
    finally:
        encode.model.train(training)
        encode.meter.tokens = seen
    return {name: sum(values[name] for values in found) / len(found) for name in found[0]}
