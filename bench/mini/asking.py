"""From questions with answers to what a leg takes: queries, and the answers that judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from bench.mini.records import Question
from bench.types import Answers, Item, Source


def queries_of(questions: Source[Question]) -> Source[Item]:
    """Name the questions as queries, in their order."""
    return Source(f"{questions.name}: queries", f"{questions.reader}:queries", (), partial(_items, questions.read))


def answers_of(questions: Source[Question]) -> Source[Answers]:
    """Name the questions' answers, in their order."""
    return Source(f"{questions.name}: answers", f"{questions.reader}:answers", (), partial(_answers, questions.read))


def _items(read: Callable[[], Iterator[Question]]) -> Iterator[Item]:
    for question in read():
        yield Item(question.id, question.text, language=question.language)


def _answers(read: Callable[[], Iterator[Question]]) -> Iterator[Answers]:
    for question in read():
        yield Answers(question.id, question.answers)
