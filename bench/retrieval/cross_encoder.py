"""Cross-encoders: a Hugging Face sequence classifier reads query and passage together → one score a pair.

Conventions: a pair is (query, passage), the passage's title already in its text. A higher score is better;
scores are logits, comparable within a query and of one model only. The passage is cut at the end, the query only where
it would take more than half of the tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.masking_utils import sdpa_mask

from bench.core.errors import BenchError, UsageError
from bench.data.corpora import tokenizer
from bench.retrieval.backbones import load_weights, refuse_missing
from bench.retrieval.model_files import model_json
from bench.retrieval.packed import budget, longest, on_threads, wide
from bench.retrieval.prompts import PROMPTS_FILE
from bench.retrieval.transfer import to_device

LENGTH = 512
"""Tokens of a pair, special ones included, where the model has room for as many.

Source: Nogueira and Cho 2019, Passage Re-ranking with BERT, section 3; the cross-encoders trained on MS MARCO since.
"""

_SHORTEST = 16  # room for special tokens, and a few of either side
_CPU_TOKENS, _DEVICE_TOKENS = 4_096, 65_536
_PADDED = "bench_padded"  # torch's attention under a name of ours, with a mask that asks no device

Pair = tuple[str, str]
"""Query and passage."""


@dataclass(frozen=True)
class PairTokens:
    """Token ids of a pair, special ones included, and the segment of each (0 query, 1 passage), None without."""

    ids: list[int]
    types: list[int] | None


class CrossEncoder:
    """Scores pairs. A score depends on the pair and the model; on what else is scored by no more than 1e-5.

    Args:
        model: a sequence classifier of one or two labels, in evaluation mode (`load_classifier`).
        words: its tokenizer.
        length: tokens kept of a pair; default: as many as the model has positions for, at most `LENGTH`.
        batch_tokens: of a batch; default: what suits the device.
        threads: of torch while scoring; default: as they are.

    Raises:
        UsageError: a length below 16, or beyond the positions.

    Example:
        >>> load(folder).scores([("who wrote it?", "Ada wrote it."), ("who wrote it?", "Tea.")])
    """

    def __init__(
        self,
        model: PreTrainedModel,
        words: PreTrainedTokenizerBase,
        length: int | None = None,
        batch_tokens: int | None = None,
        threads: int | None = None,
    ) -> None:
        self._model, self._words, self._threads = model, words, threads
        self._length = fitting(model, length)
        self._batch_tokens = batch_tokens or (_CPU_TOKENS if model.device.type == "cpu" else _DEVICE_TOKENS)

    def scores(self, pairs: Sequence[Pair]) -> npt.NDArray[np.float32]:
        """Return a score for each pair, `[n]`, in their order. Raises `BenchError` if a score is not finite."""
        if not pairs:
            return np.empty(0, np.float32)
        rows = tokenised(self._model, self._words, pairs, self._length)
        with torch.inference_mode(), on_threads(self._threads):
            scores: npt.NDArray[np.float32] = forward(self._model, rows, self._batch_tokens).numpy(force=True)
        faults = np.flatnonzero(~np.isfinite(scores))
        if faults.size:
            query, passage = pairs[faults[0]]
            raise BenchError(
                f"{faults.size} of {len(pairs)} scores are not finite, the first of {query[:40]!r} with "
                f"{passage[:40]!r}; the weights are broken, or the training diverged"
            )
        return scores


def load(
    folder: Path,
    device: str = "cpu",
    threads: int | None = None,
    length: int | None = None,
    batch_tokens: int | None = None,
) -> CrossEncoder:
    """Load a cross-encoder's folder, in float32; none of its code is run. Other arguments are as above.

    Raises `UsageError` if it cannot be loaded, or is no sequence classifier of one or two labels.
    """
    if not (folder / "tokenizer.json").is_file():  # transformers would make an empty one up
        raise UsageError(f"{folder}: found no tokenizer.json, expected a folder with the tokenizer's files")
    _refuse_prompt(folder)
    model = load_classifier(folder)
    torch.nn.Module.to(model, device)  # transformers' own `to` adds nothing here, and is typed wrongly
    return CrossEncoder(model, tokenizer.load(folder), length, batch_tokens, threads)


def _refuse_prompt(folder: Path) -> None:
    """Raise `UsageError` where a folder of sentence-transformers wants a prompt before every pair."""
    path = folder / PROMPTS_FILE
    declared = model_json(path) if path.is_file() else {}
    prompts, name = declared.get("prompts"), declared.get("default_prompt_name")
    if prompt := prompts.get(name) if isinstance(prompts, dict) and isinstance(name, str) else None:
        raise UsageError(
            where=path,
            found=f"the prompt {prompt!r:.80} before every pair (default_prompt_name {name!s:.40})",
            expected="a cross-encoder that reads query and passage as they are",
            hint="take default_prompt_name out of that file, and it is read without",
        )


def load_classifier(folder: Path, new_head: int | None = None) -> PreTrainedModel:
    """Load a sequence classifier in float32, in evaluation mode, on the CPU.

    Args:
        folder: of a Hugging Face model.
        new_head: seed of a new head of one label, where the folder has none; default: the head must be there.

    Raises:
        UsageError: it cannot be loaded without code of its own, lacks weights, or has more than two labels.
    """

    def arguments(config: PreTrainedConfig) -> dict[str, Any]:
        if new_head is not None:
            config.num_labels = 1
        return {}

    expected = "a sequence classifier (cross-encoder) of an architecture that transformers knows, with its weights"
    model, missing, _ = load_weights(AutoModelForSequenceClassification, folder, new_head or 0, arguments, expected)
    expected = "a cross-encoder, with the head that it was trained with"
    if new_head is not None:  # but for the head, which is to be made
        inner, expected = f"{model.base_model_prefix}.", "those of an encoder"
        missing = [key for key in missing if key.startswith(inner) and ".pooler." not in key]
    refuse_missing(folder, missing, expected)
    labels = model.config.num_labels
    if model.config._attn_implementation == "sdpa" and getattr(model, "_supports_attention_backend", False):
        model.set_attn_implementation(_PADDED)
    if labels not in (1, 2):
        raise UsageError(
            f"{folder}: found a classifier of {labels} labels, expected one (its logit is the score) or two (relevant "
            "is the second)"
        )
    model.train(False)
    return model


def fitting(model: PreTrainedModel, length: int | None) -> int:
    """Return how many tokens of a pair are kept. Raises `UsageError` below 16, or beyond the model's positions."""
    inner = model.base_model
    bound = longest(inner if isinstance(inner, PreTrainedModel) else model)
    tokens = min(LENGTH, bound or LENGTH) if length is None else length
    if tokens < _SHORTEST or (bound is not None and tokens > bound):
        most = "" if bound is None else f" to {bound}, which the model has positions for"
        raise UsageError(f"found a length of {tokens} tokens, expected {_SHORTEST}{most or ' or more'}")
    return tokens


def tokenised(
    model: PreTrainedModel, words: PreTrainedTokenizerBase, pairs: Sequence[Pair], length: int
) -> list[PairTokens]:
    """Tokenise at least one pair with special tokens, cut at `length`; the model says whether segments have types."""
    queries = _halved(words, [query for query, _ in pairs], length // 2)
    segments = (getattr(model.config, "type_vocab_size", 0) or 0) > 1 and "token_type_ids" in words.model_input_names
    encoded: Any = words(
        queries,
        [passage for _, passage in pairs],
        truncation="only_second",
        max_length=length,
        return_attention_mask=False,
        return_token_type_ids=segments,
    )
    types = encoded["token_type_ids"] if segments else [None] * len(pairs)
    return [PairTokens(ids, kinds) for ids, kinds in zip(encoded["input_ids"], types, strict=True)]


def forward(model: PreTrainedModel, rows: Sequence[PairTokens], batch_tokens: int) -> torch.Tensor:
    """Score rows, with gradients where they are on: `[n]`, float32, on the model's device, in the order given.

    Of two labels the score is the second's logit minus the first's. Batches are sorted by length and padded.
    """

    def padded(values: list[list[int]], filler: int) -> torch.Tensor:
        return to_device(pad_sequence([torch.tensor(row) for row in values], True, filler), model.device)

    batches, logits = budget([len(row.ids) for row in rows], batch_tokens), []
    for batch in batches:
        inputs = {"input_ids": padded([rows[at].ids for at in batch], model.config.pad_token_id or 0)}
        if len({len(rows[at].ids) for at in batch}) > 1:  # without padding a mask is none
            inputs["attention_mask"] = padded([[1] * len(rows[at].ids) for at in batch], 0)
        if types := [segments for at in batch if (segments := rows[at].types) is not None]:
            inputs["token_type_ids"] = padded(types, 0)
        logits.append(wide(model(**inputs).logits))  # [len(batch), labels]
    columns = torch.cat(logits).unbind(1)
    scores = columns[0] if len(columns) == 1 else columns[1] - columns[0]
    return scores[to_device(np.argsort(np.concatenate(batches)), scores.device)]


def _mask(attention_mask: torch.Tensor | None, **options: Any) -> torch.Tensor | None:
    """Make the mask of a padded batch as transformers does, which first asks the device whether there is padding."""
    if attention_mask is not None:
        options["allow_is_bidirectional_skip"] = False
    mask: torch.Tensor | None = sdpa_mask(**options, attention_mask=attention_mask)
    return mask


AttentionInterface.register(_PADDED, AttentionInterface()["sdpa"])
AttentionMaskInterface.register(_PADDED, _mask)


def _halved(words: PreTrainedTokenizerBase, queries: list[str], most: int) -> list[str]:
    """Cut queries that are longer than so many tokens; a query often comes with many passages."""
    distinct = list(dict.fromkeys(queries))
    encoded: Any = words(
        distinct,
        add_special_tokens=False,
        truncation=True,
        max_length=most,
        return_offsets_mapping=True,
        return_attention_mask=False,
        return_token_type_ids=False,
    )["offset_mapping"]
    ends = (offsets[-1][1] if len(offsets) >= most else None for offsets in encoded)
    shortened = {query: query[:end] for query, end in zip(distinct, ends, strict=True)}
    return [shortened[query] for query in queries]
