"""`nearby`: two neighbouring sentences attract each other through a projection that is thrown away. No torch here."""

import bench
from bench.training import EncoderConfig, TrainingConfig


class NearbyConfig(TrainingConfig):
    """The config of `nearby`."""

    width: int = bench.setting(
        32, ge=1, source="ours: half of the tiniest backbone", help="dimensions of the projection"
    )


def encoder_config(_: NearbyConfig) -> EncoderConfig:
    """Return how the encoder reads texts; no setting changes it."""
    return EncoderConfig(pooling="mean", normalise=True, similarity="cos")


NEARBY = bench.Method(
    "nearby",
    "1",
    "Neighbouring sentences, compared through a projection.",
    "An example; there is no paper.",
    NearbyConfig,
    encoder_config=encoder_config,
    trainer="bench_example.training:NearbyTrainer",
    libraries=("torch", "transformers"),
)
