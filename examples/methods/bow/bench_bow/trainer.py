"""Bag-of-words prediction on one page: masked stretches → states → hidden tokens, and the words of the whole text."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from torch.nn import functional

from bench import Workspace
from bench.training import (
    CorpusTrainer,
    Facts,
    Masked,
    MaskedBlocks,
    MlmHead,
    Shards,
    Spent,
    TrainableEncoder,
    TrainingJob,
    fit,
    masked_prediction,
    to_device,
    weight,
)
from bench_bow import BowConfig


def bags(masked: Masked, special: frozenset[int]) -> list[list[int]]:
    """Return the distinct ids of each text before any was hidden, without special ones, ascending."""
    texts = [np.array(ids) for ids in masked.inputs]
    for sequence, place, target in zip(masked.sequence, masked.place, masked.targets, strict=True):
        texts[sequence][place] = target
    return [sorted({*text.tolist()} - special) for text in texts]


def bag_loss(logits: torch.Tensor, words: list[list[int]]) -> torch.Tensor:
    """Return −1/n Σ_i 1/|B_i| Σ_{w in B_i} log softmax(logits_i)_w, of logits `[n, v]` and the rows of each text's bag.

    Source: Ma et al. 2024 (arXiv 2401.11248), as in ma787639046/bowdpr.
    """
    owners = np.repeat(np.arange(len(words)), [len(bag) for bag in words])
    places = to_device(np.stack([owners, np.concatenate([np.asarray(bag, np.int64) for bag in words])]), logits.device)
    shares = np.concatenate([np.full(len(bag), 1 / len(bag)) for bag in words if bag])
    chances = functional.log_softmax(logits, dim=1)[places[0], places[1]]
    return -(chances * torch.from_numpy(shares).to(chances)).sum() / len(words)


class BowTrainer(CorpusTrainer[BowConfig]):
    """Goes on with masked language modelling, and presses the words of a text into its first token's vector."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw stretches of documents, hide some of their tokens, and run the loop."""
        head, spent = MlmHead.for_(encoder), Spent()
        blocks = MaskedBlocks(corpus, self.config, self.config.mlm, job.seed)
        loss = partial(self.loss, head, frozenset(corpus.special.values()), spent)
        return fit(loss, blocks, encoder, self.config, job, work, modules=head, spent=spent)

    def loss(
        self, head: MlmHead, special: frozenset[int], spent: Spent, encode: TrainableEncoder, masked: Masked
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Predict the hidden tokens of n stretches, and from the first token's state all words of each."""
        states, packed = encode.hidden(masked.inputs, -1)  # [T, d]
        rows, targets = to_device(
            np.stack([packed.first_rows[masked.sequence] + masked.place, encode.rows(masked.targets)]), encode.device
        )
        words = [encode.rows(np.asarray(bag, np.int64)).tolist() for bag in bags(masked, special)]
        count, width = encode.embeddings.shape
        encode.meter.multiplied((len(rows) + len(words)) * width * (width + count))
        with encode.autocast():
            hidden = masked_prediction(states[rows], targets, encode.embeddings, head.bias, head=head)
            firsts = head(states[packed.starts])  # [n, d]
            logits = functional.linear(firsts, encode.embeddings.to(firsts.dtype), head.bias.to(firsts.dtype))
        bag = bag_loss(logits.float(), words)
        scale = self.config.bow.at(spent.share)
        loss = hidden * weight(len(targets)) + scale * bag * weight(len(words))
        parts = torch.stack([hidden.detach(), bag.detach()])
        return loss, lambda: {"mlm_loss": float(parts[0]), "bow_loss": float(parts[1]), "bow_weight": scale}
