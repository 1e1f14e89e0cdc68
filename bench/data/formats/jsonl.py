"""Values of JSON records; spans are [start, end) in characters (code points) of a text."""

import json
import re
from collections.abc import Sequence
from typing import Any

from bench.data.formats.faults import RecordError, shown

ELEMENTS = 4_000_000
"""Values of one record at most: some hundred megabytes once they are parsed."""

_TEXT = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?(?:"|\Z)', re.DOTALL)


def check_elements(text: str) -> None:
    """Raise `RecordError` for JSON of more than `ELEMENTS` keys and values, before any of them is made."""
    most = ELEMENTS
    if len(text) <= most or _marks(text, 0, len(text)) < most:  # most often there is no need to leave texts out
        return
    count = start = 0
    for match in _TEXT.finditer(text):
        count += _marks(text, start, match.start())
        start = match.end()
        if count >= most:
            break
    if count + _marks(text, start, len(text)) >= most:
        raise RecordError(f"JSON of more than {most:,} values", "fewer in one record")


def _marks(text: str, start: int, end: int) -> int:
    """Count the marks that a key or value follows."""
    return sum(text.count(mark, start, end) for mark in ",:[{")


def json_object(text: str, keys: Sequence[str]) -> dict[str, Any]:
    """Parse a line as a JSON object whose `keys` hold what UTF-8 can write. Raises `RecordError` for anything else."""
    *first, last = (f'"{key}"' for key in keys) if keys else ("",)
    expected = f"a JSON object with the keys {' and '.join([', '.join(first), last] if first else [last])}"
    check_elements(text)
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"no JSON ({error.msg} at place {error.pos + 1} of the line)"
        raise RecordError(problem, expected, _hint(text)) from None
    except (ValueError, RecursionError) as error:
        raise RecordError(f"JSON that cannot be read ({error})", expected) from None
    if not isinstance(row, dict):
        several = isinstance(row, list) and any(isinstance(value, dict) for value in row)
        raise RecordError(f"JSON that is no object: {shown(row)}", expected, _hint(text) if several else "")
    if "\\u" in text:
        for key in keys:
            if isinstance(value := row.get(key), str):
                encodable(value, key)
    return row


def _hint(text: str) -> str:
    """Return what to type for a line that is no JSON object; empty where that is not known."""
    if "\r" in text:
        return "its lines end in a carriage return alone: tr '\\r' '\\n' < FILE"
    return "an array becomes one object a line by jq -c '.[]' FILE" if text.lstrip().startswith("[") else ""


_LANGUAGE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]+)*")
_LONGEST_CODE = 3  # of one without script and region


def language_code(value: str) -> str:
    """Return the language code that a record states, `EN` as `en`. Raises `RecordError` for what is no ISO 639 code."""
    code = value.strip()
    code = code.lower() if len(code) <= _LONGEST_CODE else code
    if not _LANGUAGE.fullmatch(code):
        hint = "write the code in place of the language's name, or leave the field out"
        raise RecordError(f"language {shown(value)}", "an ISO 639 code, e.g. sw", hint)
    return code


def present(row: dict[str, Any], key: str, expected: str) -> Any:
    """Take the value of a key that must be there. Raises `RecordError`."""
    if key not in row:
        raise missing_key(row, key, expected)
    return row[key]


def missing_key(row: dict[str, Any], key: str, expected: str) -> RecordError:
    """Return the error for a key that a record lacks, with those that it has."""
    names = ", ".join(shown(name) for name in list(row)[:5]) or "nothing"
    return RecordError(f'no "{key}" (only {names})', expected)


def string(row: dict[str, Any], key: str) -> str:
    """Take the string under a key that must be there. Raises `RecordError`."""
    value = present(row, key, "a string under that key")
    if not isinstance(value, str):
        raise RecordError(f'"{key}": {shown(value)}', "a string")
    return value


def encodable(value: str, key: str) -> str:
    """Return a string that UTF-8 can hold. Raises `RecordError` for half of a surrogate pair, which JSON can spell."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(value[error.start]):04x}"
        raise RecordError(f'half of a surrogate pair ({half}) in "{key}"', "whole characters") from None
    return value


Span = tuple[int, int]
"""[start, end) in characters."""


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
    """Return an object, called `what` in messages. Raises `RecordError` for anything else."""
    if not isinstance(value, dict):
        raise RecordError(f"{what}: {shown(value)}", "an object")
    return value


def text(row: dict[str, Any], key: str) -> str:
    """Take the string under a key that must be there, of characters that UTF-8 can hold. Raises `RecordError`."""
    return encodable(string(row, key), key)


def optional(row: dict[str, Any], key: str) -> str:
    """Take the string under a key, empty where there is none or null. Raises `RecordError`."""
    return "" if row.get(key) is None else text(row, key)


def whole_number(value: object, what: str) -> int:
    """Return a whole number of at least 0, called `what` in messages. Raises `RecordError` for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RecordError(f"{what} {shown(value)}", "a whole number of at least 0")
    return value


def span(start: object, end: object, length: int, what: str) -> Span:
    """Return a span within `length` characters, called `what` in messages. Raises `RecordError` for an empty one."""
    first, behind = whole_number(start, f"{what} start"), whole_number(end, f"{what} end")
    if not first < behind <= length:
        raise RecordError(
            f"{what} from {first} to {behind}", f"0 ≤ start < end ≤ {length}, which is the text's number of characters"
        )
    return first, behind
