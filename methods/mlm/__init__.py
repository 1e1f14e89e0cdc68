"""Masked language modelling alone: the baseline of going on with a backbone's own pretraining. Torch-free."""

from typing import Self

from pydantic import model_validator

from bench import Choice, LogUniform, Method, Preset, hookimpl, setting
from bench.training import BlocksConfig, DenseConfig, PoolBy

_UNUSED = ("pairs", "temperature", "sentence_tokens")


class MlmMethodConfig(DenseConfig):
    """What decides the training of a language model alone, and how its encoder reads texts."""

    mlm: BlocksConfig = BlocksConfig()
    pooling: PoolBy = setting(
        "mean", source="ours: nothing trains the first token's vector; the mean is the usual reading of such encoders"
    )

    @model_validator(mode="after")
    def _used(self) -> Self:
        """Refuse settings that would change nothing."""
        for name in _UNUSED:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} changes nothing in mlm, which has no pairs; set mlm.sequences, mlm.tokens")
        return self


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
def bench_methods() -> list[Method]:
    """Return mlm."""
    return [MLM]
