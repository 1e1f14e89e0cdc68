"""What is read: only what a run can have written, with a sentence about the first thing that is not."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.core.errors import StoreError
from bench.core.files import canonical
from bench.evaluation.results import read
from bench.evaluation.results import results as read_results
from bench.evaluation.results.scores import load_results
from bench.types import Macro
from tests.conftest import cases
from tests.leaderboard.conftest import Bundle, Publisher

TASK = "made/a"
VALUES = f"per-query/{TASK}.json.gz"


@pytest.fixture
def path(publish_result: Publisher) -> Path:
    return publish_result("bm25", {TASK: {"": [0.25, 0.75]}})


def table(queries: list[str], column: list[Any]) -> bytes:
    """Per-query values as a bundle holds them."""
    return gzip.compress(canonical({"queries": queries, "measures": {"RR@100": column}}))


def test_values_come_in_the_order_of_their_ids(path: Path, results: Path) -> None:
    """Whatever the order in the file."""
    Bundle(path.parent).replace_file(VALUES, table(["q2", "q1"], [0.25, 0.75]))
    (result,) = read_results(results)
    queries, values = result.values(TASK, "", "RR@100")
    assert queries == ("q1", "q2")
    assert np.array_equal(values, [0.75, 0.25])
    assert result.card.startswith("# Made-up suite")


@pytest.mark.parametrize(("keys", "value", "place"), cases("what-no-run-writes"))
def test_what_no_run_writes_is_refused(path: Path, results: Path, keys: list[str], value: object, place: str) -> None:
    """Sealed properly and false all the same: the file and the place in it are named."""

    def change(content: dict[str, Any]) -> None:
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    Bundle(path.parent).rewrite(change)
    with pytest.raises(StoreError) as caught:
        read_results(results)
    assert str(caught.value).startswith(f"{path}: found a fault at '{place}")
    assert "take its folder away" in str(caught.value)


@pytest.mark.parametrize(("data", "task"), cases("mini-and-other-data-do-not-mix"))
def test_mini_and_other_data_do_not_mix(path: Path, results: Path, data: str, task: str) -> None:
    """A mini task can stand in no other table, nor another task in a mini one."""
    Bundle(path.parent).rewrite(lambda content: content.update(data=data, tasks={task: content["tasks"][TASK]}))
    with pytest.raises(StoreError, match=f"task {task} in a result of {data} data"):
        read_results(results)


@pytest.mark.parametrize("text", [b'{"schema": NaN}', b"[1]", b"", b"\xff\xfe", b'{"a":' * 100_000])
def test_what_is_no_result_at_all(path: Path, results: Path, text: bytes) -> None:
    """NaN, which JSON does not have, other JSON, no text, no end; and the schema of a later release is not guessed."""
    Bundle(path.parent).rewrite(lambda content: content.update(schema="retrieval-bench/result/3"))
    with pytest.raises(StoreError, match="schema 'retrieval-bench/result/3', expected 'retrieval-bench/result/2'"):
        read_results(results)
    path.write_bytes(text)
    with pytest.raises(StoreError, match="cannot be trusted"):
        read_results(results)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (table(["a", "b"], [0.5, 0.6]), r"found a mean RR@100 of 0.550000, expected 0.500000"),
        (table(["a", "a"], [0.25, 0.75]), "found 2 queries, 1 of them different, expected 2"),
        (table(["a"], [0.5]), "found 1 queries, 1 of them different, expected 2"),
        (table(["a", "b"], [1e9, 0.5]), r"found a fault at 'measures.RR@100.0'"),
        (gzip.compress(b'{"queries": ["a", "b"], "measures": {"RR@100": [NaN, 0.5]}}'), "found a fault at"),
        (gzip.compress(b"[" * 1_000_000), "found a fault at 'file'"),
        (b"no gzip", "cannot be unpacked"),
        (table(["a", "b"], [0.25, 0.75])[:-9], "cannot be unpacked"),
    ],
)
def test_values_that_cannot_be(path: Path, results: Path, data: bytes, sentence: str) -> None:
    """Each with its file and what was expected."""
    Bundle(path.parent).replace_file(VALUES, data)
    (result,) = read_results(results)
    with pytest.raises(StoreError, match=sentence):
        result.values(TASK, "", "RR@100")


def test_a_bomb_is_not_unpacked(path: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a large file nor a small one that would become large."""
    monkeypatch.setattr(read, "LARGEST", 1 << 16)
    Bundle(path.parent).replace_file(VALUES, gzip.compress(b" " * (1 << 20)))
    (result,) = read_results(results)
    with pytest.raises(StoreError, match="found more than 65,536 bytes unpacked"):
        result.values(TASK, "", "RR@100")
    Bundle(path.parent).replace_file(VALUES, b" " * (1 << 17))
    with pytest.raises(StoreError, match="found 131,072 bytes, expected at most 65,536"):
        result.values(TASK, "", "RR@100")


def test_a_bundle_that_is_not_as_it_was_written(path: Path, results: Path) -> None:
    """Changed or gone."""
    (result,) = read_results(results)
    (path.parent / VALUES).write_bytes(table(["a", "b"], [0.25, 0.75]))
    with pytest.raises(StoreError, match=r"found other bytes than result.json names"):
        result.values(TASK, "", "RR@100")
    (path.parent / VALUES).unlink()
    with pytest.raises(StoreError, match="cannot be read: No such file or directory"):
        result.values(TASK, "", "RR@100")


def test_rows_of_a_substitute_say_so(publish_result: Publisher, results: Path) -> None:
    """Its tasks and its averages, in every row."""
    suite = {"name": "made", "version": "1", "title": "Made", "proxy_for": "mrtydi"}
    tasks = {"made/a": {"": [0.5, 0.25]}, "made/b": {"": [0.5]}}
    publish_result("bm25", tasks, heading={"suite": suite}, macros=(Macro("Avg. (2)", ("made/a", "made/b")),))
    mark = "substitute for mrtydi: not comparable with published numbers"
    rows = [(row["task"], row["note"]) for row in load_results(results).subsets()]
    assert rows == [("made/a", mark), ("made/b", mark), ("Avg. (2)", mark)]
    assert read_results(results)[0].content.suite.proxy_for == "mrtydi"
