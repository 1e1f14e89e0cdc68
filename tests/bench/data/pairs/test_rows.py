"""Pairs as JSON lines, in the spellings that are common, and as tables."""

import bz2
import json
from typing import Any

import pytest

from bench.core.errors import DataError
from bench.data.pairs.rows import jsonl_pairs, text_id, tsv_pairs
from bench.testing import fields
from bench.types import Item, TrainingPair
from tests.conftest import ReadErrors, WriteFile, cases

WORDS = [
    Item(text_id("yes"), "yes", language="sw"),
    Item(text_id("no", "N"), "no", "N", "sw"),
    Item("7", "maybe", "", "sw"),
]
EXPECTED = TrainingPair(Item("1", "is it?", language="sw"), (WORDS[0],), (WORDS[1], WORDS[2]), "own")


@pytest.mark.parametrize("row", cases("pair-spellings"))
def test_spellings(write: WriteFile, row: dict[str, Any]) -> None:
    """One schema comes of all of them; passages have the language of the query; texts without id are hashed."""
    path = write("p.jsonl", json.dumps(row) + "\n")
    assert list(jsonl_pairs(path, "own", "sw").read()) == [EXPECTED]


def test_what_a_line_says_itself(write: WriteFile) -> None:
    """Its id, language and source count, else its number; texts without an id are hashed, title and text apart."""
    rows = [
        {"id": 12, "query": "a", "positive": {"_id": "x", "text": "b", "lang": "en"}, "lang": "ko", "source": "here"},
        {"query": "c", "positive": "d", "language": "th"},
    ]
    path = write("p.jsonl", "\n\n".join(map(json.dumps, rows)))
    assert list(jsonl_pairs(path, language="sw").read()) == [
        TrainingPair(Item("12", "a", language="ko"), (Item("x", "b", language="en"),), (), "here"),
        TrainingPair(Item("3", "c", language="th"), (Item(text_id("d"), "d", language="th"),), (), "p.jsonl"),
    ]
    assert text_id("b", "a") == text_id("b", "a")
    assert len({text_id("b", "a"), text_id("ab"), text_id("", "ab"), text_id("a", "b"), text_id("b")}) == 5


def test_faulty_lines(write: WriteFile, errors: ReadErrors) -> None:
    """Each with its line."""
    rows = [
        '{"query": "q", "positive": "p"}',
        '{"query": "", "positive": "p"}',
        '{"query": "q", "positive": []}',
        '{"query": "q", "positive": "p", "negative": [""]}',
        "no json",
        '{"query": ["q"], "positive": "p"}',
        '{"id": "1", "query": "q", "positive": "p"}',
    ]
    path = write("p.jsonl", "\n".join(rows))
    assert errors(jsonl_pairs(path).read()) == [
        (f'{path}:2: found an empty query, expected the query\'s text under "query" or "question"'),
        f"{path}:3: found no positive, expected at least one passage that answers the query",
        f"{path}:4: found an empty negative, expected a passage with a text",
        (
            f"{path}:5: found no JSON (Expecting value at place 1 of the line), "
            'expected a JSON object with the keys "query", "positive" and "negative"'
        ),
        f"{path}:6: found \"query\": ['q'], expected a string",
    ]
    path = write("twice.jsonl", "\n".join((rows[0], rows[-1])))
    assert "found query id '1' a second time" in errors(jsonl_pairs(path).read())[0]


ROWS = 'what?\tthis "one"\nwho?\tshe\the\tthey\nwhat?\tthat\n'


def _item(text: str) -> Item:
    return Item(text_id(text), text, language="en")


@pytest.mark.parametrize(
    ("header", "first"), [("", 1), ("query\tpositive\tnegative\n", 2), ("Question\tpositive\n", 2)]
)
def test_rows(write: WriteFile, header: str, first: int) -> None:
    """With a header or without: ids are numbers of lines, so the same query may come again."""
    queries = [Item(str(first + at), text, language="en") for at, text in enumerate(("what?", "who?", "what?"))]
    assert list(tsv_pairs(write("p.tsv", header + ROWS), "own", "en").read()) == [
        TrainingPair(queries[0], (_item('this "one"'),), (), "own"),
        TrainingPair(queries[1], (_item("she"),), (_item("he"), _item("they")), "own"),
        TrainingPair(queries[2], (_item("that"),), (), "own"),
    ]


def test_tables(write: WriteFile, errors: ReadErrors) -> None:
    """The ending decides compression; the word "query" alone is no header; each faulty row comes with its line."""
    assert len(list(tsv_pairs(write("p.tsv.bz2", bz2.compress(ROWS.encode()))).read())) == 3
    (pair,) = tsv_pairs(write("p.tsv", "query\tan answer\n")).read()
    assert (pair.query.text, pair.positives[0].text) == ("query", "an answer")
    path = write("p.tsv", "a\tb\nalone\n\tb\na\t\na\tb\t \tc\n")
    assert errors(tsv_pairs(path).read()) == [
        (
            f"{path}:2: found 1 column in 'alone', expected at least 2 columns separated by tabs: "
            "query, positive, and negatives if there are any"
        ),
        f"{path}:3: found an empty query, expected the query's text",
        f"{path}:4: found an empty positive, expected a passage with a text",
        f"{path}:5: found an empty negative, expected a passage with a text",
    ]


def test_a_key_of_another_tool(write: WriteFile) -> None:
    """The keys that a line has are named, so that its writer sees which one to rename."""
    path = write("p.jsonl", '{"anchor": "q", "positive": "p"}\n')
    check = fields(line=1, found="no \"query\" (only 'anchor', 'positive')", expected="the query's text under")
    with pytest.raises(DataError, check=check):
        list(jsonl_pairs(path).read())
