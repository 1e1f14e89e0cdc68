"""The kit on retrievers and suites: sound ones keep every promise, and each flaw is found by its check."""

from collections.abc import Callable

import pytest

from bench.studies.conformance import retrieval, suites
from bench.studies.conformance.kit import carry_out
from bench.studies.conformance.retrieval import RetrieverSubject
from bench.studies.conformance.suites import SuiteSubject, names_files

Broken = Callable[..., str]


def test_sound_plugins_keep_every_promise(
    terms: Callable[[str], RetrieverSubject], suite: Callable[[str], SuiteSubject]
) -> None:
    """A retriever, a suite, and a suite's source that reads a file that it names."""
    retriever, sound = terms(""), suite("")
    assert not {one.name: why for one in retrieval.CHECKS if (why := carry_out(one, retriever).reason)}
    assert not {one.name: why for one in suites.CHECKS if (why := carry_out(one, sound).reason)}
    assert carry_out(names_files, suite("named")).state == "kept"


@pytest.mark.parametrize(
    ("flaw", "name", "words"),
    [
        ("lost", "rankings-sound", "found not one ranking a query, in order"),
        ("twice", "rankings-sound", "a document occurs twice"),
        ("rising", "rankings-sound", "scores rise"),
        ("deep", "rankings-sound", "more than 10 documents"),
        ("poor", "finds-planted-passages", "expected more than half"),
        ("lost", "unknown-words", "has no ranking, expected an empty one"),
        ("position", "order-of-corpus", ": equal scores come in another order"),
        ("batches", "order-of-corpus", " of their size, so equal passages no longer tie"),
        ("batches", "ties", "for their scores differ by"),
        ("company", "company-changes-nothing", "other queries in the batch change the ranking of"),
        ("shallow", "company-changes-nothing", "asked for 3 documents it does not give the first 3 of 10: "),
        ("ties", "ties", "under trec, expected"),
        ("noisy", "same-bytes", "indexing twice gives other bytes in terms.json"),
        ("global", "touches-nothing-else", "the environment (TOY_WAS_HERE)"),
        ("litter", "touches-nothing-else", "/cache; only indexing writes"),
    ],
)
def test_a_retrievers_flaw_is_found(
    terms: Callable[[str], RetrieverSubject], broken: Broken, flaw: str, name: str, words: str
) -> None:
    """Each by its check, with a reason that names it."""
    assert words in broken(retrieval.CHECKS, name, terms(flaw))


@pytest.mark.parametrize(("flaw", "remedy"), [("position", "bench.best"), ("batches", "encode each text by itself")])
def test_the_remedy_is_that_of_the_cause(terms: Callable[[str], RetrieverSubject], flaw: str, remedy: str) -> None:
    """Ties that go by position and vectors that depend on their batch break the same promise, and want other cures."""
    assert remedy in carry_out(retrieval.order_of_corpus, terms(flaw)).remedy


@pytest.mark.parametrize(
    ("flaw", "name", "words"),
    [
        ("uncited", "described", "its citation is empty"),
        ("name", "loads-mini-data", "task xx calls itself mini/other/xx"),
        ("measure", "measures-exist", "Foo@3"),
        ("primary", "measures-exist", "does not measure the headline R@100"),
        ("macro", "averages-complete", "over tasks that are not there: made/yy"),
        ("ids", "data-sound", "d1"),
        ("judged", "data-sound", "d9"),
        ("counts", "data-sound", "expected 3"),
        ("irrelevant", "data-sound", "no document is relevant"),
        ("once", "reads-twice-alike", "queries: a second reading gives other records"),
        ("unnamed", "names-its-files", "unnamed.txt, expected only the files that it names"),
        ("greedy", "absence-named", "was loaded, expected a UsageError"),
        ("mute", "absence-named", "does not name no-such-task"),
    ],
)
def test_a_suites_flaw_is_found(
    suite: Callable[[str], SuiteSubject], broken: Broken, flaw: str, name: str, words: str
) -> None:
    """Each by its check, with a reason that names it."""
    assert words in broken(suites.CHECKS, name, suite(flaw))
