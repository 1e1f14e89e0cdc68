"""Passages whose contents are title, empty line, text."""

from bench.types import Item
from suites.readers import anserini
from tests.conftest import Put
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
