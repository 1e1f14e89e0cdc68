"""SimCSE as a plugin: the same sentence twice, and a training on the planted corpus."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

from bench.config import check_config, check_preset
from bench.data.shards import Shards
from bench.dense import Contract
from bench.grids import grid_faults, space_faults
from bench.training.encoder import TrainableEncoder
from methods.simcse import SIMCSE, bench_methods
from methods.simcse.config import SimcseConfig
from methods.simcse.trainer import SimcseTrainer
from methods.simcse.views import SentencesTwice

Train = Callable[..., Any]
Start = Callable[[Contract], Path]
SMALL: dict[str, Any] = {"pairs": 8, "learning_rate": 2e-3, "probe_every": 10, "probe_pairs": 4, "log_every": 2}


def config_of(**changed: Any) -> SimcseConfig:
    """A config for trainings of a second."""
    return SimcseConfig(**{**SMALL, **changed})


def test_the_method_keeps_its_promises() -> None:
    """Config, presets, search space, card, one method."""
    assert check_config(SimcseConfig) == []
    for name, preset in SIMCSE.presets.items():
        assert check_preset(SimcseConfig, preset.values) == [], name
        assert name in SIMCSE.card()
    assert [*grid_faults(SIMCSE), *space_faults(SIMCSE)] == []
    assert [*bench_methods()] == [SIMCSE]
    assert all(f"`{key}`" in SIMCSE.card() for key in SimcseConfig.model_fields)


def test_both_views_are_the_same_sentence(corpus: Path) -> None:
    """Of different documents of one language; a sentence of one document may be any."""
    shards = Shards(corpus)
    source, rng = SentencesTwice(shards, config_of(), 1), np.random.default_rng(0)
    places = set()
    for _ in range(20):
        pairs = source.batch(rng)
        assert len(set(pairs.languages)) == 1
        assert len(set(pairs.documents.tolist())) == 8
        for left, right, document in zip(*pairs, pairs.documents.tolist(), strict=True):
            assert left.tolist() == right.tolist()
            sentences = [shards.sentence(document, at).tolist() for at in range(shards.sentence_count(document))]
            places.add(sentences.index(left[1:-1].tolist()))
    assert len(places) > 3


@pytest.mark.parametrize("head", ["mlp", "none"])
def test_the_loss_written_out(corpus: Path, start_of: Start, head: Any) -> None:
    """Without dropout both passes agree: each positive has a cosine of 1, over the temperature."""
    config = config_of(head=head)
    encode = TrainableEncoder.load(start_of(config.contract()), "cpu")
    encode.model.eval()
    layer = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh()) if head == "mlp" else None
    pairs = SentencesTwice(Shards(corpus), config, 1).batch(np.random.default_rng(0))
    loss, _ = SimcseTrainer(config).loss(layer, encode, pairs)
    rows = encode(pairs.left).detach()
    unit = torch.nn.functional.normalize((rows if layer is None else layer(rows)).detach().double(), dim=1)
    logits = unit @ unit.T / 0.05
    expected = (logits.logsumexp(1) - 1 / 0.05).mean()
    assert float(loss.detach()) == pytest.approx(float(expected), abs=1e-4)


def test_dropout_tells_the_two_passes_apart(corpus: Path, start_of: Start) -> None:
    """In training the vectors of the same sentence differ: that is all there is to learn from."""
    config = config_of()
    encode = TrainableEncoder.load(start_of(config.contract()), "cpu")
    pairs = SentencesTwice(Shards(corpus), config, 1).batch(np.random.default_rng(0))
    left, right = encode.together(pairs)
    assert bool((left != right).any(dim=1).all())
    encode.model.eval()
    left, right = encode.together(pairs)
    torch.testing.assert_close(left, right)


def test_it_trains(train_method: Train) -> None:
    """Loss falls; every weight learns; the head is not exported."""
    config = config_of()
    found = train_method("one", SimcseTrainer(config), config.contract(), tokens=10_000)
    losses = [line["loss"] for line in found.log[1:]]
    assert sum(losses[-5:]) < sum(losses[:5])
    assert found.facts["without_gradient"] == []
    start = TrainableEncoder.load(found.out / "encoder", "cpu")
    with safe_open(found.out / "encoder" / "model.safetensors", "pt") as file:
        assert len(file.keys()) == len(start.model.state_dict())


def test_the_seed_decides_all_bytes(train_method: Train) -> None:
    """The same seed twice, and another one."""
    config = config_of()
    one, two, three = (
        train_method(name, SimcseTrainer(config), config.contract(), seed=seed).files()
        for name, seed in (("one", 1), ("two", 1), ("three", 2))
    )
    assert one == two
    assert one["encoder/model.safetensors"] != three["encoder/model.safetensors"]


def test_the_state_goes_on_with_the_next_batch(corpus: Path) -> None:
    """Documents already drawn in an epoch do not come again."""
    one, other = (SentencesTwice(Shards(corpus), config_of(), 1) for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(5):
        one.batch(rng)
    other.restore(json.loads(json.dumps(one.state())))
    lots = rng.bit_generator.state
    expected = one.batch(rng).documents.tolist()
    rng.bit_generator.state = lots
    assert other.batch(rng).documents.tolist() == expected
