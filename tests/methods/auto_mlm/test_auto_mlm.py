"""Auto-MLM as a plugin, its two passes, and a training end to end."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from bench.training.batches import Masked, PairBatch
from bench.training.encoder import TrainableEncoder
from bench.training.mlm import MlmHead, PairsAndMasks, mlm_loss
from methods.auto_mlm import AutoMlmConfig
from methods.auto_mlm.trainer import AutoMlmTrainer, user_and_agent
from tests.conftest import present

QUERIES = [[1, 10, 11, 12, 2], [1, 20, 21, 2], [1, 30, 2]]
KEYS = [[1, 13, 14, 2], [1, 22, 23, 24, 2], [1, 31, 32, 2]]
Encoders = Callable[..., tuple[TrainableEncoder, MlmHead]]


def batch(sides: str = "both") -> PairsAndMasks:
    """Three pairs; the second token of every sequence is hidden."""
    pairs = PairBatch(QUERIES, KEYS, np.arange(3), ("en",) * 3)
    sequences = [*QUERIES, *KEYS] if sides == "both" else QUERIES
    inputs = [np.array([sequence[0], 3, *sequence[2:]]) for sequence in sequences]
    places = np.ones(len(sequences), np.int64)
    masked = Masked(inputs, np.arange(len(sequences)), places, np.array([sequence[1] for sequence in sequences]))
    return PairsAndMasks(pairs, masked)


@pytest.fixture
def encoders(encoder_for: Callable[[AutoMlmConfig], TrainableEncoder]) -> Encoders:
    """Load the tiny encoder, and a head whose decoder is not even."""

    def make(config: AutoMlmConfig) -> tuple[TrainableEncoder, MlmHead]:
        encode = encoder_for(config)
        torch.manual_seed(4)
        head = MlmHead.for_(encode)
        with torch.no_grad():
            encode.embeddings.mul_(20)  # random embeddings are so small that logits hardly differ
        return encode, head

    return make


def value(encode: TrainableEncoder, head: MlmHead | None, pairs: PairsAndMasks, **changed: Any) -> float:
    """The loss with some settings changed."""
    loss, _ = AutoMlmTrainer(AutoMlmConfig(**changed)).loss(head, encode, pairs)
    return float(loss.detach())


@pytest.mark.parametrize("count", [3, 5, 6])
def test_the_user_asks_and_the_agent_answers(count: int) -> None:
    """Of a session in turns, begun by the user: every pair of an even and an odd place, as often as any other."""
    rng = np.random.default_rng(count)
    counts = Counter(user_and_agent(count, rng) for _ in range(6000))
    assert set(counts) == {(user, agent) for user in range(0, count, 2) for agent in range(1, count, 2)}
    assert chisquare([*counts.values()]).pvalue > 1e-3


def test_without_a_vector_it_is_plain_masked_prediction(encoders: Encoders) -> None:
    """Zero vectors give the loss without any; of one side alone, the other sentence's vector helps nobody."""
    encode, head = encoders(AutoMlmConfig())
    masked = present(batch().masked)
    zero = torch.zeros(6, 16)
    plain, added = mlm_loss(encode, head, masked), mlm_loss(encode, head, masked, vectors=zero)
    torch.testing.assert_close(added, plain, rtol=0, atol=0)
    assert value(encode, head, batch(), ctl=False, automlm=False, mlm=True) == float(plain.detach())
    assert value(encode, head, batch(), ctl=False) != float(plain.detach())
    config = AutoMlmConfig(ctl=False, automlm_side="query")
    loss, _ = AutoMlmTrainer(config).loss(head, encode, batch("query"))
    masked = present(batch("query").masked)
    torch.testing.assert_close(loss, mlm_loss(encode, head, masked, vectors=encode(QUERIES)), rtol=0, atol=1e-6)


def test_the_first_pass_reads_no_mask_and_the_second_no_vector(encoders: Encoders) -> None:
    """The sequences of both passes as the encoder gets them."""
    encode, head = encoders(AutoMlmConfig())
    passes: list[list[list[int]]] = []
    inner = encode.packed

    def packed(sequences: Any, *args: Any) -> Any:
        passes.append([[int(token) for token in sequence] for sequence in sequences])
        return inner(sequences, *args)

    object.__setattr__(encode, "packed", packed)
    value(encode, head, batch())
    assert len(passes) == 2
    assert not any(3 in sequence for sequence in passes[0])
    assert all(3 in sequence for sequence in passes[1])
    assert passes[0] == [*QUERIES, *KEYS]


def test_the_vector_is_added_to_the_hidden_rows_before_the_head(encoders: Encoders) -> None:
    """Written out with full logits: `decoder(head(H_t + v))`, v not normalised, averaged over tokens."""
    encode, head = encoders(AutoMlmConfig())
    pairs = batch()
    assert pairs.masked is not None
    with torch.no_grad():
        v = encode([*QUERIES, *KEYS])
        losses = []
        for row, sequence in enumerate(pairs.masked.inputs):
            states, packed = encode.hidden([sequence])
            logits = head(states[packed.starts[0] + 1] + v[row]) @ encode.embeddings.T + head.bias
            target = int(encode.rows(pairs.masked.targets[row : row + 1])[0])
            losses.append(logits.logsumexp(0) - logits[target])
    assert value(encode, head, pairs, ctl=False) == pytest.approx(float(torch.stack(losses).mean()), abs=1e-5)


def test_weight_nought_trains_no_head_and_the_parts_add_up(encoders: Encoders) -> None:
    """λ = 0: no gradient in the decoder's bias; else the total is L_ctl + λ · L_automlm."""
    encode, head = encoders(AutoMlmConfig())
    loss, _ = AutoMlmTrainer(AutoMlmConfig(weight=0.0)).loss(head, encode, batch())
    loss.backward()
    assert not present(head.bias.grad).any()
    ctl, automlm = value(encode, None, batch(), automlm=False), value(encode, head, batch(), ctl=False)
    assert float(loss.detach()) == pytest.approx(ctl, abs=1e-6)
    assert value(encode, head, batch(), weight=0.3) == pytest.approx(ctl + 0.3 * automlm, abs=1e-5)


@pytest.mark.parametrize("detach", [False, True])
def test_gradients_flow_through_both_passes(encoders: Encoders, detach: bool) -> None:
    """The hidden word's own embedding is read by the first pass alone; detached, only the decoder moves it."""
    encode, head = encoders(AutoMlmConfig())
    config = AutoMlmConfig(ctl=False, automlm_detach=detach)
    v: list[torch.Tensor] = []
    inner = encode.encode_views

    def encode_views(views: Any) -> tuple[torch.Tensor, ...]:
        parts = inner(views)
        for part in parts:
            part.retain_grad()
            v.append(part)
        return parts

    object.__setattr__(encode, "encode_views", encode_views)
    AutoMlmTrainer(config).loss(head, encode, batch())[0].backward()
    if detach:
        assert all(part.grad is None for part in v)
    else:
        assert all(part.grad is not None and bool(part.grad.any()) for part in v)


def test_both_passes_count(encoders: Encoders) -> None:
    """Tokens of the sentences twice; of a training without one of the passes, once."""
    tokens = sum(map(len, [*QUERIES, *KEYS]))
    plain = {"ctl": False, "automlm": False, "mlm": True}
    ways: list[tuple[dict[str, Any], int]] = [({}, 2), ({"automlm": False}, 1), (plain, 1)]
    for changed, times in ways:
        config = AutoMlmConfig(**changed)
        encode, head = encoders(config)
        AutoMlmTrainer(config).loss(head if config.automlm or config.mlm else None, encode, batch())
        assert encode.meter.tokens == times * tokens, changed


@pytest.mark.slow
def test_the_vector_gives_hidden_tokens_away(train_method: Callable[..., Any]) -> None:
    """After as many steps the loss of hidden tokens is lower than without the vector, whose training has one pass."""
    common: dict[str, Any] = {"pooling": "mean", "pairs": 6, "ctl": False, "learning_rate": 1e-2}
    common |= {"log_every": 20, "probe_every": 1000, "probe_pairs": 4}
    auto = AutoMlmConfig(**common)
    plain = AutoMlmConfig(**common, automlm=False, mlm=True)
    with_vector = train_method("auto", AutoMlmTrainer(auto), auto.encoder_config(), tokens=16_000).log[-1]["automlm"]
    without_vector = train_method("plain", AutoMlmTrainer(plain), plain.encoder_config(), tokens=8_000).log[-1]["mlm"]
    assert with_vector < without_vector - 0.3
