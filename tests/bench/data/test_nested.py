"""Values inside nested JSON records: what is taken, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from bench.data.formats import jsonl as nested
from bench.data.formats.faults import RecordError

ROW: dict[str, Any] = {"object": {"a": 1}, "list": [{"b": 2}], "text": "ü𐐀", "number": 3, "half": "x\ud83d"}


def test_values_are_taken() -> None:
    """Objects, lists, texts beyond the first plane, and spans that reach the end of a text."""
    assert nested.inner(ROW, "object") == {"a": 1}
    assert nested.members(ROW, "list") == nested.objects(ROW, "list") == [{"b": 2}]
    assert nested.text(ROW, "text") == "ü𐐀"
    assert nested.whole_number(0, "x") == 0
    assert nested.span(0, 5, 5, "sentence") == (0, 5)


@pytest.mark.parametrize(
    ("take", "message"),
    [
        (lambda: nested.inner(ROW, "list"), r"found \"list\": \[\{'b': 2\}\], expected an object"),
        (lambda: nested.inner(ROW, "gone"), r"found no \"gone\" .*, expected an object under that key"),
        (lambda: nested.members(ROW, "text"), r"found \"text\": 'ü𐐀', expected a list"),
        (lambda: nested.objects({"list": [1]}, "list"), r"found a member of \"list\": 1, expected an object"),
        (lambda: nested.text(ROW, "number"), r"found \"number\": 3, expected a string"),
        (lambda: nested.text(ROW, "half"), r"found half of a surrogate pair \(\\ud83d\) in \"half\""),
        (lambda: nested.whole_number(True, "start"), r"found start True, expected a whole number of at least 0"),
        (lambda: nested.whole_number(-1, "start"), r"found start -1, expected a whole number"),
        (lambda: nested.span(0, 2.0, 5, "mention"), r"found mention end 2.0, expected a whole number"),
        (lambda: nested.span(2, 2, 5, "mention"), r"found mention from 2 to 2, expected 0 ≤ start < end ≤ 5"),
        (lambda: nested.span(2, 6, 5, "mention"), r"found mention from 2 to 6, expected 0 ≤ start < end ≤ 5"),
    ],
)
def test_what_is_malformed_is_named(take: Any, message: str) -> None:
    """The key, what stands there and what should."""
    with pytest.raises(RecordError, match=message):
        take()
