"""JSON objects, one a line: the rules that every JSONL reader shares."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from bench.data.faults import RecordError, shown


def json_object(text: str, keys: Sequence[str]) -> dict[str, Any]:
    """Parse a line as a JSON object whose strings can be written as UTF-8.

    Args:
        text: the line.
        keys: those that are read; only they are looked at.

    Raises:
        RecordError: for anything else.
    """
    expected = f"a JSON object with the keys {_listed(keys)}"
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        raise RecordError(f"no JSON ({error.msg} at place {error.pos + 1} of the line)", expected) from None
    except (ValueError, RecursionError) as error:
        raise RecordError(f"JSON that cannot be read ({error})", expected) from None
    if not isinstance(row, dict):
        raise RecordError(f"JSON that is no object: {shown(row)}", expected)
    if "\\u" in text:
        _check_surrogates(row, keys)
    return row


def present(row: dict[str, Any], key: str, expected: str) -> Any:
    """Take the value of a key that must be there. Raises `RecordError`."""
    if key not in row:
        names = ", ".join(shown(name) for name in list(row)[:5]) or "nothing"
        raise RecordError(f'no "{key}" (only {names})', expected)
    return row[key]


def string(row: dict[str, Any], key: str) -> str:
    """Take the string under a key that must be there. Raises `RecordError`."""
    value = present(row, key, "a string under that key")
    if not isinstance(value, str):
        raise RecordError(f'"{key}": {shown(value)}', "a string")
    return value


def _listed(keys: Sequence[str]) -> str:
    """Join names for a sentence: `"_id", "title" and "text"`."""
    quoted = [f'"{key}"' for key in keys]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _check_surrogates(row: dict[str, Any], keys: Iterable[str]) -> None:
    """Refuse half of a surrogate pair, which JSON can spell and UTF-8 cannot hold."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError as error:
                half = f"\\u{ord(value[error.start]):04x}"
                raise RecordError(f'half of a surrogate pair ({half}) in "{key}"', "whole characters") from None
