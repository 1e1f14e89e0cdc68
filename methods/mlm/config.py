"""The settings of mlm."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from bench import setting
from bench.training import BlocksConfig, DenseConfig, PoolBy

UNUSED = ("pairs", "temperature", "sentence_tokens")
"""Settings of other methods that mean nothing here."""


class MlmMethodConfig(DenseConfig):
    """What decides the training of a language model alone, and how its encoder reads texts."""

    mlm: BlocksConfig = BlocksConfig()
    pooling: PoolBy = setting(
        "mean", source="ours: nothing trains the first token's vector; the mean is the usual reading of such encoders"
    )

    @model_validator(mode="after")
    def _used(self) -> Self:
        """Refuse settings that would change nothing."""
        for name in UNUSED:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} changes nothing in mlm, which has no pairs; set mlm.sequences, mlm.tokens")
        return self
