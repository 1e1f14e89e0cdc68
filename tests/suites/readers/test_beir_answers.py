"""One language of a BEIR folder with several: what is read of it, and what is said of malformed rows."""

import json
import pickle
from pathlib import Path

import pytest

from bench.core.errors import UsageError
from bench.data.formats.source import place
from bench.types import Answers, Item, Judgement
from suites.readers import beir_answers
from suites.readers.beir_answers import Part
from tests.conftest import ReadErrors, WriteFile


def row(id: object, language: str, *answers: str, **more: object) -> str:
    """A row of queries.jsonl; its English text is told apart from its own."""
    metadata = {"lang": language, "answers": list(answers), "question_en": f"What is {id}?", **more}
    return json.dumps({"_id": id, "text": f"Was ist {id}?", "metadata": metadata}, ensure_ascii=False)


ROWS = [row("a", "ar", "Portland", "Oregon"), row(2, "te", "don\u2028t"), row("c", "ar", ""), row("d", "ar", "x")]


@pytest.fixture
def folder(write: WriteFile) -> Path:
    """Four queries in two languages, of which `d` is in another split."""
    write("set/queries.jsonl", "\n".join(ROWS[:2]) + "\n\n" + "\n".join(ROWS[2:]) + "\n")
    write("set/qrels/dev.tsv", "query-id\tcorpus-id\tscore\nd\tp1\t1\n")
    return write(
        "set/qrels/test.tsv", "query-id\tcorpus-id\tscore\na\tp1\t1\n2\tp2\t1\nc\tp1\t1\nc\tp2\t0\n"
    ).parent.parent


def test_a_language(folder: Path) -> None:
    """Queries of all splits; judgements and answers of one; all of them of that language alone, with their lines."""
    part = Part("test", "ar")
    assert list(beir_answers.queries(folder, part).numbered()) == [
        (1, Item("a", "Was ist a?", language="ar")),
        (4, Item("c", "Was ist c?", language="ar")),
        (5, Item("d", "Was ist d?", language="ar")),
    ]
    assert list(beir_answers.qrels(folder, part).numbered()) == [
        (2, Judgement("a", "p1", 1)),
        (4, Judgement("c", "p1", 1)),
        (5, Judgement("c", "p2", 0)),
    ]
    assert list(beir_answers.answers(folder, part).numbered()) == [
        (1, Answers("a", ("Portland", "Oregon"))),
        (4, Answers("c", ("",))),
    ]
    assert list(beir_answers.answers(folder, Part("dev", "ar")).read()) == [Answers("d", ("x",))]


def test_all_languages_in_english(folder: Path) -> None:
    """The same ids and answers, other texts, one language."""
    part = Part("test", english=True)
    questions = list(beir_answers.queries(folder, part).read())
    assert [(item.id, item.language) for item in questions] == [(name, "en") for name in ("a", "2", "c", "d")]
    assert questions[1].text == "What is 2?"
    assert [row.query for row in beir_answers.qrels(folder, part).read()] == ["a", "2", "c", "c"]
    assert [row.query for row in beir_answers.answers(folder, part).read()] == ["a", "2", "c"]
    assert list(beir_answers.answers(folder, part).read())[1].strings == ("don\u2028t",)


def test_a_judged_query_that_is_not_there_is_told_of_where_all_are_read(folder: Path) -> None:
    """It has no language; so it is handed on with all languages, and later stages refuse it."""
    with (folder / "qrels" / "test.tsv").open("a") as qrels:
        qrels.write("zz\tp1\t1\n")
    assert [row.query for row in beir_answers.qrels(folder, Part("test")).read()][-1] == "zz"


def test_what_decides_the_records_is_named(folder: Path) -> None:
    """Every file that is looked into, and the part; the sources travel to other processes."""
    queries, qrels = folder / "queries.jsonl", folder / "qrels" / "test.tsv"
    part = Part("test", "ar")
    sources = [read(folder, part, "s") for read in (beir_answers.queries, beir_answers.qrels, beir_answers.answers)]
    assert [source.files for source in sources] == [(queries,), (qrels, queries), (queries, qrels)]
    assert [place(source) for source in sources] == [str(queries), str(qrels), str(queries)]
    assert [source.name for source in sources] == ["s queries", "s qrels (test)", "s answers (test)"]
    others = (Part("dev", "ar"), Part("test", "te"), Part("test"), Part("test", "ar", english=True))
    assert len({beir_answers.queries(folder, other).reader for other in (part, *others)}) == 5
    for source in sources:
        assert list(pickle.loads(pickle.dumps(source)).read()) == list(source.read())  # noqa: S301 (our own bytes)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"_id": "e", "text": "?"}', 'no "metadata" (only '),
        ('{"_id": "e", "text": "?", "metadata": null}', '"metadata": None'),
        (row("e", "ar"), '"answers": an empty list, expected at least one accepted answer'),
        (row("e", "ar", "x", answers="x"), "\"answers\": 'x', expected a list of strings"),
        (row("e", "ar", "x", lang=None), '"lang": None, expected a string'),
        (row("e", "ar", "x", question_en=7), '"question_en": 7, expected a string'),
        (row("e", "ar", "x").replace("What", "\\ud800"), r'half of a surrogate pair (\ud800) in "metadata"'),
        (row("a", "te", "x"), "query id 'a' a second time"),
    ],
)
def test_malformed_rows(folder: Path, write: WriteFile, errors: ReadErrors, line: str, sentence: str) -> None:
    """File and line, what was found and what was expected, in whatever language is read."""
    write("set/queries.jsonl", "\n".join([*ROWS, line]) + "\n")
    for source in (beir_answers.queries(folder, Part("test", "te")), beir_answers.answers(folder, Part("test", "te"))):
        (fault,) = errors(source.read())
        assert fault.startswith(f"{folder / 'queries.jsonl'}:5: found ")
        assert sentence in fault


def test_missing_files(folder: Path) -> None:
    """Both files are asked for before anything is read."""
    (folder / "qrels" / "test.tsv").unlink()
    for read in (beir_answers.qrels, beir_answers.answers):
        with pytest.raises(UsageError, match=r"found no qrels/test.tsv"):
            read(folder, Part("test"))
    (folder / "queries.jsonl").unlink()
    with pytest.raises(UsageError, match=r"found no queries.jsonl"):
        beir_answers.queries(folder, Part("test"))
