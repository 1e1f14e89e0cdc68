"""MSM: a sentence is predicted from those around it. Importing it imports no torch."""

from typing import Literal, Self

from pydantic import model_validator

from bench import Config, Method, constant, declared, hookimpl, setting
from bench.training import SHORTEST, DenseConfig, MlmConfig, Pass


class LossConfig(Config):
    """Which sentences are the negatives of a masked one."""

    mode: Literal["balanced", "cross_only"] = setting(
        "balanced",
        source="MSM, eq. 1; cross_only is a row of its ablation of the loss",
        help="balanced: also its document's other sentences, down-weighted by the bias; cross_only: not those",
    )


class MsmConfig(DenseConfig):
    """What decides msm's training, and how its encoder reads texts."""

    mu: float = setting(
        0.5,
        ge=0,
        source="MSM's code: 0.5",
        help="share of the gap between near and far negatives that is taken off the near ones; 0: none",
    )
    loss: LossConfig = LossConfig()
    doc_layers: int = setting(2, ge=1, source="MSM: two layers", help="layers of the document encoder")
    doc_sentences: int = setting(
        32, ge=1, source="MSM: blocks of 32", help="units of a block, which is what the document encoder reads at once"
    )
    min_doc_sentences: int = setting(
        2,
        ge=1,
        source="MSM, section 4.2: shorter documents are kept (one unit alone has no neighbours); its code: 32",
        help="units of a block at least; shorter documents and ends of documents are left out",
    )
    pack: bool = setting(
        True,
        source="MSM's code: sentences are packed while they fit",
        help="a unit is as many sentences as fit into sentence_tokens; false: one sentence",
    )
    documents: int = setting(
        16, ge=2, source="MSM's code: 512 units, 16 documents of 32", help="blocks in a batch, of as many documents"
    )
    heads: Literal["separate", "shared", "none"] = setting(
        "separate",
        source="MSM: separate heads (its ablation: best)",
        help="projection heads of predicted and of true sentences, in training alone",
    )
    sync_bn: bool = constant(False, source="ours: each process by itself, as MSM's code")
    share_doc_encoder: Literal["all", "sep_en", "sep_en_head"] = setting(
        "all",
        source="MSM: one document encoder for all languages (its ablation: best)",
        help="sep_en: English has a document encoder of its own; sep_en_head: and heads of its own",
    )
    begin: Literal["average", "normal"] = setting(
        "normal",
        source="MSM's code: N(0, 0.02²)",
        help="average: the document encoder begins as the average of the neighbours, and separate heads begin alike",
    )
    mask_documents: bool = constant(True, source="MSM: the sentence is masked where it is predicted")
    gather_negatives: bool = setting(
        True,
        source="MSM's code (nega_gpu), which it leaves off in its best rows; ours: a batch is that of all processes",
        help="sentences of all processes are candidates; false: of the own process alone",
    )
    sentence_tokens: int = setting(
        64,
        ge=SHORTEST,
        source="MSM: 64, the first token among them",
        help="tokens of a unit, special ones included; a longer sentence is cut",
    )
    pairs: int = constant(64, source="a batch of msm is made of documents; set documents")
    mlm: MlmConfig = MlmConfig()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.min_doc_sentences > self.doc_sentences:
            raise ValueError(
                f"min_doc_sentences is {self.min_doc_sentences} and doc_sentences {self.doc_sentences}; "
                "no block is that long, lower the former"
            )
        if self.share_doc_encoder != "all" and not self.language_pure:
            raise ValueError(
                "share_doc_encoder other than all needs batches of one language: set language_pure to true"
            )
        return self

    def own_passes(self, sentence: float, document: float) -> tuple[Pass, ...]:
        """Return the pass over the units of a batch's documents; packed ones are filled to four fifths, about."""
        length = min(self.sentence_tokens, 0.8 * self.sentence_tokens if self.pack else sentence + 2)
        units = min(self.doc_sentences, max(self.min_doc_sentences, document / length))
        heads = self.documents * units * (8 + 12 * self.doc_layers * units)  # as many copies of a document as units
        return (Pass(self.documents * units * length, length, heads=heads, layers=self.doc_layers),)


MSM = Method(
    config=MsmConfig,
    encoder_config=MsmConfig.encoder_config,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return msm."""
    return [MSM]
