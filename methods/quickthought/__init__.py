"""Quick-Thoughts: a sentence must find its neighbours among all other sentences. Torch-free."""

from typing import Literal

from bench import Method, constant, declared, hookimpl, setting
from bench.training import DenseConfig, Pass, PoolBy


class QuickThoughtConfig(DenseConfig):
    """What decides quickthought's training, and how its encoder reads texts."""

    context: int = constant(1, source="lajanugen/S2V: one sentence on each side")
    sentences: int = constant(
        8, source="ours: S2V's corpus is one running text; ours are documents of a dozen sentences"
    )
    pairs: int = setting(
        12,
        ge=1,
        source="ours: about a hundred sentences; lajanugen/S2V has batches of 400",
        help="documents in a batch; every sentence of the others is a negative",
    )
    encoders: Literal["two"] = constant(
        "two", source="lajanugen/S2V: one encoder for the sentence, another one for its neighbours"
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
    gather_negatives: Literal[True] = constant(True, source="ours: as every method here")

    def own_passes(self, sentence: float, document: float) -> tuple[Pass, ...]:
        """Return the pass over all sentences, once for each of two encoders."""
        (of_pairs,) = super().own_passes(sentence, document)
        return (of_pairs._replace(tokens=self.sentences * of_pairs.tokens, calls=2),)


QUICKTHOUGHT = Method(
    config=QuickThoughtConfig,
    encoder_config=QuickThoughtConfig.encoder_config,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return quickthought."""
    return [QUICKTHOUGHT]
