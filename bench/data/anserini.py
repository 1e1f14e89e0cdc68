r"""Passages in Anserini's JSONL form {"id", "contents"}, as Mr.TyDi and DPR-like collections are released.

Conventions: `contents` is title, an empty line, passage; it is cut at the first empty line only. Contents without one
are a passage without title. Other keys are not read.
"""

from __future__ import annotations

from bench.data.archive import File
from bench.data.jsonl import json_object, present, string
from bench.data.source import FileSource, Format, check_id, file_source
from bench.types import Item

_GAP = "\n\n"


def passages(path: File, name: str = "") -> FileSource[Item]:
    """Name the passages of a file; duplicate ids are not looked for (see `bench.data.ids.IdCollector`).

    Args:
        path: the file; not opened before the source is read.
        name: what messages call it; the file's name where empty.
    """
    return file_source(name or path.name, "anserini-contents/1", path, _passages)


def _passages(_first: str) -> Format[Item]:
    """Return the format of the collection."""
    return Format("document", _passage)


def _passage(text: str) -> Item:
    """Read one row. Raises `RecordError`."""
    row = json_object(text, ("id", "contents"))
    identity = check_id(present(row, "id", "the document id"), "document id")
    title, gap, passage = string(row, "contents").partition(_GAP)
    return Item(identity, passage, title) if gap else Item(identity, title)
