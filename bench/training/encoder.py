"""The encoder while it is trained: token ids in, vectors out, tokens counted."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from transformers import PreTrainedModel

from bench.data import tokenizer
from bench.dense import Contract
from bench.encoding import backbones
from bench.encoding.packed import Ids, Packed, first_position, forward, load_model, longest, pack, pool
from bench.errors import UsageError

Views = Sequence[Sequence[Ids]]
"""Sequences of token ids, special tokens included, for each view of a batch; row i of all views belongs together."""


@dataclass
class Meter:
    """Counts non-padding tokens that an encoder has seen."""

    tokens: int = 0


@dataclass(frozen=True)
class TrainableEncoder:
    """A model with the pooling of its contract. Calling it is a packed forward pass with gradients.

    Args:
        model: the weights.
        start: the folder that they came from; its tokenizer, config and contract go with them again.
        contract: pooling and layer; what is trained is what is later searched with.
        precision: of the forward pass.
        meter: what it adds to; a second encoder (e.g. a momentum copy) shares it.
    """

    model: PreTrainedModel
    start: Path
    contract: Contract
    precision: Literal["float32", "bfloat16"] = "float32"
    meter: Meter = field(default_factory=Meter)

    @staticmethod
    def load(start: Path, device: str, precision: Literal["float32", "bfloat16"] = "float32") -> TrainableEncoder:
        """Load the encoder before training, in training mode (dropout on).

        Raises:
            UsageError: the folder is no encoder's.
        """
        model = load_model(start, device)
        model.train()
        return TrainableEncoder(model, start, Contract.load(start), precision)

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return self.model.device

    def __call__(self, sequences: Sequence[Ids]) -> torch.Tensor:
        """Return the vectors of sequences, float32 `[n, d]`, not normalised."""
        hidden, packed = self.hidden(sequences)
        return pool(hidden.float(), packed, self.contract.pooling)

    def together(self, views: Views) -> tuple[torch.Tensor, ...]:
        """Return the vectors of every view, each `[n, d]`, in one forward pass."""
        vectors = self([sequence for view in views for sequence in view])
        parts: tuple[torch.Tensor, ...] = vectors.split([len(view) for view in views])
        return parts

    def hidden(self, sequences: Sequence[Ids]) -> tuple[torch.Tensor, Packed]:
        """Return the hidden states of all tokens `[T, d]`, and where each sequence lies in them.

        Raises:
            UsageError: a sequence is longer than the model's positions.
        """
        bound, most = longest(self.model), max(map(len, sequences))
        if bound is not None and most > bound:
            raise UsageError(f"a sequence has {most} tokens, but {self.start.name} has positions for {bound}; cut more")
        packed = pack(sequences, first_position(self.model)).to(self.device)
        self.meter.tokens += len(packed.ids)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            return forward(self.model, packed, self.contract.layer), packed

    def save(self, folder: Path) -> None:
        """Write a plain Hugging Face folder: these weights, and the other files of the start as they were."""
        backbones.save(self.model, tokenizer.load(self.start), folder)
        for path in sorted(self.start.iterdir()):
            if path.is_file() and not path.name.startswith("model.safetensors"):
                shutil.copyfile(path, folder / path.name)
