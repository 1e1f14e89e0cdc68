"""XOR-Retrieve's questions: JSON lines {"id", "question", "lang", "split", "answers"}, all languages in one file.

Conventions: `lang` is read without the white space around it (Arabic questions of the training file say " ar");
answers are English. Which of them count is said by whoever names the source (`bench.scoring.kilotokens.counted` leaves
out "yes" and "no"); a question that has none left is asked by nobody and judged by nobody, but must be there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bench.data import accepted
from bench.data.archive import File
from bench.data.faults import RecordError, shown
from bench.data.jsonl import json_object, present, string
from bench.data.source import FileSource, Format, check_id, numbered_source, records
from bench.errors import DataError
from bench.types import Answers, Item

Counted = Callable[[Sequence[str]], tuple[str, ...]]
"""Answers → those that count."""

_KEYS = ("id", "question", "lang", "split", "answers")


@dataclass(frozen=True)
class Part:
    """What is read of a file.

    Args:
        language: whose questions, e.g. `ar`.
        split: what every row of the file must say, e.g. `dev`.
        rows: how many questions the file must hold in all its languages; None where that is not known.
    """

    language: str
    split: str
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    """One row."""

    item: Item
    answers: tuple[str, ...]


def questions(path: File, part: Part, name: str = "") -> FileSource[Item]:
    """Name the questions of a language, also those whose answers do not count.

    Reading raises `DataError` or `DataFaultsError` for malformed rows, a question id that stands twice, a row of
    another split, or another number of rows than expected.

    Args:
        path: the file; not opened before the source is read.
        part: what is read of it.
        name: what messages call it; the file's name where empty.
    """
    return numbered_source(name or path.name, f"xor-questions/1:{_key(part)}", path, partial(_items, part=part))


def answers(path: File, part: Part, counted: Counted, name: str = "") -> FileSource[Answers]:
    """Name the counted answers of a language's questions; a question that has none is left out.

    Other arguments and errors as in `questions`.

    Args:
        path: the file; not opened before the source is read.
        part: what is read of it.
        counted: the answers of a question → those that count; a function of a module, so that the source can be
            pickled.
        name: what messages call it; the file's name where empty.
    """
    reader = f"xor-answers/1:{_key(part)}:{counted.__module__}.{counted.__qualname__}"
    return numbered_source(name or path.name, reader, path, partial(_answers, part=part, counted=counted))


def _key(part: Part) -> str:
    """Spell what decides which records are read."""
    return f"{part.language}:{part.split}:{'any' if part.rows is None else part.rows}"


def _items(path: File, part: Part) -> Iterator[tuple[int, Item]]:
    """Stream (line, question)."""
    for line, one in _of(path, part):
        yield line, one.item


def _answers(path: File, part: Part, counted: Counted) -> Iterator[tuple[int, Answers]]:
    """Stream (line, counted answers)."""
    for line, one in _of(path, part):
        if strings := counted(one.answers):
            yield line, Answers(one.item.id, strings)


def _of(path: File, part: Part) -> Iterator[tuple[int, _Question]]:
    """Stream (line, question) of a language; raise at the end if the file holds another number of rows."""
    count = 0
    for line, one in records(path, partial(_format, split=part.split)):
        count += 1
        if one.item.language == part.language:
            yield line, one
    if part.rows is not None and count != part.rows:
        hint = "this is not the published release: fetch it again"
        raise DataError(str(path), None, f"{count:,} questions", f"{part.rows:,}", hint)


def _format(_first: str, *, split: str) -> Format[_Question]:
    """Return the format of a split's file."""
    return Format("question", partial(_question, split=split), lambda one: f"question id {one.item.id!r}")


def _question(text: str, *, split: str) -> _Question:
    """Read one row. Raises `RecordError`."""
    row = json_object(text, _KEYS)
    identity = check_id(present(row, "id", "the question id"), "question id")
    if (found := string(row, "split")) != split:
        raise RecordError(f"a question of split {shown(found)}", f"one of {shown(split)}", "this is another file")
    language = string(row, "lang").strip()
    if not language:
        raise RecordError('an empty "lang"', "the question's language, e.g. 'ar'")
    allowed = accepted.strings(present(row, "answers", "a list of strings under that key"), '"answers"')
    return _Question(Item(identity, string(row, "question"), language=language), allowed)
