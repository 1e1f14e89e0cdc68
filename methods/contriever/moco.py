"""Momentum contrast: a slow copy of the encoder makes keys, and a queue keeps those of earlier steps."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import nn

from bench import UsageError
from bench.training import (
    PairBatch,
    Ring,
    TrainableEncoder,
    deviation,
    follow,
    gather,
    in_float64,
    sharpness,
    twin,
    weight,
    world_size,
)
from methods.contriever import ContrieverConfig
from methods.contriever.loss import moco_logits, normed, own_first, same_language


class Moco:
    """The loss, with what it keeps between steps.

    The slow copy moves after each step, once however many batches it accumulates; that of the reference, between
    queries and keys, is the same.

    Args:
        config: queue, momentum and temperature.
        encoder: makes queries; a copy of it makes keys.
        languages: codes of the corpus's languages.

    Raises:
        UsageError: the keys of a step do not divide the queue.

    Source: He et al. 2020 (MoCo), algorithm 1; Izacard et al. 2022 (Contriever).
    """

    def __init__(self, config: ContrieverConfig, encoder: TrainableEncoder, languages: Sequence[str]) -> None:
        added = config.added * world_size()
        if config.queue % added:
            raise UsageError(
                f"queue is {config.queue}, and {world_size()} processes add {added} keys a step, which does not divide "
                f"it; type --set method.queue={max(1, round(config.queue / added)) * added}"
            )
        self._config, self._encoder = config, encoder
        self._languages = list(languages)
        self.key = twin(encoder)
        self.queue = Ring(config.queue, encoder.model.config.hidden_size).fill_randomly()  # negatives from step 1 on
        self.queue.tags.fill_(len(languages))  # of no language
        self.modules = nn.ModuleDict({"key": self.key.model, "queue": self.queue})
        self._fresh: list[tuple[torch.Tensor, torch.Tensor]] = []

    def loss(
        self, encode: TrainableEncoder, pairs: PairBatch
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Return the loss of each query's key among those of the queue, and what makes the values to log.

        Args:
            encode: the encoder that is trained.
            pairs: n pairs, the left views as queries.
        """
        config = self._config
        queries = normed(encode(pairs.left), config.norm_query)  # [n, d]
        self.key.model.train(config.key_dropout)
        with torch.no_grad():
            keys = normed(self.key(pairs.right), config.norm_doc)  # [n, d]
        logits = moco_logits(queries, keys, self.queue.rows, temperature=config.temperature)
        encode.meter.multiplied(logits.numel() * queries.shape[1])
        tags = torch.tensor([self._languages.index(language) for language in pairs.languages])
        self._fresh.append((keys, tags))
        metrics = partial(self.metrics, queries.detach(), keys, logits.detach(), tags)
        return own_first(logits, config.label_smoothing) * weight(len(queries)), metrics

    def metrics(
        self, queries: torch.Tensor, keys: torch.Tensor, logits: torch.Tensor, tags: torch.Tensor
    ) -> Mapping[str, float]:
        """Return what is logged of queries and keys `[n, d]` and logits `[n, 1 + K]`; names as in `SIGNS`."""
        mass, share = same_language(logits, tags, self.queue.tags)
        return {
            "accuracy": float((logits[:, :1] > logits[:, 1:]).all(1).float().mean()),
            **sharpness(logits),
            "query_deviation": deviation(queries),
            "key_deviation": deviation(keys),
            "same_language_mass": mass,
            "same_language_share": share,
        }

    def after_step(self, step: int) -> None:
        """Let the copy follow; put the step's keys, of all processes, into the queue, the oldest of which leave."""
        follow(self.key.model, self._encoder.model, self._config.momentum)
        rows, tags = (torch.cat(part) for part in zip(*self._fresh, strict=True))
        self._fresh.clear()
        self.queue.push(gather(rows), gather(tags))

    def probe(self) -> Mapping[str, float]:
        """Return how far behind the copy is (`‖θ_q − θ_k‖ / ‖θ_q‖`), and the share of keys in the queue."""
        filled = float((self.queue.tags < len(self._languages)).float().mean())  # random rows are of no language
        return {"drift": drift(self.key.model, self._encoder.model), "queue_filled": filled}


@torch.no_grad()
def drift(slow: nn.Module, fast: nn.Module) -> float:
    """Return `‖θ_fast − θ_slow‖ / ‖θ_fast‖`, over all weights, in float64."""
    pairs = list(zip(slow.parameters(), fast.parameters(), strict=True))
    distances = torch.stack([in_float64(slow_weights - fast_weights).norm() for slow_weights, fast_weights in pairs])
    norms = torch.stack([in_float64(fast_weights).norm() for _, fast_weights in pairs])
    return float(distances.norm() / norms.norm())
