"""Trainings of a tiny encoder in one call, with a head of their own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch

from bench.core.encoder_config import TrainingJob
from bench.core.workspace import Advance, Parts, Workspace, noop
from bench.data.corpora.shards import Shards
from bench.training.batches import PairBatch
from bench.training.config import TrainingConfig
from bench.training.determinism import reproducible
from bench.training.encoder import TrainableEncoder
from bench.training.loop import fit
from bench.training.losses import info_nce
from bench.training.probes import accuracy
from bench.training.views import SentencePairs, two_sentences


def config_of(**changed: Any) -> TrainingConfig:
    """A config for trainings of a second."""
    values: dict[str, Any] = {"pairs": 6, "learning_rate": 5e-3, "log_every": 3, "probe_every": 8, "probe_pairs": 4}
    return TrainingConfig(**{**values, "checkpoint_tokens": 300, **changed})


class Head(torch.nn.Module):
    """What a method may bring: a layer that learns, and a buffer that it changes after each step."""

    steps: torch.Tensor

    def __init__(self, idle: bool = False) -> None:
        """A square layer with random weights; and one that nothing uses, if asked for."""
        super().__init__()
        if idle:
            self.idle = torch.nn.Linear(2, 2)
        self.layer = torch.nn.Linear(16, 16)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))


BUDGET = 1200
"""Tokens of a training: some seventeen steps."""
Train = Callable[..., Any]
"""Returns `Trained` of the conftest above."""


@pytest.fixture(scope="session")
def train_into(corpus: Path, start: Path, trained: Callable[[Path, Path, Mapping[str, Any]], Any]) -> Train:
    """Train into a folder, going on from what is there."""

    def make(
        folder: Path,
        tokens: int = BUDGET,
        seed: int = 1,
        after_step: Callable[[int], None] | None = None,
        advance: Advance = noop,
        scale: Mapping[int, float] = MappingProxyType({}),
        flops: float | None = None,
        until: float | None = None,
        cool: float | None = None,
        idle_layer: bool = False,
        log_values: Callable[[], Mapping[str, float]] | None = None,
        **changed: Any,
    ) -> Any:
        config = config_of(**changed)
        out, parts = folder / "out", folder / "parts"
        out.mkdir(parents=True, exist_ok=True)
        job = TrainingJob(tokens=tokens, seed=seed, device="cpu", threads=1, flops=flops, until=until, cool=cool)
        with reproducible(job):
            encoder = TrainableEncoder.load(start, job.device, config.precision)
            head, source = Head(idle_layer), SentencePairs(Shards(corpus), config, seed, two_sentences)

            def loss(encode: TrainableEncoder, pairs: PairBatch) -> tuple[torch.Tensor, Any]:
                queries, keys = map(head.layer, encode.encode_views(pairs))
                value = info_nce(queries, keys, temperature=config.temperature, similarity="cos", symmetric=True)
                return value * scale.get(int(head.steps) + 1, 1.0), log_values or {"accuracy": accuracy(queries, keys)}

            def after(step: int) -> None:
                head.steps += 1
                assert int(head.steps) == step
                if after_step is not None:
                    after_step(step)

            work = Workspace(out, Parts(parts), advance)
            metadata = fit(loss, source, encoder, config, job, work, modules=head, after_step=after)
        return trained(out, parts, metadata)

    return make


@pytest.fixture
def train(tmp_path: Path, train_into: Train) -> Train:
    """Train into a folder of the test, by its name."""
    return lambda name, **options: train_into(tmp_path / name, **options)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory, train_into: Train) -> Any:
    """The training with no option, to compare with."""
    return train_into(tmp_path_factory.mktemp("whole"))
