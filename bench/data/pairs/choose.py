"""Pairs of the user's by name: a file, a folder of files, or a split of a folder in BEIR's layout.

What is read: `.tsv`, `.jsonl` or `.ndjson` (`bench.data.pairs.rows`), and `.json`, whose beginning distinguishes
DPR's array (`dpr`) from SQuAD's object (`squad`) and from JSON lines; each plain or compressed. `FOLDER:SPLIT` is a
split of a folder in BEIR's layout (`judged`). A folder holds such files, in the order of their names; others in it are
skipped.

Conventions: the language is the one given, else that of a folder of two letters (`en/pairs.jsonl`), else English for
DPR and SQuAD and unknown for tables and JSON lines.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.core.errors import UsageError
from bench.core.names import safe_name
from bench.data.formats import beir
from bench.data.formats.text import COMPRESSED, uncompressed
from bench.data.pairs import dpr, squad
from bench.data.pairs.arrays import first_block
from bench.data.pairs.judged import pairs_of_split
from bench.data.pairs.rows import JSONL, jsonl_pairs, read_jsonl, tsv_pairs
from bench.data.pairs.sources import Outcomes, PairSource, concatenate, pair_source, reader

EXPECTED = (
    "pairs as .tsv (query, positive, negatives), .jsonl ({query, positive, negative}) or .json (DPR's or SQuAD's), "
    f"plain or ending in {', '.join(COMPRESSED)}; a folder of these; or FOLDER:SPLIT of a folder in BEIR's layout"
)

_SQUAD = re.compile(r'(?<!\\)"(paragraphs|data)"\s*:\s*\[')


def load_pairs(name: str, language: str = "") -> PairSource:
    """Find pairs of the user's; no file is opened before the source is read.

    Args:
        name: a file, a folder, or `FOLDER:SPLIT`.
        language: ISO 639 code of texts that do not say theirs.

    Raises:
        UsageError: where there is nothing that holds pairs.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return _folder_pairs(path, language)
    if path.exists():
        source = _file_pairs(path, language)
        if source is None:
            raise UsageError(where=f"pairs {name}", found="another kind of file", expected=EXPECTED)
        return source
    folder, colon, split = name.rpartition(":")
    root = Path(folder).expanduser()
    if not (colon and folder and root.is_dir()):
        raise UsageError(where=f"pairs {name}", found="no such file or folder", expected=EXPECTED)
    if split not in beir.splits(root):
        splits = f"one of its splits: {', '.join(beir.splits(root)) or 'none'}"
        raise UsageError(where=f"pairs {name}", found=f"no qrels/{split}.tsv", expected=splits)
    return pairs_of_split(root, split, language=language)


def _folder_pairs(folder: Path, language: str) -> PairSource:
    """Return the pairs of all files of a folder. Raises `UsageError`."""
    if splits := beir.splits(folder):
        raise UsageError(
            where=f"pairs {folder}",
            found="a folder of questions and judgements",
            hint=f"type a split of it, e.g. {folder}:{splits[-1]} (it has: {', '.join(splits)})",
        )
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    sources = {safe_name(path.name): source for path in files if (source := _file_pairs(path, language))}
    if not sources:
        names = ", ".join(path.name for path in files[:5]) or "no file"
        raise UsageError(where=f"pairs {folder}", found=names, expected=EXPECTED)
    return concatenate(sources, folder.name)


def _file_pairs(path: Path, language: str) -> PairSource | None:
    """Return the pairs of a file by its ending, None where it is of another kind."""
    read = _READERS.get(Path(uncompressed(path)).suffix.lower())
    folder = path.resolve().parent.name
    return read(path, path.name, language or (folder if re.fullmatch("[a-z]{2}", folder) else "")) if read else None


def _json_pairs(path: Path, name: str, language: str) -> PairSource:
    """Return the pairs of a .json file, whose layout is recognised by its beginning when it is read."""
    code = reader("json-pairs/1", dpr.CODE, squad.reader_code(), JSONL, name, language)
    return pair_source(name, code, (path,), partial(_read_json, path, name, language))


def _read_json(path: Path, name: str, language: str) -> Outcomes:
    """Stream what a .json file holds."""
    start = first_block(path)
    if start.startswith("["):
        return dpr.read(path, name, language or "en", language or "en")
    if _SQUAD.search(start):
        return squad.read(path, name, language or "en")
    return read_jsonl(path, name, language)


_READERS: dict[str, Callable[[Path, str, str], PairSource]] = {
    ".tsv": tsv_pairs,
    ".jsonl": jsonl_pairs,
    ".ndjson": jsonl_pairs,
    ".json": _json_pairs,
}
