"""The kit on retrievers and suites: sound ones keep every promise, and each flaw is found by its check."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bench.core.errors import UsageError
from bench.studies.conformance import retrieval, suites
from bench.studies.conformance.kit import try_promises
from bench.studies.conformance.retrieval import RetrieverSubject
from bench.studies.conformance.suites import SuiteSubject, names_files
from bench.types import DataRequest, Task
from tests.conftest import cases

Broken = Callable[..., str]


def test_sound_plugins_keep_every_promise(
    terms: Callable[[str], RetrieverSubject], suite: Callable[[str], SuiteSubject]
) -> None:
    """A retriever, a suite, and a suite's source that reads a file that it names."""
    retriever, sound = terms(""), suite("")
    verdicts = try_promises(retrieval.CHECKS, retriever) + try_promises(suites.CHECKS, sound)
    verdicts += try_promises([names_files], suite("named"))
    assert len(verdicts) == len(retrieval.CHECKS) + len(suites.CHECKS) + 1
    assert {(verdict.state, verdict.reason) for verdict in verdicts} == {("kept", "")}


def test_tasks_without_files_are_named(suite: Callable[[str], SuiteSubject]) -> None:
    """Of official data the tasks that are here are tried, and the others are not passed over in silence."""
    subject = suite("")
    task = replace(subject.suite.load("xx", subject.request), id="made/xx")

    def load(name: str, _: DataRequest) -> Task:
        if name == "yy":
            raise UsageError("found no yy.tar.gz")
        return task

    official = replace(subject.suite, data=("official",), task_names=lambda _: ("xx", "yy"), load=load)
    (verdict,) = try_promises([suites.loads], replace(subject, suite=official, request=DataRequest("official")))
    assert (verdict.state, verdict.reason) == ("kept", "not checked, for their files are not here: yy")


@pytest.mark.parametrize(("flaw", "name", "words"), cases("a-retrievers-flaw-is-found"))
def test_a_retrievers_flaw_is_found(
    terms: Callable[[str], RetrieverSubject], broken: Broken, flaw: str, name: str, words: str
) -> None:
    """Each by its check, with a reason that names it."""
    assert words in broken(retrieval.CHECKS, name, terms(flaw))


@pytest.mark.parametrize(("flaw", "remedy"), [("position", "bench.best"), ("batches", "encode each text by itself")])
def test_the_remedy_is_that_of_the_cause(terms: Callable[[str], RetrieverSubject], flaw: str, remedy: str) -> None:
    """Ties that go by position and vectors that depend on their batch break the same promise, and want other cures."""
    (verdict,) = try_promises([retrieval.order_of_corpus], terms(flaw))
    assert remedy in verdict.remedy


@pytest.mark.parametrize(("flaw", "name", "words"), cases("a-suites-flaw-is-found"))
def test_a_suites_flaw_is_found(
    suite: Callable[[str], SuiteSubject], broken: Broken, flaw: str, name: str, words: str
) -> None:
    """Each by its check, with a reason that names it."""
    assert words in broken(suites.CHECKS, name, suite(flaw))
