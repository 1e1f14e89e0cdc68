"""Configs for trainings of a second."""

from collections.abc import Callable
from typing import Any

import pytest

from bench.pipeline.settings import resolve
from methods.ccp import CCP
from methods.ccp.config import CcpConfig

Small = Callable[..., CcpConfig]


def _small(*sets: str, **changed: Any) -> CcpConfig:
    values = {
        "pairs": 6,
        "learning_rate": 5e-3,
        "log_every": 1,
        "probe_every": 5,
        "probe_pairs": 4,
        "bank.capacity": 40,
    }
    mlm = {"mlm.probability": 0.5, "mlm.sequences": 4, "mlm.tokens": 24}
    values = {**values, **mlm, "checkpoint_tokens": 150, **changed}
    config = resolve([CCP], sets=[*(f"method.{name}={value}" for name, value in values.items()), *sets])["ccp"].method
    assert isinstance(config, CcpConfig)
    return config


@pytest.fixture(scope="session")
def small() -> Small:
    """Make a config from `--set`s and values over small ones."""
    return _small
