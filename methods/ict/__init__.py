"""The inverse cloze task: which block was a sentence taken from. Importing it imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from bench.dense import Trainer
from bench.hookspecs import hookimpl
from bench.spaces import Choice, LogUniform
from bench.types import Method
from methods.ict.config import IctConfig
from methods.ict.presets import PRESETS


def _trainer(config: IctConfig) -> Trainer:
    """Make the trainer; torch is imported here."""
    from methods.ict.trainer import IctTrainer

    return IctTrainer(config)


def _card() -> str:
    """Return the README of this package."""
    return files(__name__).joinpath("README.md").read_text(encoding="utf-8")


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
    trainer=_trainer,
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets=PRESETS,
    space={
        "learning_rate": LogUniform(3e-4, 5e-3),
        "mask_rate": Choice((0.5, 0.9, 1.0)),
        "projection_dim": Choice((64, 128, 256)),
        "pairs": Choice((32, 64, 128)),
    },
    describe=_card,
)


@hookimpl
def bench_methods() -> Iterable[Method]:
    """Bring the inverse cloze task."""
    return [ICT]
