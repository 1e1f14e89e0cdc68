"""The check of the results folder before a run."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.pipeline.run import _writable


def test_runs_at_once_check_one_folder(tmp_path: Path) -> None:
    """One run's check removed the other's file, and that run stopped with "No such file or directory"."""
    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(_writable, [tmp_path / "results"] * 400)] == [None] * 400
    assert not [*(tmp_path / "results").iterdir()]
