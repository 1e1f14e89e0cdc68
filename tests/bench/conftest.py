"""What tests of grids and sweeps share: methods made here next to the installed ones, a training that fails at will."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import bench
from bench.config.base import Config, setting
from bench.config.spaces import Space
from bench.core.encoder_config import EncoderConfig, TrainingJob
from bench.core.errors import DataError, UsageError
from bench.plugins import Plugins, load
from bench.types import GridCell, Method, Preset
from tests.conftest import plugin

TINY = Path(__file__).parents[1] / "fixtures" / "tiny-beir"


@pytest.fixture
def tiny() -> Path:
    """The small BEIR folder of the repository."""
    return TINY


@pytest.fixture
def with_methods() -> Callable[..., Plugins]:
    """Load what is installed, and some methods more."""

    def make(*methods: Method) -> Plugins:
        plugins = load({}, extra=[plugin("bench_methods", *methods)])
        assert not [broken for broken in plugins.broken if broken.distribution == "given directly"]
        return plugins

    return make


class ToyConfig(Config):
    """Whether the training fails, and how."""

    fault: str = setting("", source="ours: a test", help="what the training raises")
    pooling: str = setting("mean", source="ours: a test", help="how texts become vectors")


@dataclass(frozen=True)
class ToyTrainer:
    """A training that leaves the start as it is, or fails."""

    config: ToyConfig

    def train(self, start: Path, shards: Path, job: TrainingJob, work: bench.Workspace) -> dict[str, Any]:
        if self.config.fault == "nan":
            raise UsageError("the loss of training step 7 is nan")
        if self.config.fault == "disk":
            raise DataError(shards, None, "rubbish", "shards")
        shutil.copytree(start, work.out / "encoder")
        (work.out / "log.jsonl").write_text('{"step": 0}\n')
        return {"tokens": job.tokens}


def _encoder_config(config: ToyConfig) -> EncoderConfig:
    """As the config says."""
    return EncoderConfig(pooling="cls" if config.pooling == "cls" else "mean")


@pytest.fixture
def dense() -> Callable[..., Method]:
    """Make a dense method with a grid of cells, and a search space."""

    def make(*cells: GridCell, space: Mapping[str, Space] | None = None) -> Method:
        presets = {"grid": Preset({}, "a paper", "", cells, suite="beir")}
        return Method(
            "dense",
            "1",
            "",
            "",
            ToyConfig,
            encoder_config=_encoder_config,
            trainer=ToyTrainer,
            presets=presets,
            space=space or {},
        )

    return make


@pytest.fixture
def small() -> dict[str, Any]:
    """Of a request: a backbone, a corpus and a task that take no time."""
    return {
        "backbone": "scratch:1x16",
        "corpus": str(TINY / "corpus.jsonl"),
        "tasks": (str(TINY),),
        "sets": ("prepare.vocabulary=512", "budget.tokens=10", "data.language=en", "compute.threads=1"),
    }


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus that is prepared and trained on in no time: twenty documents of six sentences."""
    path = tmp_path_factory.mktemp("texts") / "en.jsonl"
    rows = ({"id": f"d{at}", "sentences": [f"word {at} of {number}" for number in range(6)]} for at in range(20))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
