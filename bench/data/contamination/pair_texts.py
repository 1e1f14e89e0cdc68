"""Training pairs and questions as plain texts, for whoever asks what a training has seen; each is a text of its own.

Pairs are read as a fine-tuning reads them (`bench.data.pairs.load_pairs`), files in a form that a suite brings as its
`bench.types.PairFormat` says; of a table every column is a text. Questions without passages are read here: JSON lines
with `query` or `question`, or a BEIR queries.jsonl (`_id` and `text`).
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from bench.core.files import digest
from bench.data.contamination.search import Text
from bench.data.formats.faults import RecordError, shown
from bench.data.formats.jsonl import json_object
from bench.data.formats.source import Format, records
from bench.data.formats.text import lines, uncompressed
from bench.data.pairs.arrays import head
from bench.data.pairs.choose import load_pairs
from bench.data.pairs.rows import POSITIVES, QUERIES
from bench.data.pairs.sources import outcomes
from bench.types import PairFormat, Source, TrainingPair

_QUESTIONS, _PAIRS = "pair-texts/1", "released-pair-texts/1"
_LINES = (".jsonl", ".ndjson", ".json")
_SQUAD = re.compile(r'\{\s*"(data|version)"\s*:')


def pair_texts(where: str, formats: Sequence[PairFormat] = ()) -> Source[Text] | None:
    """Return the texts of training pairs or questions; None where there is something else, e.g. documents.

    `where` is a file, a folder of such files, or `FOLDER:SPLIT` of a folder in BEIR's layout. Raises `UsageError` for a
    split that is missing or not there, `DataError` if a file cannot be read; reading raises as
    `bench.data.pairs.load_pairs` says.
    """
    path, folder = Path(where).expanduser(), Path(where.rpartition(":")[0] or ".").expanduser()
    if not path.exists() and ":" in where:
        return _texts(load_pairs(where)) if _is_beir(folder) else None
    if _is_beir(path):
        return _texts(load_pairs(where))  # raises: a split must be named
    if not path.is_dir():
        return _file(path, formats)
    parts = [found for one in sorted(path.iterdir()) if (found := _file(one, formats)) is not None]
    readers = list(dict.fromkeys(part.reader for part in parts))
    files = tuple(file for part in parts for file in part.files)
    reader = readers[0] if len(readers) == 1 else f"{_PAIRS}:{digest(list(readers))[:12]}"
    return Source(path.name, reader, files, partial(_joined, parts)) if parts else None


def _is_beir(folder: Path) -> bool:
    """Return whether a folder has BEIR's judgements."""
    return (folder / "qrels").is_dir()


def _file(path: Path, formats: Sequence[PairFormat]) -> Source[Text] | None:
    """Return the texts of a file of pairs or questions, recognised by its ending and its first line."""
    ending = Path(uncompressed(path)).suffix.lower()
    if not path.is_file() or ending not in (*_LINES, ".tsv"):
        return None
    if ending == ".json" and ((begins := head(path)).startswith("[") or _SQUAD.match(begins)):
        return _texts(load_pairs(str(path)))
    first = next((text for _, text in lines(path) if text.strip()), "")
    brought = next((one for one in formats if one.ending == ending and one.mark in first), None)
    if brought is not None:
        return _texts(brought.pairs(path))
    if ending == ".tsv":
        return _texts(load_pairs(str(path)))
    try:
        row = json_object(first, ())
    except RecordError:
        return None
    if any(key in row for key in QUERIES):
        return _texts(load_pairs(str(path))) if any(key in row for key in POSITIVES) else _questions(path)
    return _questions(path) if {"_id", "text"} <= row.keys() else None


def _texts(pairs: Source[TrainingPair]) -> Source[Text]:
    """Return question, positives and negatives of every pair as texts."""
    return Source(pairs.name, f"{_PAIRS}:{pairs.reader}", pairs.files, partial(_of_pairs, pairs))


def _of_pairs(pairs: Source[TrainingPair]) -> Iterator[Text]:
    """Stream the texts of pairs, each with the place of its record."""
    for at, one in outcomes(pairs):
        if one.pair is not None:
            for item in (one.pair.query, *one.pair.positives, *one.pair.negatives):
                yield Text(f"{pairs.name}:{at}", tuple(part for part in (item.title, item.text) if part))


def _questions(path: Path) -> Source[Text]:
    return Source(path.name, _QUESTIONS, (path,), partial(_of_questions, path))


def _of_questions(path: Path) -> Iterator[Text]:
    """Stream questions, each with its line."""
    rows = records(path, Format("question", _question))
    return (Text(f"{path.name}:{line}", (question,)) for line, question in rows)


def _joined(parts: Sequence[Source[Text]]) -> Iterator[Text]:
    """Stream the texts of several files."""
    return chain.from_iterable(part.read() for part in parts)


def _question(text: str) -> str:
    row = json_object(text, (*QUERIES, "text"))
    asked = next((row[key] for key in (*QUERIES, "text") if key in row), None)
    if not isinstance(asked, str):
        raise RecordError(f'"query": {shown(asked)}', 'a string under "query" or "question", or BEIR\'s "text"')
    return asked
