"""The embedded world: a seeded generator of texts in fourteen invented languages, made with numpy alone.

A latent world of topics, each a ring of concepts along which scenes move, is written in languages with scripts, word
orders, synonyms, function words and affixes of their own. All they share is a few names and numerals, each of which
belongs to a topic: from these, alignment can be learnt without parallel data. What is yielded depends on
`WorldSettings`, the kind of text, the language and the text's number, and on nothing else.

Pretraining: `corpus` (all languages), `documents`, `dialogues`, `dialogue_corpus`, `named_corpus`.
Mr. TyDi: `passages`, `questions`, `judgements` of a language, splits `train`, `dev` and `test`.
Tatoeba: `bitext` of a language with English. AskUbuntu: `duplicates` of a split. BEIR: `beir` of a domain.
XOR-Retrieve: `cross_lingual`. MKQA: `mkqa`. Mewsli-X: `entities` and `mentions`. LAReQA: `sentence_answers`.
Tuning: `english_pairs`, `language_pairs`.

Every function takes `settings` last, by default those of `mini`; `named` finds the others, `of_corpus` those
of a pretraining corpus by its name.
"""

from bench.data.mini.languages import LANGUAGES as _TABLE
from bench.data.mini.matching import bitext, duplicates, entities, mentions
from bench.data.mini.pretraining import corpus, dialogue_corpus, dialogues, documents, named_corpus
from bench.data.mini.questions import (
    BEIR_DOMAINS,
    SENTENCE_LANGUAGES,
    beir,
    cross_lingual,
    english_pairs,
    judgements,
    language_pairs,
    mkqa,
    passages,
    questions,
    sentence_answers,
)
from bench.data.mini.records import Answering, Mention, Question, Retrieval, answers_of, queries_of, source
from bench.data.mini.settings import DEFAULT, PRESETS, WorldSettings, named, of_corpus

LANGUAGES: tuple[str, ...] = tuple(_TABLE)
"""ISO 639 codes: the eleven of Mr. TyDi, then French, German and Spanish."""

__all__ = [
    "BEIR_DOMAINS",
    "DEFAULT",
    "LANGUAGES",
    "PRESETS",
    "SENTENCE_LANGUAGES",
    "Answering",
    "Mention",
    "Question",
    "Retrieval",
    "WorldSettings",
    "answers_of",
    "beir",
    "bitext",
    "corpus",
    "cross_lingual",
    "dialogue_corpus",
    "dialogues",
    "documents",
    "duplicates",
    "english_pairs",
    "entities",
    "judgements",
    "language_pairs",
    "mentions",
    "mkqa",
    "named",
    "named_corpus",
    "of_corpus",
    "passages",
    "queries_of",
    "questions",
    "sentence_answers",
    "source",
]
