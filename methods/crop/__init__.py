"""Crop: two pieces of a document find each other among those of other documents. Importing it imports no torch."""

from bench import Choice, LogUniform, Method, Preset, hookimpl
from methods.crop.config import CropConfig

_MSM = Preset(
    values={
        "variant": "sentence",
        "pooling": "cls",
        "window": 5,
        "symmetric": False,
        "heads": "separate",
        "similarity": "cos",
        "temperature": 0.1,
        "pairs": 512,
        "document_pairs": 32,
        "gather_negatives": False,
        "accumulate": 16,
        "learning_rate": 4e-5,
        "warm_up": 0.05,
        "beta2": 0.98,
        "epsilon": 1e-6,
        "clip": None,
        "mlm.probability": 0.5,
        "mlm.tokens": 256,
        "mlm.sequences": 128,
    },
    source=(
        "MSM (arXiv 2302.01626) and its code (shunyuzh/MSM): window 5, first token, two heads, 512 pairs of 16 "
        "documents a GPU, 16 batches a step, 4e-5, 10k of 200k steps, no clipping. Its code can mask pairs of the "
        "same document or not, which its runs did is unknown: masked here"
    ),
    summary="MSM's baseline for XLM-R base: heads and masked language modelling included",
)

CROP = Method(
    name="crop",
    version="2",
    summary="Two pieces of a document belong together; those of the other documents in the batch do not.",
    citation=(
        "The baseline CROP of: Shunyu Zhang et al. 2023. Modeling Sequential Sentence Relation to Improve "
        "Cross-lingual Dense Retrieval. ICLR 2023 (arXiv 2302.01626). Cropping: Luyu Gao and Jamie Callan. 2022. "
        "Unsupervised Corpus Aware Language Model Pre-training for Dense Passage Retrieval. ACL 2022."
    ),
    config=CropConfig,
    contract=CropConfig.contract,
    trainer="methods.crop.trainer:CropTrainer",
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets={
        "paper": _MSM,
        "msm": _MSM,
        "cocondenser": Preset(
            values={
                "variant": "span",
                "pooling": "cls",
                "similarity": "dot",
                "temperature": 1.0,
                "pairs": 2048,
                "chunk_tokens": 16_384,
                "learning_rate": 1e-4,
                "warm_up": 0.1,
                "weight_decay": 0.01,
                "span.tokens": 128,
                "span.head_layers": 2,
                "span.late_mlm": True,
            },
            source=(
                "luyug/Condenser, coCondenser's recipe: 1e-4, a tenth of warm-up, decay 0.01, about 2048 documents by "
                "gradient caching, 8 epochs, spans of 128 tokens, head of 2 layers, late prediction; clipping is ours"
            ),
            summary="coCondenser: disjoint masked spans, Condenser's head; its backbone is a Condenser, ours any",
        ),
        "contriever-crops": Preset(
            values={
                "variant": "token",
                "token.low": 0.05,
                "token.high": 0.5,
                "pooling": "mean",
                "similarity": "dot",
                "temperature": 0.05,
                "symmetric": False,
            },
            source="Contriever (arXiv 2112.09118), appendix A.1: independent crops of 5 to 50 % of 256 tokens, 0.05",
            summary="Contriever's crops with negatives of the batch; its queue is method contriever",
        ),
    },
    space={
        "learning_rate": LogUniform(3e-4, 1e-2),
        "temperature": LogUniform(0.03, 0.3),
        "pairs": Choice((32, 64, 128)),
    },
    describe=__name__,
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return crop."""
    return [CROP]
