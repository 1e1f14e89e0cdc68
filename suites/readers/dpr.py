r"""DPR's files: passages of Wikipedia, cut into blocks of a hundred words, and questions with accepted answers.

Passages are rows of id, text, title, separated by tabs, under a header line of just these words or none; questions are
rows of question and accepted answers as a Python list, which is read as a literal: nothing is evaluated. A question has
no id in these files: its id is its line's number counted from 0, as text, so that questions asked twice stay apart.

Conventions: a field that begins with `"` is quoted, with `""` for a quotation mark inside; elsewhere the mark is
plain text. So csv reads it, and with csv the official programs; but here a quoted field ends on its line. In the
released files they all do, and one that does not would swallow the rows below it, so it is refused.
"""

import ast
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import Item
from bench.suites import (
    Answers,
    File,
    FileSource,
    Format,
    RecordError,
    check_id,
    file_source,
    records,
    shown,
)
from suites.readers.common import answer_strings, column_source

COLUMNS = ("id", "text", "title")
"""Of a row, and the words of the header where there is one."""

_QUESTION_COLUMNS = ("question", "answers")
_MARK, _TAB = '"', "\t"


def passages(path: File, name: str = "") -> FileSource[Item]:
    """Return the passages of a file; duplicate ids are not looked for (see `bench.data.formats.ids.IdCollector`)."""
    return file_source(name or path.name, "dpr-passages/1", path, _passages)


def has_header(path: Path) -> bool:
    """Return whether a plain file of passages begins with a header."""
    with path.open("rb") as stream:
        return stream.readline().decode().rstrip("\r\n") == _TAB.join(COLUMNS)


def questions(path: File, name: str = "") -> FileSource[Item]:
    """Return the questions of a file; reading raises `DataError` or `DataFaultsError` for malformed rows."""
    return column_source(path, name, "dpr-questions/1", _rows, 0)


def answers(path: File, name: str = "") -> FileSource[Answers]:
    """Return the accepted answers of a file's questions; errors as in `questions`."""
    return column_source(path, name, "dpr-answers/1", _rows, 1)


def cells(text: str, columns: Sequence[str]) -> list[str]:
    r"""Split a line into its fields, quoted or not.

    Args:
        text: the line, without its end.
        columns: what the fields are called; there must be as many.

    Raises:
        RecordError: another number of fields, a quoted field that does not end on the line, or one over csv's limit.

    Example:
        >>> cells('who?\t"a ""quoted"" answer"', ("question", "answers"))
        ['who?', 'a "quoted" answer']
    """
    expected = f"{len(columns)} columns separated by tabs: {', '.join(columns)}"
    if _MARK in text:
        rows = csv.reader((text, ""), delimiter=_TAB)  # the second line is taken only by a quotation still open
        try:
            fields = next(rows)
        except csv.Error:  # there are two: a field over csv's limit, and a bare carriage return outside quotes
            limit = csv.field_size_limit()
            fault = f"a field longer than {limit:,} characters" if len(text) > limit else "a carriage return in a line"
            raise RecordError(fault, expected) from None
        if rows.line_num > 1:
            hint = "a quotation mark inside a quoted field is written twice"
            raise RecordError("a quoted field that does not end on its line", 'a closing "', hint)
    else:
        fields = text.split(_TAB)
    if len(fields) != len(columns):
        raise RecordError(f"{len(fields)} column{'s' * (len(fields) != 1)} in {shown(text)}", expected)
    return fields


def _passages(first: str) -> Format[Item]:
    return Format("document", _passage, header=COLUMNS if tuple(first.split(_TAB)) == COLUMNS else None)


def _passage(text: str) -> Item:
    identity, passage, title = cells(text, COLUMNS)
    return Item(check_id(identity, "document id"), passage, title)


def _row(text: str) -> tuple[str, tuple[str, ...]]:
    """Parse one row. Raises `RecordError`."""
    question, listed = cells(text, _QUESTION_COLUMNS)
    if not question.strip():
        raise RecordError("an empty question", "the question's text")
    try:
        value = ast.literal_eval(listed.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise RecordError(f"answers {shown(listed)}", "a Python list of strings, e.g. ['Alan Turing']") from None
    return question, answer_strings(value, "answers")


def _rows(path: File) -> Iterator[tuple[int, tuple[Item, Answers]]]:
    """Stream (line, question and answers); the id is the line's number, from 0."""
    for line, (question, answers) in records(path, Format("question", _row)):
        yield line, (Item(str(line - 1), question), Answers(str(line - 1), answers))
