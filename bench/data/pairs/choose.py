"""Pairs of the user's by name: a file, a folder of files, or a split of a folder in BEIR's layout.

What is read: `.tsv`, `.jsonl` or `.ndjson` (`bench.data.pairs.rows`), and `.json`, whose beginning distinguishes
DPR's array (`dpr`) from SQuAD's object (`squad`) and from JSON lines; each plain or compressed. `FOLDER:SPLIT` is a
split of a folder in BEIR's layout (`judged`). A folder holds such files, in the order of their names; others in it are
skipped.

Conventions: the language is the one given, else that of a folder of two letters (`en/pairs.jsonl`), else English for
DPR and SQuAD and unknown for tables and JSON lines.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.core.errors import UsageError
from bench.data.formats import beir
from bench.data.formats.text import COMPRESSED, uncompressed
from bench.data.pairs import dpr, squad
from bench.data.pairs.arrays import first_block
from bench.data.pairs.judged import pairs_of_split
from bench.data.pairs.rows import JSONL, jsonl_found, jsonl_pairs, tsv_pairs
from bench.data.pairs.sources import PairOutcome, PairSource, concatenate, pair_source, reader

WANTED = (
    "pairs as .tsv (query, positive, negatives), .jsonl ({query, positive, negative}) or .json (DPR's or SQuAD's), "
    f"plain or ending in {', '.join(COMPRESSED)}; a folder of these; or FOLDER:SPLIT of a folder in BEIR's layout"
)

_SQUAD = re.compile(r'(?<!\\)"(paragraphs|data)"\s*:\s*\[')
_ENGLISH = "en"


def load_pairs(name: str, language: str = "") -> PairSource:
    """Find pairs of the user's (a file, a folder, or `FOLDER:SPLIT`); no file is opened before the source is read.

    `language` is that of what does not say its own. Raises `UsageError` where there is nothing that holds pairs.
    """
    path = Path(name).expanduser()
    if not path.exists():
        folder, colon, part = name.rpartition(":")
        root = Path(folder).expanduser()
        if not (colon and folder and root.is_dir()):
            raise UsageError(where=f"pairs {name}", found="no such file or folder", expected=WANTED)
        if part not in beir.splits(root):
            there = f"one of its splits: {', '.join(beir.splits(root)) or 'none'}"
            raise UsageError(where=f"pairs {name}", found=f"no qrels/{part}.tsv", expected=there)
        return pairs_of_split(root, part, language=language)
    if path.is_dir():
        return _folder(path, language)
    read = _reader(path)
    if read is None:
        raise UsageError(where=f"pairs {name}", found="another kind of file", expected=WANTED)
    return read(path, path.name, language or _named(path))


def _folder(folder: Path, language: str) -> PairSource:
    """Return the pairs of all files of a folder. Raises `UsageError`."""
    if splits := beir.splits(folder):
        raise UsageError(
            where=f"pairs {folder}",
            found="a folder of questions and judgements",
            hint=f"type a split of it, e.g. {folder}:{splits[-1]} (it has: {', '.join(splits)})",
        )
    readers = {path: _reader(path) for path in sorted(folder.iterdir()) if path.is_file()}
    found = {path.name: read(path, path.name, language or _named(path)) for path, read in readers.items() if read}
    if not found:
        names = ", ".join(path.name for path in list(readers)[:5]) or "no file"
        raise UsageError(where=f"pairs {folder}", found=names, expected=WANTED)
    return concatenate({name.replace(" ", "_"): source for name, source in found.items()}, folder.name)


def _reader(path: Path) -> Callable[[Path, str, str], PairSource] | None:
    """Return the reader of a file by its ending, None where there is none."""
    return _READERS.get(Path(uncompressed(path)).suffix.lower())


def _json(path: Path, name: str, language: str) -> PairSource:
    """Return the pairs of a .json file, whose form is recognised by its beginning when it is read."""
    code = reader("json-pairs/1", dpr.CODE, squad.code(), JSONL, name, language)
    return pair_source(name, code, (path,), partial(_read_json, path, name, language))


def _read_json(path: Path, name: str, language: str) -> Iterator[tuple[int, PairOutcome]]:
    """Stream what a .json file holds."""
    begins = first_block(path)
    if begins.startswith("["):
        return dpr.found(path, name, language or _ENGLISH, language or _ENGLISH)
    if _SQUAD.search(begins):
        return squad.found(path, name, language or _ENGLISH)
    return jsonl_found(path, name, language)


def _named(path: Path) -> str:
    """Return the language that a file's folder names, empty where it names none."""
    name = path.resolve().parent.name
    return name if re.fullmatch("[a-z]{2}", name) else ""


_READERS: dict[str, Callable[[Path, str, str], PairSource]] = {
    ".tsv": tsv_pairs,
    ".jsonl": jsonl_pairs,
    ".ndjson": jsonl_pairs,
    ".json": _json,
}
