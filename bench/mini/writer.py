"""From what is meant to what is written: one language's words, order, function words, affixes and marks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from bench.mini.draws import Draws, cumulative_weights
from bench.mini.languages import Order
from bench.mini.latent import Story, Thought
from bench.mini.lexicon import Lexicon, lexicon, shared
from bench.mini.settings import WorldSettings

_FUNCTION_RATE = 0.45


class Writer:
    """Writes one language.

    Args:
        settings: the world's.
        code: of the language.
    """

    def __init__(self, settings: WorldSettings, code: str) -> None:
        self.lexicon: Lexicon = lexicon(settings, code)
        self._settings = settings
        self._language = self.lexicon.language
        self._shared = shared(settings)
        self._synonyms = cumulative_weights(settings.synonyms, settings.zipf)
        self._function = cumulative_weights(settings.function_words, settings.zipf)

    def sentence(self, thought: Thought, draws: Draws) -> str:
        """Write a sentence."""
        return self.finish(self.phrases(thought, draws))

    def question(self, thought: Thought, draws: Draws) -> str:
        """Write a question with the words of a thought."""
        phrases, asking = self.phrases(thought, draws), draws.pick(self.lexicon.asking)
        before, behind = self._language.question
        return before + self._joined([*phrases, asking] if self._language.postposed else [asking, *phrases]) + behind

    def title(self, story: Story, draws: Draws) -> str:
        """Write a title: two concepts of the story's first thoughts, with a name where these have one."""
        first = story.thoughts[0]
        return self._joined([self._phrase(first, place, draws) for place in range(min(2, len(first.concepts)))])

    def text(self, sentences: Sequence[str]) -> str:
        """Put sentences one behind the other, as the language parts them."""
        return self._language.gap.join(sentences)

    def finish(self, phrases: Sequence[str]) -> str:
        """Make a sentence of phrases."""
        return self._joined(phrases) + self._language.stop

    def phrases(self, thought: Thought, draws: Draws) -> list[str]:
        """Write the parts of a sentence in the language's order; those that hold a name hold its concept beside it.

        Where sentences have capital letters, they begin with a function word, so that no content word is met in two
        spellings.
        """
        phrases: list[str] = []
        for place in _ordered(len(thought.concepts), self._language.order):
            content = self._phrase(thought, place, draws)
            if not draws.chance(_FUNCTION_RATE) and (phrases or not self._language.capital):
                phrases.append(content)
                continue
            little = self.lexicon.function[draws.weighted(self._function)]
            phrases += (content, little) if self._language.postposed else (little, content)
        return phrases

    def word(self, concept: int, draws: Draws) -> str:
        """Choose one of a concept's words, and perhaps an affix."""
        word = self.lexicon.content[concept][draws.weighted(self._synonyms)]
        if not draws.chance(self._settings.inflection):
            return word
        prefixes, suffixes = self._language.prefixes, self._language.suffixes
        which = draws.below(len(prefixes) + len(suffixes))
        return prefixes[which] + word if which < len(prefixes) else word + suffixes[which - len(prefixes)]

    def _phrase(self, thought: Thought, place: int, draws: Draws) -> str:
        """Write one concept; the first has the thought's name or numeral behind it."""
        word = self.word(thought.concepts[place], draws)
        return f"{word} {self._shared[thought.shared]}" if place == 0 and thought.shared is not None else word

    def _joined(self, phrases: Sequence[str]) -> str:
        """Join phrases; where words are not parted, blanks still stand around what is shared by all languages."""
        if not self._language.spaced:
            return "".join(f"{phrase} " if " " in phrase else phrase for phrase in phrases).rstrip()
        text = " ".join(phrases)
        return text[0].upper() + text[1:] if self._language.capital else text


@lru_cache(maxsize=96)
def writer(settings: WorldSettings, code: str) -> Writer:
    """Return the writer of a language; one is kept for each."""
    return Writer(settings, code)


def _ordered(count: int, order: Order) -> list[int]:
    """Return the places of subject, verb and objects in a language's order."""
    subject, verb, objects = [0], [1][: count - 1], list(range(2, count))
    return {"svo": subject + verb + objects, "sov": subject + objects + verb, "vso": verb + subject + objects}[order]
