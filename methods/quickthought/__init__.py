"""Quick-Thoughts: a sentence must find its neighbours among all other sentences. Torch-free."""

from __future__ import annotations

from collections.abc import Iterable

from bench import Choice, LogUniform, Method, Preset, hookimpl
from methods.quickthought.config import QuickThoughtConfig

QUICKTHOUGHT = Method(
    name="quickthought",
    version="1",
    summary="A sentence must find its neighbours among all sentences of the batch, by two encoders.",
    citation=(
        "Lajanugen Logeswaran and Honglak Lee. 2018. An Efficient Framework for Learning Sentence Representations. "
        "ICLR 2018."
    ),
    config=QuickThoughtConfig,
    contract=QuickThoughtConfig.contract,
    trainer="methods.quickthought.trainer:QuickThoughtTrainer",
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets={
        "paper": Preset(
            values={"pairs": 50, "learning_rate": 5e-4, "weight_decay": 0.0, "similarity": "dot", "temperature": 1.0},
            source="lajanugen/S2V: batches of 400 sentences, Adam at 5e-4, inner products, one neighbour on each side",
            summary="the public code's recipe, but for its GRU",
        )
    },
    space={
        "learning_rate": LogUniform(3e-4, 5e-3),
        "temperature": LogUniform(0.05, 2.0),
        "pairs": Choice((32, 64, 128)),
    },
    describe=__name__,
)


@hookimpl
def bench_methods() -> Iterable[Method]:
    """Bring quickthought."""
    return [QUICKTHOUGHT]
