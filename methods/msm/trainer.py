"""MSM on one page: blocks → sentences → predictions from their documents → loss; other batches mask tokens."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from torch import nn

from bench import Workspace
from bench.training import (
    BatchSource,
    CorpusTrainer,
    Facts,
    Masked,
    MaskedBlocks,
    MixtureSource,
    MlmHead,
    Shape,
    Shards,
    TrainableEncoder,
    TrainingJob,
    accuracy,
    fit,
    gather,
    logged,
    mlm_loss,
    offset,
    sharpness,
    similarities,
    to_device,
    weight,
)
from methods.msm import MsmConfig
from methods.msm.blocks import Blocks, DocumentBlocks
from methods.msm.loss import adjusted, msm_loss, relations
from methods.msm.model import Copies, MsmModules


class MsmTrainer(CorpusTrainer[MsmConfig]):
    """Trains an encoder so that sentences can be predicted from their neighbours."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw blocks, mixed with masked stretches where the config has them, and run the loop."""
        config = self.config
        msm = MsmModules(config, Shape.from_config(encoder.model.config)).to(encoder.device)
        modules: dict[str, nn.Module] = {"msm": msm}
        blocks = DocumentBlocks(corpus, config, job.seed)
        source: BatchSource[Blocks | Masked] = blocks
        if config.mlm.probability:
            modules["mlm"] = MlmHead.for_(encoder)
            source = MixtureSource(blocks, MaskedBlocks(corpus, config, config.mlm, job.seed), config.mlm.probability)

        def loss(
            encode: TrainableEncoder, batch: Blocks | Masked
        ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
            if isinstance(batch, Blocks):
                return self.loss(encode, msm, batch)
            head = modules["mlm"]
            assert isinstance(head, MlmHead)  # noqa: S101 (for the type checker)
            return logged(mlm_loss(encode, head, batch), "mlm_loss")

        probe = partial(self.probe, encoder, msm, blocks)
        return fit(loss, source, encoder, config, job, work, modules=nn.ModuleDict(modules), probe=probe)

    def loss(
        self, encode: TrainableEncoder, msm: MsmModules, blocks: Blocks
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Return the loss of n sentences predicted from the others of their blocks, among all, and what to log."""
        config = self.config
        queries, keys = self.projected(encode, msm, blocks)  # each [n, d]
        documents = torch.from_numpy(blocks.of_units)
        all_keys, key_documents, first = keys, documents, 0
        if config.gather_negatives:
            all_keys, key_documents, first = gather(keys), gather(documents), offset(len(keys))  # [m, d], [m]
        encode.meter.multiplied(len(queries) * all_keys.numel())
        documents, key_documents = (to_device(part, queries.device) for part in (documents, key_documents))
        loss = msm_loss(
            queries,
            all_keys,
            documents,
            key_documents,
            first=first,
            temperature=config.temperature,
            mu=config.mu,
            mode=config.loss.mode,
        )
        rivals = (queries.detach(), all_keys.detach(), documents, key_documents, first)
        value = loss.detach()
        return loss * weight(len(queries)), lambda: {**self.measured(*rivals), "msm_loss": float(value)}

    def measured(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        documents: torch.Tensor,
        key_documents: torch.Tensor,
        first: int,
    ) -> dict[str, float]:
        """Return `_accuracies`, and how sharp the loss's softmax is; rows as in `msm_loss`."""
        config, scores = self.config, similarities(queries, keys, "cos")
        positives = first + torch.arange(len(queries), device=queries.device)
        near, far = relations(documents, key_documents, positives)
        logits = adjusted(scores / config.temperature, positives, near, far, mu=config.mu, mode=config.loss.mode)
        return {**_accuracies(scores, near, far, positives), **sharpness(logits)}

    def projected(
        self,
        encode: TrainableEncoder,
        msm: MsmModules,
        blocks: Blocks,
        change: Callable[[Copies], Copies] = lambda copies: copies,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return predictions and sentences as they are compared, `[n, d]` each; `change` is applied to the copies."""
        reader, heads = msm.encoder_for(blocks.languages[0]), msm.heads_for(blocks.languages[0])
        sentences = encode(blocks.units)  # [n, d]
        copies = change(Copies.from_sizes(blocks.sizes.tolist(), masked=self.config.mask_documents))
        at_once = None if encode.chunk_tokens is None else max(1, encode.chunk_tokens // copies.index.shape[1])
        recomputed = 4 / 3 if at_once is not None else 1  # a second forward pass on top of forward and twice backward
        encode.meter.multiplied(reader.operations(copies) * recomputed + heads.operations(2 * len(sentences)))
        with encode.autocast():
            predicted = reader(sentences, copies, at_once)
        queries, keys = heads(predicted.to(sentences.dtype), sentences)
        return queries, keys

    def probe(self, encode: TrainableEncoder, msm: MsmModules, blocks: DocumentBlocks) -> Mapping[str, float]:
        """Return held-out accuracy with neighbours in order and shuffled, and chance; empty if nothing is held out."""
        training, rng, held_out = msm.training, np.random.default_rng(0), blocks.held_blocks()
        msm.eval()
        try:
            rows = [
                (self._accuracy(encode, msm, block), self._accuracy(encode, msm, block, rng), 1 / len(block.units))
                for block in held_out
            ]
        finally:
            msm.train(training)
        names = ("context_accuracy", "shuffled_accuracy", "context_chance")
        columns = zip(names, zip(*rows, strict=True), strict=True) if rows else ()
        return {name: sum(values) / len(rows) for name, values in columns}

    def _accuracy(
        self, encode: TrainableEncoder, msm: MsmModules, blocks: Blocks, rng: np.random.Generator | None = None
    ) -> float:
        """Return the share of predictions nearest to their own sentence; with `rng` neighbours are shuffled first."""
        change = (lambda copies: copies) if rng is None else (lambda copies: copies.shuffled(rng))
        return accuracy(*self.projected(encode, msm, blocks, change))


def _accuracies(
    scores: torch.Tensor, near: torch.Tensor, far: torch.Tensor, positives: torch.Tensor
) -> dict[str, float]:
    """Return the shares of queries nearest to their own key `[n]` by cosines `[n, m]`, by kind of rival.

    Rivals are all keys, those of the same document (`near_accuracy`), or those of others (`far_accuracy`), both marked
    as in `relations`; `without_far` is the share of queries that have none of the latter.
    """
    beaten = scores >= scores.gather(1, positives[:, None])  # by whom; ties count as misses

    def share(rivals: torch.Tensor) -> float:
        return float((~(beaten & rivals).any(1)).float().mean())

    return {
        "accuracy": share(near | far),
        "near_accuracy": share(near),
        "far_accuracy": share(far),
        "without_far": float((~far.any(1)).float().mean()),
    }
