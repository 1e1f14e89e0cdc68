"""Quick-Thoughts: a sentence must find its neighbours among all other sentences. Torch-free."""

from typing import Literal

from bench import Method, declared, hookimpl, setting
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
    config=QuickThoughtConfig,
    contract=QuickThoughtConfig.contract,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return quickthought."""
    return [QUICKTHOUGHT]
