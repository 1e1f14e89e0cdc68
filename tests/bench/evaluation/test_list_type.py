"""List-type measures against values worked out by hand."""

import math

import pytest

from bench.evaluation.measures.list_type import LIST_TYPE, gains

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
    assert LIST_TYPE[name](RANKED, GRADES, cut) == pytest.approx(expected, abs=1e-12)


def test_ranks_are_those_of_the_list() -> None:
    """The first relevant document at rank 3; a duplicate keeps its rank and counts once: the second `a` is no hit."""
    assert LIST_TYPE["RR"](["x", "y", "b"], GRADES, 3) == 1 / 3
    assert LIST_TYPE["RR"](["x", "y", "b"], GRADES, 2) == 0
    assert LIST_TYPE["Success"](["x", "y", "b"], GRADES, 2) == 0
    assert LIST_TYPE["accuracy"](["x", "b"], GRADES, None) == 0
    assert gains(["a", "a", "b"], GRADES, None) == [1, 0, 3]
    assert LIST_TYPE["R"](["a", "a", "b"], GRADES, 2) == 1 / 4
    assert LIST_TYPE["AP"](["a", "a", "b"], {"a": 1, "b": 1}, None) == (1 + 2 / 3) / 2


@pytest.mark.parametrize("name", LIST_TYPE)
@pytest.mark.parametrize("grades", [{}, {"a": 0, "b": -2}])
@pytest.mark.parametrize("cut", [None, 3])
def test_nothing_relevant_is_zero(name: str, grades: dict[str, int], cut: int | None) -> None:
    """No division by zero where a query has no relevant document, with documents and without."""
    assert LIST_TYPE[name](RANKED, grades, cut) == 0
    assert LIST_TYPE[name]([], grades, cut) == 0
