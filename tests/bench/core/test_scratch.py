"""Temporary folders: they go with their process, and those of killed ones are swept; nobody else's are."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.core.scratch import scratch_folder, sweep

DAY = 86_400


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


def killed(temporary: Path) -> Path:
    """Return the folder of a process that ended without a chance to remove it."""
    code = (
        "import os, sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from bench.core.scratch import scratch_folder\n"
        "with scratch_folder('test') as folder:\n"
        "    (folder / 'inside').mkdir(); (folder / 'inside' / 'file').write_text('x'); print(folder, flush=True)\n"
        "    os._exit(9)\n"
    )
    command = [sys.executable, "-c", code, str(temporary)]
    completed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert completed.returncode == 9
    return Path(completed.stdout.strip())


def aged(folder: Path, days: float) -> Path:
    os.utime(folder, (time.time() - days * DAY,) * 2)
    return folder


def test_a_folder_goes_with_its_block(temporary: Path) -> None:
    """Its name says what it is for; whatever happens inside, it is removed."""

    def use() -> None:
        with scratch_folder("some") as folder:
            assert folder.parent == temporary
            assert folder.name.startswith("bench-some-")
            (folder / "file").write_text("x")
            raise KeyError

    with pytest.raises(KeyError):
        use()
    assert not any(temporary.iterdir())


def test_folders_of_killed_processes_are_swept_after_a_day(temporary: Path) -> None:
    """Not before, and not those of a process that lives, however old they are."""
    folder = killed(temporary)
    sweep()
    assert folder.is_dir()
    aged(folder, 1.1)
    with scratch_folder("test") as own:
        aged(own, 30)
        sweep()
        assert [*temporary.iterdir()] == [own]


def test_what_is_not_ours_stays(temporary: Path, tmp_path: Path) -> None:
    """Other names, another machine's folders, files, and links with what they point to."""
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "file").write_text("x")
    name = killed(temporary).name
    number = name.split("-")[3]
    for other in ("bench-results", "bench-test-x", f"bench-test-0000-{number}-abcd", f"other-{name}"):
        aged_folder = temporary / other
        aged_folder.mkdir()
        aged(aged_folder, 2)
    (temporary / f"{name}x").write_text("a file")
    link = temporary / f"{name}y"
    link.symlink_to(tmp_path / "target")
    for path in (temporary / f"{name}x", link):
        os.utime(path, (0, 0), follow_symlinks=False)
    sweep(older_than=0)
    assert not (temporary / name).exists()
    assert len([*temporary.iterdir()]) == 6
    assert (tmp_path / "target" / "file").read_text() == "x"


def test_a_sweep_never_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the folder of temporary files is gone, too."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    sweep(older_than=0)
