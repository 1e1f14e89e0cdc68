"""The inverse cloze task's published hyper-parameters, and what is commonly varied."""

from __future__ import annotations

from collections.abc import Mapping

from bench import Preset

PRESETS: Mapping[str, Preset] = {
    "mini": Preset(
        {"pooling": "mean", "block_tokens": 128, "projection_dropout": 0.0},
        source=(
            "ours: measured on the mini world, whose documents are short; from random weights neither the first token "
            "nor a projection with dropout learns anything"
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
}
