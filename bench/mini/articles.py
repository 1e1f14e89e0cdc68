"""Articles cut into passages, and what is asked of them: the common ground of all retrieval tasks of the world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.mini.draws import Draws
from bench.mini.latent import Story, Thought, story
from bench.mini.settings import WorldSettings
from bench.mini.writer import writer
from bench.types import Item

_LENGTH = (6, 10)
_ASKED = (3, 4)
_NAMED = 0.4


@dataclass(frozen=True)
class Article:
    """A written story.

    Args:
        id: e.g. `en-12`.
        language: ISO 639 code.
        told: what it says.
        title: of the article and of every passage.
        phrases: of each sentence (see `Writer.phrases`).
        sentences: as they are written.
        window: sentences of a passage; the last one of a passage is the first one of the next.
    """

    id: str
    language: str
    told: Story
    title: str
    phrases: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]
    window: int

    def starts(self) -> range:
        """Return the first sentence of every passage."""
        return range(0, len(self.sentences) - 1, self.window - 1)

    def holding(self, sentence: int) -> list[int]:
        """Return the numbers of the passages that hold a sentence: one, or two where it is shared."""
        return [number for number, start in enumerate(self.starts()) if start <= sentence < start + self.window]

    def passage_id(self, number: int) -> str:
        """Return the id of a passage, e.g. `en-12#0`."""
        return f"{self.id}#{number}"

    def passages(self, settings: WorldSettings) -> list[Item]:
        """Return the passages."""
        write = writer(settings, self.language)
        return [
            Item(
                self.passage_id(number),
                write.text(self.sentences[start : start + self.window]),
                self.title,
                self.language,
            )
            for number, start in enumerate(self.starts())
        ]


def article(
    settings: WorldSettings, kind: str, language: str, number: int, *, window: int = 4, topic: int | None = None
) -> Article:
    """Write one article.

    Args:
        settings: the world's.
        kind: articles of different kinds have nothing to do with each other.
        language: ISO 639 code.
        number: from 0.
        window: sentences of a passage.
        topic: the main topic; drawn where it is None.
    """
    write, draws = writer(settings, language), Draws(settings.seed, "article", kind, language, number)
    told = story(settings, draws, draws.between(*_LENGTH), topic)
    phrases = tuple(tuple(write.phrases(thought, draws)) for thought in told.thoughts)
    title = write.title(told, draws)
    sentences = tuple(write.finish(parts) for parts in phrases)
    return Article(f"{language}-{number}", language, told, title, phrases, sentences, window)


def places(settings: WorldSettings, kind: str, language: str, told: Sequence[Article]) -> list[tuple[int, int]]:
    """Return every (article, sentence) once, in random order: where questions come from."""
    everywhere = [(at, sentence) for at, one in enumerate(told) for sentence in range(len(one.sentences))]
    return Draws(settings.seed, "places", kind, language).shuffled(everywhere)


def asked(thought: Thought, draws: Draws) -> Thought:
    """Return what a question takes up of a thought: some of its concepts, seldom its name."""
    concepts = draws.shuffled(thought.concepts)[: draws.between(*_ASKED)]
    return Thought(tuple(concepts), thought.shared if draws.chance(_NAMED) else None)
