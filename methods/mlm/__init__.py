"""Masked language modelling alone: the baseline of going on with a backbone's own pretraining. Torch-free."""

from typing import Self

from pydantic import model_validator

from bench import Method, declared, hookimpl, setting
from bench.training import BlocksConfig, DenseConfig, PoolBy

_UNUSED = ("pairs", "temperature", "sentence_tokens")


class MlmMethodConfig(DenseConfig):
    """What decides the training of a language model alone, and how its encoder reads texts."""

    mlm: BlocksConfig = BlocksConfig()
    pooling: PoolBy = setting(
        "mean", source="ours: nothing trains the first token's vector; the mean is the usual reading of such encoders"
    )

    @model_validator(mode="after")
    def _no_unused_setting(self) -> Self:
        for name in _UNUSED:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} changes nothing in mlm, which has no pairs; set mlm.sequences, mlm.tokens")
        return self


MLM = Method(
    config=MlmMethodConfig,
    contract=MlmMethodConfig.contract,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return mlm."""
    return [MLM]
