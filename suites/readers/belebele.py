"""Belebele's files as retrieval, as mteb makes it: a question is to find the passage that it was asked about.

A row is `{"link", "question_number", "flores_passage", "question", "mc_answer1", …, "dialect", …}`. Rows of one link
have one passage, that of the first. Questions of equal words are one query, which all their passages answer. Answers
are not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench import Item, Judgement
from bench.suites import File, FileSource, Format, check_id, jsonl, records
from suites.readers.common import column_source

Row = tuple[Item, str]
"""A passage, and a question about it."""


def passages(path: File, name: str = "") -> FileSource[Item]:
    """Return the passages, each once, called by their links."""
    return column_source(path, name, "belebele-passages/1", _rows, 0)


def questions(path: File, name: str = "") -> FileSource[Item]:
    """Return the questions, each once, called by the link and number of the first of these words."""
    return column_source(path, name, "belebele-questions/1", _rows, 1)


def judgements(path: File, name: str = "") -> FileSource[Judgement]:
    """Return a judgement of grade 1 for each question and passage."""
    return column_source(path, name, "belebele-judgements/1", _rows, 2)


def _rows(path: File) -> Iterator[tuple[int, tuple[Item | None, Item | None, Judgement | None]]]:
    """Stream (line, (passage, question, judgement)), None for what an earlier line brought."""
    documents: set[str] = set()
    queries: dict[str, str] = {}
    judged: set[tuple[str, str]] = set()
    for line, (passage, question) in records(path, Format("question", _row, _label)):
        document = passage.id.rpartition("#")[0]
        first_passage, first_question = document not in documents, question not in queries
        documents.add(document)
        query = queries.setdefault(question, passage.id)
        first_judged = (query, document) not in judged
        judged.add((query, document))
        new = (
            Item(document, passage.text) if first_passage else None,
            Item(query, question) if first_question else None,
            Judgement(query, document, 1) if first_judged else None,
        )
        yield line, new


def _row(line: str) -> Row:
    """Parse one row into its passage, called by link and number of the question, and the question."""
    row = jsonl.json_object(line, ("link", "question_number", "flores_passage", "question"))
    link = "_".join(jsonl.text(row, "link").split())  # an address; ids hold no white space
    number = check_id(jsonl.present(row, "question_number", "1 or 2"), "question number")
    return Item(check_id(f"{link}#{number}", "link"), jsonl.text(row, "flores_passage")), jsonl.text(row, "question")


def _label(row: Row) -> str:
    return f"question {row[0].id!r}"
