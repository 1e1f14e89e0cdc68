"""Sentences that say the same in two languages: Tatoeba in miniature."""

from __future__ import annotations

from bench.mini.draws import Draws
from bench.mini.latent import Thought, story
from bench.mini.settings import DEFAULT, WorldSettings
from bench.mini.writer import writer

_NAMED = 0.2


def bitext(language: str, settings: WorldSettings = DEFAULT) -> tuple[list[str], list[str]]:
    """Return sentences of a language and, in the same order, English ones that say the same; none stands twice.

    As in Tatoeba, the English side differs from language to language. Few sentences hold a name or numeral (a fifth of
    those that would elsewhere), since whoever matched these would need to understand nothing.

    Args:
        language: ISO 639 code, not `en`.
        settings: the world's.
    """
    foreign, english = writer(settings, language), writer(settings, "en")
    pairs: dict[str, str] = {}
    number = 0
    while len(pairs) < settings.pairs:
        draws = Draws(settings.seed, "bitext", language, number)
        said = story(settings, draws, 1).thoughts[0]
        if not draws.chance(_NAMED):
            said = Thought(said.concepts)
        left, right = foreign.sentence(said, draws), english.sentence(said, draws)
        if left not in pairs and right not in pairs.values():
            pairs[left] = right
        number += 1
    return list(pairs), list(pairs.values())
