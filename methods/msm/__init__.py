"""MSM: a sentence is predicted from those around it. Importing it imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from bench.dense import Trainer
from bench.hookspecs import hookimpl
from bench.spaces import LogUniform, Uniform
from bench.types import Method
from methods.msm.config import MsmConfig
from methods.msm.presets import PRESETS


def _trainer(config: MsmConfig) -> Trainer:
    """Make the trainer; torch is imported here."""
    from methods.msm.trainer import MsmTrainer

    return MsmTrainer(config)


def _card() -> str:
    """Return the README of this package."""
    return files(__name__).joinpath("README.md").read_text(encoding="utf-8")


MSM = Method(
    name="msm",
    version="1",
    summary="Each sentence is predicted from its document, and told from the document's others and all others.",
    citation=(
        "Shunyu Zhang, Yaobo Liang, Ming Gong, Daxin Jiang and Nan Duan. 2023. Modeling Sequential Sentence Relation "
        "to Improve Cross-lingual Dense Retrieval. ICLR 2023 (arXiv 2302.01626). Code: shunyuzh/MSM."
    ),
    config=MsmConfig,
    contract=MsmConfig.contract,
    trainer=_trainer,
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets=PRESETS,
    space={
        "learning_rate": LogUniform(3e-4, 1e-2),
        "temperature": LogUniform(0.03, 0.3),
        "mu": Uniform(0.0, 1.0),
    },
    describe=_card,
)


@hookimpl
def bench_methods() -> Iterable[Method]:
    """Bring msm."""
    return [MSM]
