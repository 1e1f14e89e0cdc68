"""DPR's question files, and where its Wikipedia is looked for."""

from __future__ import annotations

import csv
import gzip
import io
import pickle
from pathlib import Path

import pytest

from bench.core.errors import UsageError
from bench.types import Answers, DataRequest, Item
from suites.dpr import wikipedia
from suites.readers import dpr
from tests.conftest import Put, Told

QUESTIONS = [
    ("who got the first nobel prize in physics", ["Wilhelm Conrad Röntgen"]),
    ("when is the next deadpool movie", ["May 18 , 2018", 'the "18th"']),
    ('who sang "oh, what a night"', ["The Four Season's", "Frankie 'Castelluccio' \"Valli\"", ""]),
    ("who got the first nobel prize in physics", ["Röntgen\\x"]),
]


def written() -> str:
    """Write questions as DPR does: csv with tabs, the answers as Python prints a list."""
    stream = io.StringIO()
    csv.writer(stream, delimiter="\t", lineterminator="\n").writerows((asked, repr(said)) for asked, said in QUESTIONS)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["nq-test.qa.csv", "trivia-test.qa.csv.gz"])
def test_questions_and_answers(put: Put, name: str) -> None:
    """Ids are line numbers from 0, so that a question asked twice stays two; answers come as they were."""
    data = written().encode()
    path = put(name, gzip.compress(data) if name.endswith(".gz") else data)
    asked, said = dpr.questions(path, "q"), dpr.answers(path)
    assert list(asked.read()) == [Item(str(at), one) for at, (one, _) in enumerate(QUESTIONS)]
    assert list(said.read()) == [Answers(str(at), tuple(some)) for at, (_, some) in enumerate(QUESTIONS)]
    assert [line for line, _ in asked.numbered()] == [line for line, _ in said.numbered()] == [1, 2, 3, 4]
    assert (asked.name, said.name, asked.files) == ("q", name, (path,))
    assert list(pickle.loads(pickle.dumps(said)).read()) == list(said.read())  # noqa: S301 (our own bytes)


def test_nothing_is_evaluated(put: Put, told: Told, tmp_path: Path) -> None:
    """A list is a literal: code in its place is a fault, and is not run."""
    mark = tmp_path / "ran"
    path = put("q.csv", f"what\t[__import__('pathlib').Path('{mark}').touch()]\n")
    assert "expected a Python list of strings, e.g. ['Alan Turing']" in told(dpr.answers(path).read())[0]
    assert not mark.exists()


def test_all_faults_are_told(put: Put, told: Told) -> None:
    """Each with its line, by questions and answers alike."""
    path = put(
        "q.csv",
        "no answers\n \t['a']\nq\t[]\nq\t'a'\nq\t['a', 3]\nq\t['a'\nq\t['\\ud800']\nq\t"
        + "[" * 2_000
        + "\nfine\t['a']\n",
    )
    faults = told(dpr.questions(path).read())
    assert told(dpr.answers(path).read()) == faults
    assert [fault.removeprefix(f"{path}:") for fault in faults] == [
        "1: found 1 column in 'no answers', expected 2 columns separated by tabs: question, answers",
        "2: found an empty question, expected the question's text",
        "3: found answers: an empty list, expected at least one accepted answer",
        "4: found answers: 'a', expected a list of strings",
        "5: found answers: ['a', 3], expected a list of strings",
        "6: found answers \"['a'\", expected a Python list of strings, e.g. ['Alan Turing']",
        "7: found half of a surrogate pair (\\ud800) in answers, expected whole characters",
        f"8: found answers '{'[' * 58}…, expected a Python list of strings, e.g. ['Alan Turing']",
    ]


@pytest.mark.parametrize("place", ["dpr-w100/psgs_w100.tsv", "dpr-w100/psgs_w100.tsv.gz", "nq/psgs_w100.tsv"])
def test_the_passages_are_found(put: Put, tmp_path: Path, place: str) -> None:
    """In their own folder, unpacked or not, or beside the questions."""
    (tmp_path / "nq").mkdir()
    data = b"id\ttext\ttitle\n1\ta\tb\n"
    path = put(place, gzip.compress(data) if place.endswith(".gz") else data)
    source = wikipedia(DataRequest("official", tmp_path), "nq")
    assert source.files == (path,)
    assert list(source.read()) == [Item("1", "a", "b")]


def test_their_own_folder_comes_first(put: Put, tmp_path: Path) -> None:
    """Unpacked before packed, shared before a suite's own."""
    for place in ("nq/psgs_w100.tsv", "dpr-w100/psgs_w100.tsv.gz"):
        put(place, gzip.compress(b"1\ta\tb\n") if place.endswith(".gz") else "1\ta\tb\n")
    request = DataRequest("official", tmp_path)
    assert wikipedia(request, "nq").files[0].name == "psgs_w100.tsv.gz"
    put("dpr-w100/psgs_w100.tsv", "1\ta\tb\n")
    assert wikipedia(request, "nq").files == (tmp_path / "dpr-w100" / "psgs_w100.tsv",)


def test_passages_that_are_not_there(tmp_path: Path) -> None:
    """The questions can be had without; reading a passage says what is missing."""
    (tmp_path / "nq").mkdir()
    source = wikipedia(DataRequest("official", tmp_path), "nq")
    with pytest.raises(UsageError) as caught:
        next(iter(source.read()))
    assert str(caught.value) == (
        f"{tmp_path}/dpr-w100/psgs_w100.tsv.gz: found no such file, expected the 21,015,324 passages of DPR's "
        "Wikipedia; fetch https://dl.fbaipublicfiles.com/dpr/wikipedia_split/psgs_w100.tsv.gz (4,694,541,059 bytes, "
        "md5 612fe66e0b6b41ee28f806140226c563) and put it there as it is, or unpacked, which is read faster"
    )
