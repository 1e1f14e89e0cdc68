"""Pairs as tables."""

from __future__ import annotations

import bz2

import pytest

from bench.data.pairs.rows import text_id, tsv_pairs
from bench.types import Item, TrainingPair
from tests.conftest import Put, Told

ROWS = 'what?\tthis "one"\nwho?\tshe\the\tthey\nwhat?\tthat\n'


def _item(text: str) -> Item:
    """A passage of a table."""
    return Item(text_id(text), text, language="en")


@pytest.mark.parametrize(
    ("header", "first"), [("", 1), ("query\tpositive\tnegative\n", 2), ("Question\tpositive\n", 2)]
)
def test_rows(put: Put, header: str, first: int) -> None:
    """With a header or without: ids are numbers of lines, so the same query may come again."""
    asked = [Item(str(first + at), text, language="en") for at, text in enumerate(("what?", "who?", "what?"))]
    assert list(tsv_pairs(put("p.tsv", header + ROWS), "own", "en").read()) == [
        TrainingPair(asked[0], (_item('this "one"'),), (), "own"),
        TrainingPair(asked[1], (_item("she"),), (_item("he"), _item("they")), "own"),
        TrainingPair(asked[2], (_item("that"),), (), "own"),
    ]


def test_compressed(put: Put) -> None:
    """The ending tells how."""
    assert len(list(tsv_pairs(put("p.tsv.bz2", bz2.compress(ROWS.encode()))).read())) == 3


def test_a_query_that_only_looks_like_a_header(put: Put) -> None:
    """The word alone is no header."""
    (found,) = tsv_pairs(put("p.tsv", "query\tan answer\n")).read()
    assert (found.query.text, found.positives[0].text) == ("query", "an answer")


def test_all_faults_are_told(put: Put, told: Told) -> None:
    """Each with its line."""
    path = put("p.tsv", "a\tb\nalone\n\tb\na\t\na\tb\t \tc\n")
    assert told(tsv_pairs(path).read()) == [
        (
            f"{path}:2: found 1 column in 'alone', expected at least 2 columns separated by tabs: "
            "query, positive, and negatives if there are any"
        ),
        f"{path}:3: found an empty query, expected the query's text",
        f"{path}:4: found an empty positive, expected a passage with a text",
        f"{path}:5: found an empty negative, expected a passage with a text",
    ]
