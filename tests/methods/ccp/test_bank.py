"""Banks: the last rows in order, wrapped around exactly, of the languages that are asked for, without gradients."""

from collections import deque

import numpy as np
import pytest
import torch

from bench.config.profiles import PROFILES
from bench.pipeline.settings import resolve
from bench.training.banks import EMPTY, Ring, TaggedBank
from methods.ccp import CCP, CcpConfig


@pytest.mark.parametrize("capacity", [0, 1, 4, 7, 30])
def test_a_ring_holds_the_last_rows_in_order(capacity: int) -> None:
    """Invariant 7: as a queue of bounded length does, also of none, and where a push is longer than the ring."""
    generator = torch.Generator().manual_seed(capacity)
    ring, expected = Ring(capacity, 1), deque[float](maxlen=capacity)
    value = 0
    for _ in range(40):
        count = int(torch.randint(0, 10, (), generator=generator))
        rows = torch.arange(value, value + count, dtype=torch.float32)[:, None]
        value += count
        ring.push(rows, torch.arange(count) % 3)
        expected.extend(rows[:, 0].tolist())
        ring_rows, tags = ring.ordered()
        assert ring_rows[:, 0].tolist() == list(expected)
        assert len(tags) == len(ring_rows)


def test_what_a_step_asks_for_stays_on_the_processor() -> None:
    """Tags and pointer of a ring that moves to a device; all buffers go through checkpoints by their names."""
    ring = Ring(4, 2)
    ring.push(torch.ones(3, 2), torch.tensor([5, 6, 7]))
    ring.to("meta")
    assert (ring.rows.device.type, ring.tags.device.type, ring.pointer.device.type) == ("meta", "cpu", "cpu")
    assert (ring.tags.tolist(), int(ring.pointer)) == ([5, 6, 7, EMPTY], 3)
    assert list(ring.state_dict()) == ["rows", "tags", "pointer"]
    assert Ring(4, 2).double().rows.dtype == torch.float64


@pytest.mark.parametrize("layout", ["tagged_global", "per_language"])
def test_rows_of_some_languages_alone(layout: str) -> None:
    """Asked for some tags, the rest is left out and the order stays."""
    bank = TaggedBank(6, 1, 3, "tagged_global" if layout == "tagged_global" else "per_language")
    tags = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    bank.push(torch.arange(8.0)[:, None], tags)
    rows, row_tags = bank.ordered(torch.tensor([2, 0]))
    expected = {"tagged_global": [2, 3, 5, 6], "per_language": [0, 3, 6, 2, 5]}[layout]
    assert rows[:, 0].tolist() == expected
    assert row_tags.tolist() == tags[torch.tensor(expected)].tolist()
    assert len(bank.ordered(torch.tensor([EMPTY]))[0]) == 0


@pytest.mark.parametrize(
    ("settings", "share"), [({}, 0.977), ({"bank.layout": "tagged_global", "bank.capacity": 512}, 0.262)]
)
def test_steps_of_the_mini_preset_see_rows_of_their_language(settings: dict[str, object], share: float) -> None:
    """Over 600 steps of one of 14 languages each: nearly all do; in one ring of four batches a quarter does."""
    sets = [f"method.{key}={value}" for key, value in settings.items()]
    config = resolve([CCP], profile=PROFILES["mini"], sets=sets)["ccp"].method
    assert isinstance(config, CcpConfig)
    bank, rng, hits = TaggedBank(config.bank.capacity, 1, 14, config.bank.layout), np.random.default_rng(0), 0
    for _ in range(600):
        tag = torch.tensor(int(rng.integers(14)))
        hits += len(bank.ordered(tag)[0]) > 0
        bank.push(torch.zeros(2 * config.pairs, 1), tag.expand(2 * config.pairs))
    assert hits / 600 == pytest.approx(share, abs=0.02)


def test_nothing_in_a_bank_has_a_gradient() -> None:
    """Invariant 3: neither what was pushed with one, nor what comes back, a copy; rows of another width are refused."""
    bank, rows = TaggedBank(4, 2, 1), torch.ones(2, 2, requires_grad=True)
    bank.push(rows * 2, torch.zeros(2).long())
    stored = bank.ordered()[0]
    assert not stored.requires_grad
    assert not any(value.requires_grad for value in bank.state_dict().values())
    assert [*bank.parameters()] == []
    with torch.no_grad():
        rows.fill_(9)
    assert bank.ordered()[0].tolist() == [[2, 2], [2, 2]]
    with pytest.raises(ValueError, match=r"found rows \[2, 3\], expected \[n, 2\]"):
        Ring(4, 2).push(torch.zeros(2, 3))
