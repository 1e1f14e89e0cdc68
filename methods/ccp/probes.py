"""CCP's own probes: stale bank rows, statistics that leak, vectors that encode the language."""

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch.nn import functional

from bench.training import HostBuffers, Ids, PairBatch, TrainableEncoder, accuracy
from methods.ccp.head import ViewsHead

WITNESSES = 16
"""Texts whose rows are compared with what the encoder makes of them later."""


class BankStalenessProbe(HostBuffers):
    """Some texts and the rows that the bank has of them, until these are the bank's oldest.

    Args:
        tokens: of the longest text.
        width: of a row.
        capacity: of the bank.
    """

    on_host = ("ids", "lengths", "age")
    ids: torch.Tensor
    lengths: torch.Tensor
    rows: torch.Tensor
    age: torch.Tensor

    def __init__(self, tokens: int, width: int, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.register_buffer("ids", torch.zeros(WITNESSES, tokens, dtype=torch.int64))
        self.register_buffer("lengths", torch.zeros(WITNESSES, dtype=torch.int64))
        self.register_buffer("rows", torch.zeros(WITNESSES, width))
        self.register_buffer("age", torch.full((), capacity, dtype=torch.int64))

    @torch.no_grad()
    def pushed(self, texts: Sequence[Ids], rows: torch.Tensor, count: int) -> None:
        """Note that `count` rows were pushed into the bank, among them `rows` `[n, d]` of some texts."""
        self.age += count
        if int(self.age) <= self.capacity:
            return
        self.age.zero_()
        self.lengths.zero_()
        for at, text in enumerate(texts[:WITNESSES]):
            self.ids[at, : len(text)] = torch.as_tensor(np.asarray(text, np.int64))
            self.lengths[at] = len(text)
        count = len(texts[:WITNESSES])
        self.rows[:count] = rows[:count]

    def agreement(self, encode: TrainableEncoder, project: Callable[[torch.Tensor], torch.Tensor]) -> float | None:
        """Return the mean cosine of the rows and what their texts are now; None before the first push."""
        lengths = self.lengths.tolist()
        texts = [ids[:length] for ids, length in zip(self.ids.numpy(), lengths, strict=True) if length]
        if not texts:
            return None
        current = project(encode(texts))
        return float(functional.cosine_similarity(current, self.rows[: len(texts)]).mean())


def leak(head: ViewsHead, first: torch.Tensor, second: torch.Tensor) -> float:
    """Return how much more accurate projections `[n, d]` are by batch than by running statistics, which stay."""
    by_batch = copy.deepcopy(head.project)
    return accuracy(by_batch(first), by_batch(second)) - accuracy(head.still(first), head.still(second))


def language_accuracy(rows: Sequence[torch.Tensor]) -> float:
    """Return how often a row is nearest to the mean (of every other row) of its own language `[n, d]`."""
    unit = [functional.normalize(vectors.detach(), dim=1) for vectors in rows]
    means = functional.normalize(torch.stack([vectors[::2].mean(0) for vectors in unit]), dim=1)  # [languages, d]
    right = [(vectors[1::2] @ means.T).argmax(1) == at for at, vectors in enumerate(unit)]
    return float(torch.stack([vectors.float().mean() for vectors in right]).mean())


def evaluate_probes(
    encode: TrainableEncoder,
    held_out: Sequence[PairBatch],
    head: ViewsHead | None,
    witnesses: BankStalenessProbe | None,
) -> dict[str, float]:
    """Measure held-out pairs and witnesses.

    Args:
        encode: the encoder that is trained.
        held_out: pairs that are never trained on, a batch a language.
        head: the projection head; None: vectors are compared as they are.
        witnesses: texts whose rows are in the bank; None: there is no bank.

    Returns:
        language_accuracy, bn_leak and bank_agreement, as far as they apply; names as in `bench.training.probes.SIGNS`.
    """
    project = head.still if head is not None else lambda rows: rows
    metrics: dict[str, float] = {}
    views = [encode.encode_views(pairs) for pairs in held_out]
    if len(views) > 1:
        metrics["language_accuracy"] = language_accuracy([project(first) for first, _ in views])
    if views and head is not None and head.norm != "none":
        metrics["bn_leak"] = sum(leak(head, first, second) for first, second in views) / len(views)
    agreement = witnesses.agreement(encode, project) if witnesses is not None else None
    return metrics if agreement is None else {**metrics, "bank_agreement": agreement}
