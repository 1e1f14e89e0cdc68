"""The words of a language: which concept they stand for, and which tokens all languages share."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from bench.mini.draws import Draws
from bench.mini.languages import LANGUAGES, Inventory, Language
from bench.mini.settings import WorldSettings

_NAMES = Inventory(
    tuple(
        onset + nucleus for onset in ("k", "x", "z", "v", "th", "q", "zh") for nucleus in ("a", "o", "y", "ae", "io")
    ),
    2,
    3,
    ("x", "rth", "sk", "lz"),
)
"""Names sound like no language of the world; they are written in Latin letters everywhere."""

_QUESTION_WORDS = 3


@dataclass(frozen=True)
class Lexicon:
    """The words of one language.

    Args:
        language: the language.
        content: words by concept number (topic × concepts + place in the ring), the most frequent first.
        function: function words, the most frequent first.
        asking: question words.
    """

    language: Language
    content: tuple[tuple[str, ...], ...]
    function: tuple[str, ...]
    asking: tuple[str, ...]

    def forms(self) -> set[str]:
        """Return every word in every form, in small letters."""
        words = {form for group in self.content for word in group for form in inflected(word, self.language)}
        return words | set(self.function) | set(self.asking)


def inflected(word: str, language: Language) -> tuple[str, ...]:
    """Return a word bare, with every prefix and with every suffix."""
    return (word, *(prefix + word for prefix in language.prefixes), *(word + suffix for suffix in language.suffixes))


@lru_cache(maxsize=16)
def shared(settings: WorldSettings) -> tuple[str, ...]:
    """Return the tokens that all languages share, topic by topic: its names, then its numerals."""
    draws = Draws(settings.seed, "shared")
    taken: set[str] = set()
    tokens: list[str] = []
    for _ in range(settings.topics):
        tokens += [_new(_NAMES, draws, taken).capitalize() for _ in range(settings.names)]
        tokens += [_numeral(draws, taken) for _ in range(settings.numerals)]
    return tuple(tokens)


@lru_cache(maxsize=96)
def lexicon(settings: WorldSettings, code: str) -> Lexicon:
    """Make the words of a language. No two words of the world agree in any form, but for the shared tokens.

    Args:
        settings: the world's.
        code: of the language.
    """
    language = LANGUAGES[code]
    taken = {token.lower() for token in shared(settings)} | _words_before(settings, language)
    draws = Draws(settings.seed, "lexicon", code)
    function = tuple(_new(language.function, draws, taken) for _ in range(settings.function_words))
    asking = tuple(_new(language.function, draws, taken) for _ in range(_QUESTION_WORDS))
    content = tuple(
        tuple(_new(draws.pick(language.content), draws, taken, language) for _ in range(settings.synonyms))
        for _ in range(settings.topics * settings.concepts)
    )
    return Lexicon(language, content, function, asking)


def _words_before(settings: WorldSettings, language: Language) -> frozenset[str]:
    """Return the words of the language before this one in the same script, and of all before that."""
    codes = [code for code, other in LANGUAGES.items() if other.scripts == language.scripts]
    return _forms(settings, tuple(codes[: codes.index(language.code)]))


@lru_cache(maxsize=96)
def _forms(settings: WorldSettings, codes: tuple[str, ...]) -> frozenset[str]:
    """Return the words of several languages."""
    return frozenset().union(*(lexicon(settings, code).forms() for code in codes))


def _new(inventory: Inventory, draws: Draws, taken: set[str], language: Language | None = None) -> str:
    """Draw a word none of whose forms is taken, and take them; after many failures words grow longer."""
    tries = 0
    while True:
        length = draws.between(inventory.fewest, inventory.most) + tries // 50
        word = "".join(draws.pick(inventory.syllables) for _ in range(length)) + draws.pick(inventory.codas)
        forms: Collection[str] = inflected(word, language) if language else (word,)
        if taken.isdisjoint(forms):
            taken.update(forms)
            return word
        tries += 1


def _numeral(draws: Draws, taken: set[str]) -> str:
    """Draw a new numeral of four digits, like a year."""
    while (numeral := str(draws.between(1100, 9899))) in taken:
        pass
    taken.add(numeral)
    return numeral
