"""Training pairs and questions as plain texts, each a text of its own, to search for texts of a test in them.

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
from bench.data.pairs.arrays import first_block
from bench.data.pairs.choose import load_pairs
from bench.data.pairs.rows import POSITIVES, QUERIES
from bench.data.pairs.sources import outcomes
from bench.types import PairFormat, Source, TrainingPair

_QUESTIONS, _PAIRS = "pair-texts/1", "released-pair-texts/1"
_LINES = (".jsonl", ".ndjson", ".json")
_SQUAD = re.compile(r'\{\s*"(data|version)"\s*:')


def pair_texts(where: str, formats: Sequence[PairFormat] = ()) -> Source[Text] | None:
    """Return the texts of training pairs or questions; None where there is something else, e.g. documents.

    Args:
        where: a file, a folder of such files, or `FOLDER:SPLIT` of a folder in BEIR's layout.
        formats: forms of files that suites bring, recognised by ending and first line.

    Raises:
        UsageError: for a split that is not named or not there.
        DataError: if a file cannot be read; reading raises as `bench.data.pairs.load_pairs` says.
    """
    path, folder = Path(where).expanduser(), Path(where.rpartition(":")[0] or ".").expanduser()
    if (path / "qrels").is_dir() or (not path.exists() and ":" in where and (folder / "qrels").is_dir()):
        return _texts_of_pairs(load_pairs(where))  # raises where the split is not named
    if not path.is_dir():
        return _texts_of_file(path, formats)
    parts = [part for file in sorted(path.iterdir()) if (part := _texts_of_file(file, formats)) is not None]
    readers = list(dict.fromkeys(part.reader for part in parts))
    files = tuple(file for part in parts for file in part.files)
    reader = readers[0] if len(readers) == 1 else f"{_PAIRS}:{digest(list(readers))[:12]}"
    if not parts:
        return None
    return Source(path.name, reader, files, lambda: chain.from_iterable(part.read() for part in parts))


def _texts_of_file(path: Path, formats: Sequence[PairFormat]) -> Source[Text] | None:
    """Return the texts of a file of pairs or questions, recognised by its ending and its first line."""
    ending = Path(uncompressed(path)).suffix.lower()
    if not path.is_file() or ending not in (*_LINES, ".tsv"):
        return None
    if ending == ".json" and ((start := first_block(path)).startswith("[") or _SQUAD.match(start)):
        return _texts_of_pairs(load_pairs(str(path)))
    first = next((text for _, text in lines(path) if text.strip()), "")
    suite_format = next((form for form in formats if form.ending == ending and form.mark in first), None)
    if suite_format is not None:
        return _texts_of_pairs(suite_format.pairs(path))
    if ending == ".tsv":
        return _texts_of_pairs(load_pairs(str(path)))
    try:
        row = json_object(first, ())
    except RecordError:
        return None
    if any(key in row for key in QUERIES) and any(key in row for key in POSITIVES):
        return _texts_of_pairs(load_pairs(str(path)))
    if any(key in row for key in QUERIES) or {"_id", "text"} <= row.keys():
        rows, name = partial(records, path, Format("question", _question)), path.name
        return Source(name, _QUESTIONS, (path,), lambda: (Text(f"{name}:{at}", (text,)) for at, text in rows()))
    return None


def _texts_of_pairs(pairs: Source[TrainingPair]) -> Source[Text]:
    """Return question, positives and negatives of every pair as texts."""
    return Source(pairs.name, f"{_PAIRS}:{pairs.reader}", pairs.files, partial(_read_pairs, pairs))


def _read_pairs(pairs: Source[TrainingPair]) -> Iterator[Text]:
    """Stream the texts of pairs, each with the place of its record."""
    for place, outcome in outcomes(pairs):
        if outcome.pair is not None:
            for item in (outcome.pair.query, *outcome.pair.positives, *outcome.pair.negatives):
                yield Text(f"{pairs.name}:{place}", tuple(part for part in (item.title, item.text) if part))


def _question(line: str) -> str:
    """Parse one line of questions. Raises `RecordError`."""
    row = json_object(line, (*QUERIES, "text"))
    question = next((row[key] for key in (*QUERIES, "text") if key in row), None)
    if not isinstance(question, str):
        raise RecordError(f'"query": {shown(question)}', 'a string under "query" or "question", or BEIR\'s "text"')
    return question
