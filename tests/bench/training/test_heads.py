"""Layers between an encoder and a loss: what each row may read, and Condenser's head."""

import torch

from bench.retrieval.packed import pack
from bench.training.heads import CondenserHead, Layer, Shape
from tests.conftest import present

SHAPE = Shape(8, 2, 12, 0.0, 1e-12)


def test_each_row_reads_what_is_left_to_it() -> None:
    """As it would alone, over a context without the places that are hidden from it; padding is hidden from all."""
    layer, rows, context = Layer(SHAPE), torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    hidden = torch.rand(2, 3, 5) < 0.5
    hidden[:, :, 1] = False
    together = layer(rows, context, hidden)
    for sequence in range(2):
        for row in range(3):
            readable = context[sequence : sequence + 1, ~hidden[sequence, row]]
            alone = layer(rows[sequence : sequence + 1, row : row + 1], readable, None)
            torch.testing.assert_close(together[sequence, row], alone[0, 0], rtol=0, atol=1e-5)
    padding = torch.tensor([[False, False, True, True, True], [False] * 5])
    of_all, of_each = (layer(rows, context, marks) for marks in (padding, padding[:, None].expand(2, 3, 5)))
    torch.testing.assert_close(of_all, of_each, rtol=0, atol=1e-6)


def test_the_head_reads_one_late_state_and_early_ones_else() -> None:
    """Gradients reach the late states of first tokens alone, and all early states but those."""
    torch.manual_seed(0)
    packed = pack([[1, 5, 2], [1, 6, 7, 2]], 0)
    head = CondenserHead(SHAPE, 2)
    early, late = (torch.randn(7, 8, requires_grad=True) for _ in range(2))
    head(early, late, packed).square().sum().backward()
    first = torch.tensor([True, False, False, True, False, False, False])
    assert torch.equal(present(late.grad).abs().amax(1) > 0, first)
    assert torch.equal(present(early.grad).abs().amax(1) > 0, ~first)
