"""Auto-MLM: pairs told apart by hinges, and hidden tokens predicted with the sentence's own vector. Torch-free."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from bench.dense import Trainer
from bench.hookspecs import hookimpl
from bench.spaces import Choice, LogUniform
from bench.types import Method
from methods.auto_mlm.config import AutoMlmConfig
from methods.auto_mlm.presets import PRESETS


def _trainer(config: AutoMlmConfig) -> Trainer:
    """Make the trainer; torch is imported here."""
    from methods.auto_mlm.trainer import AutoMlmTrainer

    return AutoMlmTrainer(config)


def _card() -> str:
    """Return the README of this package."""
    return files(__name__).joinpath("README.md").read_text(encoding="utf-8")


AUTO_MLM = Method(
    name="auto-mlm",
    version="1",
    summary="Sentences of one session belong together, and a sentence's vector must help to find its hidden tokens.",
    citation=(
        "Auto-MLM: Improved Contrastive Learning for Self-supervised Multi-lingual Knowledge Retrieval. 2022. "
        "arXiv 2203.16187."
    ),
    config=AutoMlmConfig,
    contract=AutoMlmConfig.contract,
    trainer=_trainer,
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets=PRESETS,
    space={
        "learning_rate": LogUniform(3e-4, 5e-3),
        "margin": LogUniform(0.03, 0.5),
        "weight": LogUniform(0.1, 3.0),
        "pairs": Choice((32, 64, 128)),
    },
    describe=_card,
)


@hookimpl
def bench_methods() -> Iterable[Method]:
    """Bring auto-mlm."""
    return [AUTO_MLM]
