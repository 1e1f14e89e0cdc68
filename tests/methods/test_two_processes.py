"""Every method on two processes: halves of a batch give what one process makes of the whole, in float64."""

from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

from bench.core.encoder_config import EncoderConfig, TrainingJob
from bench.data.corpora.shards import Shards
from bench.plugins import load
from bench.training.distributed import GradientAverage, all_reduce_sum, rank, world_size
from bench.training.encoder import TrainableEncoder
from bench.training.mlm import PairsAndMasks
from methods.msm import MsmConfig
from methods.msm.blocks import Blocks
from methods.msm.loss import msm_loss
from methods.msm.trainer import MsmTrainer
from methods.quickthought.trainer import Runs
from tests.conftest import Start, TwoProcesses, cases

CASES: dict[str, tuple[str, dict[str, Any], int]] = dict(cases("trainings-on-two-processes"))
"""Name → method, its settings, and how many texts of the batch the first process has."""


def part(batch: Any, mine: slice) -> Any:
    """Take some documents of a batch; all of them have as many units or sentences in a batch of two levels."""
    if isinstance(batch, PairsAndMasks):
        return PairsAndMasks(part(batch.pairs, mine), None)
    if isinstance(batch, Blocks):
        units = np.split(np.arange(len(batch.units)), np.cumsum(batch.sizes)[:-1])[mine]
        sentences = [batch.units[at] for unit in units for at in unit[:2]]
        return Blocks(sentences, np.full(len(units), 2), batch.documents[mine], batch.languages[mine])
    if isinstance(batch, Runs):
        mine = slice(2 * (mine.start or 0), None if mine.stop is None else 2 * mine.stop)
    parts = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return replace(batch, **{name: value[mine] for name, value in parts.items() if value is not None})


def training_of(name: str, settings: dict[str, Any], start: str, corpus: str) -> tuple[Any, ...]:
    """Let a method make loss, source and modules, in float64; return them, the encoder and what follows a step."""
    method: Any = load().methods[name].value
    config = method.config.model_validate({"pairs": 6, "pooling": "mean", "probe_pairs": 4, **settings})
    shards = Shards(Path(corpus))
    job = TrainingJob(tokens=100, seed=1, device="cpu", threads=1)
    encode = TrainableEncoder.begin(Path(start), shards, config, job)
    encode.model.config.hidden_dropout_prob = 0.0  # of modules like the encoder's layers
    encode.model.double().eval()
    torch.manual_seed(4)
    trainer = method.build_trainer(config)
    with mock.patch.object(import_module(f"{type(trainer).__module__}"), "fit") as fit:
        trainer.train_on(encode, shards, job, None)
    loss, source, *_ = fit.call_args.args
    modules = fit.call_args.kwargs.get("modules") or torch.nn.Module()
    return loss, source, encode, modules.double(), fit.call_args.kwargs.get("after_step")


def computed(name: str, settings: dict[str, Any], cut: int, start: str, corpus: str) -> dict[str, Any]:
    """Compute loss, averaged gradients and what is kept of this process's part of a batch."""
    loss, source, encode, modules, after_step = training_of(name, settings, start, corpus)
    mine = slice(None) if world_size() == 1 else slice(0, cut) if rank() == 0 else slice(cut, None)
    with mock.patch("torch.distributed.is_initialized", return_value=False):  # each draws the whole batch
        batch = source.batch(np.random.default_rng(0))
    value, _ = loss(encode, part(batch, mine))
    value.backward()
    weights = [*encode.model.parameters(), *(weight for weight in modules.parameters() if weight.requires_grad)]
    GradientAverage(weights).average()
    if after_step is not None:
        after_step(1)
    return {
        "loss": all_reduce_sum(value.detach()) / world_size(),
        "gradients": [weight.grad for weight in weights if weight.grad is not None and bool(weight.grad.any())],
        "kept": [value for value in modules.state_dict().values() if value.is_floating_point()],
    }


def assert_equal(result: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare two results, to 1e-9."""
    torch.testing.assert_close(result["loss"], expected["loss"], rtol=0, atol=1e-9)
    for name in ("gradients", "kept"):
        assert len(result[name]) == len(expected[name])
        for tensor, expected_tensor in zip(result[name], expected[name], strict=True):
            torch.testing.assert_close(tensor, expected_tensor, rtol=0, atol=1e-9)


def all_computed(start: str, corpus: str) -> dict[str, dict[str, Any]]:
    """Compute every case in this process."""
    return {case: computed(*arguments, start, corpus) for case, arguments in CASES.items()}


@pytest.fixture(scope="module")
def both(two_processes: TwoProcesses, start_of: Start, corpus: Path) -> list[dict[str, dict[str, Any]]]:
    """What each of two processes computes, by case."""
    return two_processes(all_computed, str(start_of(EncoderConfig(pooling="mean"))), str(corpus))


@pytest.mark.parametrize("case", CASES)
def test_two_processes_are_one(case: str, both: list[dict[str, Any]], start_of: Start, corpus: Path) -> None:
    """Mean loss, averaged gradients, statistics and queue; batches of different size where that may be."""
    single = computed(*CASES[case], str(start_of(EncoderConfig(pooling="mean"))), str(corpus))
    assert single["gradients"]
    for results in both:
        assert_equal(results[case], single)


@pytest.mark.slow
@pytest.mark.parametrize("heads", ["shared", "separate"])
def test_statistics_are_each_process_s_own(
    heads: str, two_processes: TwoProcesses, start_of: Start, corpus: Path
) -> None:
    """Msm without `sync_bn`: halves normalised by themselves, negatives of both; not as one batch."""
    arguments = (
        "msm",
        {**CASES["msm"][1], "heads": heads},
        2,
        str(start_of(EncoderConfig(pooling="mean"))),
        str(corpus),
    )
    _, source, encode, modules, _ = training_of(*arguments[:2], *arguments[3:])
    config = MsmConfig.model_validate({**arguments[1], "pooling": "mean"})
    batch = source.batch(np.random.default_rng(0))
    halves = [part(batch, mine) for mine in (slice(0, 2), slice(2, None))]
    rows = [MsmTrainer(config).projected(encode, modules["msm"], half) for half in halves]
    queries, keys = map(torch.cat, zip(*rows, strict=True))
    documents = torch.from_numpy(part(batch, slice(None)).of_units)
    value = msm_loss(queries, keys, documents, temperature=config.temperature, mu=config.mu, mode=config.loss.mode)
    value.backward()
    weights = [*encode.model.parameters(), *modules.parameters()]
    expected = [weight.grad for weight in weights if weight.grad is not None and bool(weight.grad.any())]
    for result in two_processes(computed, *arguments):
        assert_equal({**result, "kept": []}, {"loss": value.detach(), "gradients": expected, "kept": []})
    assert abs(float(computed(*arguments)["loss"] - value.detach())) > 1e-3
