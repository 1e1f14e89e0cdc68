"""Contriever as a plugin, and trained end to end on the planted corpus."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from safetensors import safe_open
from safetensors.torch import load_file

from bench.config import check_config, check_preset, resolve
from bench.dense import Contract
from bench.errors import ConfigError
from bench.grids import grid_faults, space_faults
from methods.contriever import CONTRIEVER, bench_methods
from methods.contriever.config import ContrieverConfig
from methods.contriever.trainer import ContrieverTrainer

Train = Callable[..., Any]
SMALL: dict[str, Any] = {
    "pairs": 8,
    "queue": 32,
    "chunk_length": 24,
    "ratio_min": 0.2,
    "momentum": 0.9,
    "learning_rate": 5e-3,
    "log_every": 2,
    "probe_every": 5,
    "probe_pairs": 4,
    "checkpoint_tokens": 200,
}


def config_of(**changed: Any) -> ContrieverConfig:
    """A config for trainings of a second."""
    return ContrieverConfig(**{**SMALL, **changed})


class KilledError(RuntimeError):
    """Stands for a kill."""


def killer(tokens: int) -> Callable[[float], None]:
    """Return a progress hook that raises once so many tokens are told."""
    told = [0.0]

    def advance(count: float) -> None:
        told[0] += count
        if told[0] >= tokens:
            raise KilledError

    return advance


def test_the_method_keeps_its_promises() -> None:
    """Config, presets, grids, search space, card, one method."""
    assert check_config(ContrieverConfig) == []
    for name, preset in CONTRIEVER.presets.items():
        assert check_preset(ContrieverConfig, preset.values) == [], name
        assert name in CONTRIEVER.card()
    assert [*grid_faults(CONTRIEVER), *space_faults(CONTRIEVER)] == []
    assert [*bench_methods()] == [CONTRIEVER]
    assert all(f"`{key}`" in CONTRIEVER.card() for key in ContrieverConfig.model_fields)


def test_the_contract_is_the_papers() -> None:
    """Mean over all tokens, dot product of vectors as they are."""
    contract = ContrieverConfig().contract()
    assert (contract.pooling, contract.normalise, contract.similarity) == ("mean", False, "dot")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["method.queue=100"], "queue is 100 and a step adds 64 keys .* type --set method.queue=128"),
        (["method.queue=32"], "type --set method.queue=64"),
        (["method.queue=192", "method.accumulate=2"], "a step adds 128 keys"),
        (["method.ratio_min=0.6"], "ratio_min is 0.6 and ratio_max 0.5"),
        (["method.views=ict", "method.ratio_max=1"], "something of the chunk must be left"),
        (["method.augmentation_probability=1"], "deleting every token leaves no text"),
        (["method.momentum=1.5"], "expected a number from 0 to 1|expected a number ≥ 0 and ≤ 1|expected a number"),
        (["method.augmentation=shuffle"], "expected one of none, delete, replace, mask"),
    ],
)
def test_a_wrong_setting_is_a_sentence(given: list[str], message: str) -> None:
    """What is allowed is told, before anything starts."""
    with pytest.raises(ConfigError, match=message):
        resolve([CONTRIEVER], sets=given)


def test_in_batch_needs_no_queue_that_fits() -> None:
    """The queue's size says nothing where there is none."""
    assert config_of(loss="in-batch", queue=7).queue == 7


@pytest.mark.parametrize("changed", [{}, {"loss": "in-batch", "gather_negatives": False}, {"views": "ict"}], ids=str)
def test_it_trains(train_method: Train, changed: dict[str, Any]) -> None:
    """Loss falls on a planted corpus; held-out pairs are told apart better than at the start; nothing is idle."""
    config = config_of(**changed)
    found = train_method("one", ContrieverTrainer(config), config.contract(), tokens=20_000)
    losses = [line["loss"] for line in found.log[1:]]
    assert all(math.isfinite(loss) for loss in losses)
    late = sum(losses[-5:]) / 5
    assert late < sum(losses[:5]) / 5
    assert found.log[-1]["probe"]["accuracy"] > found.log[0]["probe"]["accuracy"]
    assert found.facts["without_gradient"] == []
    assert ("drift" in found.log[-1]["probe"]) == (config.loss == "moco")
    assert Contract.load(found.out / "encoder") == config.contract()


@pytest.mark.parametrize("changed", [{}, {"loss": "in-batch"}, {"accumulate": 2, "queue": 48}], ids=str)
def test_a_killed_training_ends_with_the_same_bytes(train_method: Train, changed: dict[str, Any]) -> None:
    """Killed before and after a checkpoint: the encoder, the log and the last checkpoint are equal, to the bit.

    The checkpoint holds queue, pointer and slow copy.
    """
    config = config_of(**changed)
    whole = train_method("whole", ContrieverTrainer(config), config.contract(), tokens=2500)
    for tokens in (300, 1300):
        with pytest.raises(KilledError):
            train_method(
                f"killed{tokens}", ContrieverTrainer(config), config.contract(), tokens=2500, advance=killer(tokens)
            )
        again = train_method(f"killed{tokens}", ContrieverTrainer(config), config.contract(), tokens=2500)
        assert again.files() == whole.files()
        assert again.facts["distinct_tokens"] == whole.facts["distinct_tokens"]
    name = max(path.name for path in whole.parts.glob("checkpoint-*.safetensors"))
    last, last_again = (load_file(folder / name) for folder in (whole.parts, again.parts))
    assert set(last) == set(last_again)
    assert all(bool((last[key] == last_again[key]).all()) for key in last)
    kept = [key for key in last if "method.key." in key or "method.queue." in key]
    assert bool(kept) == (config.loss == "moco")
    assert not any("optimiser/method" in key for key in last)


def test_the_query_encoder_alone_is_exported(train_method: Train) -> None:
    """The tensors are those of the start, and the weights are not the slow copy's."""
    config = config_of(checkpoint_tokens=1)
    found = train_method("one", ContrieverTrainer(config), config.contract(), tokens=2500)
    with safe_open(found.out / "encoder" / "model.safetensors", "pt") as file:
        names = set(file.keys())
    assert not any("queue" in name or name.startswith(("key", "method")) for name in names)
    name = max(path.name for path in found.parts.glob("checkpoint-*.safetensors"))
    kept = load_file(found.parts / name)
    exported = load_file(found.out / "encoder" / "model.safetensors")
    some = next(name for name in names if name.endswith("query.weight"))
    slow = next(value for key, value in kept.items() if key.startswith("weights/method.key.") and key.endswith(some))
    fast = kept[f"weights/encoder.{some}"]
    assert (exported[some] - fast).norm() < (exported[some] - slow).norm()


def test_the_seed_decides_all_bytes(train_method: Train) -> None:
    """The same seed twice, and another one: the random rows of the queue are its too."""
    config = config_of()
    one, two, three = (
        train_method(name, ContrieverTrainer(config), config.contract(), seed=seed).files()
        for name, seed in (("one", 1), ("two", 1), ("three", 2))
    )
    assert one == two
    assert one["encoder/model.safetensors"] != three["encoder/model.safetensors"]


def test_keys_cost_tokens_and_no_backward_pass(train_method: Train) -> None:
    """Both encoders' tokens count against the budget; passes are two a step."""
    config = config_of()
    found = train_method("one", ContrieverTrainer(config), config.contract(), tokens=1500)
    assert found.facts["passes"] == 2 * found.facts["steps"]
    assert found.facts["pairs"] == 8 * found.facts["steps"]
