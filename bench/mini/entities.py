"""Mentions of entities in many languages and the entities' descriptions, each in one: Mewsli-X in miniature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.errors import UsageError
from bench.mini.draws import Draws
from bench.mini.languages import LANGUAGES
from bench.mini.latent import Thought, thought
from bench.mini.lexicon import shared
from bench.mini.records import Mention, source
from bench.mini.settings import DEFAULT, WorldSettings
from bench.mini.writer import Writer, writer
from bench.types import Item, Source
from bench.wording import unknown

SPLITS = ("dev", "test")

_SENSES = 2
"""Entities of one name; they are at home on opposite sides of their topic's ring."""

_NAMED = 0.5
_DESCRIBED = (2, 3)
_CONTEXT = 3


def entities(settings: WorldSettings = DEFAULT) -> Source[Item]:
    """Name the pool: entities with ids like `Q12`, a name as the title, and a description in one language each."""
    return source(settings, "mewsli-x entities", _entities)


def mentions(language: str, split: str, settings: WorldSettings = DEFAULT) -> Source[Mention]:
    """Name mentions in texts of a language: half of them spell the entity's name, half use a word for what it is.

    Raises:
        UsageError: there is no such language or split.
    """
    if language not in LANGUAGES:
        raise UsageError(unknown("language of the mini world", language, tuple(LANGUAGES)))
    if split not in SPLITS:
        raise UsageError(unknown("split", split, SPLITS))
    return source(settings, f"mewsli-x/{language} mentions {split}", _mentions, language, split)


def _names(settings: WorldSettings) -> list[int]:
    """Return the numbers of the names among the shared tokens."""
    per_topic = settings.names + settings.numerals
    return [number for number in range(settings.topics * per_topic) if number % per_topic < settings.names]


def _home(settings: WorldSettings, entity: int) -> tuple[int, int, int]:
    """Return an entity's name, topic, and the scene where it is at home."""
    name = _names(settings)[entity // _SENSES]
    topic = name // (settings.names + settings.numerals)
    scene = Draws(settings.seed, "entity", entity // _SENSES).below(settings.concepts)
    return name, topic, scene + (entity % _SENSES) * settings.concepts // _SENSES


def _said_of(settings: WorldSettings, draws: Draws, entity: int) -> Thought:
    """Say something of an entity's scene, without names."""
    _, topic, scene = _home(settings, entity)
    side = (topic + draws.between(1, settings.topics - 1)) % settings.topics
    return Thought(thought(settings, draws, (topic, side), scene, (0,)).concepts)


def _entities(settings: WorldSettings) -> Iterator[Item]:
    codes = tuple(LANGUAGES)
    for entity in range(len(_names(settings)) * _SENSES):
        draws = Draws(settings.seed, "description", entity)
        language = draws.pick(codes)
        write = writer(settings, language)
        sentences = [
            write.sentence(_said_of(settings, draws, entity), draws) for _ in range(draws.between(*_DESCRIBED))
        ]
        yield Item(f"Q{entity}", write.text(sentences), shared(settings)[_home(settings, entity)[0]], language)


def _mentions(settings: WorldSettings, language: str, split: str) -> Iterator[Mention]:
    for number in range(settings.questions):
        draws = Draws(settings.seed, "mention", language, split, number)
        yield _mention(settings, draws, language, f"{language}-{split}-{number}")


def _mention(settings: WorldSettings, draws: Draws, language: str, identity: str) -> Mention:
    """Write three sentences and mention an entity in the middle one."""
    write = writer(settings, language)
    entity = draws.below(len(_names(settings)) * _SENSES)
    before, middle, behind = (_said_of(settings, draws, entity) for _ in range(_CONTEXT))
    sentence, surface = _mentioning(settings, draws, write, entity, middle)
    sentences = [write.sentence(before, draws), sentence, write.sentence(behind, draws)]
    text = write.text(sentences)
    spans = _spans(text, sentences)
    start = text.rindex(surface, *spans[1])
    return Mention(identity, text, language, spans, start, start + len(surface), f"Q{entity}")


def _mentioning(settings: WorldSettings, draws: Draws, write: Writer, entity: int, said: Thought) -> tuple[str, str]:
    """Write a sentence with a mention, and return the mention too: the name, or as the last word what it is."""
    name, topic, scene = _home(settings, entity)
    if draws.chance(_NAMED):
        return write.sentence(Thought(said.concepts, name), draws), shared(settings)[name]
    surface = write.word(topic * settings.concepts + scene % settings.concepts, draws)
    return write.finish([*write.phrases(said, draws), surface]), surface


def _spans(text: str, sentences: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Return [start, end) of sentences that stand in a text in this order."""
    spans: list[tuple[int, int]] = []
    for sentence in sentences:
        start = text.index(sentence, spans[-1][1] if spans else 0)
        spans.append((start, start + len(sentence)))
    return tuple(spans)
