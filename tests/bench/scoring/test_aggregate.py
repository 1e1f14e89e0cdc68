"""Averages over tasks and wins per system."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UsageError
from bench.scoring.aggregate import best_on, macro, mean
from bench.types import Macro

GOLDEN = Path(__file__).parents[2] / "golden" / "scorers" / "aggregation" / "beir_aggregates.json"
CASES: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]


def averages(tasks: list[str]) -> dict[str, Macro]:
    """Build the three averages that the papers print from the names of their columns."""
    without_marco = [task for task in tasks if task != "MS MARCO"]
    return {
        "avg_15_incl_msmarco": Macro("Avg. (15)", tuple(tasks)),
        "avg_14_excl_msmarco": Macro("Avg. (14)", tuple(without_marco)),
        "avg_13_excl_msmarco_cqa": Macro("Avg. (13)", tuple(task for task in without_marco if task != "CQADupStack")),
    }


def printed(case: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the table without the cells that the paper leaves empty."""
    return {
        system: {task: value for task, value in row.items() if value is not None}
        for system, row in case["values"].items()
    }


def test_there_are_golden_tables() -> None:
    """A missing file must not look like success."""
    assert len(CASES) == 4


@pytest.mark.parametrize("table", CASES)
def test_averages_of_printed_tables(table: str) -> None:
    """With and without MS MARCO and CQADupStack; no average where a cell is empty."""
    for system, row in printed(CASES[table]).items():
        named = averages(list(CASES[table]["values"][system]))
        computed = {name: macro(average, row) for name, average in named.items()}
        assert computed == pytest.approx(CASES[table]["computed"][system], abs=1e-9)


@pytest.mark.parametrize("table", CASES)
def test_best_on_of_printed_tables(table: str) -> None:
    """Ties are credited to everybody, with MS MARCO and without."""
    rows = printed(CASES[table])
    assert best_on(rows) == CASES[table]["best_on_incl_msmarco_ties_to_all"]
    for row in rows.values():
        row.pop("MS MARCO", None)
    assert best_on(rows) == CASES[table]["best_on_excl_msmarco_ties_to_all"]


def test_a_nested_average_counts_as_one_member() -> None:
    """BEIR counts the mean of CQADupStack's forums as one data set: (0.6 + (0.1 + 0.3) / 2) / 2."""
    forums = Macro("CQADupStack", ("beir/cqadupstack/android", "beir/cqadupstack/tex"))
    values = {"beir/scifact": 0.6, "beir/cqadupstack/android": 0.1, "beir/cqadupstack/tex": 0.3}
    assert macro(Macro("Avg.", ("beir/scifact", forums)), values) == pytest.approx(0.4, abs=1e-15)
    del values["beir/cqadupstack/tex"]
    assert macro(Macro("Avg.", ("beir/scifact", forums)), values) is None


def test_best_on_compares_what_is_printed() -> None:
    """31.42 and 31.38 are both printed 31.4, but not with two decimals."""
    rows = {"a": {"t": 31.42}, "b": {"t": 31.38}, "c": {}}
    assert best_on(rows) == {"a": 1, "b": 1, "c": 0}
    assert best_on(rows, digits=2) == {"a": 1, "b": 0, "c": 0}


def test_nothing_to_average_is_an_error() -> None:
    """The mean of nothing is not 0."""
    with pytest.raises(UsageError, match="nothing to average"):
        mean([])
    with pytest.raises(UsageError, match="nothing to average"):
        macro(Macro("Avg.", ()), {})
