"""Auto-MLM's contrastive losses. Eq. 7 is `bench.training.mlm.masked_prediction` with vectors.

Conventions: n anchors, m ≥ n candidates (those of all processes), d dimensions; `first + i` is anchor i's own one.
"""

from typing import Literal

import torch
from torch.nn import functional

from bench.training import similarities


def hinge(
    anchors: torch.Tensor,
    candidates: torch.Tensor,
    *,
    margin: float = 0.1,
    sign: Literal["standard", "printed"] = "standard",
    first: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the hinge loss of anchors among candidates, and how many hinges are active.

    `L = 1/n Σ_i Σ_{j≠i} max(0, margin + cos(a_i, u_j) − cos(a_i, u_i))`

    Args:
        anchors: `[n, d]`.
        candidates: `[m, d]`.
        margin: by how much the positive must win, in cosines.
        sign: `standard`; or `printed`, a margin with a minus sign, of which one vector for all texts is a global
            optimum, with loss 0.
        first: place of the first anchor's own candidate; those of the others follow.

    Returns:
        A scalar, 0 without negatives; and the share of hinges above 0, a scalar too.

    Raises:
        ValueError: an anchor without its own candidate.

    Source: Auto-MLM (arXiv 2203.16187), eq. 6, the sum from the first pair on.
    """
    cosines = similarities(anchors, candidates, "cos")  # [n, m]
    targets = _target_places(cosines, first)
    gap = cosines - cosines.gather(1, targets[:, None]) + (margin if sign == "standard" else -margin)
    losses = gap.clamp(min=0).scatter(1, targets[:, None], 0.0)
    negatives = cosines.numel() - len(cosines)
    return losses.sum() / len(losses), (losses.detach() > 0).sum() / max(1, negatives)


def additive_margin(
    sources: torch.Tensor,
    partners: torch.Tensor,
    *,
    margin: float,
    scale: float,
    gathered: tuple[torch.Tensor, torch.Tensor] | None = None,
    first: int = 0,
) -> torch.Tensor:
    """Return the cross-entropy of each text's partner less a margin, summed over both directions.

    `L = Σ over both directions of −1/n Σ_i log softmax_j(scale · (cos(x_i, y_j) − margin·[j = i]))[i]`

    Args:
        sources: `[n, d]`.
        partners: `[n, d]`, row i that of source i.
        margin: what a partner's cosine is lowered by.
        scale: what cosines are multiplied by.
        gathered: sources and partners of all processes, `[m, d]` each, as candidates; default: the own ones.
        first: place of this process's first row among the gathered ones.

    Returns:
        A scalar.

    Source: Feng et al. 2022 (LaBSE), eq. 1 to 3; Yang et al. 2019.
    """
    all_sources, all_partners = gathered or (sources, partners)
    losses = []
    for anchors, candidates in ((sources, all_partners), (partners, all_sources)):
        cosines = similarities(anchors, candidates, "cos")  # [n, m]
        targets = _target_places(cosines, first)
        margins = torch.zeros_like(cosines).scatter(1, targets[:, None], margin)
        losses.append(functional.cross_entropy(scale * (cosines - margins), targets))
    return losses[0] + losses[1]


def together(ctl: torch.Tensor, prediction: torch.Tensor, weight: float) -> torch.Tensor:
    """Return `L = L_ctl + λ · L_automlm`, all scalars. Source: Auto-MLM (arXiv 2203.16187), eq. 8."""
    return ctl + weight * prediction


def _target_places(cosines: torch.Tensor, first: int) -> torch.Tensor:
    """Return the place of each anchor's own candidate, `[n]`; raise `ValueError` if there are too few candidates."""
    n, m = cosines.shape
    if first < 0 or first + n > m:
        raise ValueError(f"found {m} candidates for {n} anchors whose own begin at {first}, expected one each")
    return torch.arange(first, first + n, device=cosines.device)
