"""The encoder in training: token ids in, vectors out, tokens counted, its embeddings cropped to the corpus.

Ids that the corpus never uses cost memory, optimiser state and, in masked language modelling, most of the time, and
learn nothing. Leaving them out approximates the softmax over the vocabulary and its random replacements; it is recorded
(`vocabulary` among the metadata of a training). Their rows come back unchanged before anyone else reads the model.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from bench.core.encoder_config import EncoderConfig, Role, TrainingJob
from bench.core.errors import UsageError
from bench.data.corpora import tokenizer
from bench.data.corpora.shards import Shards
from bench.retrieval import backbones, lm_heads
from bench.retrieval.buckets import CompiledPass, check_packed, fill
from bench.retrieval.packed import (
    Ids,
    Packed,
    budget,
    first_position,
    forward_layers,
    load_model,
    longest,
    pack,
    pool,
    uses_packed,
    wide,
)
from bench.retrieval.transfer import to_device
from bench.training.config import TrainingConfig
from bench.training.meter import Meter

T = TypeVar("T")


@dataclass(frozen=True)
class Vocabulary:
    """The ids that are kept, and the whole matrix."""

    ids: npt.NDArray[np.int64]  # ids, ascending, int64 `[v]`; row i of the small matrix is id `ids[i]`
    small: npt.NDArray[np.int64]  # id → its row in the small matrix, −1 where it has none, int64 `[V]`
    matrix: torch.Tensor  # the matrix before the training, float32 `[V, d]`, on the processor
    padding: int | None  # row of the whole matrix that is padding, None where there is none

    def rows(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the rows of ids in the small matrix; raise `UsageError` for an id that was not kept."""
        rows = self.small[ids]
        if (rows < 0).any():
            raise UsageError(
                where="the embeddings of this training",
                found=f"token {int(ids[rows < 0][0])}, which occurs neither in the corpus nor in the prompts",
                expected=f"one of the {len(self.ids)} tokens that were kept",
                hint="type --set train.vocabulary=whole; a trainer keeps more by `TrainableEncoder.begin(…, also=ids)`",
            )
        return rows


def crop(model: PreTrainedModel, shards: Shards, also: Iterable[int] = ()) -> Vocabulary | None:
    """Leave a model, in place, only the embeddings of ids that the corpus uses, special ones and those up to padding's.

    Padding keeps its number so, from which positions are counted. `also` are further ids. None where every id is used.
    """
    embedding = _embedding(model)
    padding = embedding.padding_idx if embedding.padding_idx is not None else model.config.pad_token_id
    first = np.arange(0 if padding is None else padding + 1)
    special = np.asarray(sorted({*shards.special.values(), *also}), np.int64)
    ids = np.unique(np.concatenate([first, special, shards.used_ids()]))
    if len(ids) == embedding.num_embeddings:
        return None
    small = np.full(embedding.num_embeddings, -1, np.int64)
    small[ids] = np.arange(len(ids))
    matrix = embedding.weight.detach()
    _set(model, matrix[torch.from_numpy(ids).to(matrix.device)], embedding.padding_idx)
    return Vocabulary(ids, small, matrix.cpu().clone(), embedding.padding_idx)


def prompt_ids(start: Path, encoder_config: EncoderConfig) -> set[int]:
    """Return the token ids of an encoder's prompts, alone and with a text, or its blank, behind them."""
    prompts = {encoder_config.query_prompt, encoder_config.passage_prompt} - {""}
    if not prompts:
        return set()
    texts = [form for prompt in prompts for form in (prompt, prompt.strip(), f"{prompt}a", f"{prompt} a")]
    return {token for ids in tokenizer.load(start)(texts).input_ids for token in ids}


@contextmanager
def whole_matrix(model: PreTrainedModel, vocabulary: Vocabulary | None) -> Iterator[None]:
    """Give a model its whole matrix for a moment: trained rows as they are now, all others as before the training."""
    if vocabulary is None:
        yield
        return
    small = _embedding(model)
    matrix = vocabulary.matrix.clone()
    matrix[torch.from_numpy(vocabulary.ids)] = small.weight.detach().cpu()
    _set(model, matrix.to(small.weight.device), vocabulary.padding)
    try:
        yield
    finally:
        model.set_input_embeddings(small)
        model.config.vocab_size = small.num_embeddings


def check_finite(model: nn.Module, start: Path) -> None:
    """Raise `UsageError` with the first weight of a model that is NaN or infinite; `start` is where it comes from.

    Those of embeddings that a training never looks up would be exported unseen.
    """
    weights = dict(model.named_parameters())
    finite = torch.stack([weight.detach().isfinite().all() for weight in weights.values()]).tolist()
    faults = [name for name, good in zip(weights, finite, strict=True) if not good]
    if faults:
        wrong = int((~weights[faults[0]].detach().isfinite()).sum())
        raise UsageError(
            where=start,
            found=f"{wrong} of the {weights[faults[0]].numel()} weights of {faults[0]} NaN or infinite"
            + (f", and some in {len(faults) - 1} more tensors" if len(faults) > 1 else ""),
            expected="finite weights to train from",
            hint="its training diverged, or its file is damaged: take another checkpoint of it, or another --backbone",
        )


def _embedding(model: PreTrainedModel) -> nn.Embedding:
    embedding = model.get_input_embeddings()
    if not isinstance(embedding, nn.Embedding):
        raise TypeError(
            f"found {type(embedding).__name__} as the embeddings of {type(model).__name__}, expected Embedding"
        )
    return embedding


def _set(model: PreTrainedModel, matrix: torch.Tensor, padding: int | None) -> None:
    count, width = matrix.shape
    embedding = nn.Embedding(count, width, padding_idx=padding, _weight=matrix.clone(), device=matrix.device)
    model.set_input_embeddings(embedding)
    model.config.vocab_size = embedding.num_embeddings


@dataclass(frozen=True)
class TrainableEncoder:
    """A model with the pooling of its encoder config. Calling it is a packed forward pass with gradients.

    Example:
        >>> vectors = encoder([[0, 581, 2], [0, 912, 77, 2]])  # [2, d]
        >>> left, right = encoder.encode_views(batch)  # each [n, d], in one forward pass
        >>> states, packed = encoder.hidden(sequences)  # [T, d], of all tokens
    """

    model: PreTrainedModel
    start: Path  # folder that it was loaded from, whose tokenizer and config go with the weights again
    encoder_config: EncoderConfig  # pooling and layer
    precision: Literal["float32", "bfloat16"] = "float32"  # of the forward pass; weights are float32
    meter: Meter = field(default_factory=Meter)  # may be shared by a second encoder
    vocabulary: Vocabulary | None = None  # ids that still have embeddings; None: all
    chunk_tokens: int | None = None  # tokens whose activations are kept at once when vectors are made; None: all
    token_bucket: int | None = None  # a pass is filled up to a multiple of so many tokens; None: it is not
    compile: bool = False  # a pass is compiled for each shape of row; wants `token_bucket`

    def __post_init__(self) -> None:
        """Raise `UsageError` for dense layers behind the pooling, which are not trained, and for buckets of padding."""
        if self.token_bucket is not None:
            check_packed(self.model)
        if self.encoder_config.dense:
            raise UsageError(
                where=self.start,
                found=f"{len(self.encoder_config.dense)} dense layers behind the pooling",
                expected="an encoder without, for such layers are read but not trained yet",
                hint=f"type --set method.pooling=… other than {self.encoder_config.pooling} to leave them out",
            )

    @staticmethod
    def load(start: Path, device: str, precision: Literal["float32", "bfloat16"] = "float32") -> TrainableEncoder:
        """Load an encoder in training mode (dropout on), with its whole vocabulary.

        Raises `UsageError` if the folder holds none, or weights that are no numbers.
        """
        encoder_config = EncoderConfig.load(start)
        model = load_model(start, device, pooler=encoder_config.pooling == "pooler")
        check_finite(model, start)
        model.train()
        return TrainableEncoder(model, start, encoder_config, precision)

    @staticmethod
    def begin(
        start: Path, shards: Shards, config: TrainingConfig, job: TrainingJob, also: Iterable[int] = ()
    ) -> TrainableEncoder:
        """Load an encoder as config and corpus want it; `UsageError` if the folder holds none.

        Its embeddings are those of the corpus, of the prompts in its encoder config, and of the ids in `also`: whatever
        else the trainer puts before or between texts.
        """
        loaded = TrainableEncoder.load(start, job.device, config.precision)
        kept = {*also, *prompt_ids(start, loaded.encoder_config)}
        vocabulary = crop(loaded.model, shards, kept) if config.vocabulary == "cropped" else None
        return replace(
            loaded,
            vocabulary=vocabulary,
            chunk_tokens=config.chunk_tokens,
            token_bucket=config.token_bucket,
            compile=config.compile,
        )

    @cached_property
    def _compiled(self) -> CompiledPass:
        return CompiledPass(self.model)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.model.device

    @property
    def embeddings(self) -> torch.Tensor:
        """The matrix of token embeddings, `[v, d]`; what a masked language model's decoder shares."""
        return _embedding(self.model).weight

    def rows(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the rows of `embeddings` that belong to token ids, `[m]`."""
        return ids if self.vocabulary is None else self.vocabulary.rows(ids)

    def prompt(self, role: Role) -> npt.NDArray[np.int64]:
        """Return the ids of a role's prompt, which come between the first special token and a text, `[p]`.

        A text's own ids follow where a prompt is one or more whole words and a blank: those of both in one piece then
        are the same, but for tokenizers that join words.
        """
        prompt = self.encoder_config.query_prompt if role == "query" else self.encoder_config.passage_prompt
        ids = tokenizer.load(self.start)(prompt.rstrip(), add_special_tokens=False).input_ids if prompt else []
        return np.asarray(ids, np.int64)

    def autocast(self) -> AbstractContextManager[None]:
        """Compute what is inside in the encoder's precision."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16")

    def __call__(self, sequences: Sequence[Ids]) -> torch.Tensor:
        """Return the vectors of sequences.

        With `chunk_tokens`, activations of all but one chunk are computed again, with the same dropout, for their
        gradient. Source: Gao et al. 2021, Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup
        (GradCache).

        Args:
            sequences: n sequences of token ids, with special tokens, none empty.

        Returns:
            `[n, d]`, float32, not normalised.

        Raises:
            UsageError: a sequence is longer than the model has positions for.
        """
        if not self.chunked:
            return self._vectors(self.packed(sequences))
        batches = self.batches(sequences)
        vectors = [self.recomputed(self._vectors, self.packed([sequences[at] for at in batch])) for batch in batches]
        order = np.argsort(np.concatenate(batches))
        return torch.cat(vectors)[to_device(order, self.device)]

    @property
    def chunked(self) -> bool:
        """Whether activations of no more than `chunk_tokens` are kept at once."""
        return self.chunk_tokens is not None and torch.is_grad_enabled()

    def batches(self, sequences: Sequence[Ids], extra: int = 0) -> list[list[int]]:
        """Return which sequences, each `extra` tokens longer, go through the model at once: all, unless chunked."""
        lengths = [len(sequence) + extra for sequence in sequences]
        everything = list(range(len(sequences)))
        return budget(lengths, self.chunk_tokens) if self.chunk_tokens and self.chunked else [everything]

    def recomputed(self, function: Callable[[Packed], T], packed: Packed) -> T:
        """Call a function; where chunked, keep its result alone and compute the rest again, with the same dropout."""
        if not self.chunked:
            return function(packed)
        # torch saves the generators of those devices on which a tensor among the arguments is, and sees no dataclass.
        result: T = checkpoint(lambda _: function(packed), packed.ids, use_reentrant=False)
        return result

    def encode_views(self, views: Iterable[Sequence[Ids]]) -> tuple[torch.Tensor, ...]:
        """Return the vectors of every view in one forward pass.

        Args:
            views: groups of sequences of token ids, e.g. a `bench.training.batches.PairBatch`.

        Returns:
            For each view of n sequences, vectors `[n, d]`, float32, not normalised.

        Example:
            >>> left, right = encoder.encode_views(batch)  # each [n, d]
        """
        groups = list(views)
        vectors = self([sequence for view in groups for sequence in view])
        parts: tuple[torch.Tensor, ...] = vectors.split([len(view) for view in groups])
        return parts

    def hidden(
        self, sequences: Sequence[Ids], layer: int | None = None, *, before: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, Packed]:
        """Return the hidden states of all tokens at a layer, and where sequences lie.

        Args:
            sequences: n sequences of token ids.
            layer: from 0, the embeddings, to the last, which is −1 too; default: the encoder config's.
            before: embeddings `[n, k, d]` that are put in front of each sequence; they count as tokens.

        Returns:
            `[T, d]`, token j of sequence i in row `starts[i] + k + j`; and the layout, which has these `starts`.

        Raises:
            UsageError: a sequence is longer than the model has positions for.
        """
        packed = self.packed(sequences, 0 if before is None else before.shape[1])
        return self.states(packed, self.encoder_config.layer if layer is None else layer, before), packed

    def packed(self, sequences: Sequence[Ids], extra: int = 0) -> Packed:
        """Lay sequences end to end, with room for `extra` embeddings in front of each, and count a forward pass."""
        if extra:
            sequences = [[*(sequence[0],) * extra, *sequence] for sequence in sequences]  # ids that are not looked up
        bound, most = longest(self.model), max(map(len, sequences))
        if bound is not None and most > bound:
            raise UsageError(f"a sequence has {most} tokens, but {self.start.name} has positions for {bound}; cut more")
        if self.vocabulary is not None:
            sequences = [self.rows(np.asarray(sequence, np.int64)) for sequence in sequences]
        packed = pack(sequences, first_position(self.model)).to(self.device)
        learns = torch.is_grad_enabled() and any(weight.requires_grad for weight in self.model.parameters())
        self.meter.encoded(self.model, packed, gradients=learns, recomputed=self.chunked)
        return packed

    def states(
        self, packed: Packed, layer: int, before: torch.Tensor | None = None, *, decoded: bool = False
    ) -> torch.Tensor:
        """Return the hidden states `[T, d]` of a layer, `before` `[n, k, d]` in the room in front of each sequence.

        `decoded` says that the loss multiplies by the embeddings too.
        """
        sparse = decoded and self.device.type == "cpu" and uses_packed(self.model)
        if before is None and not sparse:
            return self._layers(packed, (layer,))[0]
        embeds = self._looked_up(packed.ids, sparse=sparse)  # [T, d]
        if before is not None:
            rows = packed.starts[:, None] + torch.arange(before.shape[1], device=self.device)  # [n, k]
            embeds = embeds.index_put((rows,), before)
        return self._layers(packed, (layer,), embeds)[0]

    def layers(self, sequences: Sequence[Ids], layers: Sequence[int]) -> tuple[tuple[torch.Tensor, ...], Packed]:
        """Return the hidden states `[T, d]` of several layers from one pass, and where sequences lie."""
        states = partial(self._layers, layers=layers)
        batches = self.batches(sequences)
        chunks = [self.recomputed(states, self.packed([sequences[at] for at in batch])) for batch in batches]
        whole_row = pack(sequences, first_position(self.model)).to(self.device)  # chunks are slices of its order
        return tuple(torch.cat(parts) for parts in zip(*chunks, strict=True)), whole_row

    def save(self, folder: Path) -> None:
        """Write a plain Hugging Face folder: these weights, and the other files of the start as they were."""
        with whole_matrix(self.model, self.vocabulary):
            backbones.save(self.model, tokenizer.load(self.start), folder)
        for path in sorted(self.start.iterdir()):
            if path.is_file() and not path.name.startswith("model.safetensors") and path.name != lm_heads.FILE:
                shutil.copyfile(path, folder / path.name)

    def _looked_up(self, ids: torch.Tensor, *, sparse: bool) -> torch.Tensor:
        """Return the embeddings `[T, d]` of ids `[T]`, scaled where the model does so.

        A sparse gradient has the same sums, in the rows in use alone: adding it to a decoder's dense one costs less
        than filling and adding another of the whole vocabulary. Without a decoder's, no optimiser of ours takes it.
        """
        matrix = _embedding(self.model)
        distinct, places = torch.unique(ids, return_inverse=True) if sparse else (ids, slice(None))
        matrix.sparse = sparse
        try:
            rows: torch.Tensor = matrix(distinct)[places]
        finally:
            matrix.sparse = False
        return rows

    def _layers(
        self, packed: Packed, layers: Sequence[int], embeds: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, ...]:
        with self.autocast():
            if self.token_bucket is None:
                return forward_layers(self.model, packed, layers, embeds=embeds)
            row, tokens = fill(packed, self.token_bucket), len(packed.ids)
            if embeds is not None:
                embeds = nn.functional.pad(embeds, (0, 0, 0, len(row.ids) - tokens))
            passed = self._compiled if self.compile else partial(forward_layers, self.model)
            return tuple(states[:tokens] for states in passed(row, layers, embeds=embeds))

    def _vectors(self, packed: Packed) -> torch.Tensor:
        hidden = wide(self._layers(packed, (self.encoder_config.layer,))[0])
        return pool(hidden, packed, self.encoder_config.pooling, getattr(self.model, "pooler", None))
