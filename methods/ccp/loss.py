"""CCP's loss: a sentence's partner among all sentences of its language, in the batch and in the bank."""

from dataclasses import dataclass
from typing import Literal

import torch

from bench.training import sharpness, similarities, to_device

_ALL = -2
"""In place of a candidate's language: anchors of every language see it."""


@dataclass(frozen=True)
class ContrastiveOutput:
    """A batch's loss and what it is made of."""

    loss: torch.Tensor  # a scalar
    terms: torch.Tensor  # one for every anchor and each of its partners, `[t]`, anchors in order, then partners
    logits: torch.Tensor  # of anchors and candidates, `[a, m + b]`, batch before bank; −inf where it is no candidate


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
    views: torch.Tensor | None = None,
) -> ContrastiveOutput:
    """Return the loss of each row's partner among all candidates.

    `l(a, b) = −s(z_a, z_b)/τ + log Σ_{k ∈ D(a)} exp s(z_a, z_k)/τ`; D(a) are the other rows of a's language and the
    bank rows of a's language. L is the mean over all ordered pairs (a, b) of one window. A further partner of `a`
    stays in D(a), as the paper's indicator takes out `a` alone.

    Args:
        z: projections of both views, `[m, d]`.
        windows: number of each row's window, int64 `[m]`, on the processor, as all that says who is compared.
        languages: number of each row's language, int64 `[m]`, from 0.
        temperature: τ.
        bank: rows of earlier batches, `[b, d]`; they get no gradient, and those that no anchor may see are not touched.
        bank_languages: their languages, int64 `[b]`, on the processor.
        l2_norm: whether s is the cosine; else it is the inner product.
        inbatch_cross_language: whether other rows of every language are in D(a), as the formula is printed.
        bank_language_specific: whether bank rows of other languages are no candidates.
        reduction: of the terms, `mean` or `sum`.
        anchors: places of the rows over whose terms the mean is taken, int64 `[a]`; default: all.
        views: of each row, int64 `[m]`, on the processor; rows of an anchor's own are no candidates. Default: they are.

    Raises:
        ValueError: shapes that do not match, τ ≤ 0, or no two rows of one window.

    Source: CCP (arXiv 2206.03281), eq. 1 to 4 and algorithm 1; the mean and the mask over languages as in methods.md.
    """
    if not temperature > 0:
        raise ValueError(f"found temperature {temperature}, expected a number > 0")
    rows = len(z)
    if list(windows.shape) != [rows] or list(languages.shape) != [rows]:
        raise ValueError(f"found windows {list(windows.shape)}, languages {list(languages.shape)}, expected [{rows}]")
    anchor_rows = torch.arange(rows) if anchors is None else anchors
    anchor_languages = languages[anchor_rows]
    partners = (windows[anchor_rows, None] == windows) & (anchor_rows[:, None] != torch.arange(rows))  # [a, m]
    pairs = partners.nonzero().T  # [2, t]: anchors in order, then partners
    if not pairs.numel():
        raise ValueError("found no two rows of one window, expected at least one pair")
    candidates, seen_by = z, torch.full_like(languages, _ALL) if inbatch_cross_language else languages  # [m]
    if bank is not None and len(bank):
        if bank_languages is None or list(bank_languages.shape) != [len(bank)]:
            shape = None if bank_languages is None else list(bank_languages.shape)
            raise ValueError(f"found bank_languages {shape}, expected [{len(bank)}]")
        tags = bank_languages if bank_language_specific else torch.full_like(bank_languages, _ALL)
        bank_rows = bank.detach().to(z.dtype)
        visible = torch.isin(tags, anchor_languages) | (tags == _ALL)
        if not bool(visible.all()):  # rows that no anchor may see are left out before any arithmetic
            bank_rows, tags = bank_rows[to_device(visible.nonzero()[:, 0], z.device)], tags[visible]
        candidates, seen_by = torch.cat([z, bank_rows]), torch.cat([seen_by, tags])  # [m + b, d], [m + b]
    places, owners, others = (to_device(part, z.device) for part in (anchor_rows, anchor_languages, seen_by))
    forbidden = ((owners[:, None] != others) & (others != _ALL)) | (
        places[:, None] == torch.arange(len(others), device=z.device)
    )  # [a, m + b]; no place in the bank is an anchor's own
    if views is not None:
        same_view = torch.nn.functional.pad(
            views[anchor_rows, None] == views, (0, len(others) - rows)
        )  # not the bank's
        forbidden = forbidden | to_device(same_view, z.device)
    compared = similarities(z[places], candidates, "cos" if l2_norm else "dot") / temperature
    logits = compared.masked_fill(forbidden, float("-inf"))
    anchor, partner = to_device(pairs, z.device)
    terms = (logits.logsumexp(dim=1, keepdim=True) - compared[:, :rows])[anchor, partner]  # [t]
    return ContrastiveOutput(terms.sum() if reduction == "sum" else terms.mean(), terms, logits)


@torch.no_grad()
def softmax_mass(
    logits: torch.Tensor, rows: int, views: torch.Tensor, languages: torch.Tensor, anchors: torch.Tensor
) -> dict[str, float]:
    """Return where the softmax of a batch lies, averaged over its anchors.

    Args:
        logits: those of `ContrastiveOutput`, `[a, m + b]`.
        rows: m, those of the batch.
        views: of each row of the batch, 0 or 1, `[m]`.
        languages: of each row of the batch, `[m]`.
        anchors: places of the anchors in the batch, `[a]`.

    Returns:
        in_batch_mass, on the rows of this batch; other_view_mass, on rows of the batch's other view; sharpest, the
        highest probability; candidates, how many there are; and same_language_mass, of the mass in the batch what lies
        on the anchor's language, where the batch has other candidates.
    """
    views, languages, anchors = (to_device(part, logits.device) for part in (views, languages, anchors))
    shares = logits.softmax(dim=1)  # [a, m + b]
    batch = shares[:, :rows]
    same_language = languages[anchors, None] == languages
    metrics = {
        "in_batch_mass": float(batch.sum(1).mean()),
        "other_view_mass": float((batch * (views[anchors, None] != views)).sum(1).mean()),
        **sharpness(logits),
    }
    if bool((~same_language & (logits[:, :rows] > float("-inf"))).any()):
        metrics["same_language_mass"] = float(((batch * same_language).sum(1) / batch.sum(1)).mean())
    return metrics
