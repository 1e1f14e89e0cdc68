"""What tests of several methods share: the tiny encoder as a training with a config loads it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.core.encoder_config import TrainingJob
from bench.data.corpora.shards import Shards
from bench.training.config import DenseConfig
from bench.training.encoder import TrainableEncoder
from tests.conftest import Start

EncoderFor = Callable[[Any], TrainableEncoder]


@pytest.fixture
def encoder_for(start_of: Start, corpus: Path) -> EncoderFor:
    """Load the tiny encoder as a training does, dropout off."""

    def load(config: DenseConfig) -> TrainableEncoder:
        job = TrainingJob(tokens=100, seed=1, device="cpu", threads=1)
        encode = TrainableEncoder.begin(start_of(config.encoder_config()), Shards(corpus), config, job)
        encode.model.eval()
        return encode

    return load
