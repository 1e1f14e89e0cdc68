"""Auto-MLM: pairs separated by hinges, and hidden tokens predicted with the sentence's own vector. Torch-free."""

from bench import Choice, LogUniform, Method, hookimpl
from methods.auto_mlm.config import AutoMlmConfig
from methods.auto_mlm.presets import PRESETS

AUTO_MLM = Method(
    name="auto-mlm",
    version="1",
    summary="Sentences of one session belong together, and a sentence's vector must help to find its hidden tokens.",
    citation=(
        "Auto-MLM: Improved Contrastive Learning for Self-supervised Multi-lingual Knowledge Retrieval. 2022. "
        "arXiv 2203.16187."
    ),
    config=AutoMlmConfig,
    contract=AutoMlmConfig.contract,
    trainer="methods.auto_mlm.trainer:AutoMlmTrainer",
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets=PRESETS,
    space={
        "learning_rate": LogUniform(3e-4, 5e-3),
        "margin": LogUniform(0.03, 0.5),
        "weight": LogUniform(0.1, 3.0),
        "pairs": Choice((32, 64, 128)),
    },
    describe=__name__,
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return auto-mlm."""
    return [AUTO_MLM]
