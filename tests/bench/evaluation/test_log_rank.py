"""LogRank of single questions, by hand."""

import pytest

from bench.evaluation.measures.log_rank import log_rank


@pytest.mark.parametrize(
    ("rank", "among", "expected"),
    [
        (1, 1, 1.0),
        (1, 1023, 1.0),
        (2, 1023, 0.9),  # 1 − 1/10
        (32, 1023, 0.5),  # 1 − 5/10
        (512, 1023, 0.1),
        (1024, 1023, 0.0),  # what comes after all passages
        (None, 1023, 0.0),
    ],
)
def test_by_hand(rank: int | None, among: int, expected: float) -> None:
    assert log_rank(rank, among) == pytest.approx(expected, abs=1e-12)
