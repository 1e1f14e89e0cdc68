"""Bag-of-words prediction: the first token's vector says which words its text has. Importing it imports no torch."""

from typing import Literal

from bench import Choice, LogUniform, Method, Preset, constant, hookimpl, setting
from bench.training import BlocksConfig, DenseConfig, Schedule, StopWhen


class BowBlocks(BlocksConfig):
    """Stretches of documents with hidden tokens, more of them than BERT hides."""

    mask: float = setting(
        0.3,
        gt=0,
        le=1,
        source="the authors' script: --mlm_probability 0.3",
        help="share of the tokens that are hidden",
    )


class BowWeight(Schedule):
    """How much the prediction of the bag weighs beside that of hidden tokens."""

    last: float = setting(
        0.1, ge=0, source="the authors' script: --bow_factor_cosine_decay_to 0.1", help="the weight at the end"
    )
    shape: Literal["linear", "cosine"] = setting(
        "cosine", source="the authors' code: cosine decay", help="how the weight goes from first to last"
    )


class BowConfig(DenseConfig):
    """What decides the training, and how its encoder reads texts."""

    mlm: BowBlocks = BowBlocks()
    bow: BowWeight = BowWeight()
    pooling: Literal["cls"] = constant("cls", source="the authors' code: pooling_strategy cls")
    pairs: int = constant(64, source="there are no pairs; set mlm.sequences")
    temperature: float = constant(0.1, source="no vectors are compared")
    stop_when: StopWhen = constant("never", source="no vectors are compared, so they may look collapsed and be none")
    sentence_tokens: int = constant(64, source="no single sentences are read; set mlm.tokens")
    chunk_tokens: None = constant(None, source="ours: no vectors of a batch meet, so accumulate does what chunks do")


BOW = Method(
    name="bow",
    version="1",
    summary="The first token's vector predicts which words its text has, beside masked language modelling.",
    citation="Guangyuan Ma et al. 2024. Drop your Decoder: Pre-training with Bag-of-Word Prediction for Dense Passage "
    "Retrieval. SIGIR 2024 (arXiv 2401.11248).",
    config=BowConfig,
    encoder_config=BowConfig.encoder_config,
    trainer="bench_bow.trainer:BowTrainer",
    libraries=("numpy", "safetensors", "torch", "transformers"),
    learns=False,  # what it learns from random weights in a moment is which words are frequent
    presets={
        "paper": Preset(
            {
                "learning_rate": 3e-4,
                "warm_up": 4000 / 140_000,
                "mlm.tokens": 512,
                "mlm.sequences": 64,
                "accumulate": 4,
            },
            source="the authors' script (ma787639046/bowdpr), Wikipedia and BookCorpus: on each device 64 texts of 512 "
            "tokens and 4 batches a step; 4k of 140k steps warm-up",
            summary="a backbone that was trained before goes on",
            steps=140_000,
        )
    },
    space={
        "learning_rate": LogUniform(1e-4, 5e-3),
        "warm_up": Choice((0.05, 0.1, 0.2)),
        "mlm.mask": Choice((0.15, 0.3)),
        "bow.last": Choice((0.1, 1.0)),
    },
    describe=__name__,
    licence="Apache-2.0",
    code="https://github.com/ma787639046/bowdpr",
)


@hookimpl
def bench_methods() -> list[Method]:
    """Bring bow."""
    return [BOW]
