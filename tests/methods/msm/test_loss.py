"""MSM's loss: detached bias, what the bias does, permutations, and the plain cases."""

import pytest
import torch

from bench.training.losses import info_nce
from methods.msm.loss import gap, hierarchical_nce, msm_loss, relations
from tests.conftest import present


def random(*shape: int) -> torch.Tensor:
    """Standard normal numbers, always the same."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


DOCUMENTS = torch.tensor([4, 4, 4, 9, 9, 2])


def test_the_bias_levels_near_negatives_and_carries_no_gradient() -> None:
    """Softmax of adjusted logits minus the target; with μ = 1 row means are level; relations by hand."""
    logits = (3 * random(6, 6)).requires_grad_()
    positives = torch.arange(6)
    intra, cross = relations(DOCUMENTS, DOCUMENTS, positives)
    hierarchical_nce(logits, positives, intra, cross, mu=0.7).mean().backward()
    adjusted = logits.detach() - 0.7 * intra * gap(logits, intra, cross)[:, None]
    torch.testing.assert_close(present(logits.grad), (adjusted.softmax(1) - torch.eye(6, dtype=torch.float64)) / 6)
    assert gap(logits, intra, cross)[:5].abs().min() > 0.1  # so that forgetting to detach it would show
    logits = random(6, 6)
    near = logits - gap(logits, intra, cross)[:, None]
    for row in range(5):
        torch.testing.assert_close(near[row][intra[row]].mean(), logits[row][cross[row]].mean())
    assert torch.equal(intra.int() + cross.int() + torch.eye(6, dtype=torch.int), torch.ones(6, 6, dtype=torch.int))
    assert intra[1].tolist() == [True, False, True, False, False, False]
    assert cross[1].tolist() == [False, False, False, True, True, True]


def test_order_of_documents_is_order_of_losses() -> None:
    """Permuting rows permutes the losses; queries 3 to 5 against all keys give their rows of the whole."""
    queries, keys = random(6, 4), random(6, 4).flip(0)
    order = torch.tensor([3, 4, 5, 0, 1, 2])
    plain = msm_loss(queries, keys, DOCUMENTS, reduction="none")
    torch.testing.assert_close(msm_loss(queries[order], keys[order], DOCUMENTS[order], reduction="none"), plain[order])
    part = msm_loss(queries[3:], keys, DOCUMENTS[3:], DOCUMENTS, first=3, reduction="none")
    torch.testing.assert_close(part, plain[3:])


def test_without_near_or_far_negatives_it_is_plain_contrast() -> None:
    """Documents of one sentence, or a single one, have no bias; one sentence alone no loss."""
    queries, keys = random(5, 4), random(5, 4).flip(0)
    loss = msm_loss(queries, keys, torch.arange(5), temperature=0.3, mu=0.9)
    torch.testing.assert_close(loss, info_nce(queries, keys, temperature=0.3, similarity="cos"))
    queries, keys = queries[:3], keys[:3]
    loss = msm_loss(queries, keys, torch.zeros(3, dtype=torch.int64), mu=0.9)
    torch.testing.assert_close(loss, info_nce(queries, keys, temperature=0.1, similarity="cos"))
    assert float(msm_loss(queries[:1], keys[:1], torch.tensor([7]))) == 0
    empty = msm_loss(queries[:0].requires_grad_(), keys[:0], torch.zeros(0, dtype=torch.int64))
    assert float(empty.detach()) == 0


def test_padding_is_neither_query_nor_key_even_if_it_is_no_number() -> None:
    """Values and gradients are those without the row."""
    queries, keys = random(6, 4), random(6, 4).flip(0)
    valid = torch.tensor([True, True, False, True, True, True])
    spoilt = queries.clone()
    spoilt[2] = torch.nan
    spoilt.requires_grad_()
    spoilt_keys = keys.clone()
    spoilt_keys[2] = torch.inf
    loss = msm_loss(spoilt, spoilt_keys, DOCUMENTS, valid=valid)
    loss.backward()
    clean = queries[valid].requires_grad_()
    expected = msm_loss(clean, keys[valid], DOCUMENTS[valid])
    expected.backward()
    torch.testing.assert_close(loss.detach(), expected.detach())
    assert spoilt.grad is not None
    torch.testing.assert_close(spoilt.grad[valid], present(clean.grad))
    assert not spoilt.grad[2].any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"temperature": 0.0}, "found temperature 0.0"),
        ({"mode": "both"}, "found mode 'both', expected balanced or cross_only"),
        ({"reduction": "sum"}, "found reduction 'sum', expected mean or none"),
        ({"valid": torch.ones(6, dtype=torch.bool), "key_documents": DOCUMENTS}, "found padding with gathered keys"),
    ],
)
def test_a_wrong_argument_is_a_sentence(arguments: dict[str, object], message: str) -> None:
    """Found and expected."""
    with pytest.raises(ValueError, match=message):
        msm_loss(random(6, 4), random(6, 4), DOCUMENTS, **arguments)  # type: ignore[arg-type]  # wrong on purpose
