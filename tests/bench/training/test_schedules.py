"""What varies along a training: values by hand, and the share that a loss and a source read."""

import math
from typing import Any

import numpy as np
import pytest

from bench.core.encoder_config import EncoderConfig, TrainingJob
from bench.core.workspace import Parts, Workspace
from bench.data.corpora.shards import Shards
from bench.training.config import DenseConfig, Schedule, Spent
from bench.training.determinism import reproducible
from bench.training.encoder import TrainableEncoder
from bench.training.loop import fit
from bench.training.losses import info_nce
from bench.training.views import SentencePairs, two_sentences
from tests.conftest import Start


@pytest.mark.parametrize(
    ("shape", "quarter"), [("linear", 0.775), ("cosine", 1 - 0.9 * (1 - math.cos(math.pi / 4)) / 2)]
)
def test_a_schedule_goes_from_first_to_last(shape: str, quarter: float) -> None:
    """From 1 to 0.1: its ends, its middle, and a quarter of the way."""
    schedule = Schedule.model_validate({"first": 1.0, "last": 0.1, "shape": shape})
    assert [schedule.at(share) for share in (0, 0.25, 0.5, 1)] == pytest.approx([1.0, quarter, 0.55, 0.1])
    assert Schedule().at(0.7) == 1.0


class Reading(SentencePairs):
    """Pairs that remember what was spent when they were drawn."""

    def __init__(self, spent: Spent, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.spent, self.drawn = spent, list[float]()

    def batch(self, rng: np.random.Generator) -> Any:
        self.drawn.append(self.spent.share)
        return super().batch(rng)


@pytest.mark.parametrize("budget", [{"steps": 5}, {"steps": None}])
def test_loss_and_source_read_the_same_share(
    budget: dict[str, Any], corpus: Any, start_of: Start, tmp_path: Any
) -> None:
    """Before each step what the ones before it spent, though batches are drawn ahead; and after a kill as without."""
    config = DenseConfig.model_validate({"pairs": 4, "probe_pairs": 4, "checkpoint_tokens": 1, "accumulate": 2})
    job = TrainingJob(tokens=600, seed=1, device="cpu", threads=1, **budget)

    def train(name: str, stop: int | None = None) -> tuple[list[float], list[float], bytes]:
        spent, read = Spent(), list[float]()
        shards = Shards(corpus)
        encoder = TrainableEncoder.begin(start_of(EncoderConfig()), shards, config, job)
        source = Reading(spent, shards, config, job.seed, two_sentences)

        def loss(encode: TrainableEncoder, pairs: Any) -> Any:
            read.append(spent.share)
            return info_nce(*encode.encode_views(pairs)) * (1 - spent.share / 2), {}

        def after(step: int) -> None:
            if step == stop:
                raise InterruptedError

        work = Workspace(tmp_path / name / "out", Parts(tmp_path / name / "parts"))
        work.out.mkdir(parents=True, exist_ok=True)
        with reproducible(job):
            fit(loss, source, encoder, config, job, work, spent=spent, after_step=after)
        return read, source.drawn, (work.out / "encoder" / "model.safetensors").read_bytes()

    read, drawn, weights = train("whole")
    assert read == drawn
    assert read[0] == read[1] == 0
    assert read[::2] == read[1::2] == sorted(set(read))  # accumulated batches are of one step
    assert max(read) < 1
    if budget["steps"]:
        assert read[::2] == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    with pytest.raises(InterruptedError):
        train("killed", stop=3)
    again, _, resumed = train("killed")
    assert again == read[2 * 2 :]  # the third step was not saved
    assert resumed == weights
