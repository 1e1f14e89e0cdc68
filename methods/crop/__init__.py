"""Crop: two sentences of a document are told from those of other documents. Importing it imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from bench.dense import Contract, Trainer
from bench.hookspecs import hookimpl
from bench.types import Method, Preset
from methods.crop.config import CropConfig


def _trainer(config: CropConfig) -> Trainer:
    """Make the trainer; torch is imported here."""
    from methods.crop.trainer import CropTrainer

    return CropTrainer(config)


def _contract(config: CropConfig) -> Contract:
    """Return how its encoder reads texts: as in training, unit vectors where training compares by cosine."""
    return Contract(
        pooling=config.pooling,
        normalise=config.similarity == "cos",
        similarity=config.similarity,
        query_length=config.query_tokens,
        passage_length=config.passage_tokens,
        dtype=config.precision,
    )


def _card() -> str:
    """Return the README of this package."""
    return files(__name__).joinpath("README.md").read_text(encoding="utf-8")


CROP = Method(
    name="crop",
    version="1",
    summary="Two sentences of a document belong together; those of the other documents in the batch do not.",
    citation=(
        "The baseline CROP of: Shunyu Zhang et al. 2023. Modeling Sequential Sentence Relation to Improve "
        "Cross-lingual Dense Retrieval. ICLR 2023 (arXiv 2302.01626). Cropping: Luyu Gao and Jamie Callan. 2022. "
        "Unsupervised Corpus Aware Language Model Pre-training for Dense Passage Retrieval. ACL 2022."
    ),
    config=CropConfig,
    contract=_contract,
    trainer=_trainer,
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets={
        "msm": Preset(
            values={
                "pooling": "cls",
                "window": 5,
                "symmetric": False,
                "learning_rate": 4e-5,
                "warm_up": 0.05,
                "beta2": 0.98,
                "epsilon": 1e-6,
                "clip": None,
            },
            source="MSM (arXiv 2302.01626) and its code: 4e-5, 10k of 200k steps, no clipping, window 5, first token",
            summary="MSM's recipe for XLM-R, without its masked language modelling and projection heads",
        ),
    },
    describe=_card,
)


@hookimpl
def bench_methods() -> Iterable[Method]:
    """Bring crop."""
    return [CROP]
