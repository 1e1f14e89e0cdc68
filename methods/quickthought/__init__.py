"""Quick-Thoughts: a sentence must find its neighbours among all other sentences. Torch-free."""

from typing import Literal

from bench import Choice, LogUniform, Method, Preset, hookimpl, setting
from bench.training import DenseConfig, PoolBy


class QuickThoughtConfig(DenseConfig):
    """What decides quickthought's training, and how its encoder reads texts."""

    context: int = setting(
        1, ge=1, source="lajanugen/S2V: one sentence on each side", help="how far away a neighbour is at most"
    )
    sentences: int = setting(
        8,
        ge=2,
        source="ours: S2V's corpus is one running text; ours are documents of a dozen sentences",
        help="consecutive sentences taken of a document, at most",
    )
    pairs: int = setting(
        12,
        ge=1,
        source="ours: about a hundred sentences; lajanugen/S2V has batches of 400",
        help="documents in a batch; every sentence of the others is a negative",
    )
    encoders: Literal["two", "one"] = setting(
        "two",
        source="lajanugen/S2V: one encoder for the sentence, another one for its neighbours",
        help="whether the neighbours have an encoder of their own, which is not exported",
    )
    temperature: float = setting(
        1.0, gt=0, source="lajanugen/S2V: none", help="what products are divided by before the softmax"
    )
    similarity: Literal["cos", "dot"] = setting(
        "dot",
        source="lajanugen/S2V: inner product",
        help="how two vectors are compared, in training and in search",
    )
    pooling: PoolBy = setting(
        "mean", source="ours: from random weights the mean learns sooner; lajanugen/S2V has the last state of a GRU"
    )
    gather_negatives: bool = setting(
        True, source="ours: as every method here", help="with several processes, the others' sentences are negatives"
    )


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
        "mini": Preset(
            values={"similarity": "cos", "temperature": 0.1},
            source=(
                "ours: measured on the mini world, where random weights make vectors of one direction: by inner "
                "product their lengths decide, in training and in search"
            ),
            summary="for random weights and a budget of a minute; profile mini takes it",
        ),
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
    describe=__name__,
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return quickthought."""
    return [QUICKTHOUGHT]
