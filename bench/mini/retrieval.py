"""Questions and passages of one language: Mr. TyDi and BEIR in miniature, and pairs for tuning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from bench.errors import UsageError
from bench.mini.articles import Article, article, asked, places
from bench.mini.draws import Draws
from bench.mini.records import Retrieval, source
from bench.mini.settings import DEFAULT, WorldSettings
from bench.mini.writer import writer
from bench.types import Item, Judgement, Source, TrainingPair
from bench.wording import unknown

SPLITS = ("train", "dev", "test")
"""Of the questions of a language; no sentence is asked for twice."""

_POOL = "mrtydi"
_ENGLISH = "english-pairs"


@dataclass(frozen=True)
class Domain:
    """An English domain of the BEIR miniature.

    Args:
        third: which third of the topics its articles are about.
        window: sentences of a passage.
        claims: queries are sentences to be verified, not questions.
        graded: a passage that holds what is asked has grade 2, the rest of its article grade 1.
    """

    third: int
    window: int
    claims: bool
    graded: bool


BEIR_DOMAINS: Mapping[str, Domain] = {
    "claims": Domain(0, 4, claims=True, graded=False),
    "snippets": Domain(1, 2, claims=False, graded=False),
    "articles": Domain(2, 5, claims=False, graded=True),
}
"""Domain → what it looks like."""


def passages(language: str, settings: WorldSettings = DEFAULT) -> Source[Item]:
    """Name the passages of a language, with ids like `en-12#0` (article, passage)."""
    return source(settings, f"mrtydi/{language} passages", _passages, language)


def questions(language: str, split: str, settings: WorldSettings = DEFAULT) -> Source[Item]:
    """Name the questions of a split.

    Raises:
        UsageError: there is no such split.
    """
    _check(split)
    return source(settings, f"mrtydi/{language} questions {split}", _questions, language, split)


def judgements(language: str, split: str, settings: WorldSettings = DEFAULT) -> Source[Judgement]:
    """Name the judgements of a split: the passage that holds the sentence asked for, or the two that share it.

    Raises:
        UsageError: there is no such split.
    """
    _check(split)
    return source(settings, f"mrtydi/{language} judgements {split}", _judgements, language, split)


def language_pairs(language: str, settings: WorldSettings = DEFAULT) -> Source[TrainingPair]:
    """Name the training pairs of a language: the questions of `train` with the passages that are judged relevant."""
    return source(settings, f"pairs {language}", _language_pairs, language)


def english_pairs(settings: WorldSettings = DEFAULT) -> Source[TrainingPair]:
    """Name English training pairs over articles that no test has: four for every article, as many as in a pool.

    Their ids begin with `pairs-`, so that no id of a test is among them.
    """
    return source(settings, "pairs english", _english_pairs)


def beir(domain: str, settings: WorldSettings = DEFAULT) -> Retrieval:
    """Name the three parts of an English domain.

    Raises:
        UsageError: there is no such domain.
    """
    if domain not in BEIR_DOMAINS:
        raise UsageError(unknown("domain of mini/beir", domain, tuple(BEIR_DOMAINS)))
    return Retrieval(
        source(settings, f"beir/{domain} corpus", _beir_corpus, domain),
        source(settings, f"beir/{domain} queries", _beir_queries, domain),
        source(settings, f"beir/{domain} qrels", _beir_qrels, domain),
    )


def _check(split: str) -> None:
    if split not in SPLITS:
        raise UsageError(unknown("split", split, SPLITS))


@lru_cache(maxsize=32)
def _articles(settings: WorldSettings, kind: str, language: str) -> tuple[Article, ...]:
    return tuple(article(settings, kind, language, number) for number in range(settings.articles))


@lru_cache(maxsize=8)
def _domain_articles(settings: WorldSettings, domain: str) -> tuple[Article, ...]:
    """Write the articles of a domain, whose topics take turns."""
    form, size = BEIR_DOMAINS[domain], max(1, settings.topics // 3)
    return tuple(
        article(
            settings,
            f"beir-{domain}",
            "en",
            number,
            window=form.window,
            topic=form.third * size % settings.topics + number % size,
        )
        for number in range(settings.articles)
    )


def _passages(settings: WorldSettings, language: str) -> Iterator[Item]:
    for one in _articles(settings, _POOL, language):
        yield from one.passages(settings)


def _asked_of(settings: WorldSettings, language: str, split: str) -> list[tuple[int, int, int]]:
    """Return (question number, article, sentence) of a split: test has the first, dev half as many, train the next."""
    numbered = [
        (number, *place)
        for number, place in enumerate(places(settings, _POOL, language, _articles(settings, _POOL, language)))
    ]
    test, dev, train = settings.questions, settings.questions // 2, settings.questions * 5
    first = {"test": 0, "dev": test, "train": test + dev}[split]
    return numbered[first : first + {"test": test, "dev": dev, "train": train}[split]]


def _ask(settings: WorldSettings, kind: str, one: Article, sentence: int, number: int) -> Item:
    """Ask for a sentence of an article; ids are like `en-q12`."""
    draws = Draws(settings.seed, "question", kind, one.language, number)
    text = writer(settings, one.language).question(asked(one.told.thoughts[sentence], draws), draws)
    return Item(f"{one.language}-q{number}", text, language=one.language)


def _questions(settings: WorldSettings, language: str, split: str) -> Iterator[Item]:
    told = _articles(settings, _POOL, language)
    for number, at, sentence in _asked_of(settings, language, split):
        yield _ask(settings, _POOL, told[at], sentence, number)


def _judgements(settings: WorldSettings, language: str, split: str) -> Iterator[Judgement]:
    told = _articles(settings, _POOL, language)
    for number, at, sentence in _asked_of(settings, language, split):
        for passage in told[at].holding(sentence):
            yield Judgement(f"{language}-q{number}", told[at].passage_id(passage), 1)


def _language_pairs(settings: WorldSettings, language: str) -> Iterator[TrainingPair]:
    told = _articles(settings, _POOL, language)
    for number, at, sentence in _asked_of(settings, language, "train"):
        name = f"{settings.corpus}/mrtydi/{language} train"
        yield _pair(settings, _ask(settings, _POOL, told[at], sentence, number), told[at], sentence, name)


def _english_pairs(settings: WorldSettings) -> Iterator[TrainingPair]:
    told = _articles(settings, _ENGLISH, "en")
    for number, (at, sentence) in enumerate(places(settings, _ENGLISH, "en", told)[: 4 * len(told)]):
        asking = _ask(settings, _ENGLISH, told[at], sentence, number)
        found = _pair(settings, asking, told[at], sentence, f"{settings.corpus}/pairs en")
        yield replace(found, query=_own(found.query), positives=tuple(map(_own, found.positives)))


def _own(item: Item) -> Item:
    """Tell an id of the English pairs from those of the tests."""
    return replace(item, id=f"pairs-{item.id}")


def _pair(settings: WorldSettings, question: Item, one: Article, sentence: int, name: str) -> TrainingPair:
    """Put a question together with the passages that hold its sentence."""
    written = one.passages(settings)
    return TrainingPair(question, tuple(written[passage] for passage in one.holding(sentence)), source=name)


def _beir_corpus(settings: WorldSettings, domain: str) -> Iterator[Item]:
    for one in _domain_articles(settings, domain):
        yield from one.passages(settings)


def _beir_places(settings: WorldSettings, domain: str) -> list[tuple[int, int]]:
    told = _domain_articles(settings, domain)
    return places(settings, f"beir-{domain}", "en", told)[: settings.questions]


def _beir_queries(settings: WorldSettings, domain: str) -> Iterator[Item]:
    told, write = _domain_articles(settings, domain), writer(settings, "en")
    for number, (at, sentence) in enumerate(_beir_places(settings, domain)):
        draws = Draws(settings.seed, "query", domain, number)
        thought = asked(told[at].told.thoughts[sentence], draws)
        text = write.sentence(thought, draws) if BEIR_DOMAINS[domain].claims else write.question(thought, draws)
        yield Item(f"{domain}-{number}", text, language="en")


def _beir_qrels(settings: WorldSettings, domain: str) -> Iterator[Judgement]:
    told, graded = _domain_articles(settings, domain), BEIR_DOMAINS[domain].graded
    for number, (at, sentence) in enumerate(_beir_places(settings, domain)):
        one = told[at]
        holding = one.holding(sentence)
        for passage in range(len(one.starts())):
            if passage in holding or graded:
                grade = 2 if graded and passage in holding else 1
                yield Judgement(f"{domain}-{number}", one.passage_id(passage), grade)
