"""MSM as a plugin, and trained end to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.core.contract import TrainingJob
from bench.data.corpora.shards import Shards
from bench.training.distributed import average_gradients, rank
from bench.training.encoder import TrainableEncoder
from bench.training.heads import Shape
from bench.training.probes import signs
from methods.msm import MSM
from methods.msm.blocks import Blocks, DocumentBlocks
from methods.msm.config import MsmConfig
from methods.msm.loss import msm_loss
from methods.msm.model import MsmModules
from methods.msm.trainer import MsmTrainer


def config_of(**changed: Any) -> MsmConfig:
    """Small batches."""
    return MsmConfig.model_validate({"documents": 6, "pack": False, "probe_pairs": 4, **changed})


def test_the_grids_are_the_printed_tables() -> None:
    """As many rows, and the best row the same in all."""
    assert {name: len(preset.cells) for name, preset in MSM.presets.items()} == {
        "mini": 0,
        "paper": 0,
        "loss": 5,
        "negatives": 4,
        "heads": 3,
        "layers": 4,
        "sharing": 3,
    }
    for preset in MSM.presets.values():
        best = max((cell.reported["Mr. TyDi MRR@100"] for cell in preset.cells), default=34.0)
        assert best == 34.0


def test_signs_of_short_cuts_and_of_lonely_documents() -> None:
    """They show where the specification says, and not where vectors are at chance or well."""
    found = {"context_accuracy": 0.5, "shuffled_accuracy": 0.46, "context_chance": 0.01}
    assert "shuffled neighbours" in signs(found)[0]
    assert signs({**found, "shuffled_accuracy": 0.4}) == []
    assert signs({**found, "context_accuracy": 0.015, "shuffled_accuracy": 0.015}) == []
    assert "raise the number of documents" in signs({"without_far": 0.25})[0]
    assert signs({"without_far": 0.0}) == []


def encoder_of(start: Path, corpus: Path, config: MsmConfig) -> tuple[TrainableEncoder, MsmModules]:
    """The tiny encoder and msm's modules in float64 without dropout, weights always the same."""
    torch.manual_seed(4)
    encode = TrainableEncoder.begin(
        start, Shards(corpus), config, TrainingJob(tokens=1, seed=1, device="cpu", threads=1)
    )
    own = MsmModules(config, replace(Shape.of(encode.model.config), dropout=0.0)).double()
    encode.model.double().eval()
    return encode, own


HALVES = slice(0, 2), slice(2, 4)
"""Documents of a batch of four that each of two processes has."""


def batch_of(corpus: str, config: MsmConfig, mine: slice) -> Blocks:
    """Some documents of a batch of four, two units of each."""
    blocks = DocumentBlocks(Shards(Path(corpus)), config, 1).batch(np.random.default_rng(0))
    units, at = [], 0
    for size in blocks.sizes.tolist():
        units.append(blocks.units[at : at + size][:2])  # as many in each half
        at += size
    return Blocks(
        [unit for document in units[mine] for unit in document],
        np.full(len(units[mine]), 2),
        blocks.documents[mine],
        blocks.languages[mine],
    )


def made(loss: torch.Tensor, encode: TrainableEncoder, own: MsmModules) -> tuple[float, list[torch.Tensor]]:
    """The loss and its gradients, averaged over the processes."""
    loss.backward()
    weights = [*encode.model.parameters(), *own.parameters()]
    average_gradients(weights)
    found = [weight.grad for weight in weights if weight.grad is not None and bool(weight.grad.any())]
    return float(loss.detach()), found


def gradients(start: str, corpus: str, settings: Mapping[str, Any], halves: bool) -> tuple[float, list[torch.Tensor]]:
    """Loss and gradients of a batch of four documents, or of this process's half of it, averaged."""
    config = config_of(**settings, documents=4)
    encode, own = encoder_of(Path(start), Path(corpus), config)
    part = batch_of(corpus, config, HALVES[rank()] if halves else slice(0, 4))
    loss, _ = MsmTrainer(config).loss(encode, own, part)
    return made(loss, encode, own)


def by_halves(start: str, corpus: str, settings: Mapping[str, Any]) -> tuple[float, list[torch.Tensor]]:
    """The same in one process, which puts the halves through the heads one by one and then holds all against all."""
    config = config_of(**settings, documents=4)
    encode, own = encoder_of(Path(start), Path(corpus), config)
    parts = [batch_of(corpus, config, mine) for mine in HALVES]
    rows = [MsmTrainer(config).projected(encode, own, part) for part in parts]
    queries, keys = map(torch.cat, zip(*rows, strict=True))
    documents = torch.from_numpy(np.concatenate([part.of_units for part in parts]))
    loss = msm_loss(queries, keys, documents, temperature=config.temperature, mu=config.mu, mode=config.loss.mode)
    return made(loss, encode, own)


@pytest.mark.parametrize("heads", ["none", "separate"])
def test_two_processes_are_one(
    heads: str, start: Path, corpus: Path, two_processes: Callable[..., list[tuple[float, list[torch.Tensor]]]]
) -> None:
    """Halves of a batch against the whole: the mean of the losses, the average of the gradients; 1e-9 in float64."""
    settings = {"heads": heads, "sync_bn": heads != "none"}
    ranks = two_processes(gradients, str(start), str(corpus), settings, True)
    loss, expected = gradients(str(start), str(corpus), settings, False)
    assert np.mean([one for one, _ in ranks]) == pytest.approx(loss, abs=1e-9)
    for _, found in ranks:
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, atol=1e-9, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("heads", ["shared", "separate"])
def test_statistics_are_each_process_s_own(
    heads: str, start: Path, corpus: Path, two_processes: Callable[..., list[tuple[float, list[torch.Tensor]]]]
) -> None:
    """Without `sync_bn`: halves normalised by themselves, negatives of both; 1e-9 in float64. Not as one batch."""
    settings = {"heads": heads}
    ranks = two_processes(gradients, str(start), str(corpus), settings, True)
    loss, expected = by_halves(str(start), str(corpus), settings)
    assert np.mean([one for one, _ in ranks]) == pytest.approx(loss, abs=1e-9)
    for _, found in ranks:
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, atol=1e-9, rtol=0)
    assert abs(gradients(str(start), str(corpus), settings, False)[0] - loss) > 1e-3


def test_the_look_changes_nothing(start: Path, corpus: Path) -> None:
    """Heads' running statistics stay, and the same is seen again."""
    config = config_of()
    encode, own = encoder_of(start, corpus, config)
    encode.model.float()
    own.float()
    before = {name: value.clone() for name, value in own.state_dict().items()}
    look = partial(MsmTrainer(config).look, encode, own, DocumentBlocks(Shards(corpus), config, 1))
    with torch.no_grad():
        assert look() == look()
    assert own.training
    assert all(torch.equal(value, before[name]) for name, value in own.state_dict().items())
