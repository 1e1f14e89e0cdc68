r"""Passages in Anserini's JSONL form {"id", "contents"}, as Mr.TyDi and DPR-like collections are released.

Conventions: `contents` is title, an empty line, passage; it is cut at the first empty line only. Contents without one
are a passage without title. Other keys are not read.
"""

from bench import Item
from bench.suites import File, FileSource, Format, check_id, file_source, jsonl


def passages(path: File, name: str = "") -> FileSource[Item]:
    """Return the passages of a file; duplicate ids are not looked for (see `bench.data.formats.ids.IdCollector`)."""
    return file_source(name or path.name, "anserini-contents/1", path, Format("document", _passage))


def _passage(text: str) -> Item:
    """Parse one row. Raises `RecordError`."""
    row = jsonl.json_object(text, ("id", "contents"))
    identity = check_id(jsonl.present(row, "id", "the document id"), "document id")
    title, gap, passage = jsonl.string(row, "contents").partition("\n\n")
    return Item(identity, passage, title) if gap else Item(identity, title)
