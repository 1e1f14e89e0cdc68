"""Measure names: canonical printing, papers' spellings, and sentences for what is not a measure."""

import pytest

from bench.core.errors import PluginError, UsageError
from bench.evaluation.measures.list_type import LIST_TYPE
from bench.evaluation.measures.specs import BUILTIN, MeasureSpec, parse, parse_many
from bench.types import Measure
from tests.conftest import cases

FOO = Measure("Foo", lambda _documents, _grades, _cut: 0.5, "half")


SPELLINGS: dict[str, list[str]] = dict(cases("spellings-of-measures"))
ONE_EACH = {"ndcg": "nDCG", "MRR": "RR", "AP": "AP", "Precision@5": "P@5", "p@1": "P@1", " RR@010 ": "RR@10"}
ONE_EACH |= {"Recall@5KT": "R@5kt", "answer-R@20": "answer-R@20", "has-answer@5": "answer-R@5"}
CANONICAL = {text: name for name, texts in SPELLINGS.items() for text in texts} | ONE_EACH


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_every_accepted_spelling_has_one_canonical_form(text: str, canonical: str) -> None:
    """Papers' spellings are input only; what prints is canonical and parses back to the same value."""
    spec = parse(text)
    assert str(spec) == canonical
    assert parse(str(spec)) == spec


def test_many_measures_keep_their_order_and_occur_once() -> None:
    """Blanks and commas separate; MRR@100 is RR@100 again; an empty list would score nothing and look like success."""
    expected = MeasureSpec("nDCG", 10), MeasureSpec("R", 100), MeasureSpec("RR", 100)
    assert parse_many(" nDCG@10 R@100,RR@100,\n MRR@100, nDCG@10") == expected
    with pytest.raises(UsageError, match="no measure named; there are nDCG"):
        parse_many(" , ")


@pytest.mark.parametrize(("text", "message"), cases("what-is-not-a-measure-gets-a-sentence"))
def test_what_is_not_a_measure_gets_a_sentence(text: str, message: str) -> None:
    """The sentence names what was found, what is near, and what exists."""
    with pytest.raises(UsageError, match=message):
        parse(text)


def test_a_plugins_measure_parses_with_and_without_cut() -> None:
    """Found without case, listed, suggested; no alias of ours is free: `mrr@10` must never change its meaning."""
    extra = {"Foo": FOO, "bar_2": FOO}
    assert parse_many("Foo foo@3 bar_2", extra) == (MeasureSpec("Foo"), MeasureSpec("Foo", 3), MeasureSpec("bar_2"))
    with pytest.raises(UsageError, match=r"did you mean Foo\?.*from plugins Foo"):
        parse("fooo@3", extra)
    with pytest.raises(UsageError, match="unknown measure 'Foo@3'"):
        parse("Foo@3")
    with pytest.raises(PluginError, match=r"'mrr', which the harness already reads as RR"):
        parse("nDCG@10", {"mrr": FOO})
    assert set(BUILTIN) == set(LIST_TYPE)
