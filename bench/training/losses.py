"""Contrastive losses as pure functions.

Conventions: n anchors, m candidates, d dimensions. Means over anchors unless said otherwise. Half-precision input is
computed in float32, float64 stays float64. A candidate that must not count has the logit −inf, never a large number.
"""

from typing import Literal

import torch
from torch.nn import functional

from bench.retrieval.packed import wide
from bench.retrieval.transfer import to_device
from bench.training.optimisation import inner_products

Similarity = Literal["dot", "cos"]
Reduction = Literal["mean", "sum", "none"]

_TINY = 1e-12  # of a norm, below which a vector counts as zero


def similarities(queries: torch.Tensor, keys: torch.Tensor, similarity: Similarity = "dot") -> torch.Tensor:
    """Return the similarity of every query to every key.

    Args:
        queries: `[n, d]`, of any floating type.
        keys: `[m, d]`.
        similarity: `dot`, or `cos`, for which a vector of length 0 has the similarity 0.

    Returns:
        `[n, m]`, float32 or float64.

    Raises:
        ValueError: other shapes, or another similarity.

    Example:
        >>> similarities(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0], [0.0, 2.0]]), "cos")
        tensor([[0.6000, 0.8000]])
    """
    if queries.ndim != 2 or keys.ndim != 2 or queries.shape[1] != keys.shape[1]:
        raise ValueError(f"found queries {list(queries.shape)} and keys {list(keys.shape)}, expected [n, d] and [m, d]")
    if similarity not in ("dot", "cos"):
        raise ValueError(f"found similarity {similarity!r}, expected dot or cos")
    queries, keys = wide(queries), wide(keys)
    if similarity == "cos":
        queries, keys = functional.normalize(queries, dim=1, eps=_TINY), functional.normalize(keys, dim=1, eps=_TINY)
    return inner_products(queries, keys)


def info_nce(
    queries: torch.Tensor,
    keys: torch.Tensor,
    positives: torch.Tensor | None = None,
    *,
    temperature: float = 1.0,
    similarity: Similarity = "dot",
    negatives: torch.Tensor | None = None,
    forbidden: torch.Tensor | None = None,
    symmetric: bool = False,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
) -> torch.Tensor:
    """Return the cross-entropy of each query's key among all keys, over similarities.

    `L = −1/n Σ_i log softmax_j(s(q_i, k_j) / τ)[positives_i]`, j over all keys and negatives. With it one has ICT (dot,
    τ 1), Contriever's in-batch variant (dot, τ 0.05), DPR (dot, τ 1, keys in the order positive, hard negative, …),
    MoCo (one key a query with `forbidden`, negatives from a queue) and, symmetric, CLIP's form.

    Args:
        queries: anchors `[n, d]`.
        keys: candidates `[m, d]`.
        positives: place of each query's key, int64 `[n]`, on the processor or with the queries; default: query i has
            key i.
        temperature: τ, that similarities are divided by.
        similarity: `dot`, or `cos` of vectors that need not be normalised.
        negatives: further candidates `[b, d]` that are nobody's key.
        forbidden: marks keys that are no candidates of a query, bool `[n, m]`, where positives may be.
        symmetric: averages with the other direction, in which each positive key has all queries as candidates.
        label_smoothing: share of the target that is spread over all candidates.
        reduction: over anchors, `mean` or `sum`; or `none`.

    Returns:
        A scalar, or `[n]` without reduction; float32 or float64.

    Raises:
        ValueError: shapes that do not go together, τ ≤ 0, smoothing over forbidden keys; and, where they lie on the
            processor, a positive that is forbidden or out of range, or, where symmetric, one key of two queries.

    Source: van den Oord et al. 2018 (InfoNCE); Karpukhin et al. 2020 (DPR), eq. 2; Lee et al. 2019 (ICT), eq. 4.

    Example:
        >>> queries, keys = torch.eye(2), torch.eye(2)
        >>> info_nce(queries, keys, temperature=0.5)  # ln(1 + e⁻²)
        tensor(0.1269)
    """
    if not temperature > 0:
        raise ValueError(f"found temperature {temperature}, expected a number > 0")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"found reduction {reduction!r}, expected mean, sum or none")
    logits = similarities(queries, keys, similarity) / temperature  # [n, m]
    places = _places(positives, queries, keys)
    if forbidden is not None:
        if label_smoothing:
            raise ValueError(f"found label smoothing {label_smoothing} with forbidden keys, expected one of the two")
        if forbidden.shape != logits.shape or forbidden.dtype != torch.bool:
            raise ValueError(
                f"found forbidden {list(forbidden.shape)} of {forbidden.dtype}, expected {list(logits.shape)} of "
                "torch.bool"
            )
        own = torch.arange(len(queries)) if positives is None else positives
        if _on_host(forbidden, own) and bool(forbidden.gather(1, own[:, None]).any()):
            raise ValueError("found a positive among the forbidden keys, expected it among the candidates")
        logits = logits.masked_fill(to_device(forbidden, logits.device), float("-inf"))
    candidates = logits
    if negatives is not None:
        further = similarities(queries, negatives, similarity) / temperature
        candidates = torch.cat([logits, further], dim=1)  # [n, m + b]
    losses = functional.cross_entropy(candidates, places, reduction="none", label_smoothing=label_smoothing)
    if symmetric:
        if positives is not None and _on_host(positives) and positives.unique().numel() != positives.numel():
            raise ValueError(f"found {positives.unique().numel()} keys for {len(places)} queries, expected one each")
        back = logits[:, places].T  # [n, n]: row i are the queries as candidates of query i's key
        anchors = torch.arange(len(places), device=places.device)
        returned = functional.cross_entropy(back, anchors, reduction="none", label_smoothing=label_smoothing)
        losses = (losses + returned) / 2
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.mean()


def paired_info_nce(
    rows: torch.Tensor, *, temperature: float = 1.0, similarity: Similarity = "dot", reduction: Reduction = "mean"
) -> torch.Tensor:
    """Return the cross-entropy of each row's partner among all other rows.

    Args:
        rows: `[2n, d]`; 2i and 2i + 1 belong together.
        temperature: what similarities are divided by.
        similarity: `dot` or `cos`.
        reduction: over rows, `mean`, `sum` or `none`.

    Returns:
        A scalar, or `[2n]` without reduction.

    Raises:
        ValueError: an odd number of rows, or as `info_nce` does.

    Source: Gao and Callan 2022 (coCondenser, arXiv 2108.05540), as in luyug/Condenser.

    Example:
        >>> paired_info_nce(torch.tensor([[1.0], [1.0], [-1.0], [-1.0]]))  # ln(1 + 2e⁻²)
        tensor(0.2395)
    """
    if rows.ndim != 2 or len(rows) % 2 or not len(rows):
        raise ValueError(f"found rows {list(rows.shape)}, expected [2n, d]")
    partners = torch.arange(len(rows), device=rows.device) ^ 1  # 0 ↔ 1, 2 ↔ 3, …
    diagonal = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    return info_nce(
        rows, rows, partners, temperature=temperature, similarity=similarity, forbidden=diagonal, reduction=reduction
    )


def xtreme_r(
    queries: torch.Tensor,
    passages: torch.Tensor,
    scale: torch.Tensor,
    positives: torch.Tensor | None = None,
    *,
    forbidden: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the cross-entropy of each question's passage in the batch, over cosines times a learnable scale.

    `L = −1/n Σ_i log softmax_j(scale · cos(q_i, p_j))[positives_i]`; the scale is neither clamped nor a logarithm.

    Queries `[n, d]` and passages `[m, d]` are pooled, not normalised; gradients reach the scale, a scalar. Positives,
    forbidden passages (`copies`) and errors are those of `info_nce`.

    Source: Ruder et al. 2021 (XTREME-R), as google-research/xtreme computes it.
    """
    scaled = functional.normalize(wide(queries), dim=1, eps=_TINY) * scale
    unit = functional.normalize(wide(passages), dim=1, eps=_TINY)
    return info_nce(scaled, unit, positives, forbidden=forbidden)


@torch.no_grad()
def sharpness(logits: torch.Tensor) -> dict[str, float]:
    """Return how sharp a softmax is, averaged over its rows, as the sign *temperature* judges it.

    `sharpest` is the highest probability, `candidates` how many of `[n, m]` are not −inf. It waits for the device, so
    it is for logged steps alone.

    Example:
        >>> sharpness(torch.tensor([[0.0, 0.0], [0.0, float("-inf")]]))
        {'sharpest': 0.75, 'candidates': 1.5}
    """
    highest, counted = logits.softmax(1).amax(1).mean(), (logits > float("-inf")).sum(1).float().mean()
    sharpest, candidates = torch.stack([highest, counted.to(highest.dtype)]).tolist()
    return {"sharpest": sharpest, "candidates": candidates}


def copies(texts: torch.Tensor, positives: torch.Tensor) -> torch.Tensor:
    """Return which contexts `[m]` have the text (by its number) of a question's positive `[n]`, bool `[n, m]`."""
    equal = texts[positives][:, None] == texts[None]
    return equal.scatter(1, positives[:, None], value=False)


def _places(positives: torch.Tensor | None, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Return the place of each query's key, `[n]`, checked."""
    n, m = len(queries), len(keys)
    if positives is None:
        if n > m:
            raise ValueError(f"found {n} queries and {m} keys, expected a key for each query")
        return torch.arange(n, device=queries.device)
    if list(positives.shape) != [n]:
        raise ValueError(f"found positives {list(positives.shape)} for {n} queries, expected [{n}]")
    low, high = (int(positives.min()), int(positives.max())) if n and _on_host(positives) else (0, 0)
    if low < 0 or high >= m:
        raise ValueError(f"found positives {low} to {high}, expected 0 to {m - 1}")
    return to_device(positives, queries.device)


def _on_host(*tensors: torch.Tensor) -> bool:
    """Return whether values can be checked without waiting for a device."""
    return all(tensor.device.type == "cpu" for tensor in tensors)
