"""CCP: a sentence predicts its context, against others of its language. Importing it imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from bench.dense import Trainer
from bench.hookspecs import hookimpl
from bench.spaces import Choice, LogUniform
from bench.types import Method
from methods.ccp.config import CcpConfig
from methods.ccp.presets import PRESETS


def _trainer(config: CcpConfig) -> Trainer:
    """Make the trainer; torch is imported here."""
    from methods.ccp.trainer import CcpTrainer

    return CcpTrainer(config)


def _card() -> str:
    """Return the README of this package."""
    return files(__name__).joinpath("README.md").read_text(encoding="utf-8")


CCP = Method(
    name="ccp",
    version="1",
    summary="A sentence is told its neighbour from all other sentences of its language, in the batch and in a bank.",
    citation=(
        "Ning Wu, Yaobo Liang, Houxing Ren, Linjun Shou, Nan Duan, Ming Gong and Daxin Jiang. 2022. Unsupervised "
        "Context Aware Sentence Representation Pretraining for Multi-lingual Dense Retrieval. IJCAI 2022 "
        "(arXiv 2206.03281)."
    ),
    config=CcpConfig,
    contract=CcpConfig.contract,
    trainer=_trainer,
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets=PRESETS,
    space={
        "learning_rate": LogUniform(3e-4, 5e-3),
        "temperature": LogUniform(0.02, 0.5),
        "window": Choice((2, 3, 5)),
        "bank.capacity": Choice((512, 2048, 8192, 32768)),
        "mlm.probability": Choice((0.0, 0.25, 0.5)),
    },
    describe=_card,
)


@hookimpl
def bench_methods() -> Iterable[Method]:
    """Bring CCP."""
    return [CCP]
