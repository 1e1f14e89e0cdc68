"""Averages over tasks and wins per system."""

import pytest

from bench.core.errors import UsageError
from bench.evaluation.measures.aggregate import best_on, macro, mean
from bench.types import Macro


def test_a_nested_average_counts_as_one_member() -> None:
    """BEIR counts the mean of CQADupStack's forums as one data set; the mean of nothing is not 0."""
    # (0.6 + (0.1 + 0.3) / 2) / 2
    forums = Macro("CQADupStack", ("beir/cqadupstack/android", "beir/cqadupstack/tex"))
    values = {"beir/scifact": 0.6, "beir/cqadupstack/android": 0.1, "beir/cqadupstack/tex": 0.3}
    assert macro(Macro("Avg.", ("beir/scifact", forums)), values) == pytest.approx(0.4, abs=1e-15)
    del values["beir/cqadupstack/tex"]
    assert macro(Macro("Avg.", ("beir/scifact", forums)), values) is None
    with pytest.raises(UsageError, match="nothing to average"):
        mean([])
    with pytest.raises(UsageError, match="nothing to average"):
        macro(Macro("Avg.", ()), {})


def test_best_on_compares_what_is_printed() -> None:
    """31.42 and 31.38 are both printed 31.4, but not with two decimals."""
    rows = {"a": {"t": 31.42}, "b": {"t": 31.38}, "c": {}}
    assert best_on(rows) == {"a": 1, "b": 1, "c": 0}
    assert best_on(rows, digits=2) == {"a": 1, "b": 0, "c": 0}
