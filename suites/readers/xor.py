"""XOR-Retrieve's questions: JSON lines {"id", "question", "lang", "split", "answers"}, all languages in one file.

Conventions: `lang` is read without the white space around it (Arabic questions of the training file say " ar");
answers are English, and those that are exactly "yes" or "no" do not count; a question that has no other is neither
asked nor judged, but must be there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bench import DataError, Item
from bench.suites import (
    Answers,
    File,
    FileSource,
    Format,
    RecordError,
    check_id,
    jsonl,
    records,
    shown,
)
from suites.readers.common import answer_strings, column_source

_NOT_COUNTED = ("yes", "no")
_KEYS = ("id", "question", "lang", "split", "answers")


@dataclass(frozen=True)
class Part:
    """What is read of a file."""

    language: str  # whose questions, e.g. `ar`
    split: str  # what every row of the file must say, e.g. `dev`
    rows: int | None = None  # how many questions the file must hold in all its languages; None where that is not known

    @property
    def key(self) -> str:
        """Return what decides which records are read."""
        return f"{self.language}:{self.split}:{'any' if self.rows is None else self.rows}"


def questions(path: File, part: Part, name: str = "") -> FileSource[Item]:
    """Return the questions of a language, also those whose answers do not count.

    Reading raises `DataError` or `DataFaultsError` for malformed rows, repeated ids, another split or number of rows.
    """
    return column_source(path, name, f"xor-questions/1:{part.key}", partial(_rows, part=part), 0)


def answers(path: File, part: Part, name: str = "") -> FileSource[Answers]:
    """Return the answers that count of a language's questions, without questions that have none; see `questions`."""
    reader = f"xor-answers/1:{part.key}:bench.scoring.kilotokens.counted"  # frozen: where `counted` was once
    return column_source(path, name, reader, partial(_rows, part=part), 1)


def counted(answers: Sequence[str]) -> tuple[str, ...]:
    """Return the answers that count: all but those that are exactly "yes" or "no" ("Yes" stays)."""
    return tuple(answer for answer in answers if answer not in _NOT_COUNTED)


def _rows(path: File, part: Part) -> Iterator[tuple[int, tuple[Item, Answers | None]]]:
    """Stream (line, question and answers) of a language, None for answers that do not count.

    Raises `DataError` at the end if the file holds another number of rows.
    """
    count = 0
    form = Format("question", partial(_question, split=part.split), lambda row: f"question id {row[0].id!r}")
    for line, (question, answers) in records(path, form):
        count += 1
        if question.language == part.language:
            strings = counted(answers)
            yield line, (question, Answers(question.id, strings) if strings else None)
    if part.rows is not None and count != part.rows:
        hint = "this is not the published release: fetch it again"
        raise DataError(str(path), None, f"{count:,} questions", f"{part.rows:,}", hint)


def _question(text: str, *, split: str) -> tuple[Item, tuple[str, ...]]:
    """Parse one row to the question and all its answers. Raises `RecordError`."""
    row = jsonl.json_object(text, _KEYS)
    identity = check_id(jsonl.present(row, "id", "the question id"), "question id")
    if (row_split := jsonl.string(row, "split")) != split:
        raise RecordError(f"a question of split {shown(row_split)}", f"one of {shown(split)}", "this is another file")
    language = jsonl.string(row, "lang").strip()
    if not language:
        raise RecordError('an empty "lang"', "the question's language, e.g. 'ar'")
    answers = answer_strings(jsonl.present(row, "answers", "a list of strings under that key"), '"answers"')
    return Item(identity, jsonl.string(row, "question"), language=language), answers
