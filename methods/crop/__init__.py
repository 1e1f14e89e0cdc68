"""Crop: two pieces of a document find each other among those of other documents. Importing it imports no torch."""

from __future__ import annotations

from collections.abc import Iterable

from bench import Choice, LogUniform, Method, hookimpl
from methods.crop.config import CropConfig
from methods.crop.presets import PRESETS

CROP = Method(
    name="crop",
    version="2",
    summary="Two pieces of a document belong together; those of the other documents in the batch do not.",
    citation=(
        "The baseline CROP of: Shunyu Zhang et al. 2023. Modeling Sequential Sentence Relation to Improve "
        "Cross-lingual Dense Retrieval. ICLR 2023 (arXiv 2302.01626). Cropping: Luyu Gao and Jamie Callan. 2022. "
        "Unsupervised Corpus Aware Language Model Pre-training for Dense Passage Retrieval. ACL 2022."
    ),
    config=CropConfig,
    contract=CropConfig.contract,
    trainer="methods.crop.trainer:CropTrainer",
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets=PRESETS,
    space={
        "learning_rate": LogUniform(3e-4, 1e-2),
        "temperature": LogUniform(0.03, 0.3),
        "pairs": Choice((32, 64, 128)),
    },
    describe=__name__,
)


@hookimpl
def bench_methods() -> Iterable[Method]:
    """Bring crop."""
    return [CROP]
