"""What each place reads, and what the decoder makes of it, worked out on paper."""

from types import SimpleNamespace

import numpy as np
import torch
from bench_retromae.trainer import VeiledBlocks, rebuild, veil

from bench.training import Layer, Masked, Shape


def test_no_place_reads_itself_and_each_its_own_half() -> None:
    """[CLS], ten tokens, [SEP]: five are hidden from every place, and a token from itself; the vector from none."""
    readable = np.array([False, *[True] * 10, False])
    marks = np.stack([veil(readable, 0.5, np.random.default_rng(seed)) for seed in range(200)])  # [200, 12, 12]
    assert marks[:, range(1, 11), range(1, 11)].all()
    assert not marks[:, :, [0, 11]].any()
    others = marks[:, 1:11, 1:11] & ~np.eye(10, dtype=bool)
    assert set(others.sum(2).ravel()) == {4, 5}  # five, of which the place itself may be one
    assert abs(marks[:, 0, 1:11].mean() - 0.5) < 1e-9
    assert np.abs(others.mean(0)[~np.eye(10, dtype=bool)] - 0.5).max() < 0.15  # each as often
    assert (marks[:, 1] == marks[:, 2]).all(1).mean() < 0.05  # places are drawn for by themselves


def test_a_share_between_two_counts_is_drawn() -> None:
    """Half of three tokens: one or two, 1.5 on average."""
    counts = [veil(np.array([False, *[True] * 3]), 0.5, np.random.default_rng(at))[0].sum() for at in range(400)]
    assert set(counts) == {1, 2}
    assert abs(np.mean(counts) - 1.5) < 0.1


def test_all_but_what_frames_a_text_is_rebuilt() -> None:
    """[CLS], a word, a mask, an unknown token, [SEP]: the authors' labels leave out the first and the last alone."""
    special = {"cls": 1, "sep": 2, "pad": 0, "mask": 3, "unk": 4}
    masked = Masked([np.array([1, 10, 3, 4, 2])], *map(np.array, ([0], [2], [11])))
    blocks = SimpleNamespace(
        shards=SimpleNamespace(special=special), batch=lambda _: masked, held_out=None, state=None, restore=None
    )
    (marks,) = VeiledBlocks(blocks, 0.5).batch(np.random.default_rng(0)).veils
    assert marks.diagonal().tolist() == [False, True, True, True, False]
    assert not marks[:, [0, 4]].any()


def normal(rows: np.ndarray) -> np.ndarray:
    """Shift and scale rows to mean 0 and variance 1."""
    return (rows - rows.mean(-1, keepdims=True)) / rows.std(-1, keepdims=True)


def test_the_decoder_adds_to_a_query_the_mean_of_what_it_reads() -> None:
    """As long as attention is even and the inner layers give 0: normal(normal(query + mean)), of two texts at once."""
    decoder = Layer(Shape(width=4, heads=2, inner=8, dropout=0.0, eps=0.0))
    decoder.begin_as_average()
    with torch.no_grad():
        decoder.attention.in_proj_weight[:8] = 0
        decoder.second.weight.zero_()
    rng = np.random.default_rng(0)
    context, queries = rng.normal(size=(5, 4)), rng.normal(size=(5, 4))  # two rows of one text, three of another
    packed = SimpleNamespace(lengths=[2, 3], longest=3, places=torch.tensor([1, 0]))
    veils = [np.array([[0, 0, 1], [0, 1, 0], [0, 1, 1]], bool), np.array([[0, 1], [0, 1]], bool)]  # the longer first
    made = rebuild(decoder, *(torch.tensor(rows, dtype=torch.float32) for rows in (context, queries)), packed, veils)
    short, long = context[:2], context[2:]
    read = [short[0], short[0], long[:2].mean(0), long[[0, 2]].mean(0), long[0]]
    np.testing.assert_allclose(made.detach().numpy(), normal(normal(queries + np.stack(read))), atol=1e-5)
