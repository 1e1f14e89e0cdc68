"""Contriever: two crops of a text belong together, against a queue of others. Importing it imports no torch."""

from bench import Choice, LogUniform, Method, Uniform, hookimpl
from methods.contriever.config import ContrieverConfig
from methods.contriever.presets import PRESETS

CONTRIEVER = Method(
    name="contriever",
    version="1",
    summary="Two random crops of a text belong together; keys of earlier batches, kept in a queue, do not.",
    citation=(
        "Gautier Izacard, Mathilde Caron, Lucas Hosseini, Sebastian Riedel, Piotr Bojanowski, Armand Joulin and "
        "Edouard Grave. 2022. Unsupervised Dense Information Retrieval with Contrastive Learning. TMLR "
        "(arXiv 2112.09118)."
    ),
    config=ContrieverConfig,
    contract=ContrieverConfig.contract,
    trainer="methods.contriever.trainer:ContrieverTrainer",
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets=PRESETS,
    space={
        "learning_rate": LogUniform(3e-4, 5e-3),
        "temperature": LogUniform(0.02, 0.5),
        "momentum": Choice((0.9, 0.99, 0.995, 0.999)),
        "ratio_max": Uniform(0.3, 0.6),
    },
    describe=__name__,
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return Contriever."""
    return [CONTRIEVER]
