"""Records of the world, sources of them, and what a subset takes of questions with answers: queries and answers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from bench.data.mini.settings import VERSION, WorldSettings
from bench.types import Answers, Candidates, Item, Judgement, Source

T = TypeVar("T")


@dataclass(frozen=True)
class Retrieval:
    """Queries, what they search, and judgements."""

    corpus: Source[Item]  # passages
    queries: Source[Item]  # each has a judgement unless its maker says otherwise
    qrels: Source[Judgement]
    candidates: Source[Candidates] | None = None  # what each query is answered among; None: the corpus


@dataclass(frozen=True, slots=True)
class Question:
    """A question that is answered by strings."""

    id: str  # unique in its source
    text: str
    language: str  # ISO 639 code
    answers: tuple[str, ...]  # English strings, any of which answers it; each occurs in a passage as it is


@dataclass(frozen=True)
class Answering:
    """Questions that are answered by strings in English passages."""

    corpus: Source[Item]  # English passages
    questions: Source[Question]  # in one language


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in a text where an entity is spoken of."""

    id: str  # unique in its source
    text: str  # several sentences
    language: str  # ISO 639 code
    sentences: tuple[tuple[int, int], ...]  # [start, end) of each in the text, in characters
    start: int  # first character of the mention
    end: int  # one after its last
    entity: str  # id of the entity


def source(settings: WorldSettings, what: str, read: Callable[..., Iterator[T]], *arguments: Any) -> Source[T]:
    """Return the stream called `what` that `read(settings, *arguments)`, a function of a module, gives."""
    reader = f"mini/{VERSION}:{settings.digest()}:{what.replace(' ', '/')}"
    return Source(f"mini/{what}", reader, (), partial(read, settings, *arguments))


def queries_of(questions: Source[Question]) -> Source[Item]:
    """Return the questions as queries, in their order."""
    return Source(f"{questions.name}: queries", f"{questions.reader}:queries", (), partial(_items, questions))


def answers_of(questions: Source[Question]) -> Source[Answers]:
    """Return the questions' answers, in their order."""
    return Source(f"{questions.name}: answers", f"{questions.reader}:answers", (), partial(_answers, questions))


def _items(questions: Source[Question]) -> Iterator[Item]:
    return (Item(question.id, question.text, language=question.language) for question in questions.read())


def _answers(questions: Source[Question]) -> Iterator[Answers]:
    return (Answers(question.id, question.answers) for question in questions.read())
