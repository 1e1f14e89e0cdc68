"""What every source of pretraining documents shares: what a record holds, its language, and blocks of lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.data import sentences
from bench.data.faults import RecordError, shown
from bench.data.jsonl import present
from bench.dense import Document
from bench.errors import DataError, UsageError

_READER = "documents/1"
_LANGUAGE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]+)*")
_LONGEST = 1 << 26  # characters of one document

Lines = Iterator[tuple[int, str]]
"""(number from 1, text) of lines, or of blocks of lines, numbered by their first."""


def reader() -> str:
    """Name and version of the code that reads documents; part of every key that depends on them."""
    return f"{_READER}:{sentences.splitter()}"


@dataclass(frozen=True)
class Place:
    """Where a record stands, and what holds if it does not say.

    Args:
        file: what messages call the file.
        name: what ids begin with where records have none.
        language: ISO 639 code, empty where nothing tells it.
    """

    file: str
    name: str
    language: str

    def spoken(self, own: str = "") -> str:
        """Return the record's own language, or the one that holds here.

        Raises:
            UsageError: neither is known.
        """
        if language := own or self.language:
            return language
        raise UsageError(
            f"{self.file}: found a document without a language, expected an ISO 639 code: name the file by it"
            ' (e.g. sw.jsonl), put it into each record ("lang": "sw"), or type --set data.language=sw'
        )


class Block:
    """Lines that will be one record; memory is bounded.

    Args:
        where: the file, for messages.
    """

    def __init__(self, where: Path) -> None:
        """Begin with no line."""
        self._where, self._begun, self._size = where, 0, 0
        self._lines: list[str] = []

    def __bool__(self) -> bool:
        """Whether a line is there."""
        return bool(self._lines)

    def add(self, number: int, line: str) -> None:
        """Take a line.

        Raises:
            DataError: the record has no end within 64 million characters.
        """
        self._begun = self._begun if self._lines else number
        self._lines.append(line)
        self._size += len(line)
        if self._size > _LONGEST:
            hint = "separate documents of plain text by blank lines, or give them as JSON lines"
            raise DataError(
                self._where, self._begun, f"a document of more than {_LONGEST:,} characters", "its end", hint
            )

    def take(self) -> Lines:
        """Yield what was gathered, if anything, and begin anew."""
        if self._lines:
            yield self._begun, "\n".join(self._lines)
        self._lines, self._size = [], 0


def from_row(row: Mapping[str, Any], place: Place, name: str) -> Document:
    """Read a record of named values, from JSON or a table.

    Args:
        row: `text` or `sentences`; perhaps `id`, `lang` or `language`, `title`, `parallel_group`.
        place: where it stands.
        name: its id where it has none.

    Raises:
        RecordError: a value of the wrong type, or neither text nor sentences.
        UsageError: its language is not known.
    """
    values = {key: value for key, value in row.items() if value is not None}
    own = _string(values, "lang" if "lang" in values else "language")
    if own and not _LANGUAGE.fullmatch(own):
        raise RecordError(f"language {shown(own)}", "an ISO 639 code in lower case, e.g. sw")
    language = place.spoken(own)
    given = values.get("sentences")
    if given is None:
        present(values, "text", 'a string under that key, or a list of strings under "sentences"')
        found = sentences.split(_string(values, "text"), language)
    elif isinstance(given, list | tuple) and all(isinstance(sentence, str) for sentence in given):
        found = sentences.cleaned(_whole(sentence, "sentences") for sentence in given)
    else:
        raise RecordError(f'"sentences": {shown(given)}', "a list of strings")
    return Document(
        id=_name(values, "id") or name,
        language=language,
        sentences=found,
        title=sentences.clean(_string(values, "title")),
        group=_name(values, "parallel_group"),
    )


def _name(values: Mapping[str, Any], key: str) -> str:
    """Take a name, which may be written as a whole number; empty where there is none. Raises `RecordError`."""
    value = values.get(key)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _string(values, key)


def _string(values: Mapping[str, Any], key: str) -> str:
    """Take a string, empty where there is none. Raises `RecordError`."""
    value = values.get(key, "")
    if not isinstance(value, str):
        raise RecordError(f'"{key}": {shown(value)}', "a string")
    return _whole(value, key)


def _whole(value: str, key: str) -> str:
    """Refuse half of a surrogate pair, which JSON can spell and UTF-8 cannot hold. Raises `RecordError`."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(value[error.start]):04x}"
        raise RecordError(f'half of a surrogate pair ({half}) in "{key}"', "whole characters") from None
    return value
