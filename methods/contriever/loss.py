"""Contriever's loss: a query's key against a queue of earlier ones."""

import torch
from torch.nn import functional

from bench.training import similarities, to_device

_TINY = 1e-12  # of a norm, below which a vector counts as zero


def normed(rows: torch.Tensor, unit: bool) -> torch.Tensor:
    """Return rows `[n, d]` in float32 or float64, scaled to unit length if `unit`."""
    wide = rows.float() if rows.dtype in (torch.float16, torch.bfloat16) else rows
    return functional.normalize(wide, dim=1, eps=_TINY) if unit else wide


def moco_logits(queries: torch.Tensor, keys: torch.Tensor, queue: torch.Tensor, *, temperature: float) -> torch.Tensor:
    """Return the logits of every query: `[q·k⁺, q·queue_1 … q·queue_K] / τ`.

    Args:
        queries: `[n, d]`.
        keys: each query's own, `[n, d]`, without gradient; other queries' keys are no candidates.
        queue: keys of earlier steps, `[K, d]`, without gradient.
        temperature: τ.

    Returns:
        `[n, 1 + K]`, the own key in column 0.

    Raises:
        ValueError: shapes that do not match, or τ ≤ 0.

    Source: Izacard et al. 2022 (Contriever), eq. 1, with the logarithm that it lacks; facebookresearch/contriever.
    """
    if queries.shape != keys.shape:
        raise ValueError(f"found queries {list(queries.shape)} and keys {list(keys.shape)}, expected a key a query")
    if not temperature > 0:
        raise ValueError(f"found temperature {temperature}, expected a number > 0")
    positives = (queries * keys.detach()).sum(1, keepdim=True)  # [n, 1]
    return torch.cat([positives, similarities(queries, queue.detach())], dim=1) / temperature


def own_first(logits: torch.Tensor, label_smoothing: float = 0.0) -> torch.Tensor:
    """Return `−1/n Σ_i log softmax(logits_i)[0]`, a scalar.

    Args:
        logits: `[n, 1 + K]`, the positive in column 0.
        label_smoothing: share of the target that is spread over all columns.
    """
    first = torch.zeros(len(logits), dtype=torch.int64, device=logits.device)
    return functional.cross_entropy(logits, first, label_smoothing=label_smoothing)


def same_language(logits: torch.Tensor, tags: torch.Tensor, queue_tags: torch.Tensor) -> tuple[float, float]:
    """Return the share of negatives of the query's language in the softmax over negatives, and in their number.

    Vectors encode the language where the first is near 1 and the second small.

    Args:
        logits: as of `moco_logits`, `[n, 1 + K]`.
        tags: languages of the queries, `[n]`.
        queue_tags: languages of the queue's keys, `[K]`.
    """
    matches = to_device(tags, logits.device)[:, None] == to_device(queue_tags, logits.device)  # [n, K]
    mass = torch.softmax(logits.detach()[:, 1:], dim=1)
    return float((mass * matches).sum(1).mean()), float(matches.float().mean())
