"""A planted corpus, made from a seed: documents about two topics, whose words drown among words that say nothing.

Each of two languages has its own words. A title holds a few words of its document's two topics; a sentence holds some
of them among fillers that occur in every document, more of them than of the others. An encoder that knows nothing of
the corpus is led astray by the fillers; one that has seen which words come back within a document separates the topics
from the rest.
"""

import json
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import combinations

import numpy as np

from bench.core.encoder_config import Document
from bench.types import Item, Source

LANGUAGES = ("en", "sw")
TOPICS, WORDS, FILLERS = 12, 6, 24  # of a language; words of a topic; fillers of a language
DOCUMENTS, SENTENCES = 240, 8  # of a language; of a document
_TOPICAL, _IDLE = 3, 6  # words of a sentence: of its topics, fillers

_LETTERS = {"en": ("bcdfghlmnprst", "aeiou"), "sw": ("jkvwyzxqgmdbn", "aeiou")}


def vocabulary(language: str) -> tuple[list[list[str]], list[str]]:
    """Return the words of every topic of a language, and its fillers; no word occurs twice."""
    consonants, vowels = _LETTERS[language]
    rng = np.random.default_rng([LANGUAGES.index(language), 11])
    distinct: dict[str, None] = {}
    while len(distinct) < TOPICS * WORDS + FILLERS:
        parts = [rng.choice(list(consonants)) + rng.choice(list(vowels)) for _ in range(rng.integers(2, 4))]
        distinct["".join(parts) + language[0]] = None
    words = list(distinct)
    return [words[at * WORDS : (at + 1) * WORDS] for at in range(TOPICS)], words[TOPICS * WORDS :]


def _sentence(words: Sequence[str], fillers: Sequence[str], rng: np.random.Generator) -> str:
    """Draw the words of one sentence, in any order."""
    sampled = [*rng.choice(list(words), _TOPICAL), *rng.choice(list(fillers), _IDLE)]
    return " ".join(rng.permutation(sampled)) + "."


def corpus() -> Source[Document]:
    """Return the documents to train on, language by language."""

    def read() -> Iterator[Document]:
        for number, language in enumerate(LANGUAGES):
            topics, fillers = vocabulary(language)
            rng = np.random.default_rng([number, 12])
            for at in range(DOCUMENTS):
                first, second = rng.choice(TOPICS, 2, replace=False)
                sentences = tuple(_sentence(topics[first] + topics[second], fillers, rng) for _ in range(SENTENCES))
                title = " ".join((*topics[first][at % WORDS :][:2], *topics[second][at % WORDS :][:2]))
                yield Document(f"{language}-{at}", language, sentences, title=title)

    return Source("planted corpus", "planted/1", (), read)


def questions(language: str) -> tuple[list[Item], list[Item]]:
    """Return held-out questions and their passages of a language, row by row; every pair of topics once."""
    topics, fillers = vocabulary(language)
    rng = np.random.default_rng([LANGUAGES.index(language), 13])
    queries, passages = [], []
    for at, (first, second) in enumerate(combinations(range(TOPICS), 2)):
        words = topics[first] + topics[second]
        queries.append(Item(f"{language}-q{at}", _sentence(words, fillers, rng), language=language))
        passage = " ".join(_sentence(words, fillers, rng) for _ in range(3))
        passages.append(Item(f"{language}-p{at}", passage, language=language))
    return queries, passages


_TEXTS = json.loads(files("bench.studies.conformance").joinpath("odd.json").read_bytes())
SCRIPTS: tuple[str, ...] = tuple(_TEXTS["scripts"])
ODD: dict[str, str] = {
    **_TEXTS["odd"],
    "10,000 characters": "a long text goes on " * 500,
    "one word of 10,000 characters": "x" * 10_000,
    **{f"script {number + 1}": text for number, text in enumerate(SCRIPTS)},
}
"""Texts that a user's data may hold, by what is odd about them."""
