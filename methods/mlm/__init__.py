"""Masked language modelling alone: the baseline of going on with a backbone's own pretraining. Torch-free."""

from bench import Method, constant, declared, hookimpl, setting
from bench.training import BlocksConfig, DenseConfig, PoolBy, StopWhen


class MlmMethodConfig(DenseConfig):
    """What decides the training of a language model alone, and how its encoder reads texts."""

    mlm: BlocksConfig = BlocksConfig()
    pairs: int = constant(64, source="mlm has no pairs; set mlm.sequences")
    temperature: float = constant(0.1, source="mlm compares no vectors")
    stop_when: StopWhen = constant("never", source="mlm compares no vectors, so they may look collapsed and be none")
    sentence_tokens: int = constant(64, source="mlm reads no single sentences; set mlm.tokens")
    pooling: PoolBy = setting(
        "mean", source="ours: nothing trains the first token's vector; the mean is the usual reading of such encoders"
    )


MLM = Method(
    config=MlmMethodConfig,
    encoder_config=MlmMethodConfig.encoder_config,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return mlm."""
    return [MLM]
