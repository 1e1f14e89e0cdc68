"""JSON from untrusted sources: refused where parsers could disagree about it, or where it could harm one.

Python's own parser accepts NaN, lets the second of two equal keys win, turns 1e999 into an infinity and recurses
without a limit. No run ever writes any of that.
"""

import json
import math
import re
from typing import Any

from bench.data.formats.faults import RecordError, shown

DEEPEST = 40
"""Objects and lists inside each other; a run writes nine."""
LONGEST = 100_000
"""Characters of one text; the longest card has a tenth."""
MOST = 4_000_000
"""Texts, commas and brackets: a list of a million numbers has a million, and takes some 40 MB once it is parsed."""
_LARGEST = 1 << 63
_DIGITS = 25
_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*\\?(?:"|\Z)|[][{},]', re.DOTALL)  # a text to its end, a bracket or a comma


def parse(raw: bytes, *, longest: int = LONGEST, most: int = MOST) -> Any:
    """Parse JSON whose texts have at most `longest` characters, with at most so many texts, commas and brackets.

    Raises:
        RecordError: it is none, has too many parts, is nested too deep, holds a key twice, a NaN, an infinity, a
            number beyond 64 bits, a text that is too long or half a surrogate pair.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise RecordError(f"byte 0x{raw[error.start]:02x}, which is not UTF-8", "UTF-8 text") from None
    depth = 0
    for count, mark in enumerate(_MARKS.finditer(text)):  # before memory is spent; what is inside texts does not count
        if count >= most:
            raise RecordError(f"more than {most:,} texts, commas and brackets", "fewer")
        depth += (mark[0] in "[{") - (mark[0] in "]}")
        if depth > DEEPEST:
            raise RecordError(f"more than {DEEPEST} levels of nesting", "fewer")
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_float=_number, parse_int=_int, parse_constant=_number)
    except RecordError:
        raise
    except (ValueError, RecursionError) as error:
        raise RecordError(f"no JSON ({error})", "JSON") from None
    _check_texts(value, longest)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object whose keys are all different."""
    content = dict(pairs)
    if len(content) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for position, key in enumerate(keys) if key in keys[:position])
        raise RecordError(f"the key {shown(repeated)} twice in one object", "each once")
    return content


def _number(text: str) -> float:
    """Parse a finite number; the constants that only Python's parser knows are none."""
    value = float(text)
    if not math.isfinite(value):
        raise RecordError(text if text[-1].isalpha() else f"the number {shown(text)}", "a finite number")
    return value


def _int(text: str) -> int:
    """Parse a whole number of 64 bits."""
    if len(text) > _DIGITS or not -_LARGEST <= int(text) < _LARGEST:
        raise RecordError(f"the number {shown(text)}", "a number of at most 64 bits")
    return int(text)


def _check_texts(content: Any, longest: int) -> None:
    """Refuse texts that are too long, or that no UTF-8 file can hold."""
    pending = [content]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += [*value, *value.values()]
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, str):
            if len(value) > longest:
                raise RecordError(f"a text of {len(value):,} characters", f"at most {longest:,}")
            if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
                raise RecordError(f"half a surrogate pair in {value[:20]!a}", "text")
