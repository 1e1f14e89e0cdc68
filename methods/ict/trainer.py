"""The inverse cloze task on one page: sentences and blocks → forward → projection → loss."""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import nn

from bench import Workspace
from bench.training import (
    CorpusTrainer,
    Facts,
    Shards,
    TrainableEncoder,
    TrainingJob,
    candidates,
    fit,
    info_nce,
    sharpness,
    similarities,
    weight,
)
from methods.ict import IctConfig
from methods.ict.views import Clozes, SentencesOfBlocks


def projection(width: int, out: int, dropout: float) -> nn.Module:
    """Make dense → LayerNorm → dropout, `[n, width]` → `[n, out]`. Source: google-research/language, orqa."""
    return nn.Sequential(nn.Linear(width, out), nn.LayerNorm(out), nn.Dropout(dropout))


class IctTrainer(CorpusTrainer[IctConfig]):
    """Trains an encoder to find the block that a sentence was taken from."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw sentences and their blocks, and run the loop."""
        config = self.config
        head = projection(encoder.model.config.hidden_size, config.projection_dim, config.projection_dropout)
        clozes = SentencesOfBlocks(corpus, config, job.seed)
        return fit(partial(self.loss, head), clozes, encoder, config, job, work, modules=head)

    def loss(
        self, head: nn.Module, encode: TrainableEncoder, clozes: Clozes
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Return the loss of each sentence's block among all: `−1/n Σ_i log softmax_j(q_i·b_j)[i]`, one direction."""
        vectors = torch.cat(encode.encode_views(clozes))  # [2n, d]
        sentences, blocks = head(vectors).chunk(2)  # each [n, p]
        all_blocks, places = candidates(blocks)  # [m, p], [n]
        encode.meter.multiplied(vectors.numel() * blocks.shape[1] + len(sentences) * all_blocks.numel())
        loss = info_nce(sentences, all_blocks, places, temperature=self.config.temperature)
        fixed = sentences.detach(), all_blocks.detach()

        def metrics() -> dict[str, float]:
            found = accuracies(*fixed, places, torch.from_numpy(clozes.removed))
            return {**found, **sharpness(similarities(*fixed) / self.config.temperature)}

        return loss * weight(len(sentences)), metrics  # examples are dropped, so processes may have different numbers


def accuracies(
    sentences: torch.Tensor, blocks: torch.Tensor, places: torch.Tensor, removed: torch.Tensor
) -> dict[str, float]:
    """Return the share of sentences nearest to their blocks; ties are misses.

    The encoder only finds copies where the unmasked one is near 1 while the masked one stays at chance.

    Args:
        sentences: projections, `[n, p]`.
        blocks: projections of all candidates, `[m, p]`.
        places: each sentence's own block among them, int64 `[n]`.
        removed: whether a sentence was taken out of its block, bool `[n]`.

    Returns:
        masked_accuracy, of the removed sentences, unmasked_accuracy, of the others (each where there are such), and
        block_chance.
    """
    scores = similarities(sentences, blocks)  # [n, m]
    rivals = scores >= scores.gather(1, places[:, None])
    hits = (rivals.sum(1) == 1).cpu()  # itself alone
    parts = {"masked_accuracy": hits[removed], "unmasked_accuracy": hits[~removed]}
    metrics = {name: float(part.float().mean()) for name, part in parts.items() if len(part)}
    return {**metrics, "block_chance": 1 / len(blocks)}
