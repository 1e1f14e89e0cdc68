"""SimCSE: a sentence belongs to itself, whatever dropout leaves out. Importing it imports no torch."""

from typing import Literal

from bench import Method, constant, declared, hookimpl, setting
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
    gather_negatives: Literal[True] = constant(
        True, source="princeton-nlp/SimCSE: sentences of all devices are gathered"
    )


SIMCSE = Method(
    config=SimcseConfig,
    encoder_config=SimcseConfig.encoder_config,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return SimCSE."""
    return [SIMCSE]
