"""Substitutes for XOR-Retrieve: questions in many languages over one pool of English passages, all in one folder.

Answers (R@2kt, R@5kt) and passages (RR@100) judge the same questions.
"""

from dataclasses import replace

from bench import Corpus, Leg
from bench.suites import beir
from suites.common import Rules, brings
from suites.readers import beir_answers
from suites.readouts import CCP
from suites.substitutes.common import Part, Place, Substitute, described, table

RULES = Rules(("R@2kt", "R@5kt", "RR@100"), "list", official=("xor-asked",), readout=CCP)
UPPER = "english"
"""The task that asks all questions in English, for an upper bound; no member of the average."""

# Task, documents, then judged queries / judgements of test, dev and train; counted in the files.
_MLQA = """
ar 11530 517/517 - -
de 11530 512/512 - -
es 11530 500/500 - -
hi 11530 507/507 - -
vi 11530 511/511 - -
zh 11530 504/504 - -
"""
_AFRIQA = """
bem 15908 281/281 196/196 202/202
hau 15908 272/272 204/204 195/195
ibo 15908 408/408 299/299 299/299
kin 15908 342/342 224/224 208/208
swa 15908 262/262 -       -
twi 15908 439/439 286/286 296/296
yor 15908 203/203 -       211/211
zul 15908 310/310 230/230 229/229
"""


def one_language(place: Place) -> Leg:
    """Ask the questions of the part's language as they are, or all of them in English."""
    part, name = place.part, place.identity
    english = part.name == UPPER
    asked = beir_answers.Part(place.split, "" if english else part.language, english)
    return Leg(
        "",
        beir_answers.queries(place.folder, asked, name),
        beir_answers.qrels(place.folder, asked, name),
        Corpus(place.suite, beir.corpus(place.folder, place.suite), "en", part.documents),
        part.language,
        place.counts,
        answers=beir_answers.answers(place.folder, asked, name),
    )


def _with_upper(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Add the task that asks all test questions in English."""
    queries = sum(part.counts["test"][0] for part in parts)
    upper = replace(parts[0], name=UPPER, language="en", counts={"test": (queries, queries)}, averaged=False)
    return (*parts, upper)


MLQA = Substitute(
    **described("xor-mlqa-en"), parts=_with_upper(table(_MLQA, folders=False)), rules=RULES, leg=one_language
)

AFRIQA = Substitute(
    **described("xor-afriqa-en"), parts=_with_upper(table(_AFRIQA, folders=False)), rules=RULES, leg=one_language
)
bench_suites = brings(MLQA.suite(), AFRIQA.suite())
