"""CCP's loss: what it is invariant to, what it must never touch, and the share of each mass."""

from typing import Any

import pytest
import torch

from methods.ccp.loss import ContrastiveOutput, ccp_loss, softmax_mass
from tests.conftest import present


def rows(count: int = 8, width: int = 5, seed: int = 0) -> torch.Tensor:
    """Random projections, float64, that ask for a gradient."""
    projections = torch.randn(count, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return projections.requires_grad_()


WINDOWS = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])
LANGUAGES = torch.tensor([0, 0, 1, 1, 0, 0, 1, 1])
BANK, BANK_LANGUAGES = rows(6, seed=1).detach(), torch.tensor([0, 1, 2, 2, 1, 0])


def loss_of(z: torch.Tensor, **changed: Any) -> ContrastiveOutput:
    """The loss of a batch in two languages with a bank in three."""
    arguments: dict[str, Any] = {"bank": BANK, "bank_languages": BANK_LANGUAGES, "temperature": 0.5, **changed}
    return ccp_loss(z, arguments.pop("windows", WINDOWS), arguments.pop("languages", LANGUAGES), **arguments)


def gradient(z: torch.Tensor, **changed: Any) -> torch.Tensor:
    """The gradient of the loss by the projections."""
    (slope,) = torch.autograd.grad(loss_of(z, **changed).loss, z)
    return slope


FLAGS: dict[str, Any] = {"l2_norm": False, "inbatch_cross_language": True, "bank_language_specific": False}
FLAGS |= {"reduction": "sum", "windows": torch.tensor([0, 1, 2, 3, 0, 1, 2, 2])}


@pytest.mark.parametrize("flags", [{}, *({key: value} for key, value in FLAGS.items())], ids=["default", *FLAGS])
def test_the_loss_is_the_formula(flags: dict[str, Any]) -> None:
    """Against loops over the printed sums."""
    z = rows().detach()
    switches = {"l2_norm": True, "inbatch_cross_language": False, "bank_language_specific": True}
    settings: dict[str, Any] = {"windows": WINDOWS, **switches, **flags}
    windows = settings["windows"].tolist()

    def similarity(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        product = (a * b).sum()
        return product / (a.norm() * b.norm()) if settings["l2_norm"] else product

    terms = []
    for a in range(8):
        language = LANGUAGES[a]
        candidates = [
            z[k] for k in range(8) if k != a and (settings["inbatch_cross_language"] or LANGUAGES[k] == language)
        ]
        candidates += [
            row
            for row, tag in zip(BANK, BANK_LANGUAGES, strict=True)
            if tag == language or not settings["bank_language_specific"]
        ]
        bottom = sum(torch.exp(similarity(z[a], candidate) / 0.5) for candidate in candidates)
        partners = [b for b in range(8) if b != a and windows[b] == windows[a]]
        terms += [-torch.log(torch.exp(similarity(z[a], z[b]) / 0.5) / bottom) for b in partners]
    expected = torch.stack(terms)
    output = loss_of(z, **flags)
    torch.testing.assert_close(output.terms, expected)
    torch.testing.assert_close(output.loss, expected.sum() if flags.get("reduction") == "sum" else expected.mean())


def test_views_lengths_and_anchors_change_no_term() -> None:
    """Invariants 1 and 9: swapped views, positive scaling (unless without cosines), some anchors alone."""
    z = rows().detach()
    assert torch.equal(loss_of(z).terms, loss_of(z.roll(4, 0)).terms.roll(4, 0))
    assert loss_of(z).loss.item() == pytest.approx(loss_of(z.roll(4, 0)).loss.item(), abs=1e-14)
    factors = torch.linspace(0.2, 40.0, 8, dtype=torch.float64)[:, None]
    scaled = loss_of(z * factors, bank=BANK * 3)
    torch.testing.assert_close(scaled.terms, loss_of(z).terms)
    assert not torch.isclose(loss_of(z * factors, l2_norm=False).loss, loss_of(z, l2_norm=False).loss)
    some = torch.tensor([1, 5, 6])
    torch.testing.assert_close(loss_of(z, anchors=some).terms, loss_of(z).terms[some])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_bank_rows_of_other_languages_are_never_touched(value: float) -> None:
    """Invariant 2: left out, or spoilt, they change neither value nor gradient by a bit."""
    z = rows()
    mine = BANK_LANGUAGES != 2
    spoilt = torch.where(mine[:, None], BANK, torch.tensor(value, dtype=torch.float64))
    for bank, tags in ((BANK[mine], BANK_LANGUAGES[mine]), (spoilt, BANK_LANGUAGES)):
        changed = {"bank": bank, "bank_languages": tags}
        assert torch.equal(loss_of(z, **changed).loss, loss_of(z).loss)
        assert torch.equal(gradient(z, **changed), gradient(z))
    assert gradient(z).isfinite().all()


def test_bank_rows_change_terms_of_their_language_and_get_no_gradient() -> None:
    """Invariants 2 and 3: terms of language 0 do not know of rows of language 1, nor gradients of later changes."""
    z, changed_bank = rows().detach(), BANK.clone()
    changed_bank[BANK_LANGUAGES == 1] = 7.0
    before, after = loss_of(z).terms, loss_of(z, bank=changed_bank).terms
    assert torch.equal(before[LANGUAGES == 0], after[LANGUAGES == 0])
    assert not torch.isclose(before[LANGUAGES == 1], after[LANGUAGES == 1]).any()
    z, bank = rows(), BANK.clone().requires_grad_()
    loss = loss_of(z, bank=bank).loss
    before = gradient(z)
    with torch.no_grad():
        bank.fill_(9.0)
    loss.backward()
    assert bank.grad is None
    assert torch.equal(present(z.grad), before)


def test_an_empty_bank_is_none() -> None:
    """Without rows, or of other languages; other windows of a document are negatives; bfloat16 is widened."""
    z = rows().detach()
    bare = loss_of(z, bank=None, bank_languages=None)
    for tags in (torch.full((6,), 2), torch.full((6,), -1)):
        assert torch.equal(loss_of(z, bank_languages=tags).loss, bare.loss)
    empty = loss_of(z, bank=BANK[:0], bank_languages=BANK_LANGUAGES[:0])
    assert torch.equal(empty.loss, bare.loss)
    four = rows(4).detach()
    one_document = {"windows": torch.tensor([0, 1, 0, 1]), "languages": torch.zeros(4).long(), "bank": None}
    assert len(loss_of(four, **one_document).terms) == 4
    assert (loss_of(four, **one_document).logits > float("-inf")).sum(1).tolist() == [3, 3, 3, 3]
    narrow = loss_of(z.bfloat16(), bank=BANK.bfloat16(), temperature=0.001)  # bfloat16 could not tell its logits apart
    assert narrow.logits.dtype == torch.float32
    wide = loss_of(z.bfloat16().float(), bank=BANK.bfloat16().float(), temperature=0.001)
    assert torch.equal(narrow.loss, wide.loss)


@pytest.mark.parametrize("temperature", [1.0, 0.1, 0.001])
def test_a_pair_alone_costs_nothing(temperature: float) -> None:
    """Invariant 10: one window and no bank give exactly 0, and no gradient."""
    z, pair = rows(2), {"windows": torch.tensor([0, 0]), "languages": torch.tensor([0, 0])}
    changed = {**pair, "bank": None, "bank_languages": None, "temperature": temperature}
    assert loss_of(z, **changed).loss.item() == 0
    assert torch.equal(gradient(z, **changed), torch.zeros_like(z))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"temperature": 0.0}, "found temperature 0.0, expected a number > 0"),
        ({"windows": WINDOWS[:3]}, r"found windows \[3\], languages \[8\], expected \[8\]"),
        ({"bank_languages": None}, r"found bank_languages None, expected \[6\]"),
        ({"windows": torch.arange(8)}, "found no two rows of one window"),
    ],
)
def test_what_does_not_go_together_is_refused(changed: dict[str, Any], message: str) -> None:
    """Found and expected."""
    with pytest.raises(ValueError, match=message):
        loss_of(rows().detach(), **changed)


def test_masses_of_equal_rows() -> None:
    """Mass is share of the candidates: 2N − 1 of the batch, N of the other view; of two languages three of seven."""
    n, bank = 4, 6
    z = torch.ones(2 * n, 3)
    languages, view = torch.zeros(2 * n).long(), torch.arange(2).repeat_interleave(n)
    output = ccp_loss(
        z, torch.arange(n).repeat(2), languages, bank=torch.ones(bank, 3), bank_languages=torch.zeros(bank).long()
    )
    anchors = torch.arange(2 * n)
    shares = softmax_mass(output.logits, 2 * n, view, languages, anchors)
    count = 2 * n - 1 + bank
    assert shares == pytest.approx(
        {"in_batch_mass": (2 * n - 1) / count, "other_view_mass": n / count, "sharpest": 1 / count, "candidates": count}
    )
    assert output.loss.item() == pytest.approx(torch.tensor(float(count)).log().item())
    languages = torch.tensor([0, 0, 1, 1] * 2)
    for literal in (True, False):
        two_languages = ccp_loss(torch.ones(8, 3), torch.arange(4).repeat(2), languages, inbatch_cross_language=literal)
        masses = softmax_mass(two_languages.logits, 8, view, languages, torch.arange(8))
        assert masses.get("same_language_mass") == (pytest.approx(3 / 7) if literal else None)
