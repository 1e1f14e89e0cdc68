"""TREC qrels, topics and runs: read, written, and told where malformed."""

import gzip
import io
import math
import subprocess
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core.errors import DataError, PluginError
from bench.data.formats.trec import qrels_source, read_qrels, read_run, topics_source, write_run
from bench.testing import fields
from bench.types import Item, Judgement, Ranking, Tie
from tests.conftest import ReadErrors, WriteFile, cases

QRELS = (
    "4 columns separated by white space: query, iteration, document, grade (or BEIR's 3 columns under the header line "
    "query-id, corpus-id, score)"
)
DUPLICATE = "expected it once (first at line {}); remove one of the two"


def written(*rankings: Ranking, tag: str = "tag") -> str:
    stream = io.BytesIO()
    write_run(stream, rankings, tag)
    return stream.getvalue().decode()


@pytest.mark.parametrize(
    "content",
    ["q1 0 d1 1\nq2\tQ0\td1\t0\nq1 0   d2 -1\n", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td1\t0\nq1\td2\t-1\n"],
    ids=["trec", "beir"],
)
def test_qrels_of_either_form(write: WriteFile, content: str) -> None:
    """TREC's columns and BEIR's, told by the header, give the same judgements."""
    path = write("qrels", content)
    assert read_qrels(path) == {"q1": {"d1": 1, "d2": -1}, "q2": {"d1": 0}}
    source = qrels_source(path)
    assert list(source.read()) == [Judgement("q1", "d1", 1), Judgement("q2", "d1", 0), Judgement("q1", "d2", -1)]
    assert source.files == (path,)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("q1 0 d2", f"found 3 columns in 'q1 0 d2', expected {QRELS}"),
        ("q1 0 d2 1 1", f"found 5 columns in 'q1 0 d2 1 1', expected {QRELS}"),
        ("q1 0 d2 high", "found grade 'high', expected a whole number"),
        ("q1 0\0 d2 1", "found a NUL in 'q1 0\\x00 d2 1', expected text, which is read in C too"),
        ("q1 1 d1 2", f"found document 'd1' of query 'q1' a second time, {DUPLICATE.format(1)}"),
    ],
)
def test_malformed_qrels(write: WriteFile, errors: ReadErrors, row: str, sentence: str) -> None:
    """Each kind of malformed row is told with file, line, found and expected."""
    path = write("qrels", f"q1 0 d1 1\n{row}\n")
    assert errors(qrels_source(path).read()) == [f"{path}:2: {sentence}"]


def test_topics(write: WriteFile, errors: ReadErrors) -> None:
    """The text is all behind the first tab; rows without tab or text and repeated ids are faults."""
    path = write("topics.tsv", "1\twhat is\tthis\n2\tund das?\n")
    expected = [Item("1", "what is\tthis"), Item("2", "und das?")]
    assert list(topics_source(path).read()) == expected
    path = write("topics.tsv", "1\ta\n2 b\n3\t \n1\tc\n")
    message = "expected a query id, a tab and the query's text"
    assert errors(topics_source(path).read()) == [
        f"{path}:2: found '2 b', {message}",
        f"{path}:3: found '3\\t ', {message}",
        f"{path}:4: found query id '1' a second time, {DUPLICATE.format(1)}",
    ]


def test_runs_in_either_order(write: WriteFile) -> None:
    """By 32-bit score, then id descending, under `trec`; by rank, with gaps and any first one, under `list`."""
    path = write("run", "q1 Q0 a 1 0.5 t\nq2 Q0 z 1 7 t\nq1 Q0 d10 2 2.00000001 t\nq1 Q0 d2 3 2 t\nq1 Q0 b 9 -1e-3 t\n")
    assert read_run(path, "trec") == {
        "q1": Ranking("q1", ("d2", "d10", "a", "b"), (2.0, 2.0, 0.5, float(np.float32(-1e-3)))),
        "q2": Ranking("q2", ("z",), (7.0,)),
    }
    path = write("run.gz", gzip.compress(b"q1 Q0 a 7 0.1 t\nq1 Q0 b 0 0.30000000000000004 t\nq1 Q0 c 3 0.1 t\n"))
    assert read_run(path, "list") == {"q1": Ranking("q1", ("b", "c", "a"), (0.30000000000000004, 0.1, 0.1))}


def test_headers_of_metadata(write: WriteFile) -> None:
    """Lines between ir_metadata's marks are passed over, and only there; a header that does not end is refused."""
    head, rows = "# ir_metadata.start\n# tag: t\n{}# ir_metadata.end\n", "#q Q0 a 1 2 t\n#q Q0 b 2 1 t\n"
    assert read_run(write("run", head.format("") + rows), "trec") == {"#q": Ranking("#q", ("a", "b"), (2.0, 1.0))}
    for line, content in ((3, head.format(rows[1:])), (1, head.format("#\n" * 10_000)), (3, f"{rows}# tag: t\n")):
        with pytest.raises(DataError, check=fields(line=line)):
            read_run(write("run", content), "list")


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        *cases("runs"),
        *(
            (row, f"found a NUL in {row!r}, expected text, which is read in C too")
            for row in ("q1 Q0\0 b 2 1 t", "q1 Q0 b\0 2 1 t")
        ),
        (f"q1 Q0 b {'9' * 5000} 1 t", f"found rank '{'9' * 58}…, expected a whole number"),
    ],
)
@pytest.mark.parametrize("tie", ["trec", "list"])
def test_malformed_runs(write: WriteFile, row: str, sentence: str, tie: Tie) -> None:
    """Each kind of malformed line is told with file, line, found and expected, whatever the tie rule."""
    path = write("run", f"q1 Q0 a 1 1.0 t\nq2 Q0 a 1 1 t\n\n{row}\n")
    with pytest.raises(DataError) as caught:
        read_run(path, tie)
    assert str(caught.value) == f"{path}:4: {sentence}"


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ("q1\ta\t1\nq1\tb\t2\n", "a run of MS MARCO's form becomes one by awk"),
        ("q1 Q0 a 1 0.5\nq1 Q0 b 2 0.25\n", "the tag is missing: awk"),
    ],
)
def test_runs_of_other_tools(write: WriteFile, content: str, hint: str) -> None:
    """Refused once, with a command that makes a run of them."""
    path = write("run", content)
    with pytest.raises(DataError, check=fields(line=1, hint=hint)) as caught:
        read_run(path, "trec")
    command = caught.value.hint.partition("awk ")[2].replace("FILE", str(path))
    run = write(
        "converted", subprocess.run(["/bin/sh", "-c", f"awk {command}"], capture_output=True, check=True).stdout
    )
    assert read_run(run, "trec")["q1"].documents == ("a", "b")


def test_a_run_as_json(write: WriteFile) -> None:
    """What ranx and pytrec_eval write is refused once; a query whose id is a bracket is none of that."""
    assert list(read_run(write("run", "[ Q0 a 1 0.5 t\n"), "list")) == ["["]
    path = write("run.json", '{\n"q1": {"a": 1.0}\n}\n')
    with pytest.raises(DataError, check=fields(line=1, hint="write each hit of that JSON on a line")):
        read_run(path, "trec")


def test_ranks_that_contradict(write: WriteFile, errors: ReadErrors) -> None:
    """Under `list` a rank stands once, and the score may not rise where the rank falls."""
    path = write("run", "q1 Q0 a 1 1 t\nq1 Q0 b 1 1 t\nq2 Q0 a 2 3.5 t\nq2 Q0 b 1 2 t\n")
    assert errors(read_run(path, "list") for _ in range(1)) == [
        f"{path}:2: found rank 1 of query 'q1' a second time, {DUPLICATE.format(1)}",
        (
            f"{path}:3: found score 3.5 at rank 2 of query 'q2', expected at most the 2.0 of the rank before (line 4); "
            "write scores that fall as the rank grows"
        ),
    ]
    assert list(read_run(path, "trec")["q2"].documents) == ["a", "b"]


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_empty_run(write: WriteFile, content: str) -> None:
    """An empty file is a mistake, unless it is ours and known to be a run without hits."""
    path = write("run", content)
    with pytest.raises(DataError, match=r"run: found (an empty file|no line of a run), expected at least one line"):
        read_run(path, "trec")
    if not content:
        assert read_run(path, "trec", may_be_empty=True) == {}


def test_written_runs() -> None:
    """Ranks count from 1 per query, scores have the fewest digits that name their 32-bit value; one ranking a query."""
    scores = (16777216.0, 1 / 3, 0.1, 0.0, -1e-10)
    assert written(Ranking("q1", ("a", "b", "c", "d", "é"), scores), Ranking("q2", (), ()), tag="x") == (
        "q1 Q0 a 1 1.6777216e+07 x\nq1 Q0 b 2 0.33333334 x\nq1 Q0 c 3 0.1 x\nq1 Q0 d 4 0.0 x\nq1 Q0 é 5 -1e-10 x\n"
    )
    ranking = Ranking("q", ("a",), (1.0,))
    with pytest.raises(PluginError, check=fields(found="two rankings of query 'q'")):
        written(ranking, ranking)
    with pytest.raises(PluginError, check=fields(found="tag 'my tag' in a run", expected="an id without white space")):
        written(ranking, tag="my tag")


@pytest.mark.parametrize(
    ("ranking", "sentence"),
    [
        (Ranking("q", ("a", "b", "a"), (3, 2, 1)), "found document 'a' twice in the ranking of query 'q'"),
        (Ranking("q", ("a", "b"), (1, math.nan)), "found score nan at rank 2 in the ranking of query 'q'"),
        (Ranking("q", ("a", "b"), (math.inf, 1)), "found score inf at rank 1 in the ranking of query 'q'"),
        (Ranking("q", ("a",), (1e39,)), "found score 1e+39 at rank 1 in the ranking of query 'q'"),
        (Ranking("q", ("a", "b"), (1.0, 1.5)), "found score 1.5 at rank 2 after 1.0 in the ranking of query 'q'"),
        (Ranking("q", ("a", "b"), (1.0,)), "found 1 scores for 2 documents in the ranking of query 'q'"),
        (Ranking("q", ("a b",), (1.0,)), "found document id 'a b' in the ranking of query 'q', expected an id without"),
        (Ranking("q 1", ("a",), (1.0,)), "found query id 'q 1' in a run, expected an id without white space"),
        (Ranking("q", ("",), (1.0,)), "found an empty document id in the ranking of query 'q', expected at least"),
    ],
)
def test_a_retriever_that_breaks_its_promise(ranking: Ranking, sentence: str) -> None:
    """What could not be read back, or would be scored wrongly, is not written."""
    with pytest.raises(PluginError) as caught:
        written(ranking)
    assert str(caught.value).startswith(sentence)


ids = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8).filter(
    lambda text: text.split() == [text]
)
scores = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=12)


def ranked(query: str, documents: Sequence[str], values: list[float]) -> Ranking:
    """Make a ranking that stands in trec order, sorted by another way than ours: byte order, then a stable sort."""
    pairs = sorted(zip(documents, values, strict=False), key=lambda pair: pair[0].encode(), reverse=True)
    pairs.sort(key=lambda pair: pair[1], reverse=True)
    return Ranking(query, tuple(document for document, _ in pairs), tuple(value for _, value in pairs))


@given(st.dictionaries(ids, st.tuples(st.lists(ids, min_size=12, max_size=12, unique=True), scores), max_size=4))
@pytest.mark.parametrize("tie", ["trec", "list"])
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, tie: Tie, given: dict[str, Any]) -> None:
    """What is written is read back: the same queries, documents, order and 32-bit scores."""
    rankings = {query: ranked(query, documents, values) for query, (documents, values) in given.items()}
    path = tmp_path_factory.mktemp("run") / "run"
    path.write_bytes(written(*rankings.values()).encode())
    run = read_run(path, tie, may_be_empty=True)
    assert list(run) == [query for query, ranking in rankings.items() if ranking.documents]
    for query, ranking in run.items():
        assert ranking.documents == rankings[query].documents
        assert [np.float32(score) for score in ranking.scores] == list(rankings[query].scores)
