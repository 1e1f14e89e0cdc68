"""Branches against trainings of their cost: the statistics by hand, the page as recorded, the command at toy size."""

import json
import math
from pathlib import Path

import pytest

from experiments import cooled

ROOT = Path(__file__).parents[2]
T2, T4 = 4.302652730, 2.776445105
"""Student's 97.5 % quantiles of 2 and 4 degrees of freedom, from a table."""


def test_differences_are_held_against_the_scatter_of_seeds() -> None:
    """Two methods, two seeds: variances 2, 0, 8, 8 of trainings (4 degrees), and 2, 0 of differences (2 degrees)."""
    scores = {
        "a": {"training": [10.0, 12.0], "branch": [11.0, 11.0]},
        "b": {"training": [20.0, 24.0], "branch": [30.0, 34.0]},
    }
    verdicts, margin = cooled.compared(scores)
    assert margin == pytest.approx(T4 * math.sqrt(4.5 * 1.5))
    reach = T2 * math.sqrt(1.0 / 2)
    for name, difference in (("a", 0.0), ("b", 10.0)):
        shown = (verdicts[name].difference, verdicts[name].low, verdicts[name].high)
        assert shown == pytest.approx((difference, difference - reach, difference + reach))
    assert [verdict.verdict for verdict in verdicts.values()] == ["agrees", "differs"]


def test_the_page_is_that_of_its_record() -> None:
    """Nobody has edited it."""
    record = json.loads((ROOT / "docs" / "cooled.json").read_text(encoding="utf-8"))
    assert (ROOT / "docs" / "cooled.md").read_text(encoding="utf-8") == cooled.page(record)


@pytest.mark.slow
def test_the_command_at_toy_size(tmp_path: Path) -> None:
    """Two seeds of one method; typed again it measures the same."""
    arguments = [str(tmp_path), "--methods", "crop", "--seeds", "2", "--tokens", "8000", "--out", str(tmp_path)]
    cooled.main(arguments)
    first = (tmp_path / "cooled.json").read_bytes()
    cooled.main(arguments)
    assert (tmp_path / "cooled.json").read_bytes() == first
    assert json.loads(first)["scores"]["R@100"]["crop"].keys() == {"branch", "training"}
