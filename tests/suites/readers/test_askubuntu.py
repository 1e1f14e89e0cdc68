"""AskUbuntu's format: candidate lists, their judgements, and the texts that they name."""

import gzip
import pickle
from pathlib import Path

import pytest

from bench.core.errors import DataError
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
    source_of_lists, judged = candidates.candidates(lists, "c"), candidates.judgements(lists)
    assert list(source_of_lists.read()) == [
        Candidates("10", ("11", "12"), (2.5, 2.5)),
        Candidates("20", ("11", "13"), (3.0, 1.0)),
        Candidates("30", ("13", "14", "11"), (9.0, 8.0, -7.0)),
    ]
    rows = [Judgement("10", "12", 1), Judgement("30", "13", 1), Judgement("30", "11", 1)]
    assert list(judged.read()) == rows
    assert list(judged.numbered()) == list(zip([1, 3, 3], rows, strict=True))
    assert [line for line, _ in source_of_lists.numbered()] == [1, 2, 3]
    assert (source_of_lists.name, judged.name, source_of_lists.files, judged.files) == (
        "c",
        "test.txt",
        (lists,),
        (lists,),
    )
    assert list(pickle.loads(pickle.dumps(source_of_lists)).read()) == list(source_of_lists.read())  # noqa: S301 (our own bytes)


def test_texts_are_titles_or_title_and_body(tmp_path: Path) -> None:
    """Packed or not; a missing body, or title, leaves the other; the two ways of reading are told apart in keys."""
    path = tmp_path / "texts.gz"
    path.write_bytes(gzip.compress(TEXTS.encode()))
    titles, with_bodies = candidates.texts(path), candidates.texts(path, body=True)
    texts = {item.id: item.text for item in titles.read()}
    assert texts == {
        "9": "nobody asks",
        "10": "ask ten",
        "11": "eleven",
        "12": "twelve",
        "13": "",
        "20": "b",
        "14": "d",
        "30": "f",
    }
    joined = {item.id: item.text for item in with_bodies.read()}
    assert joined["10"] == "ask ten body of ten"
    assert (joined["11"], joined["12"], joined["13"]) == ("eleven", "twelve", "only a body")
    assert titles.reader != with_bodies.reader


def test_only_the_named_questions_are_read(tmp_path: Path, lists: Path) -> None:
    """Queries and pool in the order of the texts, each once; both files decide what is read."""
    path = tmp_path / "texts"
    path.write_text(TEXTS)
    text, source_of_lists = candidates.texts(path), candidates.candidates(lists)
    queries, pool = (candidates.select(text, source_of_lists, role) for role in ("queries", "candidates"))
    assert list(queries.read()) == [Item("10", "ask ten"), Item("20", "b"), Item("30", "f")]
    assert [item.id for item in pool.read()] == ["11", "12", "13", "14"]
    assert queries.files == pool.files == (path, lists)
    assert (
        len(
            {
                queries.reader,
                pool.reader,
                candidates.select(candidates.texts(path, body=True), source_of_lists, "candidates").reader,
            }
        )
        == 3
    )
    path.write_text("10\ta\n20\tb\n30\tc\n12\td\n")
    assert len(list(queries.read())) == 3
    with pytest.raises(
        DataError, match=r"texts: found no text for 3 of the 4 questions of test\.txt, e\.g\. '11', expected one"
    ):
        list(pool.read())
