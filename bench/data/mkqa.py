"""MKQA's questions and their English answers: JSON lines {"example_id", "queries": {language}, "answers": {"en": […]}}.

Conventions: only the English answers decide, whatever the language of the question. A question is kept if the last of
them is of a type that a passage can hold (not `unanswerable`, `binary` or `long_answer`); accepted are, answer by
answer, the aliases and then the text of those of such a type. Source: Contriever's `preprocess_xmkqa.py`. A question
without any English answer, where that script decides by the question before, is left out: nothing answers it. The
release has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.data import accepted
from bench.data.archive import File
from bench.data.faults import RecordError, shown
from bench.data.jsonl import json_object, present, string
from bench.data.nested import inner, members, objects, text
from bench.data.source import FileSource, Format, check_id, numbered_source, records
from bench.types import Answers, Item

NOT_KEPT = ("unanswerable", "binary", "long_answer")
"""Types of answers that no passage is searched for."""

KEPT = ("entity", "date", "number", "number_with_unit", "short_phrase")
"""The other types."""


@dataclass(frozen=True, slots=True)
class _Question:
    """One row.

    Args:
        id: of the question.
        text: in the language asked for; empty where none is.
        answers: accepted ones; empty for a question that is not kept.
    """

    id: str
    text: str
    answers: tuple[str, ...]


def questions_source(path: File, language: str, name: str = "") -> FileSource[Item]:
    """Name the kept questions in a language.

    Reading raises `DataError` or `DataFaultsError` for malformed rows, of questions that are not kept too, and for an
    id that stands twice.

    Args:
        path: the file, plain or compressed; not opened before the source is read.
        language: as MKQA calls it, e.g. `sv` or `zh_cn`; items say the part before `_`.
        name: what messages call it; the file's name where empty.
    """
    return numbered_source(name or path.name, f"mkqa-questions/1:{language}", path, partial(_items, language=language))


def answers_source(path: File, name: str = "") -> FileSource[Answers]:
    """Name the accepted answers of the kept questions, the same for all languages; see `questions_source`."""
    return numbered_source(name or path.name, "mkqa-answers/1", path, _answers)


def _items(path: File, language: str) -> Iterator[tuple[int, Item]]:
    """Stream (line, question)."""
    spoken = language.partition("_")[0]
    for line, one in _kept(path, language):
        yield line, Item(one.id, one.text, language=spoken)


def _answers(path: File) -> Iterator[tuple[int, Answers]]:
    """Stream (line, answers)."""
    for line, one in _kept(path, ""):
        yield line, Answers(one.id, one.answers)


def _kept(path: File, language: str) -> Iterator[tuple[int, _Question]]:
    """Stream (line, row) of the questions that are kept."""
    for line, one in records(path, partial(_format, language=language)):
        if one.answers:
            yield line, one


def _format(_first: str, *, language: str) -> Format[_Question]:
    """Return the format of the file."""
    return Format("question", partial(_question, language=language), lambda one: f"question id {one.id!r}")


def _question(line: str, *, language: str) -> _Question:
    """Read one row. Raises `RecordError`."""
    row = json_object(line, ("example_id", "queries", "answers"))
    identity = check_id(present(row, "example_id", "the question id"), "question id")
    asked = text(inner(row, "queries"), language) if language else ""
    return _Question(identity, asked, _accepted(objects(inner(row, "answers"), "en")))


def _accepted(answers: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the accepted strings of the English answers, none if the question is not kept. Raises `RecordError`."""
    strings: list[Any] = []
    may_be_held = [_may_be_held(answer) for answer in answers]
    for answer, held in zip(answers, may_be_held, strict=True):
        if held:
            aliases = members(answer, "aliases") if "aliases" in answer else []
            strings += [*aliases, string(answer, "text")]
    found = accepted.strings(strings, "an English answer's aliases and text") if strings else ()
    return found if may_be_held and may_be_held[-1] else ()


def _may_be_held(answer: dict[str, Any]) -> bool:
    """Tell whether a passage can hold an answer, by its type. Raises `RecordError`."""
    kind = string(answer, "type")
    if kind not in KEPT and kind not in NOT_KEPT:
        raise RecordError(f'an English answer of "type" {shown(kind)}', f"one of {', '.join((*KEPT, *NOT_KEPT))}")
    return kind in KEPT
