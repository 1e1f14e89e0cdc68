"""Conditional masked language modelling: hidden tokens are predicted given the sentence before. Torch-free."""

from typing import Self

from pydantic import model_validator

from bench import Method, declared, hookimpl, setting
from bench.training import DenseConfig, MaskConfig, PoolBy


class CmlmConfig(DenseConfig):
    """What decides cmlm's training, and how its encoder reads texts."""

    projections: int = setting(
        15,
        ge=1,
        source="CMLM (arXiv 2012.14388): N = 15",
        help="positions that the neighbour's vector is projected to; the first of them is the vector itself",
    )
    masking: MaskConfig = MaskConfig()
    pooling: PoolBy = setting("mean", source="the published models (universal-sentence-encoder-cmlm): mean over tokens")

    @model_validator(mode="after")
    def _no_unused_setting(self) -> Self:
        if self.temperature != type(self).model_fields["temperature"].default:
            raise ValueError("temperature changes nothing in cmlm, which compares no vectors")
        return self


CMLM = Method(
    config=CmlmConfig,
    contract=CmlmConfig.contract,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return cmlm."""
    return [CMLM]
