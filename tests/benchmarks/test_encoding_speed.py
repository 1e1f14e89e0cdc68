"""How much faster packed encoding is than padded batches in the order given, on an encoder with random weights."""

import time
from collections.abc import Callable
from copy import deepcopy

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from bench.retrieval.packed import budget, enable, first_position, forward, pack, pool

TEXTS, BATCH, BUDGET = 256, 32, 2_048
MEASURED = 2.5  # the lowest ratio of several runs on two cores of a busy machine, one thread


def lengths(rng: np.random.Generator) -> list[int]:
    """Draw lengths like those of passages: 50 tokens in the mean, few of them long."""
    drawn = np.clip(rng.lognormal(3.6, 0.75, TEXTS), 4, 256).astype(int)
    return [int(length) for length in drawn]


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.mark.slow
def test_packed_is_at_least_twice_as_fast_as_padded(capsys: pytest.CaptureFixture[str]) -> None:
    """The same texts, mean over tokens, one thread, rounds in turn; both give the same vectors."""
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, vocab_size=1000
    )
    plain, packing = (BertModel(deepcopy(config), add_pooling_layer=False).train(False) for _ in range(2))
    packing.load_state_dict(plain.state_dict())
    assert enable(packing)
    rng = np.random.default_rng(0)
    sequences = [rng.integers(1, 1000, length).tolist() for length in lengths(rng)]

    def padded() -> torch.Tensor:
        """Batches of 32 in the order given, each padded to its longest."""
        found = []
        for start in range(0, TEXTS, BATCH):
            batch = sequences[start : start + BATCH]
            size = max(map(len, batch))
            ids = torch.tensor([row + [0] * (size - len(row)) for row in batch])
            mask = torch.tensor([[1] * len(row) + [0] * (size - len(row)) for row in batch])
            hidden = plain(input_ids=ids, attention_mask=mask).last_hidden_state
            found.append((hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))
        return torch.cat(found)

    def packed() -> torch.Tensor:
        """Token budgets, nothing padded."""
        found = torch.empty(TEXTS, 384)
        for batch in budget([len(row) for row in sequences], BUDGET):
            row = pack([sequences[at] for at in batch], first_position(packing))
            found[batch] = pool(forward(packing, row), row, "mean")
        return found

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            torch.testing.assert_close(packed(), padded(), atol=1e-5, rtol=0)
            ratios = [seconds(padded) / seconds(packed) for _ in range(5)]
    finally:
        torch.set_num_threads(threads)
    ratio = float(np.median(ratios))
    with capsys.disabled():
        print(f"\npacked encoding: {ratio:.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})")  # noqa: T201 (a measurement)
    assert ratio >= max(2.0, 0.8 * MEASURED)
