"""The inverse cloze task: which block was a sentence taken from. Importing it imports no torch."""

from __future__ import annotations

from collections.abc import Iterable

from bench import Choice, LogUniform, Method, hookimpl
from methods.ict.config import IctConfig
from methods.ict.presets import PRESETS

ICT = Method(
    name="ict",
    version="1",
    summary="Which block of text was a sentence taken from; nine times of ten the block is without it.",
    citation=(
        "Kenton Lee, Ming-Wei Chang and Kristina Toutanova. 2019. Latent Retrieval for Weakly Supervised Open Domain "
        "Question Answering. ACL 2019 (arXiv 1906.00300)."
    ),
    config=IctConfig,
    contract=IctConfig.contract,
    trainer="methods.ict.trainer:IctTrainer",
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets=PRESETS,
    space={
        "learning_rate": LogUniform(3e-4, 5e-3),
        "mask_rate": Choice((0.5, 0.9, 1.0)),
        "projection_dim": Choice((64, 128, 256)),
        "pairs": Choice((32, 64, 128)),
    },
    describe=__name__,
)


@hookimpl
def bench_methods() -> Iterable[Method]:
    """Bring the inverse cloze task."""
    return [ICT]
