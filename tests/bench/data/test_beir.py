"""Folders in BEIR's layout: what is read, and what is said of each malformed line."""

import gzip
import pickle
import subprocess
from pathlib import Path

import pytest

from bench.core.errors import DataError, UsageError
from bench.data.formats import beir
from bench.testing import fields
from bench.types import Item, Judgement
from tests.conftest import ReadErrors, WriteFile, cases, released

CORPUS = """\
{"_id": "d1", "title": "One", "text": "first text", "metadata": {"lang": "de", "source": "x"}}
{"_id": 2, "title": null, "text": ""}

{"_id": "d3", "text": "a\u2028b\u0085c \\ud83d\\ude00", "metadata": {}}
"""
QUERIES = '{"_id": "q1", "text": "what?"}\n{"_id": "q2", "text": "wer?", "metadata": {"lang": "de"}}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td3\t-1\nq2\td1\t1.0\n"
HEADER = "the header line with the columns query-id, corpus-id, score, separated by tabs"


@pytest.fixture
def folder(write: WriteFile) -> Path:
    write("set/corpus.jsonl", CORPUS)
    write("set/queries.jsonl", QUERIES)
    return write("set/qrels/test.tsv", QRELS).parent.parent


def test_records(folder: Path) -> None:
    """Every field lands where it belongs, with its line; a source is named before anything is opened."""
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
    assert [line for line, _ in beir.corpus(folder).numbered()] == [1, 2, 4]
    assert [line for line, _ in beir.qrels(folder, "test").numbered()] == [2, 3, 4]
    source = beir.corpus(folder, "beir/set")
    assert (source.name, source.reader, source.files) == (
        "beir/set corpus",
        "beir-corpus/1",
        (folder / "corpus.jsonl",),
    )
    assert list(pickle.loads(pickle.dumps(source)).read()) == list(source.read())  # noqa: S301 (our own bytes)


def test_files_of_a_folder(folder: Path, write: WriteFile) -> None:
    """A compressed file stands in for the plain one, not both; what is missing is named with the layout."""
    layout = r"expected (a folder|one) that holds corpus.jsonl, queries.jsonl and qrels/{split}.tsv"
    with pytest.raises(UsageError, match=rf"set: found no qrels/dev.tsv, {layout}"):
        beir.qrels(folder, "dev")
    with pytest.raises(UsageError, match=rf"nowhere: found no such folder, {layout}"):
        beir.corpus(folder / "nowhere")
    plain = folder / "corpus.jsonl"
    write("set/corpus.jsonl.gz", gzip.compress(plain.read_bytes()))
    check = fields(found="corpus.jsonl and corpus.jsonl.gz", expected="one of them", hint="remove or re")
    with pytest.raises(UsageError, check=check):
        beir.corpus(folder)
    plain.unlink()
    assert [item.id for item in beir.corpus(folder).read()] == ["d1", "2", "d3"]
    write("set/qrels/dev.tsv.gz", gzip.compress(QRELS.encode()))
    write("set/qrels/notes.txt", "no split")
    write("set/qrels/old.tsv~", "no split")
    assert beir.splits(folder) == ("dev", "test")


@pytest.mark.parametrize(
    ("row", "sentence"),
    [*cases("beir-documents"), ("[" * 100_000, "found JSON that cannot be read (maximum recursion depth exceeded")],
)
def test_malformed_documents(write: WriteFile, errors: ReadErrors, row: str, sentence: str) -> None:
    """Each kind of malformed row is told with file, line, found and expected."""
    path = write("set/corpus.jsonl", '{"_id": "first", "text": ""}\n' + row + "\n")
    (message,) = errors(beir.corpus(path.parent).read())
    assert message.startswith(f"{path}:2: {sentence}")
    if "recursion" not in sentence:
        assert message == f"{path}:2: {sentence}"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        *cases("beir-judgements"),
        (f"q1\td2\t{'1' * 5000}", f"found grade '{'1' * 58}…, expected a whole number from -2147483647 to 2147483647"),
    ],
)
def test_malformed_judgements(write: WriteFile, errors: ReadErrors, row: str, sentence: str) -> None:
    """Each kind of malformed row is told with file, line, found and expected."""
    path = write("set/qrels/test.tsv", f"query-id\tcorpus-id\tscore\nq1\td1\t1\n{row}\n")
    assert errors(beir.qrels(path.parent.parent, "test").read()) == [f"{path}:3: {sentence}"]


def test_faults_of_a_file(write: WriteFile, errors: ReadErrors) -> None:
    """All at once and no record after the first; no row is swallowed as a header; a file without records is refused."""
    path = write("set/qrels/test.tsv", "q1\td1\t1\nq1\td2\tx\n")
    assert errors(beir.qrels(path.parent.parent, "test").read()) == [
        f"{path}:1: found 'q1\\td1\\t1', expected {HEADER}; write that as the first line",
        f"{path}:2: found grade 'x', expected a whole number",
    ]
    path = write("set/queries.jsonl", QUERIES + '{"_id": "q1", "text": "again"}\n')
    assert errors(beir.queries(path.parent).read()) == [
        f"{path}:3: found query id 'q1' a second time, expected it once (first at line 1); remove one of the two"
    ]
    path = write("set/queries.jsonl", "\n \n")
    assert errors(beir.queries(path.parent).read()) == [f"{path}: found no record, expected at least one"]
    path = write("set/qrels/test.tsv", "query-id\tcorpus-id\tscore\n")
    (sentence,) = errors(beir.qrels(path.parent.parent, "test").read())
    assert sentence == f"{path}: found no judgement, expected at least one judgement"
    rows = [
        '{"_id": "d1", "text": "good"}',
        "no json",
        '{"_id": "d2", "text": "good"}',
        b"\xff".decode("latin-1"),
        "{}",
    ]
    path = write("set/corpus.jsonl", "\n".join(rows).encode("latin-1"))
    items: list[Item] = []
    with pytest.raises(Exception, match="found no JSON") as caught:
        items.extend(beir.corpus(path.parent).read())
    assert [item.id for item in items] == ["d1"]
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


@pytest.mark.parametrize(
    ("first", "hint"),
    [
        ("q1 0 d1 1", "these look like TREC's judgements: (printf"),
        ("q1\t0\td1\t1", "these look like TREC's judgements: (printf"),
        ("query-id\tcorpus-id\tscore\titer", ""),
        ("query-id,corpus-id,score", "put tabs between the columns"),
        ("query-id corpus-id score", "put tabs between the columns"),
    ],
)
def test_judgements_of_another_form(folder: Path, write: WriteFile, first: str, hint: str) -> None:
    """Told once, at the first line, with what to type; no line after it is a fault of its own."""
    write("set/qrels/test.tsv", f"{first}\nq2 0 d2 1\nx\n")
    with pytest.raises(DataError, check=fields(line=1, hint=hint)):
        list(beir.qrels(folder, "test").read())


def test_what_the_hint_types_is_read(folder: Path, write: WriteFile) -> None:
    """The command that turns TREC's judgements into BEIR's does so."""
    path = write("set/qrels/test.tsv", "q1 0 d1 2\nq2 0 d3 1\n")
    with pytest.raises(DataError) as caught:
        list(beir.qrels(folder, "test").read())
    command = caught.value.hint.partition(": ")[2].replace("FILE", path.name)
    subprocess.run(["/bin/sh", "-c", command], cwd=path.parent, check=True)
    assert list(beir.qrels(folder, "test").read()) == [Judgement("q1", "d1", 2), Judgement("q2", "d3", 1)]


@pytest.mark.parametrize("content", ["[\n", '[{"_id": "d1", "text": "t"}]'])
def test_an_array_for_lines(folder: Path, write: WriteFile, content: str) -> None:
    """A JSON array says how it becomes lines, whether it stands on one line or on many."""
    write("set/corpus.jsonl", content)
    with pytest.raises(DataError, check=fields(line=1, hint="an array becomes one object a line by jq -c '.[]' FILE")):
        list(beir.corpus(folder).read())


def test_lines_that_end_in_a_carriage_return(folder: Path, write: WriteFile) -> None:
    """All of the file is one line then, and the hint says how to cut it."""
    write("set/queries.jsonl", QUERIES.replace("\n", "\r"))
    with pytest.raises(DataError, check=fields(line=1, hint="its lines end in a carriage return alone: tr")):
        list(beir.queries(folder).read())


def test_a_language_that_is_no_code(folder: Path, write: WriteFile) -> None:
    """It would choose BM25's analyzer, so a language's name is refused as in corpora of pretraining."""
    write("set/corpus.jsonl", '{"_id": "d1", "text": "t", "metadata": {"lang": "swahili"}}\n')
    write("set/queries.jsonl", '{"_id": "q1", "text": "t", "metadata": {"lang": "DE "}}\n')
    assert [item.language for item in beir.queries(folder).read()] == ["de"]
    with pytest.raises(DataError, check=fields(line=1, found="language 'swahili'", expected="an ISO 639 code")):
        list(beir.corpus(folder).read())


def test_a_document_that_the_protocol_leaves_out_is_not_relevant(folder: Path, write: WriteFile) -> None:
    """Queries and documents numbered alike would score 0 without a word; a grade of 0 says nothing wrong."""
    write("set/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\tq1\t0\nd1\td1\t1\n")
    assert len(list(beir.qrels(folder, "test").read())) == 2
    hint = "if they are one text, leave such lines out"
    check = fields(line=3, found="document 'd1' relevant to the query of the same id", hint=hint)
    with pytest.raises(DataError, check=check):
        list(beir.qrels(folder, "test", drops_identical=True).read())
