"""A disk that is full, folders that cannot be written: a sentence, and finished stages kept."""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

RunJson = Callable[..., dict[str, Any]]
Options = Callable[[Path, Path, Path], list[str]]


def test_results_that_cannot_be_written_stop_before_any_work(
    tmp_path: Path, tiny: Path, bench: Any, options: Options
) -> None:
    """A file stands where a folder is needed; root may write anywhere, so no permission is tried."""
    (tmp_path / "file").write_text("I am a file")
    done = bench(*options(tiny, tmp_path / "store", tmp_path / "file" / "results"))
    assert done.returncode == 1
    assert "cannot write to the results folder" in done.stderr
    assert "choose another folder by --results" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "store" / "artefacts").exists()


def test_a_write_that_fails_half_way_keeps_finished_stages(
    tmp_path: Path, folder: Path, environment: dict[str, str], run_json: RunJson, options: Options
) -> None:
    """Files may not grow beyond 60 kB (the system then refuses the write, as a full disk does): the index fails."""
    command = options(folder, tmp_path / "store", tmp_path / "results")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    done = subprocess.run(
        [sys.executable, "-m", "bench", *command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
        timeout=240,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "finished stages are kept" in done.stderr
    kept = {path.parent.parent.name for path in (tmp_path / "store").glob("artefacts/*/*/manifest.json")}
    assert {"validate", "read"} <= kept
    assert "search" not in kept
    again = run_json(*command)
    states = {stage["stage"]: stage["state"] for stage in again["stages"]}
    assert (states["validate"], states["read"], states["index"]) == ("cached", "cached", "ran")


@contextmanager
def _mounted(place: Path, how: str) -> Iterator[Path]:
    """A file system of its own, where this user may mount one."""
    place.mkdir()
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or not (mount and unmount):
        pytest.skip("only root may mount a file system")
    made = subprocess.run([mount, "-t", "tmpfs", "-o", how, "tmpfs", str(place)], check=False, capture_output=True)
    if made.returncode != 0:
        pytest.skip("no file system may be mounted here")
    try:
        yield place
    finally:
        subprocess.run([unmount, str(place)], check=True)


def test_a_really_full_disk(tmp_path: Path, folder: Path, bench: Any, options: Options) -> None:
    """The store lies on a disk of 300 kB."""
    with _mounted(tmp_path / "disk", "size=300k") as disk:
        done = bench(*options(folder, disk / "store", tmp_path / "results"))
        assert done.returncode == 1, done.stderr
        assert "the disk is full" in done.stderr
        assert "finished stages are kept" in done.stderr
        assert "Traceback" not in done.stderr
        assert list((disk / "store").glob("artefacts/validate/*/manifest.json"))


def test_a_read_only_results_folder(
    tmp_path: Path, tiny: Path, bench: Any, run_json: RunJson, options: Options
) -> None:
    """It is refused before any work; what an earlier run finished is kept."""
    run_json(*options(tiny, tmp_path / "store", tmp_path / "good"))
    finished = sorted((tmp_path / "store").glob("artefacts/*/*"))
    with _mounted(tmp_path / "disk", "ro") as disk:
        done = bench(*options(tiny, tmp_path / "store", disk))
    assert done.returncode == 1
    assert "the file system is read-only" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted((tmp_path / "store").glob("artefacts/*/*")) == finished
