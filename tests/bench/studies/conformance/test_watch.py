"""Watching what is written where."""

from pathlib import Path
from tempfile import TemporaryDirectory

from bench.studies.conformance.watch import writes


def test_a_temporary_folder_inside_is_removed_unseen(tmp_path: Path) -> None:
    """Trees are removed by names relative to open folders; those are not names in the working folder."""
    with writes([tmp_path]) as found, TemporaryDirectory(dir=tmp_path) as between:
        (Path(between) / "deep").mkdir()
        (Path(between) / "deep" / "terms.txt").write_text("x")
    assert not found


def test_one_outside_is_seen(tmp_path: Path) -> None:
    """Also when it is removed the same way."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    with writes([inside]) as found, TemporaryDirectory(dir=outside) as between:
        (Path(between) / "terms.txt").write_text("x")
    assert str(Path(between) / "terms.txt") in found
