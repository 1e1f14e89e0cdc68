"""RetroMAE on one page: masked stretches → vectors → one layer that rebuilds each token from what its place reads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from bench import UsageError, Workspace
from bench.training import (
    CorpusTrainer,
    Facts,
    Layer,
    Masked,
    MaskedBlocks,
    MlmHead,
    Packed,
    RandomSource,
    Shape,
    Shards,
    TrainableEncoder,
    TrainingJob,
    fit,
    masked_prediction,
    padded,
    to_device,
    weight,
)
from bench_retromae import RetroMaeConfig

Veil = npt.NDArray[np.bool_]
"""Which places of a text of l tokens each does not read, `[l, l]`; those that are rebuilt do not read themselves."""


def veil(readable: npt.NDArray[np.bool_], share: float, rng: np.random.Generator) -> Veil:
    """Hide from each place a draw of its own of the m `readable` tokens, `[l]`: ⌊share·m + u⌋ of them, and itself.

    All others, which frame the text, are read by all places, and so is the first, where the vector of the text stands.

    Source: Xiao et al. 2022 (RetroMAE), section 3.3, equation 7.
    """
    open_, hidden = np.flatnonzero(readable), np.diag(readable)
    ranks = rng.random((len(readable), len(open_))).argsort(axis=1).argsort(axis=1)  # [l, m], each row a permutation
    hidden[:, open_] |= ranks < np.floor(share * len(open_) + rng.random((len(readable), 1)))
    hidden[:, 0] = False
    return hidden


@dataclass(frozen=True)
class Veiled(Masked):
    """Texts as the encoder reads them, and the veil over each for the decoder."""

    veils: Sequence[Veil]


class VeiledBlocks(RandomSource[Shards, MaskedBlocks]):
    """Masked stretches, with a veil over each that hides a share."""

    def __init__(self, blocks: MaskedBlocks, share: float) -> None:
        super().__init__(blocks.shards, blocks)
        special = blocks.shards.special
        self._share, self._framing = share, [special[name] for name in ("cls", "sep", "pad") if name in special]

    def batch(self, rng: np.random.Generator) -> Veiled:
        """Return the next stretches."""
        masked = self._sampler.batch(rng)
        readable = [~np.isin(ids, self._framing) for ids in masked.inputs]  # masks and unknown tokens are
        return Veiled(**vars(masked), veils=[veil(marks, self._share, rng) for marks in readable])


def rebuild(
    decoder: Layer, embedded: torch.Tensor, queries: torch.Tensor, packed: Packed, veils: Sequence[Veil]
) -> torch.Tensor:
    """Return what a layer makes at each place, `[T, d]`, rows as in `packed`; `veils` in the order texts were given.

    `embedded` are the tokens' embeddings, the first of each text its vector; `queries` positions plus that vector.

    Source: Xiao et al. 2022 (RetroMAE), section 3.3, equations 4 and 5.
    """
    context, _, places = padded(embedded, packed.lengths)  # [n, l, d], shortest first
    hidden = np.ones((len(veils), packed.longest, packed.longest), np.bool_)
    hidden[:, :, 0] = False  # padding asks too
    for place, marks in zip(packed.places.tolist(), veils, strict=True):
        hidden[place, : len(marks), : len(marks)] = marks
    decoded = decoder(padded(queries, packed.lengths)[0], context, to_device(hidden, context.device))
    return decoded.flatten(0, 1)[places]


class RetroMaeTrainer(CorpusTrainer[RetroMaeConfig]):
    """Trains a first token's vector from which little else is needed to rebuild the text."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw stretches of documents, hide and veil their tokens, and run the loop."""
        config = self.config
        if not hasattr(getattr(encoder.model, "embeddings", None), "position_embeddings"):
            kind = type(encoder.model).__name__
            hint = "RetroMAE's decoder asks with learnt positions: take a --backbone such as BERT or XLM-R"
            raise UsageError(where=encoder.start, found=f"{kind}, which has none", expected="positions", hint=hint)
        decoder = Layer(Shape.from_config(encoder.model.config))
        modules = nn.ModuleDict({"head": MlmHead.for_(encoder), "decoder": decoder})
        source = VeiledBlocks(MaskedBlocks(corpus, config, config.mlm, job.seed), config.decoder_mask)
        return fit(partial(self.loss, modules), source, encoder, config, job, work, modules=modules)

    def loss(
        self, modules: nn.ModuleDict, encode: TrainableEncoder, batch: Veiled
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Predict hidden tokens of n stretches from their neighbours, and all of them from vector and veiled text."""
        model, head = encode.model, modules["head"]
        late, packed = encode.hidden(batch.inputs, -1)  # [T, d]
        rows, targets = to_device(
            np.stack([packed.first_rows[batch.sequence] + batch.place, encode.rows(batch.targets)]), encode.device
        )
        originals = packed.ids.index_put((rows,), targets)
        rebuilt = [np.flatnonzero(marks.diagonal()) for marks in batch.veils]
        asked = np.concatenate([first + at for first, at in zip(packed.first_rows, rebuilt, strict=True)])
        everywhere = to_device(asked, encode.device)
        owners = to_device(np.repeat(np.arange(len(batch)), packed.lengths), encode.device)  # [T], shortest first
        with encode.autocast():
            vectors = late[packed.cuts[:-1].long()]  # [n, d]
            embedded = model.embeddings(input_ids=originals[None], position_ids=packed.positions[None])[0]
            embedded = embedded.to(late.dtype).index_put((packed.starts,), late[packed.starts])
            queries = model.embeddings.position_embeddings(packed.positions) + vectors[owners]
            states = rebuild(modules["decoder"], embedded, queries, packed, batch.veils)
            hidden = masked_prediction(late[rows], targets, encode.embeddings, head.bias, head=head)
            asking = states[everywhere]
            whole = masked_prediction(asking, originals[everywhere], encode.embeddings, head.bias, head=head)
        count, width = encode.embeddings.shape
        layer = Shape.from_config(model.config).operations(packed.longest, packed.longest)
        encode.meter.multiplied(len(batch) * layer + (len(rows) + len(asked)) * width * (width + count))
        parts = torch.stack([hidden.detach(), whole.detach()])
        loss = hidden * weight(len(rows)) + whole * weight(len(asked))
        return loss, lambda: {"mlm_loss": float(parts[0]), "decoder_loss": float(parts[1])}
