"""Momentum contrast against the reference's order of steps, written out; and what must never have a gradient."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from bench.data.corpora.shards import Shards
from bench.training.encoder import TrainableEncoder
from bench.training.losses import info_nce, sharpness
from bench.training.optimisation import adamw
from methods.contriever import ContrieverConfig
from methods.contriever.loss import moco_logits, own_first, same_language
from methods.contriever.moco import Moco, drift
from methods.contriever.trainer import ContrieverTrainer
from methods.contriever.views import CroppedPairs
from tests.conftest import present

LANGUAGES = ("en", "fi", "sw")
Batches = Callable[[int], list[Any]]


def config_of(**changed: Any) -> ContrieverConfig:
    """A queue of three batches, no dropout in keys."""
    values: dict[str, Any] = {"pairs": 4, "queue": 12, "chunk_length": 24, "momentum": 0.5, "probe_pairs": 2}
    return ContrieverConfig(**{**values, "key_dropout": False, **changed})


def moco_loss(queries: torch.Tensor, keys: torch.Tensor, queue: torch.Tensor, temperature: float) -> torch.Tensor:
    """The loss of vectors that are not normalised."""
    return own_first(moco_logits(queries, keys, queue, temperature=temperature))


@pytest.fixture
def encoder(encoder_for: Callable[[ContrieverConfig], TrainableEncoder]) -> TrainableEncoder:
    return encoder_for(ContrieverConfig())


@pytest.fixture
def batches(corpus: Path) -> Batches:
    source, rng = CroppedPairs(Shards(corpus), config_of(), 1), np.random.default_rng(0)
    return lambda count: [source.batch(rng) for _ in range(count)]


def test_it_is_the_reference_step_by_step(encoder: TrainableEncoder, batches: Batches) -> None:
    """Queries; slow copy moves by the weights as they are; keys; loss; keys into the queue; optimiser: bit for bit.

    A momentum of one half makes the reference's first move, from equal weights, exact.
    """
    config = config_of()
    torch.manual_seed(0)
    moco = Moco(config, encoder, LANGUAGES)
    fast, slow = copy.deepcopy(encoder.model), copy.deepcopy(encoder.model)
    theirs, queue, pointer = replace(encoder, model=fast), moco.queue.rows.clone(), 0
    their_keys = replace(encoder, model=slow)
    ours_optimiser = torch.optim.AdamW(encoder.model.parameters(), lr=1e-2)
    their_optimiser = torch.optim.AdamW(fast.parameters(), lr=1e-2)
    for step, pairs in enumerate(batches(7), start=1):
        q = theirs(pairs.left)
        with torch.no_grad():
            for to, source in zip(slow.parameters(), fast.parameters(), strict=True):
                to.mul_(0.5).add_(source, alpha=0.5)
            k = their_keys(pairs.right)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.clone().T], dim=1) / config.temperature
        expected = torch.nn.functional.cross_entropy(logits, torch.zeros(4, dtype=torch.int64))
        queue[pointer : pointer + 4] = k
        pointer = (pointer + 4) % 12
        their_optimiser.zero_grad()
        expected.backward()
        their_optimiser.step()

        loss, _ = moco.loss(encoder, pairs)
        ours_optimiser.zero_grad()
        loss.backward()
        ours_optimiser.step()
        moco.after_step(step)
        assert float(loss.detach()) == float(expected.detach()), step
        assert torch.equal(moco.queue.rows, queue)
        assert int(moco.queue.pointer) == pointer
        for ours, theirs_weight in zip(encoder.model.parameters(), fast.parameters(), strict=True):
            assert torch.equal(ours, theirs_weight)


def test_keys_of_a_step_are_negatives_from_the_next_on(encoder: TrainableEncoder, batches: Batches) -> None:
    """The loss is that against the queue before; afterwards the keys, and their languages, are in it."""
    moco = Moco(config_of(), encoder, LANGUAGES)
    (pairs,) = batches(1)
    before = moco.queue.rows.clone()
    loss, metrics = moco.loss(encoder, pairs)
    queries, keys = encoder(pairs.left).detach(), encoder(pairs.right).detach()
    assert torch.equal(moco.queue.rows, before)
    assert float(loss.detach()) == pytest.approx(float(moco_loss(queries, keys, before, temperature=0.05)), abs=1e-5)
    assert metrics()["candidates"] == 13
    moco.after_step(1)
    torch.testing.assert_close(moco.queue.rows[:4], keys)
    assert torch.equal(moco.queue.rows[4:], before[4:])
    assert [LANGUAGES[int(tag)] for tag in moco.queue.tags[:4]] == list(pairs.languages)
    assert moco.queue.tags[4:].tolist() == [3] * 8  # random rows are of no language


def test_the_queue_begins_with_random_directions(encoder: TrainableEncoder, batches: Batches) -> None:
    """Unit rows, all different, all negatives from the first step on; a probe sees the share of keys grow."""
    moco = Moco(config_of(), encoder, LANGUAGES)
    torch.testing.assert_close(moco.queue.rows.norm(dim=1), torch.ones(12))
    assert len(moco.queue.rows.unique(dim=0)) == 12
    _, tags = moco.queue.ordered()
    assert len(tags) == 12
    filled = [moco.probe()["queue_filled"]]
    for step, pairs in enumerate(batches(3), start=1):
        moco.loss(encoder, pairs)
        moco.after_step(step)
        filled.append(moco.probe()["queue_filled"])
    assert filled == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_accumulated_batches_move_and_push_once(encoder: TrainableEncoder, batches: Batches) -> None:
    """The slow copy and the queue stand still between two batches of a step, then both batches enter in order."""
    moco = Moco(config_of(accumulate=2, queue=16), encoder, LANGUAGES)
    first, second = batches(2)
    slow = [weight.clone() for weight in moco.key.model.parameters()]
    before = moco.queue.rows.clone()
    keys = []
    for pairs in (first, second):
        moco.loss(encoder, pairs)
        keys.append(moco.key(pairs.right))
        assert torch.equal(moco.queue.rows, before)
    with torch.no_grad():
        for weight in encoder.model.parameters():
            weight.add_(1.0)
    moco.after_step(1)
    torch.testing.assert_close(moco.queue.rows[:8], torch.cat(keys).detach())
    for moved, old, fast in zip(moco.key.model.parameters(), slow, encoder.model.parameters(), strict=True):
        torch.testing.assert_close(moved, 0.5 * old + 0.5 * fast)


@pytest.mark.parametrize("momentum", [0.0, 0.9, 0.9995, 1.0])
def test_the_slow_copy_comes_nearer_by_a_power(encoder: TrainableEncoder, batches: Batches, momentum: float) -> None:
    """θ_k = θ_q + mᵗ(θ_k0 − θ_q) where θ_q stands still: at once where m is 0, never where it is 1."""
    moco = Moco(config_of(momentum=momentum), encoder, LANGUAGES)
    with torch.no_grad():
        for weight in moco.key.model.parameters():
            weight.add_(torch.randn_like(weight))
    away = [k - q for k, q in zip(moco.key.model.parameters(), encoder.model.parameters(), strict=True)]
    (pairs,) = batches(1)
    for step in range(1, 5):
        with torch.no_grad():
            moco.loss(encoder, pairs)
        moco.after_step(step)
        for k, q, start in zip(moco.key.model.parameters(), encoder.model.parameters(), away, strict=True):
            torch.testing.assert_close(k, q + momentum**step * start, rtol=0, atol=1e-5)
    assert (moco.probe()["drift"] == 0) == (momentum == 0)


def test_the_slow_copy_never_learns(encoder: TrainableEncoder, batches: Batches) -> None:
    """Neither it, the queue nor keys get a gradient or are the optimiser's; the encoder's weights all get one."""
    moco = Moco(config_of(), encoder, LANGUAGES)
    loss, _ = moco.loss(encoder, batches(1)[0])
    loss.backward()
    slow = list(moco.key.model.parameters())
    assert all(not weight.requires_grad and weight.grad is None for weight in slow)
    assert all(weight.grad is not None for weight in encoder.model.parameters())
    modules = torch.nn.ModuleDict({"encoder": encoder.model, "method": moco.modules})
    optimised = {id(weight) for group in adamw(modules, config_of()).param_groups for weight in group["params"]}
    assert not optimised & {id(weight) for weight in slow}
    assert optimised == {id(weight) for weight in encoder.model.parameters()}
    assert moco.queue.rows.grad_fn is None
    queries, keys, queue = (torch.randn(n, 5, dtype=torch.float64, requires_grad=True) for n in (3, 3, 7))
    moco_loss(queries, keys, queue, temperature=0.05).backward()
    assert present(queries.grad).abs().sum() > 0
    assert keys.grad is None
    assert queue.grad is None


def test_keys_have_dropout_if_wanted(encoder: TrainableEncoder, batches: Batches) -> None:
    """As the reference has it by mistake: two passes differ; without it they do not."""
    (pairs,) = batches(1)
    for dropout in (True, False):
        moco = Moco(config_of(key_dropout=dropout), encoder, LANGUAGES)
        for _ in range(2):
            moco.loss(encoder, pairs)
        (first, _), (second, _) = moco._fresh
        assert torch.equal(first, second) != dropout


def test_other_keys_of_the_batch_are_no_negatives() -> None:
    """The loss is that of the query alone, and the shared one with the others forbidden; shapes must fit."""
    torch.manual_seed(0)
    queries, keys, queue = (torch.randn(n, 5, dtype=torch.float64) for n in (3, 3, 7))
    first = moco_loss(queries[:1], keys[:1], queue, temperature=0.5)
    forbidden = ~torch.eye(3, dtype=torch.bool)
    losses = info_nce(queries, keys, temperature=0.5, negatives=queue, forbidden=forbidden, reduction="none")
    assert float(first) == pytest.approx(float(losses[0]), abs=1e-12)
    assert float(moco_loss(queries, keys, queue, temperature=0.5)) == pytest.approx(float(losses.mean()), abs=1e-12)
    with pytest.raises(ValueError, match="expected a key a query"):
        moco_logits(torch.ones(3, 2), torch.ones(2, 2), torch.ones(4, 2), temperature=1.0)
    with pytest.raises(ValueError, match="found temperature 0"):
        moco_logits(torch.ones(3, 2), torch.ones(3, 2), torch.ones(4, 2), temperature=0)


def test_shares_of_a_language_and_drift_by_hand() -> None:
    """Three negatives with 1/2, 1/4, 1/4, one of the query's language; ‖(3, 4) − 0‖ over ‖(3, 4)‖, and half."""
    logits = torch.log(torch.tensor([[9.0, 2.0, 1.0, 1.0]]))
    mass, share = same_language(logits, torch.tensor([5]), torch.tensor([5, 6, 6]))
    assert mass == pytest.approx(0.5)
    assert share == pytest.approx(1 / 3)
    assert sharpness(logits) == pytest.approx({"sharpest": 9 / 13, "candidates": logits.shape[1]})
    fast, slow = (torch.nn.ParameterList([torch.zeros(1), torch.zeros(1)]) for _ in range(2))
    with torch.no_grad():
        fast[0].fill_(3.0)
        fast[1].fill_(4.0)
    assert drift(slow, fast) == pytest.approx(1)
    with torch.no_grad():
        slow[0].fill_(1.5)
        slow[1].fill_(2.0)
    assert drift(slow, fast) == pytest.approx(0.5)


def trained_config(**changed: Any) -> ContrieverConfig:
    """A config for trainings of a second."""
    values: dict[str, Any] = {"pairs": 8, "queue": 32, "ratio_min": 0.2, "momentum": 0.9, "learning_rate": 5e-3}
    return config_of(**{**values, "log_every": 2, "probe_every": 5, "probe_pairs": 4, "key_dropout": True, **changed})


def test_the_query_encoder_alone_is_exported(train_method: Callable[..., Any]) -> None:
    """Not the slow copy; keys cost tokens and passes; the encoder config is the paper's; in batch any queue will do."""
    config = trained_config(checkpoint_tokens=1)
    training = train_method("one", ContrieverTrainer(config), config.encoder_config(), tokens=2500)
    with safe_open(training.out / "encoder" / "model.safetensors", "pt") as file:
        names = set(file.keys())
    assert not any("queue" in name or name.startswith(("key", "method")) for name in names)
    checkpoint = load_file(training.parts / max(path.name for path in training.parts.glob("checkpoint-*.safetensors")))
    assert {"buffers/method.queue.rows", "buffers/method.queue.pointer"} <= set(checkpoint)
    assert not any("optimiser/method" in key for key in checkpoint)
    exported = load_file(training.out / "encoder" / "model.safetensors")
    some = next(name for name in names if name.endswith("query.weight"))
    slow = next(
        value for key, value in checkpoint.items() if key.startswith("weights/method.key.") and key.endswith(some)
    )
    fast = checkpoint[f"weights/encoder.{some}"]
    assert (exported[some] - fast).norm() < (exported[some] - slow).norm()
    assert training.metadata["passes"] == 2 * training.metadata["steps"]
    assert training.metadata["pairs"] == 8 * training.metadata["steps"]
    assert "drift" in training.log[-1]["probe"]
    assert trained_config(loss="in-batch", queue=7).queue == 7
    encoder_config = ContrieverConfig().encoder_config()
    assert (encoder_config.pooling, encoder_config.normalise, encoder_config.similarity) == ("mean", False, "dot")
