"""Quick-Thoughts: the neighbours of a sentence are told from all other sentences. Torch-free."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from bench.dense import Trainer
from bench.hookspecs import hookimpl
from bench.spaces import Choice, LogUniform
from bench.types import Method, Preset
from methods.quickthought.config import QuickThoughtConfig


def _trainer(config: QuickThoughtConfig) -> Trainer:
    """Make the trainer; torch is imported here."""
    from methods.quickthought.trainer import QuickThoughtTrainer

    return QuickThoughtTrainer(config)


def _card() -> str:
    """Return the README of this package."""
    return files(__name__).joinpath("README.md").read_text(encoding="utf-8")


QUICKTHOUGHT = Method(
    name="quickthought",
    version="1",
    summary="The sentences beside a sentence are told from all others in the batch, by two encoders.",
    citation=(
        "Lajanugen Logeswaran and Honglak Lee. 2018. An Efficient Framework for Learning Sentence Representations. "
        "ICLR 2018."
    ),
    config=QuickThoughtConfig,
    contract=QuickThoughtConfig.contract,
    trainer=_trainer,
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets={
        "paper": Preset(
            values={"pairs": 50, "learning_rate": 5e-4, "weight_decay": 0.0, "similarity": "dot", "temperature": 1.0},
            source="lajanugen/S2V: batches of 400 sentences, Adam at 5e-4, inner products, one neighbour on each side",
            summary="the public code's recipe, but for its GRU",
        ),
    },
    space={
        "learning_rate": LogUniform(3e-4, 5e-3),
        "temperature": LogUniform(0.05, 2.0),
        "pairs": Choice((32, 64, 128)),
    },
    describe=_card,
)


@hookimpl
def bench_methods() -> Iterable[Method]:
    """Bring quickthought."""
    return [QUICKTHOUGHT]
