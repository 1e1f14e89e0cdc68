"""The inverse cloze task: which block was a sentence taken from. Importing it imports no torch."""

from bench import Choice, LogUniform, Method, Preset, hookimpl
from methods.ict.config import IctConfig

ICT = Method(
    name="ict",
    version="1",
    summary="Which block of text was a sentence taken from; nine times of ten the block is without it.",
    citation=(
        "Kenton Lee, Ming-Wei Chang and Kristina Toutanova. 2019. Latent Retrieval for Weakly Supervised Open Domain "
        "Question Answering. ACL 2019 (arXiv 1906.00300)."
    ),
    config=IctConfig,
    contract=IctConfig.contract,
    trainer="methods.ict.trainer:IctTrainer",
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets={
        "mini": Preset(
            {"pooling": "mean", "block_tokens": 128, "projection_dropout": 0.0},
            source=(
                "ours: measured on the mini world, whose documents are short; from random weights neither the first "
                "token nor a projection with dropout learns anything"
            ),
            summary="for random weights and a budget of a minute; profile mini takes it",
        ),
        "paper": Preset(
            {
                "learning_rate": 1e-4,
                "warm_up": 0.1,
                "weight_decay": 0.01,
                "epsilon": 1e-6,
                "clip": 1.0,
                "pairs": 4096,
                "sampling": "blocks",  # google-research/language (orqa) draws from all blocks of the corpus
                "mask_rate": 0.9,
                "sentence_tokens": 64,
                "block_tokens": 288,
                "projection_dim": 128,
                "projection_dropout": 0.1,
                "temperature": 1.0,
                "pooling": "cls",
            },
            source=(
                "Lee et al. 2019 and google-research/language, orqa: batch 4096, 1e-4, warm-up over 10k of 100k steps; "
                "decay, epsilon and clipping are BERT's optimiser's"
            ),
            summary="ORQA's own numbers, for BERT base",
        ),
    },
    space={
        "learning_rate": LogUniform(3e-4, 5e-3),
        "mask_rate": Choice((0.5, 0.9, 1.0)),
        "projection_dim": Choice((64, 128, 256)),
        "pairs": Choice((32, 64, 128)),
    },
    describe=__name__,
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return the inverse cloze task."""
    return [ICT]
