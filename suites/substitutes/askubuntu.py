"""Substitutes for AskUbuntu: questions of a forum, candidates in its format, and rephrasings that people wrote."""

from bench import Corpus, Subset
from bench.suites import beir
from suites.common import ScoringProtocol, brings, find
from suites.readers import askubuntu as candidates
from suites.substitutes.common import Place, Substitute, described, own_pool

LANGUAGE = "en"
LISTS = "askubuntu-format/test.txt"


def listed(place: Place) -> Subset:
    """Ask each question among its candidates; without a rephrasing it is not judged. Raises `UsageError`."""
    name = place.identity
    path = find(
        place.folder / LISTS,
        expected="a line of query, similar and candidate questions and scores for each of 125 questions",
        hint=f"the card of {place.suite} says where it comes from",
    )
    lists = candidates.candidates(path, f"{name} candidates")
    return Subset(
        "",
        beir.queries(place.folder, name),
        candidates.judgements(path, f"{name} qrels"),
        Corpus(name, beir.corpus(place.folder, name), LANGUAGE, place.part.documents),
        LANGUAGE,
        place.counts,
        lists,
    )


DUPLICATES = Substitute(
    **described("stackfaq-duplicates"),
    protocol=ScoringProtocol(("AP", "RR", "P@1", "P@5"), "list", 20, official=("askubuntu",), similarity="cos"),
    subset=listed,
)

THREADS = Substitute(
    **described("stackfaq-threads"),
    protocol=ScoringProtocol(("RR@100", "P@1"), "list", similarity="cos"),
    subset=own_pool,
)
bench_suites = brings(DUPLICATES.suite(), THREADS.suite())
