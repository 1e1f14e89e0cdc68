"""Elements of a JSON array, one by one, from files of any size: in memory is one element and one block.

Conventions: the array is the file itself, or the value of a key of an object, which other keys may surround. Elements
are numbered from 1. JSON that breaks off or is malformed ends the reading, since nothing after it can be
trusted. ijson is not used: it turns half of a surrogate pair into "?", counts no lines, and its memory grows with the
square of the depth of nesting.
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from bench.data.formats.archive import File
from bench.data.formats.faults import RecordError, shown
from bench.data.formats.jsonl import check_elements
from bench.data.formats.text import blocks

_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")
_LONGEST = 1 << 26  # characters of one element
_AHEAD = 1 << 20  # characters read at once, so that most elements are parsed only once
_TAIL = 10  # where a literal or an escape is cut by the end of what was read, JSON's error points at most so far back
_CUT = "Unterminated string"


def elements(path: File, key: str = "") -> Iterator[tuple[int, Any]]:
    """Stream the elements of an array, (number from 1, value).

    Args:
        path: a file that is an array or, with a `key`, an object.
        key: the key of the object under which the array is; default: the file is the array.

    Raises:
        DataError: as `lines` does, and with the line for malformed JSON, too long an element, or no array.
    """
    window = _Window(path)
    try:
        yield from _member(window, key) if key else _array(window)
        if window.peek():
            raise RecordError(f"{shown(window.peek())} behind the end of the JSON", "nothing more")
    except RecordError as error:
        raise error.at(path, window.line()) from None


def first_block(path: File) -> str:
    """Return how a file begins: its first characters that are not blank, at most a block of them.

    Raises `DataError` as `elements` does for files.
    """
    window = _Window(path)
    try:
        window.peek()
    except RecordError as error:
        raise error.at(path, window.line()) from None
    return window.ahead()


class _Window:
    """The part of a file that is in memory: from the current element to the end of the last block."""

    def __init__(self, path: File) -> None:
        self._blocks = _characters(path)
        self._text, self._at, self._first = "", 0, 1

    def line(self) -> int:
        """Return the line of the next character."""
        return self._first + self._text.count("\n", 0, self._at)

    def ahead(self) -> str:
        """Return what is read and not yet taken."""
        return self._text[self._at :]

    def peek(self) -> str:
        """Return the next character that is not blank, empty at the end of the file."""
        while True:
            blank = _BLANK.match(self._text, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._grow():
                return ""

    def take(self, mark: str, expected: str) -> None:
        """Pass over a mark. Raises `RecordError` where there is something else."""
        if self.peek() != mark:
            raise RecordError(shown(self.ahead()) if self.ahead() else "the end of the file", expected)
        self._at += 1

    def value(self) -> Any:
        """Parse the value that begins at the next character. Raises `RecordError`."""
        self.peek()
        while True:
            try:
                value, self._at = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith(_CUT) or error.pos >= len(self._text) - _TAIL
                if not (cut and self._grow()):
                    raise RecordError(f"no JSON ({error.msg})", "a JSON value that is whole") from None
            except (ValueError, RecursionError) as error:
                raise RecordError(f"JSON that cannot be read ({error})", "a JSON value") from None
            else:
                return value

    def _grow(self) -> bool:
        """Forget what was taken and read on, at least as much again as is left; say whether there was more."""
        self._first, self._text, self._at = self.line(), self.ahead(), 0
        parts, size = [self._text], len(self._text)
        enough = size + max(size, _AHEAD)
        if size > _LONGEST:
            raise RecordError(f"an element of more than {_LONGEST:,} characters", "its end")
        for block in self._blocks:
            parts.append(block)
            size += len(block)
            if size > enough:
                break
        self._text = "".join(parts)
        check_elements(self._text)
        return len(parts) > 1


def _member(window: _Window, key: str) -> Iterator[tuple[int, Any]]:
    expected = f'an object with a list under "{key}"'
    window.take("{", expected)
    is_read = False
    while window.peek() != "}":
        name = window.value()
        window.take(":", f"a colon behind {shown(name)}")
        if name == key and not is_read:
            is_read = True
            yield from _array(window)
        else:
            window.value()
        if window.peek() != "}":
            window.take(",", "a comma or the end of the object")
    window.take("}", expected)
    if not is_read:
        raise RecordError(f'no "{key}"', expected)


def _array(window: _Window) -> Iterator[tuple[int, Any]]:
    window.take("[", "a list")
    number = 0
    while window.peek() != "]":
        if number:
            window.take(",", "a comma or the end of the list")
        number += 1
        yield number, window.value()
    window.take("]", "the end of the list")


def _characters(path: File) -> Iterator[str]:
    """Stream a file's characters in blocks. Raises `DataError` or, for a stream that breaks, `RecordError`."""
    decoder, line = codecs.getincrementaldecoder("utf-8-sig")(), 1
    try:
        for block in blocks(path):
            characters = decoder.decode(block)
            line += characters.count("\n")
            if characters:
                yield characters
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        line += error.object[: error.start].count(b"\n")
        fault = RecordError(
            f"byte 0x{error.object[error.start]:02x}, which is not UTF-8",
            "UTF-8 text",
            "convert the file, e.g. with iconv",
        )
        raise fault.at(path, line) from None
