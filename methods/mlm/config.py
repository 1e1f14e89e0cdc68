"""The settings of mlm."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from bench.config import setting
from bench.training.config import BlocksConfig, DenseConfig

UNUSED = ("pairs", "temperature", "sentence_tokens")
"""Settings of other methods that mean nothing here."""


class MlmMethodConfig(DenseConfig):
    """What decides the training of a language model alone, and how its encoder reads texts."""

    mlm: BlocksConfig = BlocksConfig()
    pooling: Literal["mean", "cls"] = setting(
        "mean",
        source="ours: nothing trains the first token's vector; the mean is the usual reading of such encoders",
        help="what stands for a text: the mean over all tokens, or the first token",
    )

    @model_validator(mode="after")
    def _used(self) -> Self:
        """Refuse settings that would change nothing."""
        for name in UNUSED:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} changes nothing in mlm, which has no pairs; set mlm.sequences, mlm.tokens")
        return self
