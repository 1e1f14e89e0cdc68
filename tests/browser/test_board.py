"""The committed results, from which the tests here build a site: whole, small, and nobody's data. Needs no browser."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.cli import bench
from bench.data.fetching.unpack import unpack
from bench.evaluation.results import faults, result_files

BOARD = Path(__file__).parents[1] / "fixtures" / "board"
ARCHIVES = sorted(BOARD.glob("*.tar.xz"))
LARGEST, TOGETHER = 100 << 10, 400 << 10  # bytes
CHECKED = "askubuntu-unsupervised"
"""The archive that a quick test checks whole; a slow one checks the others."""


def _name(path: Path) -> str:
    return path.name.partition(".")[0]


def test_they_are_small() -> None:
    """There are some, and a clone does not feel them."""
    sizes = [path.stat().st_size for path in BOARD.iterdir()]
    assert len(ARCHIVES) == 4
    assert max(sizes) <= LARGEST
    assert sum(sizes) <= TOGETHER


@pytest.mark.parametrize("archive", ARCHIVES, ids=_name)
def test_they_are_what_they_say(archive: Path, tmp_path: Path) -> None:
    """Every checksum and seal fits, and all are of the embedded world."""
    unpack(archive, tmp_path / "results")
    files = result_files(tmp_path / "results")
    assert files
    assert [fault for path in files for fault in faults(path)] == []
    assert {path.relative_to(tmp_path / "results").parts[0] for path in files} == {"mini"}


@pytest.mark.parametrize(
    "archive",
    [pytest.param(path, marks=() if _name(path) == CHECKED else pytest.mark.slow) for path in ARCHIVES],
    ids=_name,
)
@pytest.mark.usefixtures("unbounded")
def test_they_pass_as_anybody_s_results_must(archive: Path, tmp_path: Path) -> None:
    """As many as there are, strictly."""
    unpack(archive, tmp_path / "results")
    folders = ["--results", str(tmp_path / "none"), "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(bench, ["leaderboard", "check", str(archive), "--strict", "--json", *folders])
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)["results"]) == len(result_files(tmp_path / "results"))
