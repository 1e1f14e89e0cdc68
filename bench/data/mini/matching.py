"""Texts that match: translated sentences, duplicate questions, mentions of entities (Tatoeba, AskUbuntu, Mewsli-X)."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from bench.data.mini.draws import Draws
from bench.data.mini.languages import LANGUAGES
from bench.data.mini.latent import Thought, story, thought
from bench.data.mini.questions import question_thought
from bench.data.mini.records import Mention, Retrieval, source
from bench.data.mini.settings import DEFAULT, WorldSettings, check
from bench.data.mini.writer import shared, writer
from bench.types import Candidates, Item, Judgement, Source

_NAMED_SENTENCES = 0.2


def bitext(language: str, settings: WorldSettings = DEFAULT) -> tuple[list[str], list[str]]:
    """Return sentences of a language other than `en` and, in the same order, their English translations; none twice.

    As in Tatoeba, the English side differs from language to language. Few sentences hold a name or numeral (a fifth of
    those that would elsewhere), since these could be matched without understanding anything.
    """
    foreign, english = writer(settings, language), writer(settings, "en")
    pairs: dict[str, str] = {}
    number = 0
    while len(pairs) < settings.pairs:
        draws = Draws(settings.seed, "bitext", language, number)
        meaning = story(settings, draws, 1).thoughts[0]
        if not draws.chance(_NAMED_SENTENCES):
            meaning = Thought(meaning.concepts)
        foreign_text, english_text = foreign.sentence(meaning, draws), english.sentence(meaning, draws)
        if foreign_text not in pairs and english_text not in pairs.values():
            pairs[foreign_text] = english_text
        number += 1
    return list(pairs), list(pairs.values())


SPLITS = ("dev", "test")
"""Of duplicate questions and of mentions."""
CANDIDATES = 20
"""Of every query."""

_MOST = 7
_LONELY = 15
_CLUSTERS_PER_QUERY = 4


def duplicates(split: str, settings: WorldSettings = DEFAULT) -> Retrieval:
    """Return queries, questions, judgements and the 20 candidates of each query, in the order of their BM25 scores.

    All duplicates of a query are among them. One query in fifteen has none and so no judgement, as in the release.
    Raises `UsageError` if there is no such split.
    """
    check("split", split, SPLITS)
    return Retrieval(
        source(settings, f"askubuntu/{split} questions", _questions, split),
        source(settings, f"askubuntu/{split} queries", _queries, split),
        source(settings, f"askubuntu/{split} judgements", _judgements, split),
        source(settings, f"askubuntu/{split} candidates", _candidates, split),
    )


@lru_cache(maxsize=8)
def _board(settings: WorldSettings, split: str) -> tuple[Sequence[str], Sequence[tuple[int, ...]]]:
    """Write all questions of a split; return them, and the numbers of those that ask the same for each query."""
    write = writer(settings, "en")
    texts: list[str] = []
    clusters: list[tuple[int, ...]] = []
    for number in range(settings.questions * _CLUSTERS_PER_QUERY):
        draws = Draws(settings.seed, "duplicates", split, number)
        meaning = story(settings, draws, 1).thoughts[0]
        size = 1 if number % _LONELY == _LONELY - 1 else draws.between(2, _MOST)
        clusters.append(tuple(range(len(texts), len(texts) + size)))
        texts += [write.question(question_thought(meaning, draws), draws) for _ in range(size)]
    return texts, clusters[: settings.questions]  # all others are asked by nobody


def _item(split: str, number: int, text: str) -> Item:
    return Item(f"{split}-{number}", text, language="en")


def _questions(settings: WorldSettings, split: str) -> Iterator[Item]:
    for number, text in enumerate(_board(settings, split)[0]):
        yield _item(split, number, text)


def _queries(settings: WorldSettings, split: str) -> Iterator[Item]:
    texts, clusters = _board(settings, split)
    for query, *_ in clusters:
        yield _item(split, query, texts[query])


def _judgements(settings: WorldSettings, split: str) -> Iterator[Judgement]:
    for query, *duplicates_of_query in _board(settings, split)[1]:
        for duplicate in duplicates_of_query:
            yield Judgement(f"{split}-{query}", f"{split}-{duplicate}", 1)


def _candidates(settings: WorldSettings, split: str) -> Iterator[Candidates]:
    """Yield all duplicates of each query and the best of the other questions, by score."""
    questions, clusters = _board(settings, split)
    texts = [re.findall(r"\w+", text.lower()) for text in questions]
    index = _BM25(texts)
    for query, *duplicates_of_query in clusters:
        scores = index.scores(texts[query])
        best = sorted((number for number in range(len(texts)) if number != query), key=lambda at: (-scores[at], at))
        selected = set(duplicates_of_query)
        selected.update([at for at in best if at not in selected][: CANDIDATES - len(duplicates_of_query)])
        listed = [at for at in best if at in selected]
        names = tuple(f"{split}-{at}" for at in listed)
        yield Candidates(f"{split}-{query}", names, tuple(scores[at] for at in listed))


class _BM25:
    """BM25 (k1 1.2, b 0.75, idf after Lucene) over the words of short texts."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        self._postings: dict[str, list[tuple[int, float]]] = {}
        mean = sum(map(len, texts)) / len(texts)
        for number, words in enumerate(texts):
            for word, count in Counter(words).items():
                weight = count / (count + 1.2 * (0.25 + 0.75 * len(words) / mean))
                self._postings.setdefault(word, []).append((number, weight))
        self._size = len(texts)

    def scores(self, words: Sequence[str]) -> list[float]:
        """Return the score of every text, rounded so that no platform's logarithm can change the order."""
        scores = [0.0] * self._size
        for word in words:
            postings = self._postings.get(word, [])
            idf = math.log(1 + (self._size - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, weight in postings:
                scores[number] += idf * weight
        return [round(score, 6) for score in scores]


_SENSES = 2
"""Entities of one name; they are at home on opposite sides of their topic's ring."""

_NAMED_MENTIONS = 0.5
_DESCRIBED = (2, 3)
_CONTEXT = 3


def entities(settings: WorldSettings = DEFAULT) -> Source[Item]:
    """Return the pool: entities with ids like `Q12`, a name as the title, and a description in one language each."""
    return source(settings, "mewsli-x entities", _entities)


def mentions(language: str, split: str, settings: WorldSettings = DEFAULT) -> Source[Mention]:
    """Return mentions: half spell the entity's name, half say what it is. Raises `UsageError` for an unknown split."""
    check("language of the mini world", language, LANGUAGES)
    check("split", split, SPLITS)
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
    """Write three sentences each time, and mention an entity in the middle one."""
    write = writer(settings, language)
    for number in range(settings.questions):
        draws = Draws(settings.seed, "mention", language, split, number)
        entity = draws.below(len(_names(settings)) * _SENSES)
        before, middle, behind = (_said_of(settings, draws, entity) for _ in range(_CONTEXT))
        shared_name, topic, scene = _home(settings, entity)
        if draws.chance(_NAMED_MENTIONS):
            surface = shared(settings)[shared_name]
            sentence = write.sentence(Thought(middle.concepts, shared_name), draws)
        else:  # the last word says what it is
            surface = write.word(topic * settings.concepts + scene % settings.concepts, draws)
            sentence = write.finish([*write.phrases(middle, draws), surface])
        sentences = [write.sentence(before, draws), sentence, write.sentence(behind, draws)]
        text = write.text(sentences)
        spans = _spans(text, sentences)
        start, name = text.rindex(surface, *spans[1]), f"{language}-{split}-{number}"
        yield Mention(name, text, language, spans, start, start + len(surface), f"Q{entity}")


def _spans(text: str, sentences: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Return [start, end) of sentences that follow one another in a text."""
    spans: list[tuple[int, int]] = []
    for sentence in sentences:
        start = text.index(sentence, spans[-1][1] if spans else 0)
        spans.append((start, start + len(sentence)))
    return tuple(spans)
