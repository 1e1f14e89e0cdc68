"""The settings of crop."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from bench.config import setting
from bench.training.config import TrainingConfig


class CropConfig(TrainingConfig):
    """What decides crop's training, and how its encoder reads texts."""

    variant: Literal["sentence", "span", "token"] = setting(
        "sentence",
        source="MSM's baseline CROP: two sentences of a document",
        help="what the two views of a document are; span and token are planned",
    )
    window: int | None = setting(
        None,
        ge=1,
        source="MSM describes two sentences of a document; its code's default is 5",
        help="how many sentences apart the two are at most; nothing: anywhere in the document",
    )
    similarity: Literal["cos", "dot"] = setting(
        "cos", source="MSM's code: cosine", help="how the two vectors are compared, in training and in search"
    )
    symmetric: bool = setting(
        True,
        source="ours: the two sentences are drawn alike, so each may ask for the other; the papers leave it open",
        help="each sentence of a pair tells the other from its rivals; false: the first alone",
    )
    pooling: Literal["mean", "cls"] = setting(
        "mean",
        source="ours: from random weights the mean learns sooner; MSM's code trains cls",
        help="what stands for a text: the mean over all tokens, or the first token",
    )
    query_tokens: int = setting(
        64, ge=3, source="ours: as sentences in training", help="tokens kept of a query, special ones included"
    )
    passage_tokens: int = setting(
        256, ge=3, source="DPR: 256 tokens", help="tokens kept of a passage, special ones included"
    )

    @field_validator("variant")
    @classmethod
    def _there(cls, variant: str) -> str:
        """Refuse what is planned, but not there."""
        if variant != "sentence":
            raise ValueError("sentence; span (coCondenser) and token (Contriever's crops) are not there yet")
        return variant
