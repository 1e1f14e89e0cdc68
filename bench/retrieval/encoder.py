"""The encoder of the harness: items → texts → token ids → vectors, as an encoder config says."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from bench.core.encoder_config import SEPARATOR, EncoderConfig, Role
from bench.core.errors import BenchError, UsageError
from bench.core.workspace import Advance, noop
from bench.data.corpora import tokenizer
from bench.retrieval import dense_layers
from bench.retrieval.packed import budget, first_position, forward, load_model, longest, on_threads, pack, pool, wide
from bench.retrieval.settings import CPU_TOKENS, DEVICE_TOKENS
from bench.types import Item


@dataclass(frozen=True)
class Reader:
    """Reads items as an encoder config says: prompts, titles, case, question marks and lengths."""

    words: PreTrainedTokenizerBase
    encoder_config: EncoderConfig

    def text(self, item: Item, role: Role) -> str:
        """Return what is tokenised: prompt, title where there is one and the encoder config wants it, text."""
        encoder_config = self.encoder_config
        if role == "query":
            question = item.text if encoder_config.question_mark else item.text.removesuffix("?")
            return encoder_config.query_prompt + self._cased(question)
        parts = [item.text] if encoder_config.title is None else [part for part in (item.title, item.text) if part]
        return encoder_config.passage_prompt + self._joint.join(map(self._cased, parts))

    def _cased(self, text: str) -> str:
        return text.lower() if self.encoder_config.lowercase else text

    @cached_property
    def _joint(self) -> str:
        joint = self.encoder_config.title or ""
        if SEPARATOR not in joint:
            return joint
        single, pair = (self.words.num_special_tokens_to_add(pair=pair) for pair in (False, True))
        return joint.replace(SEPARATOR, (self.words.sep_token or "") * (pair - single))

    def tokens(self, texts: Sequence[str], role: Role) -> list[list[int]]:
        """Return token ids of texts, special ones included, cut at the encoder config's length; none is empty."""
        if not texts:
            return []
        length = self.encoder_config.query_length if role == "query" else self.encoder_config.passage_length
        rows: list[list[int]] = self.words(
            list(texts), truncation=True, max_length=length, return_attention_mask=False, return_token_type_ids=False
        )["input_ids"]
        words = self.words
        first = next(
            (number for number in (words.cls_token_id, words.bos_token_id) if number is not None), words.pad_token_id
        )
        return [ids or [first] for ids in rows]  # empty where no special tokens are added


class TorchEncoder:
    """Encodes items as an encoder config says. Vectors depend on the text and that config; on nothing else beyond 1e-5.

    Args:
        model: in evaluation mode (`packed.load_model`).
        words: its tokenizer.
        encoder_config: how texts are read and vectors made.
        batch_tokens: of a batch; default: what suits the device.
        threads: of torch while encoding; default: as they are.
        dense: the layers behind the pooling, on the model's device; default: none.

    Raises:
        UsageError: the encoder config asks for positions or a layer that the model lacks.

    Example:
        >>> load(folder).encode([Item("q", "who wrote it?")], "query").shape
        (1, 768)
    """

    def __init__(
        self,
        model: PreTrainedModel,
        words: PreTrainedTokenizerBase,
        encoder_config: EncoderConfig,
        batch_tokens: int | None = None,
        threads: int | None = None,
        dense: torch.nn.Sequential | None = None,
    ) -> None:
        _fits(model, encoder_config)
        self._model, self._encoder_config, self._reader = model, encoder_config, Reader(words, encoder_config)
        self._batch_tokens = batch_tokens or (CPU_TOKENS if model.device.type == "cpu" else DEVICE_TOKENS)
        self._threads, self._dense = threads, dense
        self._tokenising, self._computing = Lock(), Lock()  # one call's texts each, while another's are at the other
        self.notice: Callable[[str], None] = noop  # gets a sentence where the memory is short
        self.advance: Advance = noop  # hears of items as their batch is done

    def encode(self, items: Sequence[Item], role: Role) -> npt.NDArray[np.float32]:
        """Encode items; may be called by several threads at a time.

        Args:
            items: n texts, passages with their titles.
            role: whose prompt, length and question mark hold.

        Returns:
            Vectors `[n, d]`, float32, one row an item, of length 1 where the encoder config says so.

        Raises:
            BenchError: a vector is not finite, or a single text takes more memory than there is.
            UsageError: the tokenizer has ids that the model has no embedding of.
        """
        with self._tokenising:
            sequences = self._reader.tokens([self.text(item, role) for item in items], role)
        self._check_ids(sequences)
        vectors = np.empty((len(items), self._width), np.float32)
        encoder_config, device = self._encoder_config, self._model.device.type
        precision = torch.autocast(device, torch.bfloat16, enabled=encoder_config.dtype == "bfloat16")
        with self._computing, torch.inference_mode(), on_threads(self._threads), precision:
            remaining = np.arange(len(items))
            while remaining.size:  # once, unless a batch is too large for the memory
                finished = list[int]()
                for batch in budget([len(sequences[at]) for at in remaining], self._batch_tokens):
                    pooled = self._pooled([sequences[at] for at in remaining[batch]])
                    if pooled is None:
                        break
                    vectors[remaining[batch]] = pooled
                    finished += batch
                    self.advance(len(batch))
                remaining = np.delete(remaining, finished)
        faults = np.flatnonzero(~np.isfinite(vectors).all(1))
        if faults.size:
            hint = "; try dtype float32" if encoder_config.dtype != "float32" else ""
            raise BenchError(
                f"the vectors of {faults.size} of {len(items)} items are not finite, the first of {role} "
                f"{items[faults[0]].id!r}; the weights are broken, or the training diverged{hint}"
            )
        return unit(vectors) if self._encoder_config.normalise else vectors

    def _pooled(self, sequences: Sequence[Sequence[int]]) -> npt.NDArray[np.float32] | None:
        """Return the vectors of a batch; None where the memory is short, and batches are smaller from then on."""
        try:
            packed = pack(sequences, first_position(self._model)).to(self._model.device)
            hidden = forward(self._model, packed, self._encoder_config.layer)
            pooled = pool(hidden, packed, self._encoder_config.pooling, getattr(self._model, "pooler", None))
            if self._dense is not None:
                pooled = wide(self._dense(pooled))
            vectors: npt.NDArray[np.float32] = pooled.numpy(force=True)
        except RuntimeError as error:  # of CUDA, MPS and processors alike
            if "out of memory" not in str(error):
                raise
            if len(sequences) == 1:
                raise BenchError(f"one text of {len(sequences[0])} tokens takes more memory than there is") from error
        else:
            return vectors
        tokens = len(sequences) * max(map(len, sequences))
        self._batch_tokens = tokens // 2
        self.notice(f"out of memory with {tokens} tokens a batch; encoding continues with {self._batch_tokens}")
        return None

    @property
    def _width(self) -> int:
        layers = [layer for layer in self._dense or () if isinstance(layer, torch.nn.Linear)]
        return int(layers[-1].out_features if layers else self._model.config.hidden_size)

    def _check_ids(self, sequences: Sequence[Sequence[int]]) -> None:
        """Raise `UsageError` where the tokenizer has ids for which the model has no embedding."""
        highest = max((max(sequence) for sequence in sequences), default=0)
        table: Any = self._model.get_input_embeddings()
        size = len(table.weight)
        if highest >= size:
            raise UsageError(
                f"the tokenizer gives the id {highest}, expected at most {size - 1}, the model's last: "
                "they do not belong together"
            )

    def text(self, item: Item, role: Role) -> str:
        """Return what is tokenised, as `Reader.text` does."""
        return self._reader.text(item, role)


def load(
    folder: Path,
    device: str = "cpu",
    threads: int | None = None,
    encoder_config: EncoderConfig | None = None,
    batch_tokens: int | None = None,
) -> TorchEncoder:
    """Load an encoder from its folder.

    Args:
        folder: a Hugging Face model with its tokenizer and `encoder_config.json`.
        device: `cpu`, `cuda`, `cuda:1`, `mps`.
        threads: of torch while encoding; default: as they are.
        encoder_config: in place of the folder's own.
        batch_tokens: of a batch; default: what suits the device.

    Raises:
        UsageError: something is missing or cannot be read, or encoder config and model do not go together.
    """
    encoder_config = encoder_config or EncoderConfig.load(folder)
    if not (folder / "tokenizer.json").is_file():  # transformers would make an empty one up
        raise UsageError(f"{folder}: found no tokenizer.json, expected a folder with the tokenizer's files")
    model = load_model(folder, device, pooler=encoder_config.pooling == "pooler")
    dense = dense_layers.load(folder, encoder_config.dense, device)
    return TorchEncoder(model, tokenizer.load(folder), encoder_config, batch_tokens, threads, dense)


def unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Scale rows `[n, d]` to length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    scaled: npt.NDArray[np.float32] = np.divide(vectors, np.maximum(lengths, 1e-12)).astype(np.float32)
    return scaled


def _fits(model: PreTrainedModel, encoder_config: EncoderConfig) -> None:
    bound, layers = longest(model), model.config.num_hidden_layers
    for role, length in (("query", encoder_config.query_length), ("passage", encoder_config.passage_length)):
        if bound is not None and length > bound:
            raise UsageError(
                f"the encoder config keeps {length} tokens of a {role}, but the model has positions for {bound}; "
                f"set {role}_length to {bound} or less"
            )
    if not -1 <= encoder_config.layer <= layers:
        raise UsageError(f"the encoder config reads layer {encoder_config.layer}, expected −1 (the last) to {layers}")
