"""From what is meant to what is written: a language's words, order, function words, affixes and marks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bench.data.mini.draws import Draws, cumulative_weights
from bench.data.mini.languages import LANGUAGES, Inventory, Language, syllables
from bench.data.mini.latent import Story, Thought
from bench.data.mini.settings import WorldSettings

_NAMES = Inventory(syllables("k x z v th q zh", "a o y ae io"), 2, 3, ("x", "rth", "sk", "lz"))
"""Names sound like no language of the world; they are written in Latin letters everywhere."""

_QUESTION_WORDS = 3


@dataclass(frozen=True)
class Lexicon:
    """The words of one language."""

    language: Language
    # by concept number (topic × concepts + place in the ring), the most frequent word first
    content: tuple[tuple[str, ...], ...]
    function: tuple[str, ...]  # the most frequent first
    asking: tuple[str, ...]  # question words

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
    taken_forms: set[str] = set()
    tokens: list[str] = []
    for _ in range(settings.topics):
        tokens += [_new(_NAMES, draws, taken_forms).capitalize() for _ in range(settings.names)]
        for _ in range(settings.numerals):
            while (numeral := str(draws.between(1100, 9899))) in taken_forms:
                pass
            taken_forms.add(numeral)
            tokens.append(numeral)
    return tuple(tokens)


@lru_cache(maxsize=96)
def lexicon(settings: WorldSettings, code: str) -> Lexicon:
    """Make the words of a language. No two words of the world agree in any form, but for the shared tokens."""
    language = LANGUAGES[code]
    related = [related_code for related_code, candidate in LANGUAGES.items() if candidate.scripts == language.scripts]
    taken_forms = {token.lower() for token in shared(settings)} | _forms(
        settings, tuple(related[: related.index(code)])
    )
    draws = Draws(settings.seed, "lexicon", code)
    function = tuple(_new(language.function, draws, taken_forms) for _ in range(settings.function_words))
    asking = tuple(_new(language.function, draws, taken_forms) for _ in range(_QUESTION_WORDS))
    content = tuple(
        tuple(_new(draws.pick(language.content), draws, taken_forms, language) for _ in range(settings.synonyms))
        for _ in range(settings.topics * settings.concepts)
    )
    return Lexicon(language, content, function, asking)


@lru_cache(maxsize=96)
def _forms(settings: WorldSettings, codes: tuple[str, ...]) -> frozenset[str]:
    """Return the words of several languages."""
    return frozenset().union(*(lexicon(settings, code).forms() for code in codes))


def _new(inventory: Inventory, draws: Draws, taken_forms: set[str], language: Language | None = None) -> str:
    """Draw a word none of whose forms is taken, and take them; after many failures words grow longer."""
    tries = 0
    while True:
        length = draws.between(inventory.fewest, inventory.most) + tries // 50
        word = "".join(draws.pick(inventory.syllables) for _ in range(length)) + draws.pick(inventory.codas)
        forms: Collection[str] = inflected(word, language) if language else (word,)
        if taken_forms.isdisjoint(forms):
            taken_forms.update(forms)
            return word
        tries += 1


_FUNCTION_RATE = 0.45


class Writer:
    """Writes one language, by its code."""

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
        """Write the parts of a sentence in the language's order; those that hold a name hold its concept, too.

        With capitals a function word comes first, so that no content word is met in two spellings.
        """
        phrases: list[str] = []
        subject, verb, objects = [0], [1][: len(thought.concepts) - 1], list(range(2, len(thought.concepts)))
        orders = {"svo": subject + verb + objects, "sov": subject + objects + verb, "vso": verb + subject + objects}
        for place in orders[self._language.order]:
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
        """Join phrases; where words are not parted, blanks still surround what is shared by all languages."""
        if not self._language.spaced:
            return "".join(f"{phrase} " if " " in phrase else phrase for phrase in phrases).rstrip()
        text = " ".join(phrases)
        return text[0].upper() + text[1:] if self._language.capital else text


@lru_cache(maxsize=96)
def writer(settings: WorldSettings, code: str) -> Writer:
    """Return the writer of a language; one is kept for each."""
    return Writer(settings, code)
