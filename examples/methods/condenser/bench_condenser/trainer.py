"""Condenser and coCondenser on one page: masked spans → states at two depths → prediction, and contrast."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from bench import Workspace
from bench.training import (
    CondenserHead,
    CorpusTrainer,
    Documents,
    Facts,
    Ids,
    Masked,
    Masking,
    MlmHead,
    RandomSource,
    Shape,
    Shards,
    TrainableEncoder,
    TrainingJob,
    accuracy,
    fit,
    gather,
    masked_prediction,
    paired_info_nce,
    read_segment,
    segment_counts,
    segments,
    to_device,
    weight,
)
from bench_condenser import CondenserConfig

Counts = npt.NDArray[np.int64]


class Spans(RandomSource[Shards, Documents]):
    """Masked spans of documents: one of each, or two different ones, 2i and 2i + 1 of one document."""

    def __init__(self, shards: Shards, config: CondenserConfig, seed: int) -> None:
        self._each = 2 if config.variant == "cocondenser" else 1
        self._config, self._masking = config, Masking.for_corpus(shards, config.masking)
        super().__init__(shards, Documents(shards, config, least=self._each, seed=seed, blocks=self._counts(shards)))

    def _counts(self, shards: Shards) -> Callable[[str], Counts]:
        def counts(language: str) -> Counts:
            spans = segment_counts(shards, language, self._config.tokens)
            return np.where(spans >= self._each, spans, 0)  # documents with fewer are never drawn

        return counts

    def batch(self, rng: np.random.Generator) -> Masked:
        """Return spans of `pairs` documents, some of their tokens hidden."""
        most, sequences = self._config.tokens, list[Ids]()
        for document in self._sampler.draw(self._config.pairs, rng):
            units = segments(self.shards, document, most)
            places = rng.choice(len(units), self._each, replace=False).tolist()
            sequences += [read_segment(self.shards, document, units[at], most) for at in places]
        return self._masking(sequences, rng)


class CondenserTrainer(CorpusTrainer[CondenserConfig]):
    """Trains a first token's vector from which a head can predict what early layers hide."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw spans, hide some of their tokens, and run the loop."""
        config = self.config
        head = CondenserHead(Shape.from_config(encoder.model.config), config.head_layers)
        modules = nn.ModuleDict({"condenser": head, "mlm": MlmHead.for_(encoder)})
        spans = Spans(corpus, config, job.seed)
        return fit(partial(self.loss, modules), spans, encoder, config, job, work, modules=modules)

    def loss(
        self, modules: nn.ModuleDict, encode: TrainableEncoder, masked: Masked
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Predict hidden tokens from the head, from the last layer where wanted, and let spans find each other."""
        config, mlm, condenser = self.config, modules["mlm"], modules["condenser"]
        middle, (count, width) = encode.model.config.num_hidden_layers // 2, encode.embeddings.shape
        (early, late), packed = encode.layers(masked.inputs, (middle, -1))  # [T, d] each
        rows, targets = to_device(
            np.stack([packed.first_rows[masked.sequence] + masked.place, encode.rows(masked.targets)]), encode.device
        )

        def predicted(states: torch.Tensor) -> torch.Tensor:
            encode.meter.multiplied(len(rows) * width * (width + count))
            return masked_prediction(states[rows], targets, encode.embeddings, mlm.bias, head=mlm) * weight(len(rows))

        with encode.autocast():
            encode.meter.multiplied(condenser.operations(packed))
            parts = {"head_mlm_loss": predicted(condenser(early, late, packed))}
            if config.late_mlm:
                parts["late_mlm_loss"] = predicted(late)
        vectors = late[packed.starts].float()  # [n, d], or [2n, d]
        if config.variant == "cocondenser":  # every process has all anchors; gather adds their gradients up again
            rows_of_all = gather(vectors)
            parts["contrast"] = paired_info_nce(
                rows_of_all, temperature=config.temperature, similarity=config.similarity
            )
        logged = {name: part.detach() for name, part in parts.items()}
        fixed = vectors.detach()

        def metrics() -> Mapping[str, float]:
            values = {name: float(part) for name, part in logged.items()}
            paired = {"accuracy": accuracy(fixed[::2], fixed[1::2])} if "contrast" in parts else {}
            return {**values, **paired}

        return torch.stack(list(parts.values())).sum(), metrics
