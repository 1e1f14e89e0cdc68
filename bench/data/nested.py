"""Values inside nested JSON records: objects in objects, texts, and the spans that cut them.

Conventions: spans are [start, end) in characters (code points) of a text.
"""

from __future__ import annotations

import re
from typing import Any

from bench.data.faults import RecordError, shown
from bench.data.jsonl import present, string

Span = tuple[int, int]
"""[start, end) in characters."""

_HALF = re.compile("[\ud800-\udfff]")


def inner(row: dict[str, Any], key: str) -> dict[str, Any]:
    """Take the object under a key that must be there. Raises `RecordError`."""
    return an_object(present(row, key, "an object under that key"), f'"{key}"')


def members(row: dict[str, Any], key: str) -> list[Any]:
    """Take the list under a key that must be there. Raises `RecordError`."""
    value = present(row, key, "a list under that key")
    if not isinstance(value, list):
        raise RecordError(f'"{key}": {shown(value)}', "a list")
    return value


def objects(row: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Take the list of objects under a key that must be there. Raises `RecordError`."""
    return [an_object(value, f'a member of "{key}"') for value in members(row, key)]


def an_object(value: object, what: str) -> dict[str, Any]:
    """Return an object.

    Args:
        value: what stands in the record.
        what: what it is called in messages.

    Raises:
        RecordError: for anything else.
    """
    if not isinstance(value, dict):
        raise RecordError(f"{what}: {shown(value)}", "an object")
    return value


def text(row: dict[str, Any], key: str) -> str:
    """Take the string under a key that must be there, of characters that UTF-8 can hold. Raises `RecordError`."""
    value = string(row, key)
    if half := _HALF.search(value):
        raise RecordError(f'half of a surrogate pair (\\u{ord(half[0]):04x}) in "{key}"', "whole characters")
    return value


def whole_number(value: object, what: str) -> int:
    """Return a whole number of at least 0.

    Args:
        value: what stands in the record.
        what: what it is called in messages.

    Raises:
        RecordError: for anything else.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RecordError(f"{what} {shown(value)}", "a whole number of at least 0")
    return value


def span(start: object, end: object, length: int, what: str) -> Span:
    """Return a span that cuts at least one character out of a text.

    Args:
        start: first character.
        end: one behind the last.
        length: of the text, in characters.
        what: what it cuts out, for messages, e.g. `sentence`.

    Raises:
        RecordError: if either end is no whole number, or the span is empty or reaches beyond the text.
    """
    first, behind = whole_number(start, f"{what} start"), whole_number(end, f"{what} end")
    if not first < behind <= length:
        raise RecordError(
            f"{what} from {first} to {behind}", f"0 ≤ start < end ≤ {length}, which is the text's number of characters"
        )
    return first, behind
