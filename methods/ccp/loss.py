"""CCP's loss: a sentence's partner among all sentences of its language, in the batch and in the bank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from bench.training import similarities


@dataclass(frozen=True)
class Contrast:
    """A batch's loss and what it is made of.

    Args:
        loss: a scalar.
        terms: one for every anchor and each of its partners, `[t]`, anchors in order, then partners in order.
        logits: of every anchor and candidate, `[a, m + b]`, batch before bank; −inf where it is no candidate.
    """

    loss: torch.Tensor
    terms: torch.Tensor
    logits: torch.Tensor


def ccp_loss(
    z: torch.Tensor,
    windows: torch.Tensor,
    languages: torch.Tensor,
    *,
    temperature: float = 0.1,
    bank: torch.Tensor | None = None,
    bank_languages: torch.Tensor | None = None,
    l2_norm: bool = True,
    inbatch_cross_language: bool = False,
    bank_language_specific: bool = True,
    reduction: Literal["mean", "sum"] = "mean",
    anchors: torch.Tensor | None = None,
) -> Contrast:
    """Return the loss of each row's partner among all candidates.

    `l(a, b) = −s(z_a, z_b)/τ + log Σ_{k ∈ D(a)} exp s(z_a, z_k)/τ`; D(a) are the other rows of a's language and the
    bank rows of a's language. L is the mean over all ordered pairs (a, b) of one window. A further partner of `a`
    stays in D(a), as the paper's indicator takes out `a` alone.

    Args:
        z: projections of both views, `[m, d]`.
        windows: number of each row's window, int64 `[m]`; rows of the same one belong together.
        languages: number of each row's language, int64 `[m]`.
        temperature: τ > 0.
        bank: earlier projections, `[b, d]`; they get no gradient. Rows that no anchor may see are never touched.
        bank_languages: of the bank's rows, `[b]`.
        l2_norm: s is the cosine; otherwise the inner product.
        inbatch_cross_language: other rows of every language are in D(a) (the printed formula).
        bank_language_specific: otherwise D(a) has bank rows of every language.
        reduction: of the terms.
        anchors: places of the rows that ask, int64 `[a]`; None: all. Mean and sum are over the terms of these alone.

    Raises:
        ValueError: shapes that do not go together, τ ≤ 0, or no two rows of one window.

    Source: CCP (arXiv 2206.03281), eq. 1 to 4 and algorithm 1; the mean and the mask over languages as in methods.md.
    """
    if not temperature > 0:
        raise ValueError(f"found temperature {temperature}, expected a number > 0")
    rows = len(z)
    if list(windows.shape) != [rows] or list(languages.shape) != [rows]:
        raise ValueError(f"found windows {list(windows.shape)}, languages {list(languages.shape)}, expected [{rows}]")
    asking = torch.arange(rows, device=z.device) if anchors is None else anchors
    own, place = languages[asking, None], torch.arange(rows, device=z.device)
    forbidden = asking[:, None] == place  # [a, m]
    partners = (windows[asking, None] == windows) & ~forbidden
    if not inbatch_cross_language:
        forbidden = forbidden | (own != languages)
    candidates = z
    if bank is not None and len(bank):
        if bank_languages is None or list(bank_languages.shape) != [len(bank)]:
            shape = None if bank_languages is None else list(bank_languages.shape)
            raise ValueError(f"found bank_languages {shape}, expected [{len(bank)}]")
        tags = bank_languages
        kept = bank.detach().to(z.dtype)
        if bank_language_specific:  # rows that nobody sees are left out before any arithmetic
            seen = torch.isin(tags, own)
            kept, tags = kept[seen], tags[seen]
        candidates = torch.cat([z, kept])
        hidden = (own != tags) if bank_language_specific else torch.zeros(len(asking), len(tags)).bool().to(z.device)
        forbidden = torch.cat([forbidden, hidden], dim=1)  # [a, m + b]
    compared = similarities(z[asking], candidates, "cos" if l2_norm else "dot") / temperature
    logits = compared.masked_fill(forbidden, float("-inf"))
    terms = (logits.logsumexp(dim=1, keepdim=True) - compared[:, :rows])[partners]  # [t]
    if not len(terms):
        raise ValueError("found no two rows of one window, expected at least one pair")
    return Contrast(terms.sum() if reduction == "sum" else terms.mean(), terms, logits)


@torch.no_grad()
def masses(
    logits: torch.Tensor, rows: int, views: torch.Tensor, languages: torch.Tensor, asking: torch.Tensor
) -> dict[str, float]:
    """Return where the softmax of each anchor lies, averaged over anchors.

    Args:
        logits: of `Contrast`, `[a, m + b]`.
        rows: m.
        views: of the rows, `[m]`, 0 or 1.
        languages: of the rows, `[m]`.
        asking: places of the anchors among the rows, `[a]`.

    Returns:
        `in_batch_mass`, on rows of this batch; `other_view_mass`, on rows of the batch's other view; `sharpest`, the
        highest probability; `candidates`, how many there are; and `same_language_mass`, of the mass in the batch what
        lies on the anchor's language, where the batch has other candidates.
    """
    shares = logits.softmax(dim=1)  # [a, m + b]
    batch = shares[:, :rows]
    same = languages[asking, None] == languages
    found = {
        "in_batch_mass": float(batch.sum(1).mean()),
        "other_view_mass": float((batch * (views[asking, None] != views)).sum(1).mean()),
        "sharpest": float(shares.amax(1).mean()),
        "candidates": float((logits > float("-inf")).sum(1).float().mean()),
    }
    if bool((~same & (logits[:, :rows] > float("-inf"))).any()):
        found["same_language_mass"] = float(((batch * same).sum(1) / batch.sum(1)).mean())
    return found
