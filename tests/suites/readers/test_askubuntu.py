"""AskUbuntu's format: candidate lists, their judgements, and the texts that they name."""

import gzip
import pickle
from pathlib import Path

import pytest

from bench.core.errors import DataError, DataFaultsError
from bench.types import Candidates, Item, Judgement
from suites.readers import askubuntu as candidates

LISTS = "10\t12\t11 12\t2.5 2.5\n20\t\t11 13\t3.0 1e0\n30\t13 11\t13 14 11\t9 8 -7\n"
TEXTS = (
    "9\tnobody asks\tthis\n10\task ten\tbody of ten\n11\televen\t\n12\ttwelve \n13\t\tonly a body\n"
    "20\tb\tc\n14\td\te\n30\tf\tg\n"
)


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """Three queries, the second without a similar question."""
    path = tmp_path / "test.txt"
    path.write_text(LISTS)
    return path


def test_lists_and_judgements_of_a_file(lists: Path) -> None:
    """Candidates of all queries in the official order; judgements of those that have a similar question."""
    given, judged = candidates.candidates(lists, "c"), candidates.judgements(lists)
    assert list(given.read()) == [
        Candidates("10", ("11", "12"), (2.5, 2.5)),
        Candidates("20", ("11", "13"), (3.0, 1.0)),
        Candidates("30", ("13", "14", "11"), (9.0, 8.0, -7.0)),
    ]
    rows = [Judgement("10", "12", 1), Judgement("30", "13", 1), Judgement("30", "11", 1)]
    assert list(judged.read()) == rows
    assert list(judged.numbered()) == list(zip([1, 3, 3], rows, strict=True))
    assert [line for line, _ in given.numbered()] == [1, 2, 3]
    assert (given.name, judged.name, given.files, judged.files) == ("c", "test.txt", (lists,), (lists,))
    assert list(pickle.loads(pickle.dumps(given)).read()) == list(given.read())  # noqa: S301 (our own bytes)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("10\t12\t11 12", r"found 3 columns in .*, expected 4 columns separated by tabs: query id, similar ids"),
        ("1 0\t12\t11 12\t2 1", r"query id '1 0', expected an id without white space"),
        ("10\t13\t11 12\t2 1", r"similar question '13', expected one of the 2 candidates of the line"),
        ("10\t11 11\t11 12\t2 1", r"similar question '11' a second time"),
        ("10\t\t11 11\t2 1", r"candidate '11' a second time"),
        ("10\t\t\t", r"no candidate of query '10', expected at least one"),
        ("10\t\t11 12\t2", r"found 1 scores, expected 2, one a candidate"),
        ("10\t\t11 12\t2 x", r"could not convert string to float: 'x', expected a number"),
        ("10\t\t11 12\t2 nan", r"not finite"),
        ("10\t\t11 12\t1 2", r"found score 2\.0 after 1\.0, expected scores that never increase"),
    ],
)
def test_malformed_lines_get_a_sentence(tmp_path: Path, line: str, message: str) -> None:
    """Whoever reads the file first says so, with the line."""
    path = tmp_path / "test.txt"
    path.write_text(f"5\t\t6\t1\n{line}\n")
    for source in (candidates.candidates(path), candidates.judgements(path)):
        with pytest.raises(DataError, match=message) as caught:
            list(source.read())
        assert caught.value.line == 2


def test_a_query_stands_once(tmp_path: Path) -> None:
    """Two lines of one query would be scored twice."""
    path = tmp_path / "test.txt"
    path.write_text(f"{LISTS}10\t\t11\t1\n")
    with pytest.raises(DataError, match=r":4: found query id '10' a second time, expected it once \(first at line 1\)"):
        list(candidates.candidates(path).read())


def test_texts_are_titles_or_title_and_body(tmp_path: Path) -> None:
    """Packed or not; a missing body, or title, leaves the other; the two ways of reading are told apart in keys."""
    path = tmp_path / "texts.gz"
    path.write_bytes(gzip.compress(TEXTS.encode()))
    titles, whole = candidates.texts(path), candidates.texts(path, body=True)
    found = {item.id: item.text for item in titles.read()}
    assert found == {
        "9": "nobody asks",
        "10": "ask ten",
        "11": "eleven",
        "12": "twelve",
        "13": "",
        "20": "b",
        "14": "d",
        "30": "f",
    }
    joined = {item.id: item.text for item in whole.read()}
    assert joined["10"] == "ask ten body of ten"
    assert (joined["11"], joined["12"], joined["13"]) == ("eleven", "twelve", "only a body")
    assert titles.reader != whole.reader


def test_malformed_texts(tmp_path: Path) -> None:
    """A wrong number of columns and a question that comes twice."""
    path = tmp_path / "texts"
    path.write_text("1\n1\ta\tb\tc\n1\ta\n1\tb\n")
    with pytest.raises(DataFaultsError) as caught:
        list(candidates.texts(path).read())
    assert [fault.line for fault in caught.value.faults] == [1, 2, 4]
    assert "expected 3 columns separated by tabs: question id, title, body" in str(caught.value)


def test_only_the_named_questions_are_read(tmp_path: Path, lists: Path) -> None:
    """Queries and pool in the order of the texts, each once; both files decide what is read."""
    path = tmp_path / "texts"
    path.write_text(TEXTS)
    text, given = candidates.texts(path), candidates.candidates(lists)
    queries, pool = candidates.queries_of(text, given), candidates.pool_of(text, given)
    assert list(queries.read()) == [Item("10", "ask ten"), Item("20", "b"), Item("30", "f")]
    assert [item.id for item in pool.read()] == ["11", "12", "13", "14"]
    assert queries.files == pool.files == (path, lists)
    assert len({queries.reader, pool.reader, candidates.pool_of(candidates.texts(path, body=True), given).reader}) == 3
    path.write_text("10\ta\n20\tb\n30\tc\n12\td\n")
    assert len(list(queries.read())) == 3
    with pytest.raises(
        DataError, match=r"texts: found no text for 3 of the 4 questions of test\.txt, e\.g\. '11', expected one"
    ):
        list(pool.read())
