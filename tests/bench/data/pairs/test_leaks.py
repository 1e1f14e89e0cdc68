"""Training questions that a test asks are left out."""

import os
import pickle
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from bench.core.errors import UsageError
from bench.data.pairs import outcomes, pairs_of_split, without_leaks
from bench.data.pairs.leaks import LEAKED, TABLE
from bench.types import Item, Source, TrainingPair
from tests.conftest import ReadErrors, WriteFile

ROWS = "file\tquery-id\ttest-suite\nset/qrels/train.tsv\tq2\tset\nset/qrels/dev.tsv\tq1\tset\nother/x.tsv\tq3\tset\n"


@pytest.fixture
def folder(write: WriteFile) -> Path:
    """A folder of data with one data set and a table."""
    write("data/set/corpus.jsonl", '{"_id": "d", "text": "one"}\n')
    write("data/set/queries.jsonl", "".join(f'{{"_id": "q{at}", "text": "{at}?"}}\n' for at in (1, 2, 3)))
    write("data/set/qrels/train.tsv", "query-id\tcorpus-id\tscore\nq1\td\t1\nq2\td\t1\nq3\td\t1\n")
    return write(f"data/{TABLE}", ROWS).parent.parent


def test_rows_of_the_files_that_are_read(folder: Path) -> None:
    """Rows of other files leave nothing out, unless they are named; the key knows, and the table is among the files."""
    source = without_leaks(pairs_of_split(folder / "set", "train"), folder / TABLE)
    assert [pair.query.id for pair in source.read()] == ["q1", "q3"]
    assert [(pair.query, pair.left_out) for _, pair in outcomes(source)] == [("q1", ()), ("q2", (LEAKED,)), ("q3", ())]
    assert list(pickle.loads(pickle.dumps(source)).read()) == list(source.read())  # noqa: S301 (our own bytes)
    copy = Source("copy", "copy/1", (), partial(iter, [TrainingPair(Item("q3", "?"), (Item("d", "x"),))]))
    source = without_leaks(copy, folder / TABLE, ["other/x.tsv"])
    assert list(source.read()) == []
    assert source.files == (folder / TABLE,)
    assert source.reader != without_leaks(copy, folder / TABLE, ["set/qrels/dev.tsv"]).reader


def test_keys_are_the_same_on_another_machine(folder: Path, tmp_path: Path) -> None:
    """Where the folder of data lies decides nothing, nor does a link to it."""
    source = without_leaks(pairs_of_split(folder / "set", "train"), folder / TABLE)
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    linked = without_leaks(pairs_of_split(tmp_path / "link/set", "train"), folder / TABLE)
    (tmp_path / "far/away").mkdir(parents=True)
    moved = folder.rename(tmp_path / "far/away/data")
    assert source.reader == linked.reader == without_leaks(pairs_of_split(moved / "set", "train"), moved / TABLE).reader


def test_a_table_of_other_files_is_refused(folder: Path, write: WriteFile, errors: ReadErrors) -> None:
    """Ids that the source does not have mean that the two do not belong together."""
    write(f"data/{TABLE}", ROWS + "set/qrels/train.tsv\tq9\tset\n")
    assert errors(without_leaks(pairs_of_split(folder / "set", "train", "a"), folder / TABLE).read()) == [
        (
            f"{folder}/{TABLE}:5: found query id 'q9', expected the id of a query of a train; "
            "the table is of another release"
        )
    ]
    write(f"data/{TABLE}", ROWS + "set\tq9\n")
    assert (
        "found 2 columns in 'set\\tq9', expected 3 separated by tabs"
        in errors(without_leaks(pairs_of_split(folder / "set", "train"), folder / TABLE).read())[0]
    )


@pytest.mark.parametrize("file", ["data/set/all.tar.gz", "elsewhere/train.tsv", None])
def test_files_that_no_table_can_name(folder: Path, tmp_path: Path, file: str | None) -> None:
    """An archive hides which file is read; without a word nothing would be left out."""
    source: Source[TrainingPair] = Source("x", "x/1", (tmp_path / file,) if file else (), partial(iter, []))
    with pytest.raises(UsageError, match="say which file of the table is meant"):
        without_leaks(source, folder / TABLE)


@pytest.mark.skipif("BENCH_DATA" not in os.environ, reason="needs BENCH_DATA, the folder of official layouts")
def test_real_table() -> None:
    """As many questions as the table names are left out of each."""
    root = Path(os.environ["BENCH_DATA"])
    for name, leaked, remaining in (
        ("beir/scifact", 2, 807),
        ("mrtydi-goldp/sw", 14, 1905),
        ("mrtydi-goldp/ko", 1, 1062),
    ):
        counts = Counter(
            outcome.left_out
            for _, outcome in outcomes(without_leaks(pairs_of_split(root / name, "train"), root / TABLE))
        )
        assert counts == {(LEAKED,): leaked, (): remaining}
