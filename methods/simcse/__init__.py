"""SimCSE: a sentence belongs to itself, whatever dropout leaves out. Importing it imports no torch."""

from typing import Literal

from bench import Choice, LogUniform, Method, Preset, hookimpl, setting
from bench.training import DenseConfig, PoolBy


class SimcseConfig(DenseConfig):
    """What decides SimCSE's training, and how its encoder reads texts."""

    head: Literal["mlp", "none"] = setting(
        "mlp",
        source="Gao et al. 2021 (SimCSE), section 6.3: a layer with tanh in training, dropped afterwards",
        help="the layer between the first token and the loss; it is not kept",
    )
    pooling: PoolBy = setting("cls", source="Gao et al. 2021 (SimCSE), section 6.3: the first token")
    temperature: float = setting(
        0.05, gt=0, source="SimCSE, appendix D: 0.05", help="what cosines are divided by before the softmax"
    )
    gather_negatives: bool = setting(
        True,
        source="princeton-nlp/SimCSE: sentences of all devices are gathered",
        help="with several processes, sentences of all of them are negatives",
    )


SIMCSE = Method(
    name="simcse",
    version="1",
    summary="A sentence read twice with dropout belongs to itself; the other sentences of the batch do not.",
    citation=(
        "Tianyu Gao, Xingcheng Yao and Danqi Chen. 2021. SimCSE: Simple Contrastive Learning of Sentence Embeddings. "
        "EMNLP 2021 (arXiv 2104.08821); the unsupervised form."
    ),
    config=SimcseConfig,
    contract=SimcseConfig.contract,
    trainer="methods.simcse.trainer:SimcseTrainer",
    learns=False,
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets={
        "mini": Preset(
            {"pooling": "mean"},
            source="ours: measured on the mini world, where from random weights the first token learns nothing",
            summary="for random weights and a budget of a minute; profile mini takes it",
        ),
        "paper": Preset(
            {
                "learning_rate": 3e-5,
                "warm_up": 0.0,
                "weight_decay": 0.0,
                "clip": 1.0,
                "pairs": 64,
                "temperature": 0.05,
                "sentence_tokens": 32,
                "pooling": "cls",
                "head": "mlp",
                "language_pure": False,
                "language_exponent": 1.0,
            },
            source="SimCSE (arXiv 2104.08821), appendix A, and princeton-nlp/SimCSE: 3e-5 without warm-up, batch 64",
            summary="SimCSE's own numbers, for BERT base on a million sentences, once through",
        ),
    },
    space={
        "learning_rate": LogUniform(1e-4, 5e-3),
        "temperature": LogUniform(0.02, 0.5),
        "pooling": Choice(("cls", "mean")),
    },
    describe=__name__,
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return SimCSE."""
    return [SIMCSE]
