"""One language of a folder in BEIR's layout whose queries are in several, with answers next to the judgements.

Conventions: a row of queries.jsonl is {"_id", "text", "metadata": {"lang", "answers", "question_en"}}. `lang` is the
query's language, `answers` are accepted strings, at least one, and `question_en` is the query in English; other keys
are not read. Judgements are those of `bench.data.formats.beir`, left to the queries that are meant.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bench import Item, Judgement
from bench.suites import (
    Answers,
    File,
    FileSource,
    Format,
    RecordError,
    beir,
    check_id,
    jsonl,
    numbered_source,
    records,
    shown,
)
from suites.readers.common import answer_strings, column_source

ENGLISH = "en"
_EXPECTED = 'an object with the keys "lang", "answers" and "question_en"'


@dataclass(frozen=True)
class Part:
    """Which queries of a folder are meant, and how they are asked."""

    split: str  # whose judgements hold
    language: str = ""  # as `lang` spells it; empty for all languages
    english: bool = False  # ask them in English (`question_en`)

    @property
    def key(self) -> str:
        """Return what decides which records are read."""
        return f"{self.split}:{self.language or 'all'}:{'question_en' if self.english else 'text'}"


def queries(folder: Path, part: Part, name: str = "") -> FileSource[Item]:
    """Return the queries of a part's language, of all splits.

    Args:
        folder: in BEIR's layout; `queries.jsonl` may be compressed.
        part: the language, and whether its queries are asked in English.
        name: how messages call the folder; default: its own name.

    Raises:
        UsageError: no file of queries, or one plain and one compressed. Reading raises `DataError` or
            `DataFaultsError` for malformed rows, and for a repeated query id.
    """
    path, words = beir.find(folder, "queries.jsonl"), f"{name or folder.name} queries"
    return column_source(path, words, f"beir-answers-queries/1:{part.key}", partial(_rows, part=part), 1)


def qrels(folder: Path, part: Part, name: str = "") -> FileSource[Judgement]:
    """Return the judgements of a part; raises as `queries` does."""
    path, queries_path = beir.find(folder, f"qrels/{part.split}.tsv"), beir.find(folder, "queries.jsonl")
    words = f"{name or folder.name} qrels ({part.split})"
    reading = partial(_judgements, part=part, queries=queries_path)
    source = numbered_source(words, f"beir-answers-qrels/1:{part.key}", path, reading)
    return replace(source, files=(path, queries_path))


def answers(folder: Path, part: Part, name: str = "") -> FileSource[Answers]:
    """Return the accepted answers of the judged queries of a part; raises as `queries` does."""
    path, qrels_path = beir.find(folder, "queries.jsonl"), beir.find(folder, f"qrels/{part.split}.tsv")
    words = f"{name or folder.name} answers ({part.split})"
    reading = partial(_answers, part=part, qrels=qrels_path)
    source = numbered_source(words, f"beir-answers/1:{part.key}", path, reading)
    return replace(source, files=(path, qrels_path))


def _rows(path: File, part: Part) -> Iterator[tuple[int, tuple[str, Item, Answers]]]:
    """Stream (line, (language, query, answers)) of the queries of a part's language."""
    form = Format("query", partial(_query, english=part.english), lambda row: f"query id {row[1].id!r}")
    return ((line, row) for line, row in records(path, form) if part.language in ("", row[0]))


def _judgements(path: File, part: Part, queries: Path) -> Iterator[tuple[int, Judgement]]:
    """Stream (line, judgement) of the queries of a part's language; of all queries where it has no language."""
    ids = {query.id for _, (_, query, _) in _rows(queries, part)} if part.language else None
    for line, row in records(path, beir.JUDGEMENTS):
        if ids is None or row.query in ids:
            yield line, row


def _answers(path: File, part: Part, qrels: Path) -> Iterator[tuple[int, Answers]]:
    """Stream (line, answers) of the judged queries of a part's language."""
    judged = {row.query for _, row in records(qrels, beir.JUDGEMENTS)}
    return ((line, answers) for line, (_, query, answers) in _rows(path, part) if query.id in judged)


def _query(text: str, *, english: bool) -> tuple[str, Item, Answers]:
    """Parse one row to its language, the query as it is asked, and the answers. Raises `RecordError`."""
    row = jsonl.json_object(text, ("_id", "text", "metadata"))
    identity = check_id(jsonl.present(row, "_id", "the query id"), "query id")
    metadata: Any = jsonl.present(row, "metadata", _EXPECTED)
    if not isinstance(metadata, dict):
        raise RecordError(f'"metadata": {shown(metadata)}', _EXPECTED)
    answers = answer_strings(jsonl.present(metadata, "answers", "a list of strings under that key"), '"answers"')
    texts = [jsonl.string(metadata, "lang"), jsonl.string(metadata, "question_en")]
    language, translation = answer_strings(texts, '"metadata"')
    original = jsonl.string(row, "text")
    query = Item(identity, translation, language=ENGLISH) if english else Item(identity, original, language=language)
    return language, query, Answers(identity, answers)
