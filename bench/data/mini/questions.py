"""Questions over articles cut into passages: Mr. TyDi, BEIR, XOR-Retrieve, MKQA and LAReQA in miniature, and pairs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bench.data.mini.draws import Draws
from bench.data.mini.languages import LANGUAGES
from bench.data.mini.latent import Story, Thought, story
from bench.data.mini.records import Answering, Question, Retrieval, source
from bench.data.mini.settings import DEFAULT, WorldSettings, check
from bench.data.mini.writer import writer
from bench.types import Item, Judgement, Source, TrainingPair

_LENGTH = (6, 10)
_CONCEPTS_ASKED = (3, 4)
_NAME_RATE = 0.4


@dataclass(frozen=True)
class Article:
    """A written story."""

    id: str  # e.g. `en-12`
    language: str  # ISO 639 code
    story: Story
    title: str  # of the article and of every passage
    phrases: tuple[tuple[str, ...], ...]  # of each sentence (see `Writer.phrases`)
    sentences: tuple[str, ...]  # as they are written
    window: int  # sentences of a passage; the last one of a passage is the first one of the next

    def starts(self) -> range:
        """Return the first sentence of every passage."""
        return range(0, len(self.sentences) - 1, self.window - 1)

    def holding(self, sentence: int) -> list[int]:
        """Return the numbers of the passages that hold a sentence: one, or two where it is shared."""
        return [number for number, start in enumerate(self.starts()) if start <= sentence < start + self.window]

    def passage_id(self, number: int) -> str:
        """Return the id of a passage, e.g. `en-12#0`."""
        return f"{self.id}#{number}"

    def passages(self, settings: WorldSettings) -> list[Item]:
        """Return the passages."""
        write = writer(settings, self.language)
        texts = (write.text(self.sentences[start : start + self.window]) for start in self.starts())
        return [Item(self.passage_id(at), text, self.title, self.language) for at, text in enumerate(texts)]


def article(
    settings: WorldSettings, kind: str, language: str, number: int, *, window: int = 4, topic: int | None = None
) -> Article:
    """Write one article of a kind, in passages of `window` sentences; its main topic is drawn where `topic` is None."""
    write, draws = writer(settings, language), Draws(settings.seed, "article", kind, language, number)
    written = story(settings, draws, draws.between(*_LENGTH), topic)
    phrases = tuple(tuple(write.phrases(thought, draws)) for thought in written.thoughts)
    title = write.title(written, draws)
    sentences = tuple(write.finish(parts) for parts in phrases)
    return Article(f"{language}-{number}", language, written, title, phrases, sentences, window)


def sampled_sentences(
    settings: WorldSettings, kind: str, language: str, articles: Sequence[Article]
) -> list[tuple[int, Article, int]]:
    """Return (number, article, sentence) of every sentence once, in random order: what questions ask for."""
    sentences = [(article, sentence) for article in articles for sentence in range(len(article.sentences))]
    shuffled = Draws(settings.seed, "places", kind, language).shuffled(sentences)
    return [(number, article, sentence) for number, (article, sentence) in enumerate(shuffled)]


def question_thought(thought: Thought, draws: Draws) -> Thought:
    """Return what a question takes up of a thought: some of its concepts, seldom its name."""
    concepts = draws.shuffled(thought.concepts)[: draws.between(*_CONCEPTS_ASKED)]
    return Thought(tuple(concepts), thought.shared if draws.chance(_NAME_RATE) else None)


SPLITS = ("train", "dev", "test")
"""Of the questions of a language; no sentence is asked for twice."""

_POOL = "mrtydi"
_ENGLISH = "english-pairs"


@dataclass(frozen=True)
class Domain:
    """An English domain of the BEIR miniature."""

    third: int  # of the topics, which its articles are about
    window: int  # sentences of a passage
    claims: bool  # queries are sentences to be verified, not questions
    graded: bool  # a passage that holds what is asked has grade 2, the rest of its article grade 1


BEIR_DOMAINS: Mapping[str, Domain] = {
    "claims": Domain(0, 4, claims=True, graded=False),
    "snippets": Domain(1, 2, claims=False, graded=False),
    "articles": Domain(2, 5, claims=False, graded=True),
}
"""Domain → what it looks like."""


def passages(language: str, settings: WorldSettings = DEFAULT) -> Source[Item]:
    """Return the passages of a language, with ids like `en-12#0` (article, passage)."""
    return source(settings, f"mrtydi/{language} passages", _passages, _articles, _POOL, language)


def questions(language: str, split: str, settings: WorldSettings = DEFAULT) -> Source[Item]:
    """Return the questions of a split. Raises `UsageError` if there is no such split."""
    check("split", split, SPLITS)
    return source(settings, f"mrtydi/{language} questions {split}", _questions, language, split)


def judgements(language: str, split: str, settings: WorldSettings = DEFAULT) -> Source[Judgement]:
    """Return the judgements of a split: the one or two passages with the sentence asked for. Raises `UsageError`."""
    check("split", split, SPLITS)
    return source(settings, f"mrtydi/{language} judgements {split}", _judgements, language, split)


def language_pairs(language: str, settings: WorldSettings = DEFAULT) -> Source[TrainingPair]:
    """Return the training pairs of a language: the questions of `train` with the passages that are judged relevant."""
    return source(settings, f"pairs {language}", _language_pairs, language)


def english_pairs(settings: WorldSettings = DEFAULT) -> Source[TrainingPair]:
    """Return English training pairs over articles that no test has, four an article, with ids like `pairs-en-q1`."""
    return replace(source(settings, "pairs english", _english_pairs), records=4 * settings.articles)


def beir(domain: str, settings: WorldSettings = DEFAULT) -> Retrieval:
    """Return the three parts of an English domain. Raises `UsageError` if there is no such domain."""
    check("domain of mini/beir", domain, BEIR_DOMAINS)
    return Retrieval(
        source(settings, f"beir/{domain} corpus", _passages, _domain_articles, domain),
        source(settings, f"beir/{domain} queries", _beir_queries, domain),
        source(settings, f"beir/{domain} qrels", _beir_qrels, domain),
    )


@lru_cache(maxsize=32)
def _articles(settings: WorldSettings, kind: str, language: str) -> tuple[Article, ...]:
    return tuple(article(settings, kind, language, number) for number in range(settings.articles))


@lru_cache(maxsize=8)
def _domain_articles(settings: WorldSettings, domain: str) -> tuple[Article, ...]:
    form, size = BEIR_DOMAINS[domain], max(1, settings.topics // 3)
    first = form.third * size % settings.topics
    return tuple(
        article(settings, f"beir-{domain}", "en", number, window=form.window, topic=first + number % size)
        for number in range(settings.articles)
    )


def _passages(settings: WorldSettings, written: Callable[..., Sequence[Article]], *which: str) -> Iterator[Item]:
    """Stream the passages of the articles that `written` gives for `which`."""
    for article in written(settings, *which):
        yield from article.passages(settings)


def _sentences_of_split(settings: WorldSettings, language: str, split: str) -> list[tuple[int, Article, int]]:
    """Return the sentences that a split asks for: test has the first, dev half as many, train the next."""
    sentences = sampled_sentences(settings, _POOL, language, _articles(settings, _POOL, language))
    test, dev, train = settings.questions, settings.questions // 2, settings.questions * 5
    first, count = {"test": (0, test), "dev": (test, dev), "train": (test + dev, train)}[split]
    return sentences[first : first + count]


def _question(settings: WorldSettings, kind: str, article: Article, sentence: int, number: int) -> Item:
    """Ask for a sentence of an article; ids are like `en-q12`."""
    draws = Draws(settings.seed, "question", kind, article.language, number)
    thought = question_thought(article.story.thoughts[sentence], draws)
    text = writer(settings, article.language).question(thought, draws)
    return Item(f"{article.language}-q{number}", text, language=article.language)


def _questions(settings: WorldSettings, language: str, split: str) -> Iterator[Item]:
    for number, article, sentence in _sentences_of_split(settings, language, split):
        yield _question(settings, _POOL, article, sentence, number)


def _judgements(settings: WorldSettings, language: str, split: str) -> Iterator[Judgement]:
    for number, article, sentence in _sentences_of_split(settings, language, split):
        for passage in article.holding(sentence):
            yield Judgement(f"{language}-q{number}", article.passage_id(passage), 1)


def _language_pairs(settings: WorldSettings, language: str) -> Iterator[TrainingPair]:
    name = f"{settings.corpus}/mrtydi/{language} train"
    for number, article, sentence in _sentences_of_split(settings, language, "train"):
        yield _pair(settings, _question(settings, _POOL, article, sentence, number), article, sentence, name)


def _english_pairs(settings: WorldSettings) -> Iterator[TrainingPair]:
    """Stream pairs whose ids have a prefix, so that they differ from those of the tests."""
    articles = _articles(settings, _ENGLISH, "en")
    for number, article, sentence in sampled_sentences(settings, _ENGLISH, "en", articles)[: 4 * len(articles)]:
        question = _question(settings, _ENGLISH, article, sentence, number)
        pair = _pair(settings, question, article, sentence, f"{settings.corpus}/pairs en")
        query, *positives = (replace(item, id=f"pairs-{item.id}") for item in (pair.query, *pair.positives))
        yield replace(pair, query=query, positives=tuple(positives))


def _pair(settings: WorldSettings, question: Item, article: Article, sentence: int, name: str) -> TrainingPair:
    """Put a question together with the passages that hold its sentence."""
    passages = article.passages(settings)
    return TrainingPair(question, tuple(passages[number] for number in article.holding(sentence)), source=name)


def _beir_sentences(settings: WorldSettings, domain: str) -> list[tuple[int, Article, int]]:
    articles = _domain_articles(settings, domain)
    return sampled_sentences(settings, f"beir-{domain}", "en", articles)[: settings.questions]


def _beir_queries(settings: WorldSettings, domain: str) -> Iterator[Item]:
    write = writer(settings, "en")
    for number, article, sentence in _beir_sentences(settings, domain):
        draws = Draws(settings.seed, "query", domain, number)
        thought = question_thought(article.story.thoughts[sentence], draws)
        text = write.sentence(thought, draws) if BEIR_DOMAINS[domain].claims else write.question(thought, draws)
        yield Item(f"{domain}-{number}", text, language="en")


def _beir_qrels(settings: WorldSettings, domain: str) -> Iterator[Judgement]:
    graded = BEIR_DOMAINS[domain].graded
    for number, article, sentence in _beir_sentences(settings, domain):
        holding = article.holding(sentence)
        for passage in range(len(article.starts())) if graded else holding:
            grade = 2 if graded and passage in holding else 1
            yield Judgement(f"{domain}-{number}", article.passage_id(passage), grade)


SENTENCE_LANGUAGES = ("ar", "de", "en", "es", "ru", "th")
"""Languages of the sentence answers: those of XQuAD-R that the world speaks."""

_XOR, _MKQA, _LAREQA = "xor-retrieve", "mkqa", "lareqa"
_PARAGRAPHS = 4
"""Of the LAReQA miniature, one for so many articles of a pool."""


def cross_lingual(language: str, settings: WorldSettings = DEFAULT) -> Answering:
    """Return questions of a language that ask for a name or numeral, with the word before it, of English passages."""
    return _answering(_XOR, language, language, settings)


def mkqa(language: str, settings: WorldSettings = DEFAULT) -> Answering:
    """Return the questions of a language over another pool of English passages; all languages ask the same."""
    return _answering(_MKQA, language, "", settings)


def sentence_answers(language: str, settings: WorldSettings = DEFAULT) -> Retrieval:
    """Return questions of a language and the sentences of all languages that answer them, in one pool.

    Every language has one answer. A candidate is the sentence (`title`) with its paragraph (`text`), ids are like
    `en_12_3` (paragraph from 1, sentence from 0) and `7_en`. Raises `UsageError` for a language without questions.
    """
    check("language of mini/lareqa", language, SENTENCE_LANGUAGES)
    return Retrieval(
        source(settings, f"{_LAREQA} candidates", _candidates),
        source(settings, f"{_LAREQA}/{language} questions", _sentence_questions, language),
        source(settings, f"{_LAREQA}/{language} judgements", _sentence_judgements, language),
    )


def _answering(kind: str, language: str, choice: str, settings: WorldSettings) -> Answering:
    check("language of the mini world", language, LANGUAGES)
    return Answering(
        source(settings, f"{kind} passages", _passages, _articles, kind, "en"),
        source(settings, f"{kind}/{language} questions", _answered, kind, language, choice),
    )


def _answered(settings: WorldSettings, kind: str, language: str, choice: str) -> Iterator[Question]:
    """Ask for the word next to a name in an English sentence of a pool; `choice` decides which are asked for."""
    write = writer(settings, language)
    sentences = [
        (article, sentence)
        for _, article, sentence in sampled_sentences(
            settings, f"{kind}{choice}", "en", _articles(settings, kind, "en")
        )
        if article.story.thoughts[sentence].shared is not None
    ]
    for number, (article, sentence) in enumerate(sentences[: settings.questions]):
        draws = Draws(settings.seed, "answer", kind, language, number)
        meaning = Thought(tuple(draws.shuffled(article.story.thoughts[sentence].concepts[1:])))
        # The phrase that holds the name is the only one of two words. No sentence begins with it.
        answer = next(phrase for phrase in article.phrases[sentence] if " " in phrase)
        yield Question(f"{language}-{number}", write.question(meaning, draws), language, (answer,))


@lru_cache(maxsize=512)
def _thoughts(settings: WorldSettings, number: int) -> tuple[Thought, ...]:
    """Return what a paragraph says, in any language: that depends on its number alone."""
    draws = Draws(settings.seed, "paragraph", number)
    return story(settings, draws, draws.between(4, 7)).thoughts


def _paragraphs(settings: WorldSettings) -> range:
    return range(max(1, settings.articles // _PARAGRAPHS))


def _candidates(settings: WorldSettings) -> Iterator[Item]:
    for language in SENTENCE_LANGUAGES:
        for number in _paragraphs(settings):
            draws, write = Draws(settings.seed, "paragraph", language, number), writer(settings, language)
            sentences = [write.sentence(thought, draws) for thought in _thoughts(settings, number)]
            context = write.text(sentences)
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
        text = writer(settings, language).question(question_thought(_thoughts(settings, number)[place], draws), draws)
        yield Item(f"{question}_{language}", text, language=language)


def _sentence_judgements(settings: WorldSettings, language: str) -> Iterator[Judgement]:
    for question, (number, place) in enumerate(_sentence_places(settings)):
        for answer in SENTENCE_LANGUAGES:
            yield Judgement(f"{question}_{language}", f"{answer}_{number + 1}_{place}", 1)
