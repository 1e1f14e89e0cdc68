"""Contriever as a plugin, and trained end to end on the planted corpus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file

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


def test_the_contract_is_the_papers() -> None:
    """Mean over all tokens, dot product of vectors as they are."""
    contract = ContrieverConfig().contract()
    assert (contract.pooling, contract.normalise, contract.similarity) == ("mean", False, "dot")


def test_in_batch_needs_no_queue_that_fits() -> None:
    """The queue's size says nothing where there is none."""
    assert config_of(loss="in-batch", queue=7).queue == 7


def test_the_query_encoder_alone_is_exported(train_method: Train) -> None:
    """The tensors are those of the start, and the weights are not the slow copy's."""
    config = config_of(checkpoint_tokens=1)
    found = train_method("one", ContrieverTrainer(config), config.contract(), tokens=2500)
    with safe_open(found.out / "encoder" / "model.safetensors", "pt") as file:
        names = set(file.keys())
    assert not any("queue" in name or name.startswith(("key", "method")) for name in names)
    kept = load_file(found.parts / max(path.name for path in found.parts.glob("checkpoint-*.safetensors")))
    assert {"buffers/method.queue.rows", "buffers/method.queue.pointer"} <= set(kept)
    assert not any("optimiser/method" in key for key in kept)
    exported = load_file(found.out / "encoder" / "model.safetensors")
    some = next(name for name in names if name.endswith("query.weight"))
    slow = next(value for key, value in kept.items() if key.startswith("weights/method.key.") and key.endswith(some))
    fast = kept[f"weights/encoder.{some}"]
    assert (exported[some] - fast).norm() < (exported[some] - slow).norm()


def test_keys_cost_tokens_and_no_backward_pass(train_method: Train) -> None:
    """Both encoders' tokens count against the budget; passes are two a step."""
    config = config_of()
    found = train_method("one", ContrieverTrainer(config), config.contract(), tokens=1500)
    assert found.facts["passes"] == 2 * found.facts["steps"]
    assert found.facts["pairs"] == 8 * found.facts["steps"]
    assert "drift" in found.log[-1]["probe"]
