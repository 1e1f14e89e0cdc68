"""What texts say, before any language says it: topics, and scenes that move along a topic's ring of concepts."""

from dataclasses import dataclass

from bench.data.mini.draws import Draws
from bench.data.mini.settings import WorldSettings

_MAIN = 0.7
_WINDOW = 4
_STEP = 2
_CONCEPTS_OF_THOUGHT = (3, 5)
"""Concepts of a thought; a window of two topics has more."""


@dataclass(frozen=True, slots=True)
class Thought:
    """What one sentence says."""

    concepts: tuple[int, ...]  # numbers (topic × concepts + place in the ring), none twice
    shared: int | None = None  # number of the name or numeral next to the first concept


@dataclass(frozen=True, slots=True)
class Story:
    """What one text says."""

    topic: int  # the main one
    side: int  # the other one
    shared: tuple[int, ...]  # names and numerals that it speaks of, two of the main topic and one of the other
    thoughts: tuple[Thought, ...]  # in order


def story(settings: WorldSettings, draws: Draws, length: int, topic: int | None = None) -> Story:
    """Draw a story of `length` thoughts; its main topic is drawn too where `topic` is None."""
    main = draws.below(settings.topics) if topic is None else topic
    side = (main + draws.between(1, settings.topics - 1)) % settings.topics
    per_topic = settings.names + settings.numerals
    shared = tuple(of * per_topic + draws.below(per_topic) for of in (main, main, side))
    scene = draws.below(settings.concepts)
    thoughts = []
    for _ in range(length):
        scene += draws.below(_STEP)
        thoughts.append(thought(settings, draws, (main, side), scene, shared))
    return Story(main, side, shared, tuple(thoughts if settings.ordered else draws.shuffled(thoughts)))


def thought(
    settings: WorldSettings, draws: Draws, topics: tuple[int, int], scene: int, shared: tuple[int, ...]
) -> Thought:
    """Draw a thought of a scene, most of it of the first topic; `shared` are the names and numerals it may hold."""
    concepts: dict[int, None] = {}
    size = draws.between(*_CONCEPTS_OF_THOUGHT)
    while len(concepts) < size:
        topic = topics[0] if draws.chance(_MAIN) else topics[1]
        concepts[topic * settings.concepts + (scene + draws.below(_WINDOW)) % settings.concepts] = None
    has_name = draws.chance(settings.name_rate)
    return Thought(tuple(concepts), draws.pick(shared) if has_name else None)
