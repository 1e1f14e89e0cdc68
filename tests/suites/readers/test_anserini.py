"""Passages whose contents are title, empty line, text."""

import pytest

from bench.core.errors import DataError
from bench.testing import fields
from bench.types import Item
from suites.readers import anserini
from tests.conftest import Put, Told
from tests.suites.conftest import jsonl


def test_contents_are_cut_at_the_first_empty_line(put: Put) -> None:
    """Later empty lines belong to the text; contents without one have no title; an empty title is none."""
    rows = (
        {"id": "7#0", "contents": "Juma\n\nMtu wa pwani.\n\nTena."},
        {"id": 8, "contents": "Bila kichwa\nmistari miwili", "other": [1]},
        {"id": "9#1", "contents": "\n\nMaandishi"},
    )
    path = put("docs.jsonl", jsonl(*rows))
    source = anserini.passages(path, "some passages")
    assert list(source.read()) == [
        Item("7#0", "Mtu wa pwani.\n\nTena.", "Juma"),
        Item("8", "Bila kichwa\nmistari miwili"),
        Item("9#1", "Maandishi"),
    ]
    assert (source.name, source.files, source.reader) == ("some passages", (path,), "anserini-contents/1")
    assert [line for line, _ in source.numbered()] == [1, 2, 3]


def test_all_faults_are_told(put: Put, told: Told) -> None:
    """Every malformed row with its line."""
    rows = [{"id": "a b", "contents": "x"}, {"contents": "x"}, {"id": "1"}, {"id": "1", "contents": None}]
    path = put("docs.jsonl", jsonl(*rows, []) + '{"id": "2", "contents": "\\ud800"}\n')
    assert [fault.removeprefix(f"{path}:") for fault in told(anserini.passages(path).read())] == [
        "1: found document id 'a b', expected an id without white space; run and qrels files are separated by it",
        "2: found no \"id\" (only 'contents'), expected the document id",
        "3: found no \"contents\" (only 'id'), expected a string under that key",
        '4: found "contents": None, expected a string',
        '5: found JSON that is no object: [], expected a JSON object with the keys "id" and "contents"',
        '6: found half of a surrogate pair (\\ud800) in "contents", expected whole characters',
    ]


def test_an_empty_file(put: Put) -> None:
    """No passage at all is a fault of its own."""
    path = put("docs.jsonl", "\n")
    with pytest.raises(DataError, check=fields(found="no record", expected="at least one")):
        list(anserini.passages(path).read())
