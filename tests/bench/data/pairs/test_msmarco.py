"""MS MARCO's triples of ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from bench.data.pairs import msmarco
from bench.data.pairs.found import ALSO_POSITIVE
from bench.types import Item, TrainingPair

Put = Callable[[str, str | bytes], Path]
Told = Callable[[Iterable[Any]], list[str]]

TRIPLES = "7\t10\t11\n8\t12\t10\n7\t10\t13\n7\t14\t11\n7\t10\t12\n7\t10\t14\n"


@pytest.fixture
def files(put: Put) -> tuple[Path, Path]:
    """Texts of queries and passages, some of which nobody names."""
    collection = "".join(f"{number}\tpassage {number}\n" for number in range(9, 16))
    return put("queries.tsv", "6\tsix\n7\tseven\n8\teight\n"), put("collection.tsv", collection)


def _passages(*numbers: int) -> tuple[Item, ...]:
    """Passages of the collection."""
    return tuple(Item(str(number), f"passage {number}", language="en") for number in numbers)


def test_triples_of_a_query_make_one_pair(put: Put, files: tuple[Path, Path]) -> None:
    """In the order of the file, each passage once; what answers elsewhere in the file is no negative."""
    source = msmarco.triples(put("t.tsv", TRIPLES), *files, "ms")
    assert list(source.read()) == [
        TrainingPair(Item("7", "seven", language="en"), _passages(10, 14), _passages(11, 13, 12), "ms"),
        TrainingPair(Item("8", "eight", language="en"), _passages(12), _passages(10), "ms"),
    ]
    assert [one.left_out for _, one in source.found()] == [(ALSO_POSITIVE,), ()]


def test_negatives_are_capped(put: Put, files: tuple[Path, Path]) -> None:
    """The first ones stay, and the key knows how many."""
    path = put("t.tsv", TRIPLES)
    few = msmarco.triples(path, *files, most=2)
    assert [[item.id for item in one.negatives] for one in few.read()] == [["11", "13"], ["10"]]
    assert few.reader != msmarco.triples(path, *files).reader


def test_unknown_ids_are_told_with_their_lines(put: Put, told: Told, files: tuple[Path, Path]) -> None:
    """Of queries and passages alike."""
    path = put("t.tsv", "7\t10\t11\n99\t10\t11\n7\t10\t98\n")
    assert told(msmarco.triples(path, *files).read()) == [
        f"{path}:2: found query id '99', expected the id of a query in {files[0]}",
        f"{path}:3: found document id '98', expected the id of a passage in {files[1]}",
    ]


def test_malformed_rows(put: Put, told: Told, files: tuple[Path, Path]) -> None:
    """In any of the three files."""
    path = put("t.tsv", "7\t10\n7\t10\t1 1\n")
    assert told(msmarco.triples(path, *files).read()) == [
        (
            f"{path}:1: found 2 columns in '7\\t10', "
            "expected 3 columns separated by tabs: query id, id of a positive, id of a negative"
        ),
        (
            f"{path}:2: found id of a negative '1 1', expected an id without white space; "
            "run and qrels files are separated by it"
        ),
    ]
    whole, broken = put("u.tsv", TRIPLES), put("c.tsv", "10 no tab\n")
    assert told(msmarco.triples(whole, files[0], broken).read()) == [
        f"{broken}:1: found '10 no tab', expected an id, a tab and a text"
    ]
