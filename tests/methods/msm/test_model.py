"""MSM's document encoder: what a prediction sees and what it must not."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

from bench.training.heads import Layer, Shape
from methods.msm import MsmConfig
from methods.msm.model import Copies, DocumentEncoder, MsmModules
from tests.conftest import present

SHAPE = Shape(width=8, heads=2, inner=12, dropout=0.1, eps=1e-12)
SIZES = [3, 1, 4, 2]
ROWS = sum(SIZES)


@pytest.fixture
def reader() -> DocumentEncoder:
    """A document encoder in float64 without dropout, with weights large enough to see something."""
    torch.manual_seed(1)
    encoder = DocumentEncoder(SHAPE, 2, 5).double().eval()
    for weight in encoder.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return encoder


def sentences() -> torch.Tensor:
    return torch.randn(ROWS, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def sees(reader: DocumentEncoder, copies: Copies) -> torch.Tensor:
    """Which prediction (row) depends on which sentence (column), bool `[n, n]`."""
    jacobian = torch.autograd.functional.jacobian(lambda rows: reader(rows, copies), sentences())
    depends: torch.Tensor = jacobian.abs().amax((1, 3)) > 0
    return depends


def test_copies_and_operations_by_hand() -> None:
    """Documents of two sentences and of one: 3 is the mask, 4 nothing; a full layer, and a last one at the slot."""
    copies = Copies.from_sizes([2, 1])
    assert copies.index.tolist() == [[3, 1], [0, 3], [3, 4]]
    assert copies.slots.tolist() == [0, 1, 0]
    assert Copies.from_sizes([2, 1], masked=False).index.tolist() == [[0, 1], [0, 1], [2, 4]]
    reader = DocumentEncoder(SHAPE, 2, 5)
    full = 3 * (4 * 64 + 2 * 96) + 2 * 9 * 8
    last = (2 * 64 + 2 * 96) + 3 * 2 * 64 + 2 * 3 * 8
    assert reader.operations(Copies.from_sizes([3, 1])) == 4 * (full + last)


def test_a_prediction_sees_all_its_document_but_itself(reader: DocumentEncoder) -> None:
    """Gradients are exactly zero for itself and other documents; without masking it sees itself."""
    documents = torch.arange(4).repeat_interleave(torch.tensor(SIZES))
    same_document = documents[:, None] == documents[None]
    assert torch.equal(sees(reader, Copies.from_sizes(SIZES)), same_document & ~torch.eye(ROWS, dtype=torch.bool))
    assert sees(reader, Copies.from_sizes(SIZES, masked=False)).diagonal().all()


def test_what_is_masked_or_beyond_the_document_changes_nothing(reader: DocumentEncoder) -> None:
    """Bit for bit even if it is no number; a document alone gives what it gives among longer ones, but for rounding."""
    copies, rows = Copies.from_sizes(SIZES), sentences()
    before = reader(rows, copies)
    for at in range(ROWS):
        noisy = rows.clone()
        noisy[at] = torch.nan
        assert torch.equal(reader(noisy, copies)[at], before[at])
    expected = reader(sentences(), Copies.from_sizes(SIZES))
    torch.testing.assert_close(reader(sentences()[:3], Copies.from_sizes([3])), expected[:3])
    torch.testing.assert_close(reader(sentences()[8:], Copies.from_sizes([2])), expected[8:])


def test_order_matters_and_shuffling_keeps_the_rest(reader: DocumentEncoder) -> None:
    """Neighbours change places among themselves; the mask stays; documents of one or two look the same."""
    copies = Copies.from_sizes(SIZES)
    shuffled = copies.shuffled(np.random.default_rng(1))
    assert [sorted(row) for row in shuffled.index.tolist()] == [sorted(row) for row in copies.index.tolist()]
    assert (shuffled.index[np.arange(ROWS), shuffled.slots] == ROWS).all()
    assert not np.array_equal(shuffled.index, copies.index)
    changed = (reader(sentences(), shuffled) - reader(sentences(), copies)).abs().amax(1) > 1e-6
    assert changed.tolist() == (shuffled.index != copies.index).any(1).tolist()
    assert not changed[[3, 8, 9]].any()


def test_a_layer_is_that_of_torch() -> None:
    """Torch's own post-norm layer has the same states; the last one at the slots alone is that of all rows."""
    torch.manual_seed(1)
    layer = Layer(SHAPE).double().eval()
    states = torch.randn(3, 4, 8, dtype=torch.float64)
    hidden = torch.tensor([[False, False, True, True], [False] * 4, [False] * 3 + [True]])
    slots = torch.tensor([1, 3, 0])
    last = layer(states[torch.arange(3), slots][:, None], states, hidden)[:, 0]
    torch.testing.assert_close(last, layer(states, states, hidden)[torch.arange(3), slots])
    theirs = torch.nn.TransformerEncoderLayer(
        8, 2, 12, 0.1, "gelu", 1e-12, batch_first=True, norm_first=False, dtype=torch.float64
    ).eval()
    theirs.self_attn.load_state_dict(layer.attention.state_dict())
    pairs = ((theirs.linear1, layer.first), (theirs.linear2, layer.second))
    for their_module, our_module in (*pairs, (theirs.norm1, layer.norm_attention), (theirs.norm2, layer.norm)):
        their_module.load_state_dict(our_module.state_dict())
    torch.testing.assert_close(layer(states, states, None), theirs(states))


def test_copies_computed_again_give_the_same_gradient(reader: DocumentEncoder) -> None:
    """In parts of three copies; 1e-10."""
    copies = Copies.from_sizes(SIZES)
    gradients = []
    for at_once in (None, 3):
        reader.zero_grad()
        rows = sentences().requires_grad_()
        reader(rows, copies, at_once).square().sum().backward()
        gradients.append([present(rows.grad), *(weight.grad for weight in reader.parameters())])
    for gradient, recomputed in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, recomputed, atol=1e-10, rtol=0)


@pytest.mark.parametrize(
    ("sharing", "encoders", "heads"),
    [
        ("all", {"all"}, {"all"}),
        ("sep_en", {"english", "others"}, {"all"}),
        ("sep_en_head", {"english", "others"}, {"english", "others"}),
    ],
)
def test_english_has_its_own_where_asked(sharing: Any, encoders: set[str], heads: set[str]) -> None:
    """Which modules there are, and that Finnish and Swahili share them."""
    modules = MsmModules(MsmConfig(share_doc_encoder=sharing), SHAPE)
    assert set(modules.documents) == encoders
    assert set(modules.heads) == heads
    assert modules.encoder_for("fi") is modules.encoder_for("sw")
    assert (modules.encoder_for("en") is modules.encoder_for("fi")) == (sharing == "all")
    assert (modules.heads_for("en") is modules.heads_for("fi")) == (sharing != "sep_en_head")


def test_heads_are_two_one_or_none() -> None:
    """Separate ones share no weight, but may begin alike; then every attention adds the mean of what it reads."""
    separate, shared, identity = (
        MsmModules(MsmConfig(heads=kind, begin="normal"), SHAPE).heads_for("en")
        for kind in ("separate", "shared", "none")
    )
    assert separate.query is not separate.key
    assert not {id(weight) for weight in separate.query.parameters()} & {
        id(weight) for weight in separate.key.parameters()
    }
    assert shared.query is shared.key
    rows = torch.randn(4, 8)
    assert all(torch.equal(vectors, rows) for vectors in identity(rows, rows))
    query, key = copy.deepcopy(separate)(rows, rows)
    assert not torch.allclose(query, key)
    torch.testing.assert_close(query.mean(0), torch.zeros(8), atol=1e-5, rtol=0)  # normalised at the end
    torch.manual_seed(0)
    modules = MsmModules(MsmConfig(begin="average"), SHAPE).eval()
    heads = modules.heads_for("en")
    assert heads.query is not heads.key
    for query_weight, key_weight in zip(heads.query.parameters(), heads.key.parameters(), strict=True):
        assert torch.equal(query_weight, key_weight)
        assert query_weight is not key_weight
    layer = Layer(SHAPE).eval()
    layer.begin_as_average()
    with torch.no_grad():
        layer.attention.in_proj_weight[:16] = 0  # all places weigh alike
        states = torch.randn(2, 3, 8)
        read, _ = layer.attention(states, states, states)
    torch.testing.assert_close(read, states.mean(1, keepdim=True).expand(2, 3, 8))
