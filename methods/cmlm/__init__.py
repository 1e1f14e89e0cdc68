"""Conditional masked language modelling: hidden tokens are predicted given the sentence before. Torch-free."""

from typing import Self

from pydantic import model_validator

from bench import Choice, LogUniform, Method, Preset, hookimpl, setting
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
    def _used(self) -> Self:
        """Refuse a setting that would change nothing."""
        if self.temperature != type(self).model_fields["temperature"].default:
            raise ValueError("temperature changes nothing in cmlm, which compares no vectors")
        return self


CMLM = Method(
    name="cmlm",
    version="1",
    summary="Hidden tokens of a sentence are predicted given the vector of the sentence before it.",
    citation=(
        "Ziyi Yang et al. 2021. Universal Sentence Representation Learning with Conditional Masked Language Model. "
        "EMNLP 2021 (arXiv 2012.14388)."
    ),
    config=CmlmConfig,
    contract=CmlmConfig.contract,
    trainer="methods.cmlm.trainer:CmlmTrainer",
    learns=False,
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets={
        "paper": Preset(
            values={"learning_rate": 5e-5, "warm_up": 0.05},
            source="ours: what suits backbones that were trained before; the paper's values were not at hand",
            summary="for a backbone that was trained before",
        )
    },
    space={
        "learning_rate": LogUniform(3e-4, 5e-3),
        "masking.mask": Choice((0.15, 0.3)),
        "pooling": Choice(("cls", "mean")),
    },
    describe=__name__,
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return cmlm."""
    return [CMLM]
