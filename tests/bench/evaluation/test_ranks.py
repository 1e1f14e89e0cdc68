"""Rank intervals, letters and the best group: hand cases, and every set of decided pairs on few rows."""

from itertools import combinations

import numpy as np
import pytest

from bench.core.errors import UsageError
from bench.evaluation.significance.ranks import LETTERED, best_group, letters, ordered, rank_intervals
from bench.testing import fields

CHAIN = {("a", "c"), ("a", "d"), ("b", "d")}
"""Of four rows neighbours are tied, and nothing else."""


def test_ties_and_differences_by_hand() -> None:
    """Groups a–b, b–c, c–d; all tied; all apart; a middle row, short of queries, that differs from neither end."""
    assert letters("abcd", CHAIN) == {"a": "a", "b": "ab", "c": "bc", "d": "c"}
    assert rank_intervals("abcd", CHAIN) == {"a": (1, 2), "b": (1, 3), "c": (2, 4), "d": (3, 4)}
    assert best_group("abcd", CHAIN) == ("a", "b")
    assert letters("xyz", set()) == dict.fromkeys("xyz", "a")
    assert rank_intervals("xyz", set()) == dict.fromkeys("xyz", (1, 3))
    all_pairs = set(combinations("xyz", 2))
    assert letters("xyz", all_pairs) == {"x": "a", "y": "b", "z": "c"}
    assert rank_intervals("xyz", all_pairs) == {"x": (1, 1), "y": (2, 2), "z": (3, 3)}
    assert best_group("xyz", all_pairs) == ("x",)
    assert (letters("", set()), best_group("", set())) == ({}, ())
    assert letters("x", set()) == {"x": "a"}
    assert letters("axz", {("a", "z")}) == {"a": "a", "x": "ab", "z": "b"}
    assert best_group("axz", {("a", "z")}) == ("a", "x")


def brute_force(names: str, different: set[tuple[str, str]]) -> set[frozenset[str]]:
    """All largest groups none of which holds a pair that differs, by looking at every set of rows."""
    pairs = [set(pair) for pair in different]
    subsets = [set(group) for size in range(1, len(names) + 1) for group in combinations(names, size)]
    tied = [group for group in subsets if not any(pair <= group for pair in pairs)]
    return {frozenset(group) for group in tied if not any(group < larger for larger in tied)}


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.9])
def test_letters_are_all_largest_groups_of_ties(share: float) -> None:
    """On random pairs of seven rows: as many letters as groups, the same groups, and a letter shared means tied."""
    draw = np.random.default_rng(int(100 * share))
    names = "abcdefg"
    for _ in range(60):
        different = {pair for pair in combinations(names, 2) if draw.random() < share}
        display = letters(names, different)
        distinct = sorted(set("".join(display.values())))
        groups = {frozenset(name for name in names if letter in display[name]) for letter in distinct}
        assert groups == brute_force(names, different)
        assert len(groups) == len(distinct)
        for first, second in combinations(names, 2):
            assert bool(set(display[first]) & set(display[second])) == ((first, second) not in different)


def test_columns_agree_with_each_other() -> None:
    """Who is in the best group can be first, and shares a letter with the best row."""
    draw = np.random.default_rng(3)
    names = [f"row{number}" for number in range(40)]
    better = {pair for at, pair in enumerate(combinations(names, 2)) if draw.random() < 0.7 or at == 5}
    ranks, marks = rank_intervals(names, better), letters(names, better)
    for name in best_group(names, better):
        assert (names[0], name) not in better
        assert set(marks[name]) & set(marks[names[0]])
    assert all(1 <= low <= high <= 40 for low, high in ranks.values())
    assert sum(high - low for low, high in ranks.values()) == 40 * 39 - 2 * len(better)


def test_more_groups_than_letters() -> None:
    """The twenty-eighth of many rows that all differ is b with a digit; a row of a hundred would have hundreds."""
    names = [f"{number:02}" for number in range(30)]
    display = letters(names, set(combinations(names, 2)))
    assert (display["00"], display["25"], display["26"], display["27"]) == ("a", "z", "a1", "b1")
    names = [f"{number:03}" for number in range(LETTERED + 1)]
    better = {(names[0], name) for name in names[1:]}
    long, short = ordered(names, better), ordered(names[:3], {(names[0], names[1])})
    assert (long.letters, long.best, long.ranks[names[1]]) == ({}, (names[0],), (2, LETTERED + 1))
    assert short.letters == {"000": "a", "001": "b", "002": "ab"}


@pytest.mark.parametrize(
    ("names", "pairs", "fault"),
    [
        ("aa", set(), {"found": "a name twice"}),
        ("ab", {("a", "c")}, {"expected": "two different rows of a, b"}),
        ("ab", {("a", "a")}, {"expected": "two different rows of a, b"}),
        ("ab", {("a", "b"), ("b", "a")}, {"found": "decided both ways"}),
    ],
)
def test_what_is_no_matrix_is_refused(names: str, pairs: set[tuple[str, str]], fault: dict[str, str]) -> None:
    """By all three."""
    for function in (rank_intervals, letters, best_group):
        with pytest.raises(UsageError, check=fields(**fault)):
            function(names, pairs)
