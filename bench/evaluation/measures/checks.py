"""What is refused before scoring: qrels and rankings on which a scorer would crash or be silently wrong."""

from collections.abc import Mapping
from itertools import chain

from bench.core.errors import UsageError
from bench.core.order import cast_scores
from bench.core.records import CleanRun
from bench.types import Ranking, Run, Tie

LARGEST_GRADE = 1_000_000
"""trec_eval keeps a table as long as the highest grade; 10⁹ would take it gigabytes and half a minute a query."""


def judged(qrels: Mapping[str, Mapping[str, int]], run: Run, tie: Tie) -> dict[str, Ranking]:
    """Return the rankings of judged queries, in the order of the qrels, after checking them and the judgements.

    Rankings of queries without judgements are left out unread, and those of a `CleanRun` are not checked again. Raises
    `UsageError` for no judgement, a grade that is no whole number of at most `LARGEST_GRADE` in size, a document ranked
    twice, scores that are not one finite number a document, a ranking under another query's name, and an id that is
    empty or holds white space, a NUL or half a surrogate pair.
    """
    if not qrels:
        raise UsageError("there are no judgements (qrels), so nothing can be scored; name a file that holds some")
    _check_ids("the qrels", list(qrels))
    grades_of_all = list(chain.from_iterable(grades.values() for grades in qrels.values()))
    are_grades = {*map(type, grades_of_all)} <= {int} and max(map(abs, grades_of_all), default=0) <= LARGEST_GRADE
    if not (are_grades and _are_ids(list(chain.from_iterable(qrels.values())))):
        _check_judgements(qrels)
    rankings = {query: run[query] for query in qrels if query in run}
    if isinstance(run, CleanRun):
        return CleanRun(rankings)
    for query, ranking in rankings.items():
        documents = ranking.documents
        if ranking.query != query:
            raise UsageError(f"the ranking filed under query {query!r} says that it is of query {ranking.query!r}")
        if len(documents) != len(ranking.scores):
            found = f"{len(ranking.scores)} scores for {len(documents)} documents"
            raise UsageError(where=f"query {query!r}", found=found, expected="one score a document")
        if len(set(documents)) != len(documents):
            repeated = next(document for at, document in enumerate(documents) if document in documents[:at])
            raise UsageError(f"query {query!r}: document {repeated!r} is ranked twice, expected each document once")
        _check_ids(f"the ranking of query {query!r}", list(documents))
        try:
            cast_scores(ranking.scores, tie)
        except UsageError as error:
            raise UsageError(f"query {query!r}: {error}") from error
    return rankings


def _check_judgements(qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Refuse judgements one by one, so that what is wrong can be named."""
    for query, grades in qrels.items():
        _check_ids(f"the judgements of query {query!r}", list(grades))
        for document, grade in grades.items():
            if not isinstance(grade, int) or abs(grade) > LARGEST_GRADE:
                raise UsageError(
                    where=f"query {query!r}, document {document!r}",
                    found=f"the grade {grade!r}",
                    expected=f"a whole number between -{LARGEST_GRADE} and {LARGEST_GRADE}",
                )


def _check_ids(place: str, ids: list[str]) -> None:
    """Refuse ids that TREC files cannot hold or that C code cuts short; quick for the many that are in order."""
    if _are_ids(ids):
        return
    fault = next(name for name in ids if name.split() != [name] or "\0" in name or not _is_utf8(name))
    raise UsageError(
        where=place,
        found=f"the id {fault!r}",
        expected="one that is not empty and holds no white space, NUL or lone surrogate",
    )


def _are_ids(ids: list[str]) -> bool:
    """Return whether none of them must be refused."""
    text = " ".join(ids)
    return text.split() == ids and "\0" not in text and _is_utf8(text)


def _is_utf8(text: str) -> bool:
    """Return whether UTF-8 can write the text (it cannot write lone surrogates)."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
