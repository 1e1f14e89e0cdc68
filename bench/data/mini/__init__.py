"""The synthetic collection: a seeded generator of texts in fourteen invented languages, made with numpy alone.

A latent world of topics, each a ring of concepts along which scenes move, is written in languages with scripts, word
orders, synonyms, function words and affixes of their own. All they share is a few names and numerals, each of which
belongs to a topic: from these, alignment can be learnt without parallel data. What is yielded depends on
`WorldSettings`, the kind of text, the language and the text's number, and on nothing else.

Every function takes `settings` last, by default those of `mini`; `variant` finds those of the other variants,
`variant_of_corpus` those of a pretraining corpus by its name.
"""

from bench.data.mini.languages import LANGUAGES as _TABLE
from bench.data.mini.matching import bitext as bitext
from bench.data.mini.matching import duplicates as duplicates
from bench.data.mini.matching import entities as entities
from bench.data.mini.matching import mentions as mentions
from bench.data.mini.pretraining import corpus as corpus
from bench.data.mini.pretraining import dialogue_corpus as dialogue_corpus
from bench.data.mini.pretraining import dialogues as dialogues
from bench.data.mini.pretraining import documents as documents
from bench.data.mini.pretraining import named_corpus as named_corpus
from bench.data.mini.questions import BEIR_DOMAINS as BEIR_DOMAINS
from bench.data.mini.questions import SENTENCE_LANGUAGES as SENTENCE_LANGUAGES
from bench.data.mini.questions import beir as beir
from bench.data.mini.questions import cross_lingual as cross_lingual
from bench.data.mini.questions import english_pairs as english_pairs
from bench.data.mini.questions import judgements as judgements
from bench.data.mini.questions import language_pairs as language_pairs
from bench.data.mini.questions import mkqa as mkqa
from bench.data.mini.questions import passages as passages
from bench.data.mini.questions import questions as questions
from bench.data.mini.questions import sentence_answers as sentence_answers
from bench.data.mini.records import Answering as Answering
from bench.data.mini.records import Mention as Mention
from bench.data.mini.records import Question as Question
from bench.data.mini.records import Retrieval as Retrieval
from bench.data.mini.records import answers_of as answers_of
from bench.data.mini.records import queries_of as queries_of
from bench.data.mini.records import source as source
from bench.data.mini.settings import DEFAULT as DEFAULT
from bench.data.mini.settings import PRESETS as PRESETS
from bench.data.mini.settings import WorldSettings as WorldSettings
from bench.data.mini.settings import variant as variant
from bench.data.mini.settings import variant_of_corpus as variant_of_corpus

LANGUAGES: tuple[str, ...] = tuple(_TABLE)
"""ISO 639 codes: the eleven of Mr. TyDi, then French, German and Spanish."""
