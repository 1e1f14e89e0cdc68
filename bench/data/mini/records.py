"""Records of the world, sources of them, and what a leg takes of questions with answers: queries and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from bench.data.mini.settings import VERSION, WorldSettings
from bench.types import Answers, Candidates, Item, Judgement, Source

T = TypeVar("T")


@dataclass(frozen=True)
class Retrieval:
    """Queries, what they search, and judgements.

    Args:
        corpus: passages.
        queries: queries; each has a judgement unless its maker says otherwise.
        qrels: judgements.
        candidates: what each query is answered among, None where it is the whole corpus.
    """

    corpus: Source[Item]
    queries: Source[Item]
    qrels: Source[Judgement]
    candidates: Source[Candidates] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question that is answered by strings.

    Args:
        id: unique in its source.
        text: in the question's language.
        language: ISO 639 code.
        answers: English strings, any of which answers it; each occurs in a passage as it is written here.
    """

    id: str
    text: str
    language: str
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Answering:
    """Questions that are answered by strings in English passages.

    Args:
        corpus: English passages.
        questions: in one language.
    """

    corpus: Source[Item]
    questions: Source[Question]


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in a text where an entity is spoken of.

    Args:
        id: unique in its source.
        text: several sentences.
        language: ISO 639 code.
        sentences: [start, end) of each sentence in the text, in characters.
        start: first character of the mention.
        end: one behind its last.
        entity: id of the entity.
    """

    id: str
    text: str
    language: str
    sentences: tuple[tuple[int, int], ...]
    start: int
    end: int
    entity: str


def source(settings: WorldSettings, what: str, read: Callable[..., Iterator[T]], *arguments: Any) -> Source[T]:
    """Return a stream of the world.

    Args:
        settings: the world's, the first argument of `read`.
        what: which stream, e.g. `mrtydi/en passages`.
        read: a function of a module, so that the source can be pickled.
        *arguments: the other arguments of `read`.
    """
    reader = f"mini/{VERSION}:{settings.digest()}:{what.replace(' ', '/')}"
    return Source(f"mini/{what}", reader, (), partial(read, settings, *arguments))


def queries_of(questions: Source[Question]) -> Source[Item]:
    """Return the questions as queries, in their order."""
    return Source(f"{questions.name}: queries", f"{questions.reader}:queries", (), partial(_items, questions))


def answers_of(questions: Source[Question]) -> Source[Answers]:
    """Return the questions' answers, in their order."""
    return Source(f"{questions.name}: answers", f"{questions.reader}:answers", (), partial(_answers, questions))


def _items(questions: Source[Question]) -> Iterator[Item]:
    return (Item(one.id, one.text, language=one.language) for one in questions.read())


def _answers(questions: Source[Question]) -> Iterator[Answers]:
    return (Answers(one.id, one.answers) for one in questions.read())
