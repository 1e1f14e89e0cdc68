"""What texts say, before any language says it: topics, and scenes that move along a topic's ring of concepts."""

from __future__ import annotations

from dataclasses import dataclass

from bench.data.mini.draws import Draws
from bench.data.mini.settings import WorldSettings

_MAIN = 0.7
_WINDOW = 4
_STEP = 2
_SAID = (3, 5)
"""Concepts of a thought; a window of two topics has more."""


@dataclass(frozen=True, slots=True)
class Thought:
    """What one sentence says.

    Args:
        concepts: numbers of concepts (topic × concepts + place in the ring), none twice.
        shared: number of the name or numeral next to the first concept; None where there is none.
    """

    concepts: tuple[int, ...]
    shared: int | None = None


@dataclass(frozen=True, slots=True)
class Story:
    """What one text says.

    Args:
        topic: the main topic.
        side: the other topic.
        shared: numbers of the names and numerals that it speaks of, two of the main topic and one of the other.
        thoughts: in order.
    """

    topic: int
    side: int
    shared: tuple[int, ...]
    thoughts: tuple[Thought, ...]


def story(settings: WorldSettings, draws: Draws, length: int, topic: int | None = None) -> Story:
    """Draw a story.

    Args:
        settings: the world's.
        draws: chance.
        length: number of thoughts.
        topic: the main topic; drawn where it is None.
    """
    main = draws.below(settings.topics) if topic is None else topic
    side = (main + draws.between(1, settings.topics - 1)) % settings.topics
    shared = tuple(draw_shared(settings, draws, of) for of in (main, main, side))
    scene = draws.below(settings.concepts)
    thoughts = []
    for _ in range(length):
        scene += draws.below(_STEP)
        thoughts.append(thought(settings, draws, (main, side), scene, shared))
    return Story(main, side, shared, tuple(thoughts if settings.ordered else draws.shuffled(thoughts)))


def thought(
    settings: WorldSettings, draws: Draws, topics: tuple[int, int], scene: int, shared: tuple[int, ...]
) -> Thought:
    """Draw a thought of a scene.

    Args:
        settings: the world's.
        draws: chance.
        topics: the main topic, of which most concepts are, and the other.
        scene: first place of the window on the ring from which concepts are taken; any whole number.
        shared: names and numerals that may come in.
    """
    concepts: dict[int, None] = {}
    size = draws.between(*_SAID)
    while len(concepts) < size:
        topic = topics[0] if draws.chance(_MAIN) else topics[1]
        concepts[topic * settings.concepts + (scene + draws.below(_WINDOW)) % settings.concepts] = None
    named = draws.chance(settings.name_rate)
    return Thought(tuple(concepts), draws.pick(shared) if named else None)


def draw_shared(settings: WorldSettings, draws: Draws, topic: int) -> int:
    """Draw a name or numeral of a topic."""
    per_topic = settings.names + settings.numerals
    return topic * per_topic + draws.below(per_topic)
