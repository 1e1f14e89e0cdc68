"""MLDR's files: passages `{"docid", "text"}`, and questions with the passages that answer them and those that do not.

A question is `{"query_id", "query", "positive_passages": [{"docid", "text"}], "negative_passages": […]}`. The positive
passages are relevant; the others are hard negatives of training and judge nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench import Item, Judgement
from bench.suites import File, FileSource, Format, RecordError, check_id, file_source, jsonl, numbered_source, records


def passages(path: File, name: str = "") -> FileSource[Item]:
    """Return the passages of a corpus file."""
    return file_source(name or path.name, "mldr-corpus/1", path, Format("document", _passage))


def questions(path: File, name: str = "") -> FileSource[Item]:
    """Return the questions of a split."""
    form = Format("query", _query, lambda item: f"query id {item.id!r}")
    return file_source(name or path.name, "mldr-questions/1", path, form)


def judgements(path: File, name: str = "") -> FileSource[Judgement]:
    """Return a judgement of grade 1 for each positive passage of a split's questions."""
    return numbered_source(name or path.name, "mldr-judgements/1", path, _judgements)


def _passage(line: str) -> Item:
    """Parse one row. Raises `RecordError`."""
    row = jsonl.json_object(line, ("docid", "text"))
    return Item(check_id(jsonl.present(row, "docid", "the document id"), "document id"), jsonl.text(row, "text"))


def _query(line: str) -> Item:
    """Parse one row. Raises `RecordError`."""
    row = jsonl.json_object(line, ("query_id", "query"))
    return Item(check_id(jsonl.present(row, "query_id", "the query id"), "query id"), jsonl.text(row, "query"))


def _judged(line: str) -> list[Judgement]:
    """Parse one row. Raises `RecordError`, also for a question that nothing answers."""
    row = jsonl.json_object(line, ("query_id", "positive_passages"))
    query = check_id(jsonl.present(row, "query_id", "the query id"), "query id")
    answering = [jsonl.present(one, "docid", "a document id") for one in jsonl.objects(row, "positive_passages")]
    if not answering:
        raise RecordError('no member of "positive_passages"', "at least one passage that answers the question")
    return [Judgement(query, check_id(document, "document id"), 1) for document in dict.fromkeys(answering)]


def _judgements(path: File) -> Iterator[tuple[int, Judgement]]:
    return ((line, row) for line, rows in records(path, Format("question", _judged)) for row in rows)
