"""The table of precisions: its statistics by hand, the page as recorded, and the command at toy size."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from experiments import precision

ROOT = Path(__file__).parents[2]
T1, T2, T4 = 12.706204736, 4.302652730, 2.776445105
"""Student's 97.5 % quantiles of 1, 2 and 4 degrees of freedom, from a table."""


def test_differences_are_held_against_the_scatter_of_seeds() -> None:
    """Two methods, two seeds: variances 2, 0, 8, 8 of trainings (4 degrees), and 2, 0 of differences.

    The first of these is larger than both pooled (1, with 2 degrees) and has 1 degree; the mean of all has
    Satterthwaite's, (2 + 0)² / (2² + 0²) = 1.
    """
    scores = {
        "a": {"float32": [10.0, 12.0], "bfloat16": [11.0, 11.0]},
        "b": {"float32": [20.0, 24.0], "bfloat16": [21.0, 25.0]},
    }
    rows, margin = precision.compared(scores)
    assert margin == pytest.approx(T4 * math.sqrt(4.5 * 1.5))
    assert [(row.name, row.float32, row.bfloat16) for row in rows] == [
        ("a", 11, 11),
        ("b", 22, 23),
        ("all methods", 16.5, 17),
    ]
    for row, difference, reach in zip(rows, (0, 1, 0.5), (T1, T2 / math.sqrt(2), T1 / 2), strict=True):
        shown = (row.verdict.difference, row.verdict.low, row.verdict.high)
        assert shown == pytest.approx((difference, difference - reach, difference + reach))
    assert [row.verdict.verdict for row in rows] == ["cannot tell", "agrees", "agrees"]  # 12.7, 4.04, 6.9 to 7.2


@pytest.mark.parametrize(
    ("bfloat16", "verdict"), [([12.0, 14.5], "agrees"), ([22.0, 24.5], "differs"), ([8.0, 30.0], "cannot tell")]
)
def test_what_is_said_of_a_difference(bfloat16: list[float], verdict: str) -> None:
    """Near, far, and scattered so much that the interval is wider than the spread of trainings."""
    rows, _ = precision.compared({"a": {"float32": [12.0, 14.0], "bfloat16": bfloat16}})
    assert {row.verdict.verdict for row in rows} == {verdict}


def test_the_page_is_what_was_recorded() -> None:
    """Of five methods, three seeds, both precisions; changed numbers want `python -m experiments.precision` again."""
    record = json.loads((ROOT / "docs" / "precision.json").read_bytes())
    assert {
        name: {kind: len(values) for kind, values in kinds.items()} for name, kinds in record["scores"].items()
    } == {name: {"float32": 3, "bfloat16": 3} for name in precision.METHODS}
    assert precision.page(record) == (ROOT / "docs" / "precision.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_command_at_toy_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both precisions of two seeds; typed again it trains nothing and writes the same; one seed is refused."""
    typed = [str(tmp_path), "--methods", "crop", "--seeds", "2", "--tokens", "3k", "--tasks", "sw"]
    typed += ["--out", str(tmp_path / "docs")]
    (tmp_path / "docs").mkdir()
    precision.main(typed)
    record: dict[str, Any] = json.loads((tmp_path / "docs" / "precision.json").read_bytes())
    trained = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("model.safetensors")}
    assert len(trained) >= 4
    assert set(record["scores"]["crop"]) == {"float32", "bfloat16"}
    assert capsys.readouterr().out == (tmp_path / "docs" / "precision.md").read_text(encoding="utf-8")
    precision.main(typed)
    again = json.loads((tmp_path / "docs" / "precision.json").read_bytes())
    assert again["scores"] == record["scores"]
    assert {path: path.stat().st_mtime_ns for path in trained} == trained
    with pytest.raises(SystemExit):
        precision.main([*typed, "--seeds", "1"])
