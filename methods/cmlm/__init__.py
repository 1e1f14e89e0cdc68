"""Conditional masked language modelling: hidden tokens are predicted given the sentence before. Torch-free."""

from __future__ import annotations

from collections.abc import Iterable

from bench import Choice, LogUniform, Method, Preset, hookimpl
from methods.cmlm.config import CmlmConfig

CMLM = Method(
    name="cmlm",
    version="1",
    summary="Hidden tokens of a sentence are predicted given the vector of the sentence before it.",
    citation=(
        "Ziyi Yang et al. 2021. Universal Sentence Representation Learning with Conditional Masked Language Model. "
        "EMNLP 2021 (arXiv 2012.14388)."
    ),
    config=CmlmConfig,
    contract=CmlmConfig.contract,
    trainer="methods.cmlm.trainer:CmlmTrainer",
    learns=False,
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets={
        "paper": Preset(
            values={"learning_rate": 5e-5, "warm_up": 0.05},
            source="ours: what suits backbones that were trained before; the paper's values were not at hand",
            summary="for a backbone that was trained before",
        )
    },
    space={
        "learning_rate": LogUniform(3e-4, 5e-3),
        "masking.mask": Choice((0.15, 0.3)),
        "pooling": Choice(("cls", "mean")),
    },
    describe=__name__,
)


@hookimpl
def bench_methods() -> Iterable[Method]:
    """Bring cmlm."""
    return [CMLM]
