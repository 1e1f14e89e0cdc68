"""DPR's files: passages with csv's quoting, questions, faults with their lines, and where Wikipedia is looked for."""

import csv
import gzip
import io
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core.errors import UsageError
from bench.data.formats.faults import RecordError
from bench.data.formats.source import FileSource
from bench.testing import fields
from bench.types import Answers, DataRequest, Item, Source
from suites.common import optional_source
from suites.dpr import wikipedia
from suites.readers import dpr, mkqa
from tests.conftest import ReadErrors, WriteFile, traced

HEADER = "id\ttext\ttitle\n"
ROWS = (
    '1\t"Aaron is a ""prophet"", they say."\tAaron\n'
    '2\tno quotes here\t"""Weird Al"" Yankovic"\n'
    '3\tin the "midst of a field\t5" gun\n'
    '4\t""\t\n'
    '5\t"a tab \t inside, and U+2028 \u2028 too"\tKöln\r\n'
)
ITEMS = [
    Item("1", 'Aaron is a "prophet", they say.', "Aaron"),
    Item("2", "no quotes here", '"Weird Al" Yankovic'),
    Item("3", 'in the "midst of a field', '5" gun'),
    Item("4", "", ""),
    Item("5", "a tab \t inside, and U+2028 \u2028 too", "Köln"),
]


@pytest.mark.parametrize("name", ["psgs.tsv", "psgs.tsv.gz"])
@pytest.mark.parametrize("header", [HEADER, ""])
def test_rows_with_and_without_a_header(write: WriteFile, name: str, header: str) -> None:
    """Quoted fields, marks inside plain ones, empty ones; a header line is no passage, and no header is no fault."""
    data = (header + ROWS).encode()
    path = write(name, gzip.compress(data) if name.endswith(".gz") else data)
    source = dpr.passages(path, "some passages")
    assert list(source.read()) == ITEMS
    first = 2 if header else 1
    assert [line for line, _ in source.numbered()] == list(range(first, first + 5))
    assert (source.name, source.files, source.reader) == ("some passages", (path,), "dpr-passages/1")
    assert dpr.passages(path).name == name
    assert list(pickle.loads(pickle.dumps(source)).read()) == ITEMS  # noqa: S301 (our own bytes)


_FIELD = st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]), max_size=12)


@given(st.lists(st.tuples(_FIELD, _FIELD, _FIELD), min_size=1, max_size=5), st.sampled_from([0, 1]))
def test_what_csv_writes_is_read(rows: list[tuple[str, str, str]], quoting: int) -> None:
    """Python's own writer, quoting as needed or everywhere, is the oracle."""
    stream = io.StringIO()
    csv.writer(
        stream, delimiter="\t", lineterminator="\n", quoting=(csv.QUOTE_MINIMAL, csv.QUOTE_ALL)[quoting]
    ).writerows(rows)
    lines = stream.getvalue().split("\n")[:-1]
    assert [tuple(dpr.cells(line, dpr.COLUMNS)) for line in lines] == rows


def test_a_broken_stream_of_passages(write: WriteFile, errors: ReadErrors) -> None:
    """It ends too early."""
    (fault,) = errors(dpr.passages(write("c.tsv.gz", gzip.compress((HEADER + ROWS).encode())[:-9])).read())
    assert "found a truncated gzip stream" in fault


def test_memory_does_not_grow_with_the_file(write: WriteFile) -> None:
    """Ten times the rows need no more memory than a block and a line."""

    def peak(rows: int) -> int:
        path = write(f"{rows}.tsv", HEADER + "".join(f'{at}\t"{"word " * 100}"\tT\n' for at in range(rows)))
        source = dpr.passages(path)
        with traced() as most:
            assert sum(1 for _ in source.read()) == rows
            return most()

    assert peak(20_000) < peak(2_000) + (1 << 18)


def test_prepared_texts(write: WriteFile) -> None:
    """Lower-cased, marks made plain, id and language kept; a file's lines stay known."""
    path = write("psgs.tsv", "1\t“Ärger” – der İSTANBUL’s\tΟΔΟΣ\n")
    source = mkqa.prepared(dpr.passages(path, "p"))
    # U+0130 lowers to i and a combining dot; capital sigma at the end of a word lowers to final sigma
    expected = Item("1", '"ärger" - der i\u0307stanbul\'s', "οδο\u03c2")
    assert list(source.read()) == [expected]
    assert isinstance(source, FileSource)
    assert list(source.numbered()) == [(1, expected)]
    assert (source.files, source.name) == ((path,), "p (lower-cased, normalised)")
    assert source.reader.endswith(":dpr-passages/1")
    assert source.reader != dpr.passages(path).reader
    from_source = mkqa.prepared(Source("m", "mini/1", (), lambda: iter([Item("q", "WAS?", language="de")])))
    assert not isinstance(from_source, FileSource)
    assert list(from_source.read()) == [Item("q", "was?", language="de")]
    assert list(pickle.loads(pickle.dumps(source)).read()) == [expected]  # noqa: S301 (our own bytes)


_ODD = "aBΣσß İ“”‘’«»–—−\u00ad\u2028\u0085\t\x00\x1f…´`ˈ⁄~\u200b″?\u0301"
_TEXT = st.text(st.sampled_from(_ODD) | st.characters(exclude_categories=["Cs"], exclude_characters="."), max_size=12)


@given(_TEXT, _TEXT)
def test_title_and_text_may_be_prepared_apart(title: str, text: str) -> None:
    """Joined by a blank they give the official string: `(title + " " + text)` lower-cased and normalised."""
    (item,) = mkqa.prepared(Source("s", "r", (), lambda: iter([Item("1", text, title)]))).read()
    assert f"{item.title} {item.text}" == mkqa.normalise(f"{title} {text}".lower())


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    """Naming passages is no fault, reading them is, with path and sentence, prepared or not; of a line, the columns."""
    path = tmp_path / "psgs.tsv"
    source = optional_source(dpr.passages, [path], "p", expected="it", hint="fetch it")
    for passages in (source, mkqa.prepared(source)):
        assert passages.files == (path,)
        with pytest.raises(
            UsageError, check=fields(where=str(path), found="no such file", expected="it", hint="fetch it")
        ):
            next(iter(passages.read()))
    with pytest.raises(RecordError, match=r"found 1 column in 'x', expected 2 columns separated by tabs: a, b"):
        dpr.cells("x", ("a", "b"))


QUESTIONS = [
    ("who got the first nobel prize in physics", ["Wilhelm Conrad Röntgen"]),
    ("when is the next deadpool movie", ["May 18 , 2018", 'the "18th"']),
    ('who sang "oh, what a night"', ["The Four Season's", "Frankie 'Castelluccio' \"Valli\"", ""]),
    ("who got the first nobel prize in physics", ["Röntgen\\x"]),
]


def written() -> str:
    """Write questions as DPR does: csv with tabs, the answers as Python prints a list."""
    stream = io.StringIO()
    csv.writer(stream, delimiter="\t", lineterminator="\n").writerows(
        (question, repr(accepted)) for question, accepted in QUESTIONS
    )
    return stream.getvalue()


@pytest.mark.parametrize("name", ["nq-test.qa.csv", "trivia-test.qa.csv.gz"])
def test_questions_and_answers(write: WriteFile, name: str) -> None:
    """Ids are line numbers from 0, so that a question asked twice stays two; answers come as they were."""
    data = written().encode()
    path = write(name, gzip.compress(data) if name.endswith(".gz") else data)
    questions, answers = dpr.questions(path, "q"), dpr.answers(path)
    assert list(questions.read()) == [Item(str(at), text) for at, (text, _) in enumerate(QUESTIONS)]
    assert list(answers.read()) == [Answers(str(at), tuple(some)) for at, (_, some) in enumerate(QUESTIONS)]
    assert [line for line, _ in questions.numbered()] == [line for line, _ in answers.numbered()] == [1, 2, 3, 4]
    assert (questions.name, answers.name, questions.files) == ("q", name, (path,))
    assert list(pickle.loads(pickle.dumps(answers)).read()) == list(answers.read())  # noqa: S301 (our own bytes)


def test_nothing_is_evaluated(write: WriteFile, errors: ReadErrors, tmp_path: Path) -> None:
    """A list is a literal: code in its place is a fault, and is not run."""
    mark = tmp_path / "ran"
    path = write("q.csv", f"what\t[__import__('pathlib').Path('{mark}').touch()]\n")
    assert "expected a Python list of strings, e.g. ['Alan Turing']" in errors(dpr.answers(path).read())[0]
    assert not mark.exists()


@pytest.mark.parametrize("place", ["dpr-w100/psgs_w100.tsv", "dpr-w100/psgs_w100.tsv.gz", "nq/psgs_w100.tsv"])
def test_the_passages_are_found(write: WriteFile, tmp_path: Path, place: str) -> None:
    """In their own folder, unpacked or not, or beside the questions."""
    (tmp_path / "nq").mkdir()
    data = b"id\ttext\ttitle\n1\ta\tb\n"
    path = write(place, gzip.compress(data) if place.endswith(".gz") else data)
    source = wikipedia(DataRequest("official", tmp_path), "nq")
    assert source.files == (path,)
    assert list(source.read()) == [Item("1", "a", "b")]


def test_their_own_folder_comes_first(write: WriteFile, tmp_path: Path) -> None:
    """Unpacked before packed, shared before a suite's own."""
    for place in ("nq/psgs_w100.tsv", "dpr-w100/psgs_w100.tsv.gz"):
        write(place, gzip.compress(b"1\ta\tb\n") if place.endswith(".gz") else "1\ta\tb\n")
    request = DataRequest("official", tmp_path)
    assert wikipedia(request, "nq").files[0].name == "psgs_w100.tsv.gz"
    write("dpr-w100/psgs_w100.tsv", "1\ta\tb\n")
    assert wikipedia(request, "nq").files == (tmp_path / "dpr-w100" / "psgs_w100.tsv",)
