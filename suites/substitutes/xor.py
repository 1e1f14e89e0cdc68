"""Substitutes for XOR-Retrieve: questions in many languages over one pool of English passages, all in one folder.

Answers (R@2kt, R@5kt) and passages (RR@100) judge the same questions.
"""

from dataclasses import replace

from bench import Corpus, Subset
from bench.suites import beir
from suites.common import ScoringProtocol, brings
from suites.readers import beir_answers
from suites.readouts import CCP
from suites.substitutes.common import Place, Substitute, described

PROTOCOL = ScoringProtocol(("R@2kt", "R@5kt", "RR@100"), "list", official=("xor-asked",), readout=CCP)
UPPER = "english"
"""The task that asks all questions in English, for an upper bound; no member of the average."""


def one_language(place: Place) -> Subset:
    """Ask the questions of the part's language as they are, or all of them in English."""
    part, name = place.part, place.identity
    english = part.name == UPPER
    queries = beir_answers.Part(place.split, "" if english else part.language, english)
    return Subset(
        "",
        beir_answers.queries(place.folder, queries, name),
        beir_answers.qrels(place.folder, queries, name),
        Corpus(place.suite, beir.corpus(place.folder, place.suite), "en", part.documents),
        part.language,
        place.counts,
        answers=beir_answers.answers(place.folder, queries, name),
    )


def _with_upper(substitute: Substitute) -> Substitute:
    """Add the task that asks all test questions in English."""
    queries = sum(part.counts["test"][0] for part in substitute.parts)
    upper = replace(substitute.parts[0], name=UPPER, language="en", counts={"test": (queries, queries)}, averaged=False)
    return replace(substitute, parts=(*substitute.parts, upper))


MLQA, AFRIQA = (
    _with_upper(Substitute(**described(name), protocol=PROTOCOL, subset=one_language))
    for name in ("xor-mlqa-en", "xor-afriqa-en")
)
bench_suites = brings(MLQA.suite(), AFRIQA.suite())
