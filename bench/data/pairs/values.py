"""Queries and passages as JSON rows spell them, and ids for passages that come without one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.data.faults import RecordError, shown
from bench.data.nested import text
from bench.data.source import check_id
from bench.types import Item

PASSAGE_IDS = ("id", "_id", "docid", "passage_id", "psg_id", "pid")
"""Keys under which a passage may have its id; the first that holds one counts."""


def text_id(words: str, title: str = "") -> str:
    """Return an id that equal passages share: 16 hexadecimal digits of the hash of title and text."""
    told = f"{title}\0{words}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(told, digest_size=8).hexdigest()


def plain_passage(words: str, language: str) -> Item:
    """Return a passage that has a text and nothing else."""
    return Item(text_id(words), words, language=language)


def given(row: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """Return the first of several keys that holds anything: no null, empty text or empty list."""
    return next((key for key in keys if row.get(key) not in (None, "", [])), None)


def id_of(row: Mapping[str, Any], keys: Sequence[str], what: str) -> str:
    """Take the id under the first of several keys that holds one; empty where none does. Raises `RecordError`."""
    key = given(row, keys)
    return check_id(row[key], what) if key else ""


def optional(row: dict[str, Any], key: str) -> str:
    """Take the string under a key, empty where there is none or null. Raises `RecordError`."""
    return "" if row.get(key) is None else text(row, key)


def passages(value: object, what: str, language: str) -> Iterator[Item]:
    """Read what stands under a key of passages: one or a list, each a text or an object with `text`.

    An object may have `title`, `lang` and an id (`PASSAGE_IDS`). Without an id, `text_id` makes one.

    Args:
        value: what stands there.
        what: one passage is called in messages.
        language: of those that do not say their own.

    Raises:
        RecordError: for anything else.
    """
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str):
            row: dict[str, Any] = {"text": one}
        elif isinstance(one, dict):
            row = one
        else:
            raise RecordError(f"{what} {shown(one)}", 'a text, or an object with "text"')
        words, title = text(row, "text"), optional(row, "title")
        name = id_of(row, PASSAGE_IDS, f"id of a {what}") or text_id(words, title)
        yield Item(name, words, title, optional(row, "lang") or language)
