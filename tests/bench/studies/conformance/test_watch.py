"""Watching what is written where."""

from pathlib import Path
from tempfile import TemporaryDirectory

from bench.studies.conformance.watch import writes


def test_what_is_written_outside_is_seen(tmp_path: Path) -> None:
    """Trees are removed by names relative to open folders; those are not names in the working folder."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    with writes([inside]) as found, TemporaryDirectory(dir=inside) as between:
        (Path(between) / "deep").mkdir()
        (Path(between) / "deep" / "terms.txt").write_text("x")
    assert not found
    with writes([inside]) as found, TemporaryDirectory(dir=outside) as between:
        (Path(between) / "terms.txt").write_text("x")
    assert str(Path(between) / "terms.txt") in found
