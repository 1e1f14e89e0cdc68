"""Conditional masked language modelling: hidden tokens are predicted given the sentence before. Torch-free."""

from bench import Method, constant, declared, hookimpl, setting
from bench.training import DenseConfig, MaskConfig, Pass, PoolBy


class CmlmConfig(DenseConfig):
    """What decides cmlm's training, and how its encoder reads texts."""

    projections: int = constant(15, source="CMLM (arXiv 2012.14388): N = 15")
    temperature: float = constant(0.1, source="cmlm compares no vectors")
    masking: MaskConfig = MaskConfig()
    pooling: PoolBy = setting("mean", source="the published models (universal-sentence-encoder-cmlm): mean over tokens")

    def own_passes(self, sentence: float, document: float) -> tuple[Pass, ...]:
        """Return the pass over sentences, half of them in a call of its own."""
        (both,) = super().own_passes(sentence, document)
        return (both._replace(calls=2),)


CMLM = Method(
    config=CmlmConfig,
    encoder_config=CmlmConfig.encoder_config,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return cmlm."""
    return [CMLM]
