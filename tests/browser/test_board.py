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


def test_they_are_small() -> None:
    """There are some, and a clone does not feel them."""
    sizes = [path.stat().st_size for path in BOARD.iterdir()]
    assert len(ARCHIVES) == 4
    assert max(sizes) <= LARGEST
    assert sum(sizes) <= TOGETHER


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def test_they_are_what_they_say(archive: Path, tmp_path: Path) -> None:
    """Every checksum and seal fits, all are of the embedded world, and they pass as anybody's results must."""
    unpack(archive, tmp_path / "results")
    files = result_files(tmp_path / "results")
    assert files
    assert [fault for path in files for fault in faults(path)] == []
    assert {path.relative_to(tmp_path / "results").parts[0] for path in files} == {"mini"}
    folders = ["--results", str(tmp_path / "none"), "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(bench, ["leaderboard", "check", str(archive), "--strict", "--json", *folders])
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)["results"]) == len(files)
