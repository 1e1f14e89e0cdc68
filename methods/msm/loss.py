"""MSM's loss: each sentence among two kinds of others, those of its own document down-weighted by a bias."""

from typing import Literal

import torch
from torch.nn import functional

from bench.training import similarities

Mode = Literal["balanced", "cross_only"]
Reduction = Literal["mean", "none"]


def gap(logits: torch.Tensor, intra: torch.Tensor, cross: torch.Tensor) -> torch.Tensor:
    """Return by how much more similar each query is to its own document's other sentences than to other documents'.

    `α_i = mean_{j∈I(i)} l_ij − mean_{j∈C(i)} l_ij` (eq. 2), `[n]`, without gradient; 0 where either set is empty.
    Logits are similarities over the temperature; `intra` and `cross` mark I(i), other sentences of the same document,
    and C(i), those of other documents; all are `[n, m]`.

    Source: MSM (arXiv 2302.01626), eq. 2; that it is taken per query is from its code.
    """
    fixed = logits.detach()
    inside, outside = intra.sum(1), cross.sum(1)
    alpha = (fixed * intra).sum(1) / inside.clamp(min=1) - (fixed * cross).sum(1) / outside.clamp(min=1)
    return torch.where((inside > 0) & (outside > 0), alpha, torch.zeros_like(alpha))


def hierarchical_nce(
    logits: torch.Tensor,
    positives: torch.Tensor,
    intra: torch.Tensor,
    cross: torch.Tensor,
    *,
    mu: float = 0.5,
    mode: Mode = "balanced",
) -> torch.Tensor:
    """Return `−log e^{l_ii} / (e^{l_ii} + Σ_I e^{l_ij − μα_i} + Σ_C e^{l_ij})` of each query, `[n]`.

    Args:
        logits: similarities over the temperature, `[n, m]`.
        positives: places of the queries' keys, int64 `[n]`.
        intra: marks I, as in `gap`, bool `[n, m]`.
        cross: marks C; what is in neither is no candidate.
        mu: μ, how much of the gap α is taken off the logits of I.
        mode: `balanced`; or `cross_only`, in which I is no candidate either.

    Raises:
        ValueError: an unknown mode.

    Source: MSM (arXiv 2302.01626), eq. 1, as its code computes it.
    """
    return functional.cross_entropy(
        adjusted(logits, positives, intra, cross, mu=mu, mode=mode), positives, reduction="none"
    )


def adjusted(
    logits: torch.Tensor, positives: torch.Tensor, intra: torch.Tensor, cross: torch.Tensor, *, mu: float, mode: Mode
) -> torch.Tensor:
    """Return the logits of `hierarchical_nce`'s softmax, `[n, m]`: near ones let off, −inf what is no candidate."""
    if mode not in ("balanced", "cross_only"):
        raise ValueError(f"found mode {mode!r}, expected balanced or cross_only")
    lowered = torch.where(intra, logits - mu * gap(logits, intra, cross)[:, None], logits)
    positive = _positive_mask(positives, logits.shape[1])
    candidates = positive | cross | intra if mode == "balanced" else positive | cross
    return lowered.masked_fill(~candidates, float("-inf"))


def msm_loss(
    queries: torch.Tensor,
    keys: torch.Tensor,
    documents: torch.Tensor,
    key_documents: torch.Tensor | None = None,
    *,
    first: int = 0,
    temperature: float = 0.1,
    mu: float = 0.5,
    mode: Mode = "balanced",
    valid: torch.Tensor | None = None,
    reduction: Reduction = "mean",
) -> torch.Tensor:
    """Return `hierarchical_nce` of predictions of masked sentences, over cosines.

    Args:
        queries: predictions, `[n, d]`.
        keys: sentences, `[m, d]`; that of query i is row `first + i`.
        documents: number of each query's document, int64 `[n]`.
        key_documents: number of each key's document, int64 `[m]`; default: keys are the queries' own, row by row.
        first: place of the first query's key.
        temperature: what cosines are divided by.
        mu: μ, as in `hierarchical_nce`.
        mode: as in `hierarchical_nce`.
        valid: rows that are no padding, bool `[n]`, where keys are of one process; default: all.
        reduction: over queries, `mean` or `none`.

    Returns:
        A scalar, 0 without queries; or, without reduction, `[valid rows]`.

    Raises:
        ValueError: τ ≤ 0, an unknown mode or reduction, or padding with gathered keys.
    """
    if not temperature > 0:
        raise ValueError(f"found temperature {temperature}, expected a number > 0")
    if reduction not in ("mean", "none"):
        raise ValueError(f"found reduction {reduction!r}, expected mean or none")
    if valid is not None:
        if key_documents is not None:
            raise ValueError("found padding with gathered keys, expected rows without padding to be gathered")
        queries, keys, documents = queries[valid], keys[valid], documents[valid]  # selected: NaN there changes nothing
    logits = similarities(queries, keys, "cos") / temperature  # [n, m]
    positives = first + torch.arange(len(queries), device=queries.device)
    intra, cross = relations(documents, documents if key_documents is None else key_documents, positives)
    losses = hierarchical_nce(logits, positives, intra, cross, mu=mu, mode=mode)
    if reduction == "none":
        return losses
    return losses.mean() if len(losses) else losses.sum()


def relations(
    documents: torch.Tensor, key_documents: torch.Tensor, positives: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which keys are of a query's document, and which of others; the positive is in neither.

    Args:
        documents: of the queries, int64 `[n]`.
        key_documents: of the keys, int64 `[m]`.
        positives: places of the queries' keys, int64 `[n]`.

    Returns:
        I and C, bool `[n, m]`.
    """
    same_document = documents[:, None] == key_documents[None]
    positive = _positive_mask(positives, len(key_documents))
    return same_document & ~positive, ~same_document & ~positive


def _positive_mask(positives: torch.Tensor, keys: int) -> torch.Tensor:
    return positives[:, None] == torch.arange(keys, device=positives.device)
