"""`nearby`: two neighbouring sentences attract each other through a projection that is thrown away. No torch here."""

from __future__ import annotations

import bench
from bench.dense import Contract, Trainer
from bench.training.config import TrainingConfig


class NearbyConfig(TrainingConfig):
    """The config of `nearby`."""

    width: int = bench.setting(
        32, ge=1, source="ours: half of the tiniest backbone", help="dimensions of the projection"
    )


def contract(config: NearbyConfig) -> Contract:
    """Return how the encoder reads texts; no setting changes it."""
    return Contract(pooling="mean", normalise=True, similarity="cos")


def trainer(config: NearbyConfig) -> Trainer:
    """Make the trainer, which brings torch."""
    from .training import NearbyTrainer

    return NearbyTrainer(config)


NEARBY = bench.Method(
    "nearby",
    "1",
    "Neighbouring sentences, compared through a projection.",
    "An example; there is no paper.",
    NearbyConfig,
    contract=contract,
    trainer=trainer,
    libraries=("torch", "transformers"),
)
