"""Configs for trainings of a second."""

from collections.abc import Callable
from typing import Any

import pytest

from bench.config.layers import parse_set
from methods.ccp import CcpConfig

Small = Callable[..., CcpConfig]


def config_of(*sets: str) -> CcpConfig:
    """Return a config with what `KEY=VALUE`s say over the defaults; constants may be typed too, as Python code may."""
    tree: dict[str, Any] = {}
    for (*sections, name), value in map(parse_set, sets):
        branch = tree
        for section in sections:
            branch = branch.setdefault(section, {})
        branch[name] = value
    return CcpConfig.model_validate(tree)


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
    return config_of(*(f"{name}={value}" for name, value in values.items()), *sets)


@pytest.fixture(scope="session")
def small() -> Small:
    """Make a config from `--set`s and values over small ones."""
    return _small
