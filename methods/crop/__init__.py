"""Crop: two pieces of a document find each other among those of other documents. Importing it imports no torch."""

from typing import Literal, Self

from pydantic import model_validator

from bench import Config, Method, constant, declared, hookimpl, setting
from bench.training import SHORTEST, DenseConfig, MlmConfig, Pass, PoolBy

_PAIR = 2


class CropMlm(MlmConfig):
    """Masked language modelling as a companion of crop; `mask`, `keep` and `random` also hide the tokens of spans."""

    probability: float = setting(
        0.0,
        ge=0,
        lt=1,
        source="ours: none, so that crop is the plainest method; MSM's code trains both (preset msm)",
        help="share of the batches that are masked language modelling; 0: none",
    )


class SpanConfig(Config):
    """Variant span: spans, and coCondenser's head that predicts their hidden tokens."""

    tokens: int = setting(
        32,
        ge=SHORTEST,
        source="ours: documents of the mini world have about 140 tokens; coCondenser's recipe: 128",
        help="tokens of a span, special ones included: as many whole sentences as fit",
    )
    masked: bool = constant(True, source="coCondenser's code (luyug/Condenser): vectors come from masked text")
    head_layers: int = setting(
        2, ge=1, source="Condenser: a head of two layers", help="layers over the late first token and early others"
    )
    early_layer: int | None = constant(None, source="Condenser: layer 6 of 12, the middle one")
    late_mlm: bool = setting(
        True,
        source="coCondenser's recipe: --late_mlm",
        help="hidden tokens are predicted from the last layer too; false: from the head alone",
    )


class TokenConfig(Config):
    """Variant token: two crops of a stretch of text."""

    stretch: int = constant(256, source="Contriever: 256 tokens")
    low: float = setting(
        0.1,
        ge=0,
        le=1,
        source="mContriever's script: crops of 10 to 50 %; Contriever, appendix A.1: 5 to 50 % (preset)",
        help="least share of the stretch",
    )
    high: float = setting(
        0.5, gt=0, le=1, source="Contriever and mContriever: up to 50 %", help="largest share of the stretch"
    )

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low is {self.low} and high {self.high}; the least share is at most the largest")
        return self


class CropConfig(DenseConfig):
    """What decides crop's training, and how its encoder reads texts."""

    variant: Literal["sentence", "span", "token"] = setting(
        "sentence",
        source="MSM's baseline CROP: two sentences of a document",
        help="the two views of a document: sentences, disjoint spans (coCondenser), or crops of tokens (Contriever)",
    )
    window: int | None = setting(
        None,
        ge=1,
        source="MSM describes two sentences of a document; its code's default is 5",
        help="variant sentence: how many sentences apart the two are at most; unset: anywhere in the document",
    )
    document_pairs: int = setting(
        1,
        ge=1,
        source="ours: one, so that no negative is of the same document; MSM's code has one for each sentence",
        help="variant sentence: pairs of each document in a batch",
    )
    pack: bool = setting(
        False,
        late=True,
        source="ours: a sentence is the plainest view; MSM's code packs sentences while they fit (presets paper, msm)",
        help="variant sentence: a view is as many sentences as fit into sentence_tokens; false: one sentence",
    )
    partners: Literal["drawn", "of-each"] = setting(
        "drawn",
        late=True,
        source="ours: pairs of a document are drawn one by one; MSM's code draws a partner for each unit of a block",
        help="variant sentence: both of a pair at random; of-each: each view of a block of document_pairs asks once",
    )
    inbatch_mode: Literal["mask"] = constant(
        "mask", source="ours: negatives of the same document are false ones; which MSM's runs used is not known"
    )
    symmetric: bool = setting(
        True,
        source="ours: the two sentences are drawn alike, so each may ask for the other; the papers leave it open",
        help="each view of a pair has the other as its target; false: the first alone (span: always each)",
    )
    pooling: PoolBy = setting("mean", source="ours: from random weights the mean learns sooner; MSM's code trains cls")
    heads: Literal["separate", "shared", "none"] = setting(
        "none",
        source="ours: what is trained is what is searched with; MSM's code has separate ones (preset msm)",
        help="projection heads of the two views, in training alone; not for variant span",
    )
    sync_bn: bool = constant(False, source="ours: each process by itself, as MSM's code")
    gather_negatives: bool = setting(
        True,
        source="coCondenser's code; ours: a batch is that of all processes",
        help="views of all processes are candidates; false: of the own process alone",
    )
    span: SpanConfig = SpanConfig()
    token: TokenConfig = TokenConfig()
    mlm: CropMlm = CropMlm()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.variant == "span" and self.heads != "none":
            raise ValueError("variant span has no projection heads: set heads to none")
        if self.document_pairs > 1 and self.variant != "sentence":
            raise ValueError(f"variant {self.variant} draws one pair of a document: set document_pairs to 1")
        if (self.pack or self.partners == "of-each") and self.variant != "sentence":
            raise ValueError(f"variant {self.variant} has no sentences: set pack to false and partners to drawn")
        if self.partners == "of-each" and self.document_pairs < _PAIR:
            raise ValueError(f"document_pairs is {self.document_pairs}; with partners=of-each a block has two or more")
        if self.pairs < 2 * self.document_pairs:
            raise ValueError(
                f"pairs is {self.pairs} and document_pairs {self.document_pairs}; that is one document a batch, "
                "which has no negatives: raise pairs"
            )
        return self

    def own_passes(self, sentence: float, document: float) -> tuple[Pass, ...]:
        """Return the pass over both views, which spans go on from to the layers of a head."""
        (both,) = super().own_passes(sentence, document)
        return (both._replace(layers=self.span.head_layers if self.variant == "span" else 0),)


CROP = Method(
    config=CropConfig,
    encoder_config=CropConfig.encoder_config,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return crop."""
    return [CROP]
