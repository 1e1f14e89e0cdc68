"""Training pairs and questions as plain texts, for whoever asks what a training has seen; each stands alone.

What is read:

* JSON lines with `query` or `question` and perhaps passages under `positive`, `negative` and keys that begin so
  (`positives`, `positive_passages`, `positive_ctxs`; also `hard_negative…`): a text, an object with `text` and perhaps
  `title`, or a list of these;
* a BEIR queries.jsonl (`_id` and `text`);
* tab-separated columns under a header line that names `query` (or `question`), where every column but ids counts; or,
  without one, a query id and a text, as in topics;
* `FOLDER:SPLIT`, a folder in BEIR's layout: the questions judged in that split, and the passages that answer them;
* a folder that holds nothing but such files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.data import beir
from bench.data.faults import RecordError, shown
from bench.data.jsonl import json_object
from bench.data.overlap import Text
from bench.data.source import Format, check_id, records
from bench.data.text import COMPRESSED, lines
from bench.errors import UsageError
from bench.types import Source

_READER = "pair-texts/1"
_ASKED = ("query", "question")
_PASSAGES = ("positive", "negative", "hard_negative")
_JSON, _TABLE = (".jsonl", ".ndjson", ".json"), (".tsv",)


def pair_texts(where: str) -> Source[Text] | None:
    """Name the texts of training pairs or questions; None where there is something else, e.g. documents.

    Args:
        where: a file, a folder of such files, or `FOLDER:SPLIT`.

    Raises:
        UsageError: a folder in BEIR's layout without the split, or with one that it lacks. What is malformed inside is
            told when it is read.
    """
    head, colon, split = where.rpartition(":")
    if colon and _is_beir(Path(head).expanduser()) and not Path(where).expanduser().exists():
        return _split(Path(head).expanduser(), split)
    path = Path(where).expanduser()
    if _is_beir(path):
        raise UsageError(
            f"corpus {where}: found a folder of questions and judgements; type a split of it, e.g. {where}:train "
            f"(it has: {', '.join(beir.splits(path)) or 'none'})"
        )
    files = tuple(sorted(one for one in path.glob("*") if _named(one))) if path.is_dir() else (path,)
    if not files or not _holds_pairs(files[0]):
        return None
    return Source(path.name, _READER, files, partial(_files, files))


def _is_beir(folder: Path) -> bool:
    """Whether a folder has BEIR's judgements."""
    return (folder / "qrels").is_dir()


def _named(path: Path) -> bool:
    """Whether a file may hold pairs, by its name."""
    name = path.name
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return path.is_file() and name.endswith((*_JSON, *_TABLE))


def _holds_pairs(path: Path) -> bool:
    """Whether a file holds pairs or questions, by its name and its first line."""
    if not _named(path):
        return False
    first = next((text for _, text in lines(path) if text.strip()), "")
    if any(ending in _TABLE for ending in path.suffixes[-2:]):
        return True
    try:
        row = json_object(first, ())
    except RecordError:
        return False
    return any(key in row for key in _ASKED) or {"_id", "text"} <= row.keys()


def _files(files: Sequence[Path]) -> Iterator[Text]:
    """Stream the texts of files, where they stand as `file:line`."""
    for path in files:
        for line, texts in records(path, _choose):
            for text in texts:
                yield Text(f"{path.name}:{line}", (text,))


def _choose(first: str) -> Format[tuple[str, ...]]:
    """Tell what a file is by its first line."""
    if first.lstrip().startswith("{"):
        return Format("pair", _from_json)
    columns = first.split("\t")
    if not any(name in _ASKED for name in columns):
        return Format("question", _from_topic)
    kept = [at for at, name in enumerate(columns) if not name.strip().lower().endswith("id")]
    return Format("pair", partial(_from_row, width=len(columns), kept=kept), header=tuple(columns))


def _from_json(text: str) -> tuple[str, ...]:
    """Read one JSON object. Raises `RecordError`."""
    row = json_object(text, (*_ASKED, "text"))
    asked = next((row[key] for key in (*_ASKED, "text") if key in row), None)
    if not isinstance(asked, str):
        raise RecordError(f'"query": {shown(asked)}', 'a string under "query" or "question", or BEIR\'s "text"')
    passages = [value for key, value in row.items() if key.startswith(_PASSAGES)]
    return (asked, *(one for value in passages for one in _passages(value)))


def _passages(value: Any) -> Iterator[str]:
    """Stream the texts of what stands under a key of passages. Raises `RecordError`."""
    if isinstance(value, list):
        for one in value:
            yield from _passages(one)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, dict) and isinstance(value.get("text"), str):
        yield f"{value.get('title') or ''} {value['text']}".strip()
    elif value is not None:
        raise RecordError(f"passage {shown(value)}", 'a string, or an object with "text"')


def _from_topic(text: str) -> tuple[str, ...]:
    """Read one line of an id and a question. Raises `RecordError`."""
    name, tab, words = text.partition("\t")
    if not tab:
        raise RecordError(shown(text), "a query id, a tab and the query's text; or columns under a header with `query`")
    check_id(name, "query id")
    return (words,)


def _from_row(text: str, width: int, kept: Sequence[int]) -> tuple[str, ...]:
    """Read one line of columns. Raises `RecordError`."""
    cells = text.split("\t")
    if len(cells) != width:
        raise RecordError(f"{len(cells)} columns in {shown(text)}", f"{width} columns, as in the header line")
    return tuple(cells[at] for at in kept)


def _split(folder: Path, split: str) -> Source[Text]:
    """Name the texts of a split of a folder in BEIR's layout. Raises `UsageError` where it has none of that name."""
    if split not in beir.splits(folder):
        raise UsageError(
            f"corpus {folder}:{split}: found no qrels/{split}.tsv, there are: {', '.join(beir.splits(folder))}"
        )
    sources = beir.qrels(folder, split), beir.queries(folder), beir.corpus(folder)
    files = tuple(path for one in sources for path in one.files)
    return Source(f"{folder.name}:{split}", f"{_READER}:split", files, partial(_of_split, folder, split))


def _of_split(folder: Path, split: str) -> Iterator[Text]:
    """Stream the questions of a split, then the passages that answer them, each as `file:line`."""
    rows = list(beir.qrels(folder, split).read())
    asked, gold = {row.query for row in rows}, {row.document for row in rows if row.grade >= 1}
    for source, ids in ((beir.queries(folder), asked), (beir.corpus(folder), gold)):
        for line, item in source.numbered():
            if item.id in ids:
                yield Text(f"{source.files[0].name}:{line}", tuple(part for part in (item.title, item.text) if part))
