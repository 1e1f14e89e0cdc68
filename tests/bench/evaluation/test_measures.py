"""Measures: names and spellings, and list-type ones against values worked out by hand."""

import math

import pytest

from bench.core.errors import PluginError, UsageError
from bench.evaluation.measures.builtin import BUILTIN, gains
from bench.evaluation.measures.specs import MeasureSpec, parse, parse_many
from bench.types import Measure
from tests.conftest import cases, present

FOO = Measure("Foo", lambda _documents, _grades, _cut: 0.5, "half")
VALUES = {name: present(builtin.value) for name, builtin in BUILTIN.items()}


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


RANKED = ["a", "x", "b", "y", "c"]
GRADES = {"a": 1, "b": 3, "c": 2, "d": 1, "x": 0, "y": -1}
IDEAL_3 = 3 + 2 / math.log2(3) + 1 / 2
IDEAL = IDEAL_3 + 1 / math.log2(5)


@pytest.mark.parametrize(
    ("name", "cut", "expected"),
    [
        *((name, cut, 1.0) for name, cut in (("RR", None), ("P", 1), ("Rcap", 1), ("Success", 1), ("accuracy", None))),
        ("P", 3, 2 / 3),
        ("P", 10, 3 / 10),
        ("R", 3, 2 / 4),
        ("R", 100, 3 / 4),
        ("Rcap", 3, 2 / 3),
        ("Rcap", 100, 3 / 4),
        ("AP", None, (1 + 2 / 3 + 3 / 5) / 4),
        ("AP", 3, (1 + 2 / 3) / 3),
        ("AP", 20, (1 + 2 / 3 + 3 / 5) / 4),
        ("nDCG", 3, (1 + 3 / 2) / IDEAL_3),
        ("nDCG", None, (1 + 3 / 2 + 2 / math.log2(6)) / IDEAL),
    ],
)
def test_values_worked_out_by_hand(name: str, cut: int | None, expected: float) -> None:
    """Relevant ones are at ranks 1, 3 and 5, a fourth is never found; zero and negative grades gain nothing."""
    assert VALUES[name](RANKED, GRADES, cut) == pytest.approx(expected, abs=1e-12)


def test_ranks_are_those_of_the_list() -> None:
    """The first relevant document at rank 3; a duplicate keeps its rank and counts once: the second `a` is no hit."""
    assert VALUES["RR"](["x", "y", "b"], GRADES, 3) == 1 / 3
    assert VALUES["RR"](["x", "y", "b"], GRADES, 2) == 0
    assert VALUES["Success"](["x", "y", "b"], GRADES, 2) == 0
    assert VALUES["accuracy"](["x", "b"], GRADES, None) == 0
    assert gains(["a", "a", "b"], GRADES, None) == [1, 0, 3]
    assert VALUES["R"](["a", "a", "b"], GRADES, 2) == 1 / 4
    assert VALUES["AP"](["a", "a", "b"], {"a": 1, "b": 1}, None) == (1 + 2 / 3) / 2


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("grades", [{}, {"a": 0, "b": -2}])
@pytest.mark.parametrize("cut", [None, 3])
def test_nothing_relevant_is_zero(name: str, grades: dict[str, int], cut: int | None) -> None:
    """No division by zero where a query has no relevant document, with documents and without."""
    assert VALUES[name](RANKED, grades, cut) == 0
    assert VALUES[name]([], grades, cut) == 0
