"""Contriever's printed hyper-parameters and its ablations, as far as the method's settings reach."""

from collections.abc import Mapping
from typing import Any

from bench import Cell, Preset

_MEASURE = "BEIR nDCG@10"
_SUITE = "mrtydi"
"""Where ours is looked at; BEIR has no mini data."""
_SOURCE = "Contriever (arXiv 2112.09118), section 6, without tuning; which data sets the mean is over is the paper's"

_OPTIMISER: Mapping[str, Any] = {
    "learning_rate": 5e-5,
    "warm_up": 0.04,
    "weight_decay": 0.01,
    "beta2": 0.98,
    "epsilon": 1e-6,
    "clip": None,
    "temperature": 0.05,
    "label_smoothing": 0.0,
    "chunk_length": 256,
    "pooling": "mean",
    "similarity": "dot",
    "query_tokens": 512,
    "passage_tokens": 512,
    "language_exponent": 0.0,
    "language_pure": False,
    "key_dropout": True,
}
_AUGMENTATIONS: Mapping[str, tuple[Mapping[str, Any], float]] = {
    "ict": ({"views": "ict", "augmentation": "none"}, 25.9),
    "crop": ({"augmentation": "none"}, 32.2),
    "crop+delete": ({"augmentation": "delete"}, 33.8),
    "crop+replace": ({"augmentation": "replace"}, 32.9),
}
_QUEUES = tuple(2**power for power in range(11, 18))


def _reported(value: float) -> Mapping[str, float]:
    return {_MEASURE: value}


PRESETS: Mapping[str, Preset] = {
    "mini": Preset(
        {
            "chunk_length": 128,
            "queue": 2048,
            "momentum": 0.99,
            "norm_query": True,
            "norm_doc": True,
            "similarity": "cos",
        },
        source=(
            "ours: measured on the mini world: documents are short, a training has tens of steps, and the queue is "
            "filled in 32 of them; random weights make vectors of one direction, so that by dot product their lengths "
            "decide and the softmax is saturated from the first step on"
        ),
        summary="for random weights and a budget of a minute; profile mini takes it",
    ),
    "paper": Preset(
        {
            **_OPTIMISER,
            "loss": "moco",
            "queue": 131072,
            "momentum": 0.9995,
            "ratio_min": 0.05,
            "ratio_max": 0.5,
            "augmentation": "delete",
            "augmentation_probability": 0.1,
            "pairs": 64,
            "accumulate": 32,
        },
        source=(
            "Contriever (arXiv 2112.09118), appendix A.1, and its code: 20k of 500k steps, batches of 2048 made of 64 "
            "on each of 32 GPUs (here 32 accumulated: with a queue the same), 512 tokens in search, no clipping"
        ),
        summary="Contriever's own numbers, for BERT base",
    ),
    "mcontriever": Preset(
        {
            **_OPTIMISER,
            "loss": "moco",
            "queue": 32768,
            "momentum": 0.999,
            "ratio_min": 0.1,
            "ratio_max": 0.5,
            "augmentation": "none",
            "pairs": 64,
            "accumulate": 64,
        },
        source=(
            "mContriever's script: queue 32768, momentum 0.999, crops of 10 to 50 %, batches of 4096 made of 64 on "
            "each of 64 GPUs (here 64 accumulated); languages alike"
        ),
        summary="mContriever's own numbers, for mBERT and 29 languages",
    ),
    "negatives": Preset(
        {"chunk_length": 256, "chunk_tokens": 16_384},
        source=f"{_SOURCE}; the queue has as many keys as a batch",
        summary=(
            "keys of earlier batches against those of the same one; a step takes about half a million tokens, so a "
            "budget of millions compares nothing"
        ),
        suite=_SUITE,
        cells=(
            Cell("moco", {"loss": "moco", "queue": 4096, "pairs": 4096}, _reported(30.1)),
            Cell("in-batch", {"loss": "in-batch", "pairs": 4096}, _reported(31.9)),
        ),
    ),
    "augmentation": Preset(
        {"loss": "moco"},
        source=_SOURCE,
        summary="what the two views of a text are; ict: a crop and the rest",
        suite=_SUITE,
        cells=tuple(Cell(name, values, _reported(value)) for name, (values, value) in _AUGMENTATIONS.items()),
    ),
    "queue": Preset(
        {"loss": "moco"},
        source=f"{_SOURCE}; a figure: more is better, from 2,048 to 131,072",
        summary=(
            "how many earlier keys are negatives; queues that the budget cannot fill (64 keys a step) differ in their "
            "random rows alone, of which the log warns"
        ),
        suite=_SUITE,
        cells=tuple(Cell(f"queue={size}", {"queue": size}) for size in _QUEUES),
    ),
}
