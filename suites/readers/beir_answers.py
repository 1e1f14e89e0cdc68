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
from suites.readers import accepted

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


@dataclass(frozen=True, slots=True)
class _Query:
    """One row of queries.jsonl."""

    id: str
    text: str
    language: str
    answers: tuple[str, ...]
    english: str


def queries(folder: Path, part: Part, name: str = "") -> FileSource[Item]:
    """Return the queries of a part's language, of all splits. Raises `UsageError` without the file, or for two.

    Reading raises `DataError` or `DataFaultsError` for malformed rows, and for a repeated query id.
    """
    path, words = beir.find(folder, "queries.jsonl"), f"{name or folder.name} queries"
    return numbered_source(words, f"beir-answers-queries/1:{part.key}", path, partial(_items, part=part))


def qrels(folder: Path, part: Part, name: str = "") -> FileSource[Judgement]:
    """Return the judgements of a part; raises as `queries` does."""
    path, asked = beir.find(folder, f"qrels/{part.split}.tsv"), beir.find(folder, "queries.jsonl")
    words = f"{name or folder.name} qrels ({part.split})"
    reading = partial(_judgements, part=part, asked=asked)
    source = numbered_source(words, f"beir-answers-qrels/1:{part.key}", path, reading)
    return replace(source, files=(path, asked))


def answers(folder: Path, part: Part, name: str = "") -> FileSource[Answers]:
    """Return the accepted answers of the judged queries of a part; raises as `queries` does."""
    path, judged = beir.find(folder, "queries.jsonl"), beir.find(folder, f"qrels/{part.split}.tsv")
    words = f"{name or folder.name} answers ({part.split})"
    reading = partial(_answers, part=part, judged=judged)
    source = numbered_source(words, f"beir-answers/1:{part.key}", path, reading)
    return replace(source, files=(path, judged))


def _rows(path: File, part: Part) -> Iterator[tuple[int, _Query]]:
    rows = records(path, Format("query", _query, lambda one: f"query id {one.id!r}"))
    return ((line, one) for line, one in rows if part.language in ("", one.language))


def _items(path: File, part: Part) -> Iterator[tuple[int, Item]]:
    for line, one in _rows(path, part):
        text, language = (one.english, ENGLISH) if part.english else (one.text, one.language)
        yield line, Item(one.id, text, language=language)


def _judgements(path: File, part: Part, asked: Path) -> Iterator[tuple[int, Judgement]]:
    """Stream (line, judgement) of the queries of a part's language; of all queries where it has no language."""
    meant = {one.id for _, one in _rows(asked, part)} if part.language else None
    for line, row in records(path, beir.JUDGEMENTS):
        if meant is None or row.query in meant:
            yield line, row


def _answers(path: File, part: Part, judged: Path) -> Iterator[tuple[int, Answers]]:
    """Stream (line, answers) of the judged queries of a part's language."""
    meant = {row.query for _, row in records(judged, beir.JUDGEMENTS)}
    for line, one in _rows(path, part):
        if one.id in meant:
            yield line, Answers(one.id, one.answers)


def _query(text: str) -> _Query:
    """Parse one row. Raises `RecordError`."""
    row = jsonl.json_object(text, ("_id", "text", "metadata"))
    identity = check_id(jsonl.present(row, "_id", "the query id"), "query id")
    about: Any = jsonl.present(row, "metadata", _EXPECTED)
    if not isinstance(about, dict):
        raise RecordError(f'"metadata": {shown(about)}', _EXPECTED)
    allowed = accepted.strings(jsonl.present(about, "answers", "a list of strings under that key"), '"answers"')
    language, english = accepted.strings(
        [jsonl.string(about, "lang"), jsonl.string(about, "question_en")], '"metadata"'
    )
    return _Query(identity, jsonl.string(row, "text"), language, allowed, english)
