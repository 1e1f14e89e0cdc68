"""Auto-MLM: pairs separated by hinges, and hidden tokens predicted with the sentence's own vector. Torch-free."""

from typing import Literal, Self

from pydantic import model_validator

from bench import Method, constant, declared, hookimpl, setting
from bench.training import DenseConfig, MaskConfig, Pass


class AutoMlmConfig(DenseConfig):
    """What decides auto-mlm's training, and how its encoder reads texts."""

    pairing: Literal["window", "dialogue", "session"] = setting(
        "window",
        source="ours: for corpora of documents, as CCP; Auto-MLM (arXiv 2203.16187), section 3.1: session",
        help="a pair: two sentences within a window of a document; dialogue: an utterance and the next one; session: "
        "one of the user, who begins and asks, and one of the agent, who answers, anywhere in the same session",
    )
    window: int = setting(
        5, ge=2, source="CCP, table 6 (best): 5", help="consecutive sentences that a pair is drawn from"
    )
    ctl: bool = setting(True, source="Auto-MLM, eq. 6", help="the contrastive loss over pairs")
    automlm: bool = setting(
        True,
        source="Auto-MLM, eq. 7",
        help="predict hidden tokens from their state plus the vector of the whole sentence",
    )
    mlm: bool = setting(
        False, source="Auto-MLM's ablation: CL + MLM", help="predict hidden tokens without that vector, in its place"
    )
    weight: float = setting(
        1.0, ge=0, source="Auto-MLM: λ = 1 was best", help="of the prediction of hidden tokens (λ of eq. 8)"
    )
    loss: Literal["hinge", "labse_ams"] = setting(
        "hinge",
        source="Auto-MLM, eq. 6; labse_ams: LaBSE (Feng et al. 2022), which it cites for negatives in the batch",
        help="the contrastive loss: hinges in one direction, or softmax with additive margin in both",
    )
    margin: float = setting(
        0.1, ge=0, source="Auto-MLM: 0.1; LaBSE: 0.3", help="by how much the positive must win, in cosines"
    )
    margin_sign: Literal["standard", "printed"] = setting(
        "standard",
        source="ours: with the sign as printed, one vector for all texts has loss 0",
        help="of the margin in the hinge: demanded of the positive, or as eq. 6 is printed, granted to the negative",
    )
    temperature: float = setting(
        0.05,
        gt=0,
        source="ours: the usual scale of 20; LaBSE prints none",
        help="what cosines are divided by in labse_ams; the hinge has none",
    )
    automlm_side: Literal["both", "query"] = setting(
        "both", source="ours: the text is ambiguous", help="whose tokens are hidden: of both sentences, or the first"
    )
    automlm_detach: bool = setting(
        False,
        source="Auto-MLM: an auto-encoder, gradients flow through the vector too",
        help="the prediction of hidden tokens does not train the vector",
    )
    mlm_reduction: Literal["token_mean"] = constant(
        "token_mean", source="ours: with sums, as eq. 7 is printed, λ = 1 would weigh by the number of hidden tokens"
    )
    masking: MaskConfig = MaskConfig()
    gather_negatives: Literal[True] = constant(True, source="ours: as every method here")

    @model_validator(mode="after")
    def _something(self) -> Self:
        """Refuse nothing to learn, and the two kinds of prediction at once."""
        if not (self.ctl or self.automlm or self.mlm):
            raise ValueError("ctl, automlm and mlm are all false; at least one of them is learnt")
        if self.automlm and self.mlm:
            raise ValueError("automlm and mlm are both true; mlm is automlm without the vector: set automlm=false")
        return self

    def own_passes(self, sentence: float, document: float) -> tuple[Pass, ...]:
        """Return the passes over sentences as they are, and with hidden tokens."""
        (plain,) = super().own_passes(sentence, document)
        return (plain, plain._replace(masked=True)) if self.automlm or self.mlm else (plain,)


AUTO_MLM = Method(
    config=AutoMlmConfig,
    encoder_config=AutoMlmConfig.encoder_config,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return auto-mlm."""
    return [AUTO_MLM]
