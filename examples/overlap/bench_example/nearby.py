"""`nearby`: two neighbouring sentences attract each other through a projection that is thrown away. No torch here."""

import bench
from bench.training import Contract, TrainingConfig


class NearbyConfig(TrainingConfig):
    """The config of `nearby`."""

    width: int = bench.setting(
        32, ge=1, source="ours: half of the tiniest backbone", help="dimensions of the projection"
    )


def contract(_: NearbyConfig) -> Contract:
    """Return how the encoder reads texts; no setting changes it."""
    return Contract(pooling="mean", normalise=True, similarity="cos")


NEARBY = bench.Method(
    "nearby",
    "1",
    "Neighbouring sentences, compared through a projection.",
    "An example; there is no paper.",
    NearbyConfig,
    contract=contract,
    trainer="bench_example.training:NearbyTrainer",
    libraries=("torch", "transformers"),
)
