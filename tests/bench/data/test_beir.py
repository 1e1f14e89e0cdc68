"""Folders in BEIR's layout: what is read, and what is said of each malformed line."""

import gzip
import pickle
from pathlib import Path

import pytest

from bench.core.errors import UsageError
from bench.data.formats import beir
from bench.testing import fields
from bench.types import Item, Judgement
from tests.conftest import Put, Told, released

CORPUS = """\
{"_id": "d1", "title": "One", "text": "first text", "metadata": {"lang": "de", "source": "x"}}
{"_id": 2, "title": null, "text": ""}

{"_id": "d3", "text": "a\u2028b\u0085c \\ud83d\\ude00", "metadata": {}}
"""
QUERIES = '{"_id": "q1", "text": "what?"}\n{"_id": "q2", "text": "wer?", "metadata": {"lang": "de"}}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td3\t-1\nq2\td1\t1.0\n"
WHITE = "expected an id without white space; run and qrels files are separated by it"
HEADER = "the header line with the columns query-id, corpus-id, score, separated by tabs"
COLUMNS = "3 columns separated by tabs: query-id, corpus-id, score"
KEYS = 'a JSON object with the keys "_id", "title" and "text"'


@pytest.fixture
def folder(put: Put) -> Path:
    """A whole folder."""
    put("set/corpus.jsonl", CORPUS)
    put("set/queries.jsonl", QUERIES)
    return put("set/qrels/test.tsv", QRELS).parent.parent


def test_records(folder: Path) -> None:
    """Every field lands where it belongs; blank lines are passed over, texts keep their odd line ends."""
    assert list(beir.corpus(folder).read()) == [
        Item("d1", "first text", "One", "de"),
        Item("2", ""),
        Item("d3", "a\u2028b\u0085c 😀"),
    ]
    assert list(beir.queries(folder).read()) == [Item("q1", "what?"), Item("q2", "wer?", language="de")]
    assert list(beir.qrels(folder, "test").read()) == [
        Judgement("q1", "d1", 2),
        Judgement("q1", "d3", -1),
        Judgement("q2", "d1", 1),
    ]


def test_lines_of_records(folder: Path) -> None:
    """A source of a file says which line each record stands on."""
    assert [line for line, _ in beir.corpus(folder).numbered()] == [1, 2, 4]
    assert [line for line, _ in beir.qrels(folder, "test").numbered()] == [2, 3, 4]


def test_source_says_what_decides_it(folder: Path) -> None:
    """Name, reader and file are there before anything is opened; the source travels to other processes."""
    source = beir.corpus(folder, "beir/set")
    assert (source.name, source.reader, source.files) == (
        "beir/set corpus",
        "beir-corpus/1",
        (folder / "corpus.jsonl",),
    )
    assert list(pickle.loads(pickle.dumps(source)).read()) == list(source.read())  # noqa: S301 (our own bytes)


def test_compressed_files_are_found(folder: Path, put: Put) -> None:
    """A compressed file stands in for the plain one; both at once are a question back."""
    plain = folder / "corpus.jsonl"
    put("set/corpus.jsonl.gz", gzip.compress(plain.read_bytes()))
    with pytest.raises(
        UsageError, check=fields(found="corpus.jsonl and corpus.jsonl.gz", expected="one of them", hint="remove or re")
    ):
        beir.corpus(folder)
    plain.unlink()
    assert [item.id for item in beir.corpus(folder).read()] == ["d1", "2", "d3"]


def test_missing_files_are_told_with_the_layout(folder: Path) -> None:
    """What is missing is named, and what a folder must hold."""
    layout = r"expected (a folder|one) that holds corpus.jsonl, queries.jsonl and qrels/{split}.tsv"
    with pytest.raises(UsageError, match=rf"set: found no qrels/dev.tsv, {layout}"):
        beir.qrels(folder, "dev")
    with pytest.raises(UsageError, match=rf"nowhere: found no such folder, {layout}"):
        beir.corpus(folder / "nowhere")


def test_splits(folder: Path, put: Put) -> None:
    """Splits are the names of the qrels files, without endings."""
    put("set/qrels/dev.tsv.gz", gzip.compress(QRELS.encode()))
    put("set/qrels/notes.txt", "no split")
    put("set/qrels/old.tsv~", "no split")
    assert beir.splits(folder) == ("dev", "test")


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ('{"_id": d}', f"found no JSON (Expecting value at place 9 of the line), expected {KEYS}"),
        ("[" * 100_000, "found JSON that cannot be read (maximum recursion depth exceeded"),
        ('["d1"]', f"found JSON that is no object: ['d1'], expected {KEYS}"),
        ('{"text": "t", "id": "d"}', "found no \"_id\" (only 'text', 'id'), expected the document id"),
        ('{"_id": "d", "title": "t"}', "found no \"text\" (only '_id', 'title'), expected a string under that key"),
        ('{"_id": "d", "text": null}', 'found "text": None, expected a string'),
        ('{"_id": "d", "text": ["t"]}', "found \"text\": ['t'], expected a string"),
        ('{"_id": "d", "text": "t", "title": 7}', 'found "title": 7, expected a string or null'),
        ('{"_id": 1.5, "text": "t"}', "found document id 1.5, expected a string"),
        ('{"_id": true, "text": "t"}', "found document id True, expected a string"),
        ('{"_id": "", "text": "t"}', "found an empty document id, expected at least one character"),
        ('{"_id": "a b", "text": "t"}', f"found document id 'a b', {WHITE}"),
        ('{"_id": "a\\u00a0", "text": "t"}', rf"found document id 'a\xa0', {WHITE}"),
        ('{"_id": "a\\u0000", "text": "t"}', rf"found document id 'a\x00', {WHITE}"),
        (
            '{"_id": "d", "text": "\\ud83d"}',
            r'found half of a surrogate pair (\ud83d) in "text", expected whole characters',
        ),
        ('{"_id": "d", "text": "t", "metadata": 1}', 'found "metadata": 1, expected an object or null'),
        (
            '{"_id": "d", "text": "t", "metadata": {"lang": 1}}',
            'found "metadata": {"lang": 1}, expected a language code',
        ),
    ],
)
def test_malformed_documents(put: Put, told: Told, row: str, sentence: str) -> None:
    """Each kind of malformed row is told with file, line, found and expected."""
    path = put("set/corpus.jsonl", '{"_id": "first", "text": ""}\n' + row + "\n")
    (found,) = told(beir.corpus(path.parent).read())
    assert found.startswith(f"{path}:2: {sentence}")
    if "recursion" not in sentence:
        assert found == f"{path}:2: {sentence}"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("q1\td2", f"found 2 columns in 'q1\\td2', expected {COLUMNS}"),
        ("q1 d2 1", f"found 1 column in 'q1 d2 1', expected {COLUMNS}"),
        ("q1\td2\t1\tx", f"found 4 columns in 'q1\\td2\\t1\\tx', expected {COLUMNS}"),
        ("q1\td2\t0.5", "found grade '0.5', expected a whole number"),
        ("q1\td2\tnan", "found grade 'nan', expected a whole number"),
        ("q1\td2\t1_0", "found grade '1_0', expected a whole number"),
        (f"q1\td2\t{'1' * 5000}", f"found grade '{'1' * 58}…, expected a whole number"),
        ("q1\td2\t", "found grade '', expected a whole number"),
        ("q1\td2\t4294967296", "found grade '4294967296', expected a whole number of at most 31 bits"),
        ("\td2\t1", "found an empty query id, expected at least one character"),
        ("q1\td 2\t1", f"found document id 'd 2', {WHITE}"),
        (
            "q1\td1\t0",
            (
                "found document 'd1' of query 'q1' a second time, "
                "expected it once (first at line 2); remove one of the two"
            ),
        ),
    ],
)
def test_malformed_judgements(put: Put, told: Told, row: str, sentence: str) -> None:
    """Each kind of malformed row is told with file, line, found and expected."""
    path = put("set/qrels/test.tsv", f"query-id\tcorpus-id\tscore\nq1\td1\t1\n{row}\n")
    assert told(beir.qrels(path.parent.parent, "test").read()) == [f"{path}:3: {sentence}"]


def test_missing_header(put: Put, told: Told) -> None:
    """A first row that is a judgement is not swallowed as header; the other rows are still looked at."""
    path = put("set/qrels/test.tsv", "q1\td1\t1\nq1\td2\tx\n")
    assert told(beir.qrels(path.parent.parent, "test").read()) == [
        f"{path}:1: found 'q1\\td1\\t1', expected {HEADER}",
        f"{path}:2: found grade 'x', expected a whole number",
    ]


def test_duplicate_query(put: Put, told: Told) -> None:
    """A query id comes once."""
    path = put("set/queries.jsonl", QUERIES + '{"_id": "q1", "text": "again"}\n')
    assert told(beir.queries(path.parent).read()) == [
        f"{path}:3: found query id 'q1' a second time, expected it once (first at line 1); remove one of the two"
    ]


def test_files_without_records(put: Put, told: Told) -> None:
    """A file without any record is a fault, never an empty data set; a header is no judgement."""
    path = put("set/queries.jsonl", "\n \n")
    assert told(beir.queries(path.parent).read()) == [f"{path}: found no record, expected at least one"]
    path = put("set/qrels/test.tsv", "query-id\tcorpus-id\tscore\n")
    (sentence,) = told(beir.qrels(path.parent.parent, "test").read())
    assert sentence == f"{path}: found no judgement, expected at least one judgement"


def test_all_faults_are_told_and_no_record_after_the_first(put: Put) -> None:
    """A file is mended in one go; a reader does no work for records of a file that is refused anyway."""
    rows = [
        '{"_id": "d1", "text": "good"}',
        "no json",
        '{"_id": "d2", "text": "good"}',
        b"\xff".decode("latin-1"),
        "{}",
    ]
    path = put("set/corpus.jsonl", "\n".join(rows).encode("latin-1"))
    given: list[Item] = []
    with pytest.raises(Exception, match="found no JSON") as caught:
        given.extend(beir.corpus(path.parent).read())
    assert [item.id for item in given] == ["d1"]
    places = [sentence.split(": found")[0] for sentence in str(caught.value).split("\n")]
    assert places == [f"{path}:{line}" for line in (2, 4, 5)]


@pytest.mark.parametrize(
    ("name", "documents", "queries", "judged", "judgements", "splits", "grades"),
    [
        ("scifact", 5_183, 1_109, 300, 339, ("test", "train"), {1}),
        ("nfcorpus", 3_633, 3_237, 323, 12_334, ("dev", "test", "train"), {1, 2}),
    ],
)
def test_published_sets(
    name: str, documents: int, queries: int, judged: int, judgements: int, splits: tuple[str, ...], grades: set[int]
) -> None:
    """Real sets give the published counts."""
    folder = released(f"beir/{name}") / "beir" / name
    rows = list(beir.qrels(folder, "test").read())
    items = list(beir.corpus(folder).read())
    assert (len(items), len({item.id for item in items})) == (documents, documents)
    assert sum(1 for _ in beir.queries(folder).read()) == queries
    assert (len({row.query for row in rows}), len(rows)) == (judged, judgements)
    assert beir.splits(folder) == splits
    assert {row.grade for row in rows} == grades
