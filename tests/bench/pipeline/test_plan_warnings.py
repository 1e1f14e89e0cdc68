"""What a plan warns of before anything is computed."""

from pathlib import Path

import pytest

from bench.config.request import Request
from bench.pipeline.plan import Plan, plan
from bench.plugins import load
from bench.store.store import Store


def planned(folder: Path, *sets: str, **more: tuple[str, ...]) -> Plan:
    request = {"methods": ("bm25",), "suites": ("mrtydi",), "tasks": ("sw",)} | more
    return plan(Request(**request, sets=sets, results=folder / "results"), load(), Store(folder / "store"))  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [1, 99, 100, 101])
def test_a_search_that_ends_before_a_measure(tmp_path: Path, k: int) -> None:
    """One sentence for all systems of a task, where fewer documents are retrieved than the deepest measure reads."""
    made = planned(tmp_path, f"search.k={k}")
    (subset,) = made.subsets[0]
    assert (subset.k, subset.depth) == (k, 100), "RR@100 and R@100"
    sentence = (
        f"search.k={k} is shallower than the deepest measure of mini/mrtydi/sw (cut 100): measures below that depth "
        f"count only {k} documents"
    )
    assert list(made.warnings) == [sentence] * (k < 100)


def test_it_is_said_once_a_task(tmp_path: Path) -> None:
    """In the order of tasks, whatever the order of systems."""
    warnings = planned(tmp_path, "search.k=7", tasks=("sw", "ko")).warnings
    assert [warning.split()[8] for warning in warnings] == ["mini/mrtydi/ko", "mini/mrtydi/sw"]
