"""The inverse cloze task: which block was a sentence taken from. Importing it imports no torch."""

from typing import Literal

from bench import Method, constant, declared, hookimpl, setting
from bench.training import SHORTEST, DenseConfig, Pass, PoolBy


class IctConfig(DenseConfig):
    """What decides the training by the inverse cloze task, and how its encoder reads texts."""

    mask_rate: float = setting(
        0.9,
        ge=0,
        le=1,
        source="Lee et al. 2019 (ORQA): the sentence stays in its block in 10 % of the examples",
        help="share of the examples in which the sentence is taken out of its block",
    )
    block_tokens: int = setting(
        288,
        ge=SHORTEST,
        source="google-research/language, orqa: blocks of 288",
        help="tokens of a block of whole sentences, special ones included",
    )
    projection_dim: int = setting(
        128,
        ge=1,
        source="google-research/language, orqa: 128",
        help="width of the projection behind which texts are compared in training; it is not kept",
    )
    projection_dropout: float = setting(
        0.1,
        ge=0,
        lt=1,
        source="google-research/language, orqa: 0.1",
        help="dropout after the projection",
    )
    temperature: float = setting(
        1.0, gt=0, source="ORQA: none, which is 1", help="what dot products are divided by before the softmax"
    )
    sentence_tokens: int = setting(
        64,
        ge=SHORTEST,
        source="google-research/language, orqa: queries of 64",
        help="tokens kept of the sentence, special ones included",
    )
    passage_tokens: int = setting(
        288,
        ge=SHORTEST,
        source="google-research/language, orqa: blocks of 288",
        help="tokens kept of a passage in search, special ones included",
    )
    pooling: PoolBy = setting(
        "cls", source="methods.md decides: XLM-R's pooler is untrained, so the first token itself"
    )
    similarity: Literal["cos", "dot"] = setting(
        "cos",
        source="ours: measured on the mini world; the projection in whose space the dot product was trained is gone",
        help="how two vectors are compared in search; in training it is the dot product of projections",
    )
    gather_negatives: Literal[True] = constant(True, source="ORQA: blocks of all devices are candidates")

    def own_passes(self, sentence: float, document: float) -> tuple[Pass, ...]:
        """Return the passes over sentences and over blocks, which go through the encoder together."""
        query, block = min(self.sentence_tokens, sentence + 2), min(self.block_tokens, document)
        return Pass(self.pairs * query, query), Pass(self.pairs * block, block, calls=0)


ICT = Method(
    config=IctConfig,
    encoder_config=IctConfig.encoder_config,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return the inverse cloze task."""
    return [ICT]
