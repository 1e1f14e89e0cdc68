"""Masked language modelling alone: the baseline of going on with a backbone's own pretraining. Torch-free."""

from __future__ import annotations

from collections.abc import Iterable

from bench import Choice, LogUniform, Method, Preset, hookimpl
from methods.mlm.config import MlmMethodConfig

MLM = Method(
    name="mlm",
    version="1",
    summary="Hidden tokens are predicted from their neighbours, and nothing else is learnt.",
    citation=(
        "Jacob Devlin et al. 2019. BERT. NAACL 2019. Alexis Conneau et al. 2020. Unsupervised Cross-lingual "
        "Representation Learning at Scale (XLM-R). ACL 2020."
    ),
    config=MlmMethodConfig,
    contract=MlmMethodConfig.contract,
    trainer="methods.mlm.trainer:MlmTrainer",
    learns=False,
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets={
        "paper": Preset(
            values={
                "learning_rate": 4e-5,
                "warm_up": 0.05,
                "beta2": 0.98,
                "epsilon": 1e-6,
                "clip": None,
                "mlm.tokens": 256,
                "mlm.sequences": 128,
                "accumulate": 16,
            },
            source="MSM's code (shunyuzh/MSM): its companion task alone, 10k of 200k steps warm-up",
            summary="the companion of MSM for XLM-R base, alone",
        )
    },
    space={
        "learning_rate": LogUniform(3e-4, 5e-3),
        "mlm.mask": Choice((0.15, 0.3)),
        "pooling": Choice(("cls", "mean")),
    },
    describe=__name__,
)


@hookimpl
def bench_methods() -> Iterable[Method]:
    """Bring mlm."""
    return [MLM]
