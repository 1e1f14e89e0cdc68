"""Condenser and coCondenser: a head condenses a text into one late vector. Importing it imports no torch."""

from typing import Literal

from bench import Choice, LogUniform, Method, Preset, constant, hookimpl, setting
from bench.training import SHORTEST, DenseConfig, MaskConfig, Pass, StopWhen


class CondenserConfig(DenseConfig):
    """What decides the training, and how its encoder reads texts."""

    variant: Literal["condenser", "cocondenser"] = setting(
        "cocondenser",
        source="ours: the later of the two papers; its training starts from a Condenser",
        help="condenser: prediction alone, a span of each document; cocondenser: two, which also find each other",
    )
    tokens: int = setting(
        32,
        ge=SHORTEST,
        source="ours: documents of the mini world have about 140 tokens",
        help="tokens of a span, special ones included: as many whole sentences as fit",
    )
    masking: MaskConfig = MaskConfig()
    head_layers: int = setting(
        2, ge=1, source="the authors' scripts: --n_head_layers 2", help="layers over late first tokens and early others"
    )
    late_mlm: bool = setting(
        True, source="the authors' scripts: --late_mlm", help="hidden tokens are predicted from the last layer too"
    )
    pooling: Literal["cls"] = constant("cls", source="the authors' code: the first token's last state")
    similarity: Literal["cos", "dot"] = setting(
        "dot",
        source="the authors' code: dot products",
        help="how two vectors are compared, in training and search",
    )
    temperature: float = setting(
        1.0, gt=0, source="the authors' code: none", help="what dot products are divided by before the softmax"
    )
    stop_when: StopWhen = constant("never", source="ours: its vectors look collapsed before predictions are learnt")
    sentence_tokens: int = constant(64, source="spans are of several sentences; set tokens")
    chunk_tokens: None = constant(None, source="ours: a page of code; crop with variant=span has GradCache")

    def own_passes(self, sentence: float, document: float) -> tuple[Pass, ...]:
        """Return the pass over one batch's spans."""
        spans = self.pairs * (2 if self.variant == "cocondenser" else 1)
        length = min(self.tokens, document / 2)
        return (Pass(spans * length, length, masked=True),)


CONDENSER = Method(
    name="condenser",
    version="1",
    summary="A head predicts hidden tokens from early states and one late vector; spans of a document find each other.",
    citation="Luyu Gao and Jamie Callan. 2021. Condenser: a Pre-training Architecture for Dense Retrieval. EMNLP 2021 "
    "(arXiv 2104.08253). Luyu Gao and Jamie Callan. 2022. Unsupervised Corpus Aware Language Model Pre-training for "
    "Dense Passage Retrieval. ACL 2022 (arXiv 2108.05540).",
    config=CondenserConfig,
    encoder_config=CondenserConfig.encoder_config,
    trainer="bench_condenser.trainer:CondenserTrainer",
    libraries=("numpy", "safetensors", "torch", "transformers"),
    learns=False,  # from random weights its first token learns too late, as the card says
    presets={
        "paper": Preset(
            {"learning_rate": 1e-4, "warm_up": 0.1, "pairs": 2048, "tokens": 128},
            source="luyug/Condenser, run_co_pre_training: rate 1e-4, warm-up over a tenth, roughly 2048 documents a "
            "batch; spans of 128 tokens are ours",
            summary="coCondenser from a backbone that was trained before, best a Condenser",
        ),
        "condenser": Preset(
            {"variant": "condenser", "learning_rate": 1e-4, "warm_up": 0.1, "tokens": 128},
            source="luyug/Condenser, run_pre_training: rate 1e-4, warm-up over a tenth; texts of 128 tokens are ours",
            summary="the first stage alone, whose encoder the second takes as its --backbone",
        ),
    },
    space={"learning_rate": LogUniform(1e-4, 5e-3), "warm_up": Choice((0.05, 0.1, 0.2))},
    describe=__name__,
    licence="Apache-2.0",
    code="https://github.com/luyug/Condenser",
)


@hookimpl
def bench_methods() -> list[Method]:
    """Bring condenser."""
    return [CONDENSER]
