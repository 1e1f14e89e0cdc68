"""RetroMAE: a text is rebuilt from one vector and a few of its tokens. Importing it imports no torch."""

from typing import Literal

from bench import Choice, LogUniform, Method, Preset, constant, hookimpl, setting
from bench.training import BlocksConfig, DenseConfig, StopWhen


class RetroMaeBlocks(BlocksConfig):
    """Stretches of documents with hidden tokens, more of them than BERT hides."""

    mask: float = setting(
        0.3, gt=0, le=1, source="RetroMAE, section 4.1, and its script", help="share of the tokens that are hidden"
    )


class RetroMaeConfig(DenseConfig):
    """What decides the training, and how its encoder reads texts."""

    mlm: RetroMaeBlocks = RetroMaeBlocks()
    decoder_mask: float = setting(
        0.5, ge=0, lt=1, source="RetroMAE, section 4.1, and its script", help="share hidden from each place"
    )
    pooling: Literal["cls"] = constant("cls", source="RetroMAE, section 3.1: the first token's last state")
    pairs: int = constant(64, source="there are no pairs; set mlm.sequences")
    temperature: float = constant(0.1, source="no vectors are compared")
    stop_when: StopWhen = constant("never", source="no vectors are compared, so they may look collapsed and be none")
    sentence_tokens: int = constant(64, source="no single sentences are read; set mlm.tokens")
    chunk_tokens: None = constant(None, source="ours: no vectors of a batch meet, so accumulate does what chunks do")


RETROMAE = Method(
    name="retromae",
    version="1",
    summary="One layer rebuilds a text from its vector and half of its tokens, another half for every place.",
    citation="Shitao Xiao, Zheng Liu, Yingxia Shao and Zhao Cao. 2022. RetroMAE: Pre-Training Retrieval-oriented "
    "Language Models Via Masked Auto-Encoder. EMNLP 2022 (arXiv 2205.12035).",
    config=RetroMaeConfig,
    encoder_config=RetroMaeConfig.encoder_config,
    trainer="bench_retromae.trainer:RetroMaeTrainer",
    libraries=("numpy", "safetensors", "torch", "transformers"),
    learns=False,  # what it learns from random weights in a moment is which words are frequent
    presets={
        "paper": Preset(
            {"learning_rate": 1e-4, "warm_up": 0.1, "mlm.tokens": 512, "mlm.sequences": 32},
            source="RetroMAE, section 4.1: rate, 32 texts a device (of 8); the authors' script: warm-up, 512 tokens",
            summary="a backbone that was trained before goes on",
        )
    },
    space={
        "learning_rate": LogUniform(1e-4, 5e-3),
        "warm_up": Choice((0.05, 0.1, 0.2)),
        "decoder_mask": Choice((0.5, 0.7)),
    },
    describe=__name__,
    licence="Apache-2.0",
    code="https://github.com/staoxiao/RetroMAE",
)


@hookimpl
def bench_methods() -> list[Method]:
    """Bring retromae."""
    return [RETROMAE]
