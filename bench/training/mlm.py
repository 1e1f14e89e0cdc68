"""Masked language modelling: masking tokens, a head over them alone, its loss, and the batches of a companion task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from bench.core.errors import UsageError
from bench.data.corpora.shards import Shards
from bench.retrieval import lm_heads
from bench.retrieval.packed import Ids, Packed, wide
from bench.retrieval.transfer import to_device
from bench.training.batches import BatchSource, Masked, PairBatch, RandomSource, TrackedCorpus
from bench.training.config import BlocksConfig, MaskConfig, TrainingConfig
from bench.training.distributed import weight
from bench.training.encoder import TrainableEncoder
from bench.training.heads import initialise
from bench.training.views import Documents, add_special_tokens, random_span


@dataclass(frozen=True)
class Masking:
    """How tokens are hidden; calling it hides some of sequences of ids.

    Example:
        >>> masking = Masking(3, {0, 1, 2, 3}, np.arange(4, 100), share=0.15, keep=0.1, random=0.1)
        >>> masked = masking([np.arange(10, 30)], np.random.default_rng(0))
        >>> len(masked.targets) in (3, 4)  # 0.15 · 20, rounded at random
        True
    """

    mask: int  # id of the mask token
    special: Collection[int]  # ids that are never hidden
    pool: npt.NDArray[np.int64]  # ids that random replacements are drawn from, `[v]`
    share: float  # of the tokens that are not special, hidden
    keep: float  # of the hidden tokens, left as they are
    random: float  # of the hidden tokens, replaced from the pool; all others are masked

    @staticmethod
    def for_corpus(shards: Shards, config: MaskConfig) -> Masking:
        """Mask as the config says, with the ids of a corpus; `UsageError` where its tokenizer has no mask token."""
        if "mask" not in shards.special:
            raise UsageError(
                f"the tokenizer of {shards.folder} has no mask token, which masked language modelling needs; type "
                "--set method.mlm.probability=0 for a method that can do without, or take another backbone"
            )
        special = frozenset(shards.special.values())
        pool = shards.used_ids()
        pool = pool[~np.isin(pool, np.asarray(sorted(special), np.int64))]
        return Masking(shards.special["mask"], special, pool, config.mask, config.keep, config.random)

    def __call__(self, sequences: Sequence[Ids], rng: np.random.Generator) -> Masked:
        """Hide ⌊share·n + u⌋ of the n tokens of a sequence that are not special, u uniform in [0, 1), at least one.

        Source: Devlin et al. 2019 (BERT), section 3.1; the rounding is fairseq's, as in XLM-R.
        """
        inputs, owners, places, targets = [], [], [], []
        for number, sequence in enumerate(sequences):
            ids = np.array(sequence, np.int64)
            open_ = np.flatnonzero(~np.isin(ids, np.fromiter(self.special, np.int64)))
            count = min(len(open_), max(1, int(self.share * len(open_) + rng.random())))
            places_of = np.sort(rng.permutation(open_)[:count])
            owners.append(np.full(count, number, np.int64))
            places.append(places_of)
            targets.append(ids[places_of])
            chance = rng.random(count)
            random_ids = self.pool[rng.integers(len(self.pool), size=count)]
            hidden = np.where(chance < self.keep + self.random, random_ids, self.mask)
            ids[places_of] = np.where(chance < self.keep, ids[places_of], hidden)
            inputs.append(ids)
        return Masked(inputs, np.concatenate(owners), np.concatenate(places), np.concatenate(targets))


MlmReduction = Literal["token_mean", "sentence_sum"]


class MlmHead(nn.Module):
    """Dense → gelu → LayerNorm, before a decoder that shares the embeddings and has a bias of its own.

    Args:
        width: d, of the hidden states.
        vocabulary: v, ids that the decoder distinguishes.
        eps: of the normalisation.

    Source: Devlin et al. 2019 (BERT), as in transformers.
    """

    def __init__(self, width: int, vocabulary: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=eps)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        initialise(self.dense)

    @staticmethod
    def for_(encoder: TrainableEncoder) -> MlmHead:
        """Make one for an encoder: the backbone's own where it came with one, else with random weights.

        Its bias has the ids that the encoder still has.
        """
        count, width = encoder.embeddings.shape
        head = MlmHead(width, count, getattr(encoder.model.config, "layer_norm_eps", 1e-5))
        weights = lm_heads.load(encoder.start)
        if weights is not None:
            vocabulary = encoder.vocabulary
            bias = weights["bias"] if vocabulary is None else weights["bias"][torch.from_numpy(vocabulary.ids)]
            head.load_state_dict({**weights, "bias": bias})
        return head

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Transform `[m, d]` → `[m, d]`; the decoder comes after."""
        transformed: torch.Tensor = self.norm(functional.gelu(self.dense(rows)))
        return transformed


def masked_prediction(
    rows: torch.Tensor,
    targets: torch.Tensor,
    decoder: torch.Tensor,
    bias: torch.Tensor,
    *,
    head: Callable[[torch.Tensor], torch.Tensor] | None = None,
    vectors: torch.Tensor | None = None,
    sentence: torch.Tensor | None = None,
    sentences: int | None = None,
    reduction: MlmReduction = "token_mean",
) -> torch.Tensor:
    """Return the cross-entropy of hidden tokens; logits are made at their places alone.

    Args:
        rows: hidden states at the places of the m hidden tokens, `[m, d]`.
        targets: original ids, int64 `[m]`.
        decoder: mostly the embeddings, `[v, d]`.
        bias: of the decoder, `[v]`.
        head: comes before the decoder, `[m, d]` → `[m, d]`, e.g. a `MlmHead`; default: nothing.
        vectors: are added to the rows of their sentences first, `[n, d]`.
        sentence: number of each hidden token's sentence, int64 `[m]`.
        sentences: how many there are; default: as many as vectors, or as the highest number says.
        reduction: `token_mean`; or `sentence_sum`, the sum over the tokens of a sentence, averaged over sentences.

    Returns:
        A scalar, float32 or float64; 0 where nothing was hidden.

    Raises:
        ValueError: no sentence numbers where they are needed.

    Source: Devlin et al. 2019; with `vectors`, Auto-MLM (arXiv 2203.16187), eq. 7.
    """
    if sentence is None and (vectors is not None or reduction == "sentence_sum"):
        raise ValueError("found no sentence numbers, expected them with vectors or sentence_sum")
    losses = _token_losses(rows if vectors is None else rows + vectors[sentence], targets, decoder, bias, head)
    if reduction == "token_mean":
        return losses.sum() / max(1, len(losses))
    if sentences is None:
        assert sentence is not None  # noqa: S101 (held above)
        sentences = len(vectors) if vectors is not None else int(sentence.max()) + 1
    return losses.sum() / sentences


def _token_losses(
    rows: torch.Tensor,
    targets: torch.Tensor,
    decoder: torch.Tensor,
    bias: torch.Tensor,
    head: Callable[[torch.Tensor], torch.Tensor] | None,
) -> torch.Tensor:
    """Return the cross-entropy of each hidden token, `[m]`; arguments as in `masked_prediction`."""
    if head is not None:
        rows = head(rows)
    logits = wide(functional.linear(rows, decoder.to(rows.dtype), bias.to(rows.dtype)))  # [m, v]
    return functional.cross_entropy(logits, targets, reduction="none")


def mlm_loss(
    encode: TrainableEncoder,
    head: MlmHead,
    masked: Masked,
    *,
    vectors: torch.Tensor | None = None,
    before: torch.Tensor | None = None,
) -> torch.Tensor:
    """Run masked sequences through an encoder, to its last layer, and predict what was hidden.

    The mean over processes is the loss on the joined batch; the encoder's `chunk_tokens` bound logits too.

    Args:
        encode: the encoder that is trained; operations of head and decoder are counted by its meter.
        head: transforms hidden states before the decoder, which shares the encoder's embeddings.
        masked: n sequences with hidden tokens.
        vectors: are added to the hidden states of their sequences, `[n, d]`.
        before: embeddings that are put in front of each sequence, `[n, k, d]`.

    Returns:
        The mean loss of the hidden tokens, a scalar.

    Example:
        >>> head = MlmHead.for_(encoder)
        >>> loss = mlm_loss(encoder, head, masking(sequences, rng))
    """
    extra = 0 if before is None else before.shape[1]
    targets = encode.rows(masked.targets)

    def losses_of(packed: Packed, batch: Sequence[int], tokens: npt.NDArray[np.int64]) -> torch.Tensor:
        """Return the losses of the `tokens` hidden tokens, those of the sequences of a batch."""
        whole, device = len(batch) == len(masked), encode.device
        first = before if whole or before is None else before[to_device(batch, device)]
        hidden = encode.states(packed, -1, first, decoded=True)
        owner, place = masked.sequence[tokens], masked.place[tokens]
        within = np.zeros(len(masked), np.int64)
        within[list(batch)] = np.arange(len(batch))
        at, target, sequence = to_device(
            np.stack([packed.first_rows[within[owner]] + place + extra, targets[tokens], owner]), device
        )  # each [m]
        rows = hidden[at]  # [m, d]
        with encode.autocast():
            rows = rows if vectors is None else rows + vectors[sequence]
            return _token_losses(rows, target, encode.embeddings, head.bias, head)

    parts = []
    for batch in encode.batches(masked.inputs, extra):
        packed = encode.packed([masked.inputs[at] for at in batch], extra)
        tokens = np.flatnonzero(np.isin(masked.sequence, batch))
        parts.append(encode.recomputed(partial(losses_of, batch=batch, tokens=tokens), packed))
    losses = torch.cat(parts)  # [m], chunk by chunk
    count, width = encode.embeddings.shape
    encode.meter.multiplied(len(losses) * width * (width + count), recomputed=encode.chunked)
    return losses.sum() / max(1, len(losses)) * weight(len(losses))


@dataclass(frozen=True)
class PairsAndMasks:
    """Pairs, and their left, right, or left and then right sequences with hidden tokens; None: no such sequences."""

    pairs: PairBatch
    masked: Masked | None

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.pairs)


class MaskedPairs(RandomSource[TrackedCorpus, BatchSource[PairBatch]]):
    """Hides tokens in copies of the sequences that another source draws.

    Args:
        pairs: the source of pairs.
        masking: how tokens are hidden; None: not at all.
        sides: whose sequences are masked: of the `left` views, the `right` ones, or `both`, left ones first.
    """

    def __init__(self, pairs: BatchSource[PairBatch], masking: Masking | None, sides: Literal["both", "left", "right"]):
        super().__init__(pairs.shards, pairs)
        self._masking, self._sides = masking, sides

    def batch(self, rng: np.random.Generator) -> PairsAndMasks:
        """Return the next pairs, and their sequences with hidden tokens."""
        pairs = self._sampler.batch(rng)
        if self._masking is None:
            return PairsAndMasks(pairs, None)
        views = {"both": (pairs.left, pairs.right), "left": (pairs.left,), "right": (pairs.right,)}[self._sides]
        return PairsAndMasks(pairs, self._masking([sequence for view in views for sequence in view], rng))


class MaskedBlocks(RandomSource[Shards, Documents]):
    """Batches of stretches with hidden tokens: from a random sentence to the end of its document, or `mlm.tokens`.

    Args:
        shards: the corpus.
        config: how languages are drawn.
        mlm: sequences of a batch, tokens of a sequence, and how they are hidden.
        seed: decides the order of documents.

    Raises:
        UsageError: the corpus's tokenizer has no mask token, or no language has two documents.
    """

    def __init__(self, shards: Shards, config: TrainingConfig, mlm: BlocksConfig, seed: int) -> None:
        super().__init__(shards, Documents(shards, config, least=1, seed=seed, batch=mlm.sequences))
        self._mlm = mlm
        self._masking = Masking.for_corpus(shards, mlm)

    def batch(self, rng: np.random.Generator) -> Masked:
        """Return stretches of documents, of one language where the config wants that."""
        special, most = self.shards.special, self._mlm.tokens
        documents = self._sampler.draw(self._mlm.sequences, rng)
        spans = [random_span(self.shards, document, most - 2, rng) for document in documents]
        return self._masking([add_special_tokens(span, special, most) for span in spans], rng)
