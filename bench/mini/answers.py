"""Questions in one language, answers in another: XOR-Retrieve, MKQA and LAReQA in miniature."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from bench.errors import UsageError
from bench.mini.articles import Article, article, asked, places
from bench.mini.draws import Draws
from bench.mini.languages import LANGUAGES
from bench.mini.latent import Thought, story
from bench.mini.records import Answering, Question, Retrieval, source
from bench.mini.settings import DEFAULT, WorldSettings
from bench.mini.writer import writer
from bench.types import Item, Judgement
from bench.wording import unknown

SENTENCE_LANGUAGES = ("ar", "de", "en", "es", "ru", "th")
"""Languages of the sentence answers: those of XQuAD-R that the world speaks."""

_XOR, _MKQA, _LAREQA = "xor-retrieve", "mkqa", "lareqa"
_PARAGRAPHS = 4
"""Of the LAReQA miniature, one for so many articles of a pool."""


def cross_lingual(language: str, settings: WorldSettings = DEFAULT) -> Answering:
    """Name questions of a language that are answered in English passages; each language has its own questions.

    An answer is a name or numeral with the word before it. The question holds neither.
    """
    return _answering(_XOR, language, language, settings)


def mkqa(language: str, settings: WorldSettings = DEFAULT) -> Answering:
    """Name the questions of a language over another pool of English passages; all languages ask the same."""
    return _answering(_MKQA, language, "", settings)


def sentence_answers(language: str, settings: WorldSettings = DEFAULT) -> Retrieval:
    """Name questions of a language and the sentences of all languages that answer them, in one pool.

    A question has one answer in every language of `SENTENCE_LANGUAGES`, its own included. A candidate is the sentence
    (`title`) with its paragraph (`text`); ids are like `en_12_3` (paragraph from 1, sentence from 0), question ids like
    `7_en`.

    Raises:
        UsageError: there are no questions in that language.
    """
    if language not in SENTENCE_LANGUAGES:
        raise UsageError(unknown("language of mini/lareqa", language, SENTENCE_LANGUAGES))
    return Retrieval(
        source(settings, f"{_LAREQA} candidates", _candidates),
        source(settings, f"{_LAREQA}/{language} questions", _sentence_questions, language),
        source(settings, f"{_LAREQA}/{language} judgements", _sentence_judgements, language),
    )


def _answering(kind: str, language: str, choice: str, settings: WorldSettings) -> Answering:
    if language not in LANGUAGES:
        raise UsageError(unknown("language of the mini world", language, tuple(LANGUAGES)))
    return Answering(
        source(settings, f"{kind} passages", _english_passages, kind),
        source(settings, f"{kind}/{language} questions", _questions, kind, language, choice),
    )


@lru_cache(maxsize=4)
def _english(settings: WorldSettings, kind: str) -> tuple[Article, ...]:
    return tuple(article(settings, kind, "en", number) for number in range(settings.articles))


def _english_passages(settings: WorldSettings, kind: str) -> Iterator[Item]:
    for one in _english(settings, kind):
        yield from one.passages(settings)


def _questions(settings: WorldSettings, kind: str, language: str, choice: str) -> Iterator[Question]:
    """Ask for what stands beside a name in an English sentence.

    Args:
        settings: the world's.
        kind: the pool.
        language: of the questions.
        choice: decides which sentences are asked for.
    """
    told, write = _english(settings, kind), writer(settings, language)
    answered = [
        (at, sentence)
        for at, sentence in places(settings, f"{kind}{choice}", "en", told)
        if told[at].told.thoughts[sentence].shared is not None
    ]
    for number, (at, sentence) in enumerate(answered[: settings.questions]):
        thought = told[at].told.thoughts[sentence]
        draws = Draws(settings.seed, "answer", kind, language, number)
        said = Thought(tuple(draws.shuffled(thought.concepts[1:])))
        yield Question(
            f"{language}-{number}", write.question(said, draws), language, (_answer(told[at].phrases[sentence]),)
        )


def _answer(phrases: tuple[str, ...]) -> str:
    """Return the phrase that holds the name: the only one of two words. No sentence begins with it."""
    return next(phrase for phrase in phrases if " " in phrase)


def _paragraph(settings: WorldSettings, language: str, number: int) -> list[str]:
    """Write the same paragraph in any language: what is said depends on its number alone."""
    draws, write = Draws(settings.seed, "paragraph", language, number), writer(settings, language)
    return [write.sentence(thought, draws) for thought in _thoughts(settings, number)]


@lru_cache(maxsize=512)
def _thoughts(settings: WorldSettings, number: int) -> tuple[Thought, ...]:
    draws = Draws(settings.seed, "paragraph", number)
    return story(settings, draws, draws.between(4, 7)).thoughts


def _paragraphs(settings: WorldSettings) -> range:
    return range(max(1, settings.articles // _PARAGRAPHS))


def _candidates(settings: WorldSettings) -> Iterator[Item]:
    for language in SENTENCE_LANGUAGES:
        for number in _paragraphs(settings):
            sentences = _paragraph(settings, language, number)
            context = writer(settings, language).text(sentences)
            for place, sentence in enumerate(sentences):
                yield Item(f"{language}_{number + 1}_{place}", context, sentence, language)


def _sentence_places(settings: WorldSettings) -> list[tuple[int, int]]:
    everywhere = [
        (number, place) for number in _paragraphs(settings) for place in range(len(_thoughts(settings, number)))
    ]
    return Draws(settings.seed, "places", _LAREQA).shuffled(everywhere)[: settings.questions]


def _sentence_questions(settings: WorldSettings, language: str) -> Iterator[Item]:
    for question, (number, place) in enumerate(_sentence_places(settings)):
        draws = Draws(settings.seed, "sentence-question", language, question)
        text = writer(settings, language).question(asked(_thoughts(settings, number)[place], draws), draws)
        yield Item(f"{question}_{language}", text, language=language)


def _sentence_judgements(settings: WorldSettings, language: str) -> Iterator[Judgement]:
    for question, (number, place) in enumerate(_sentence_places(settings)):
        for answer in SENTENCE_LANGUAGES:
            yield Judgement(f"{question}_{language}", f"{answer}_{number + 1}_{place}", 1)
