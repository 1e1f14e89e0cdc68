"""Pairs of the user's by name: a file, a folder of files, or a split of a folder in BEIR's layout.

What is read: `.tsv` (`bench.data.pairs.tsv`), `.jsonl` or `.ndjson` (`jsonl`), and `.json`, whose beginning tells
DPR's array (`dpr`) from SQuAD's object (`squad`) and from JSON lines; each plain or compressed. `FOLDER:SPLIT` is a
split of a folder in BEIR's layout (`legs`). A folder holds such files, in the order of their names; others in it are
passed over.

Conventions: the language is the one given, else that of a folder of two letters (`en/pairs.jsonl`), else English for
DPR and SQuAD and unknown for tables and JSON lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.data import beir
from bench.data.pairs import dpr, jsonl, squad, tsv
from bench.data.pairs.arrays import head
from bench.data.pairs.found import Found, PairSource, pair_source, reader
from bench.data.pairs.joined import joined
from bench.data.pairs.legs import split
from bench.data.text import COMPRESSED
from bench.errors import UsageError

WANTED = (
    "pairs as .tsv (query, positive, negatives), .jsonl ({query, positive, negative}) or .json (DPR's or SQuAD's), "
    f"plain or ending in {', '.join(COMPRESSED)}; a folder of these; or FOLDER:SPLIT of a folder in BEIR's layout"
)

_SQUAD = re.compile(r'(?<!\\)"(paragraphs|data)"\s*:\s*\[')
_ENGLISH = "en"


def of(name: str, language: str = "") -> PairSource:
    """Find pairs of the user's; no file is opened before the source is read.

    Args:
        name: a file, a folder, or `FOLDER:SPLIT`.
        language: ISO 639 code of what does not say its own.

    Raises:
        UsageError: there is nothing of that name, or nothing that holds pairs.
    """
    path = Path(name).expanduser()
    if not path.exists():
        folder, colon, part = name.rpartition(":")
        root = Path(folder).expanduser()
        if not (colon and folder and root.is_dir()):
            raise UsageError(f"pairs {name}: found no such file or folder, expected {WANTED}")
        if part not in beir.splits(root):
            there = ", ".join(beir.splits(root)) or "none"
            raise UsageError(f"pairs {name}: found no qrels/{part}.tsv, expected one of its splits: {there}")
        return split(root, part, language=language)
    if path.is_dir():
        return _folder(path, language)
    read = _reader(path)
    if read is None:
        raise UsageError(f"pairs {name}: found another kind of file, expected {WANTED}")
    return read(path, path.name, language)


def _folder(folder: Path, language: str) -> PairSource:
    """Name the pairs of all files of a folder. Raises `UsageError`."""
    if splits := beir.splits(folder):
        raise UsageError(
            f"pairs {folder}: found a folder of questions and judgements; type a split of it, e.g. "
            f"{folder}:{splits[-1]} (it has: {', '.join(splits)})"
        )
    readers = {path: _reader(path) for path in sorted(folder.iterdir()) if path.is_file()}
    found = {path.name: read(path, path.name, language) for path, read in readers.items() if read is not None}
    if not found:
        names = ", ".join(path.name for path in list(readers)[:5]) or "no file"
        raise UsageError(f"pairs {folder}: found {names}, expected {WANTED}")
    return joined({name.replace(" ", "_"): source for name, source in found.items()}, folder.name)


def _reader(path: Path) -> Callable[[Path, str, str], PairSource] | None:
    """Tell what reads a file by its ending, None where nothing does."""
    name = path.name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return _READERS.get(Path(name).suffix)


def _tsv(path: Path, name: str, language: str) -> PairSource:
    """Name the pairs of a table."""
    return tsv.pairs(path, name, language or _named(path))


def _jsonl(path: Path, name: str, language: str) -> PairSource:
    """Name the pairs of JSON lines."""
    return jsonl.pairs(path, name, language or _named(path))


def _json(path: Path, name: str, language: str) -> PairSource:
    """Name the pairs of a .json file, which its beginning tells apart when it is read."""
    spoken = language or _named(path)
    code = reader("json-pairs/1", dpr.CODE, squad.code(), jsonl.CODE, name, spoken)
    return pair_source(name, code, (path,), partial(_read_json, path, name, spoken))


def _read_json(path: Path, name: str, language: str) -> Iterator[tuple[int, Found]]:
    """Stream what a .json file holds."""
    begins = head(path)
    if begins.startswith("["):
        return dpr.found(path, name, language or _ENGLISH, language or _ENGLISH)
    if _SQUAD.search(begins):
        return squad.found(path, name, language or _ENGLISH)
    return jsonl.found(path, name, language)


def _named(path: Path) -> str:
    """The language that a file's folder tells, empty where it does not."""
    name = path.resolve().parent.name
    return name if re.fullmatch("[a-z]{2}", name) else ""


_READERS: dict[str, Callable[[Path, str, str], PairSource]] = {
    ".tsv": _tsv,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".json": _json,
}
