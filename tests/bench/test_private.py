"""What a run leaves says nothing of the machine and its user, and what it starts is theirs alone."""

import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

import bench
from bench.cli import main
from bench.store.executors.ray import RayExecutor
from bench.store.graph import NullListener
from bench.store.store import Store


def test_no_host_user_or_path_is_left(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in artefacts nor in results, whatever folder the data are in; compiled code is not kept anywhere."""
    monkeypatch.setattr(socket, "gethostname", lambda: "secret-host")
    for name in ("USER", "LOGNAME", "USERNAME"):
        monkeypatch.setenv(name, "secret-user")
    home = tmp_path / "secret-home"
    monkeypatch.setenv("HOME", str(home))
    task = Path(shutil.copytree(tiny, home / "data" / "mine"))
    places: dict[str, Any] = {"store": home / "store", "results": home / "results"}
    assert bench.run(bench.Request(("bm25",), ("beir",), (str(task),), **places, offline=True)).rows
    written = [path for top in ("store/artefacts", "results") for path in (home / top).rglob("*") if path.is_file()]
    assert len(written) > 10
    for path in written:
        assert b"secret" not in path.read_bytes(), path
    assert not [path for path in (*home.rglob("*"), *Path.cwd().glob("*")) if path.suffix in (".nbi", ".nbc")]


def test_ray_is_started_for_this_user_and_machine_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder lies in one that nobody else can enter and that goes with it; ports are on loopback."""
    ray = pytest.importorskip("ray", reason="needs the extra 'ray'")
    for name in ("RAY_ADDRESS", "RAY_USAGE_STATS_ENABLED", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    folders: list[Path] = []

    def init(**arguments: Any) -> None:
        folders.append(Path(arguments["_temp_dir"]).parent)
        assert folders[0].stat().st_mode & 0o777 == 0o700
        assert folders[0].stat().st_uid == os.getuid()
        assert arguments["include_dashboard"] is False
        assert (os.environ["RAY_USAGE_STATS_ENABLED"], os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"]) == ("0", "0")
        raise RuntimeError("enough")

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(RuntimeError, match="enough"):
        RayExecutor().run([], Store(tmp_path), NullListener())
    assert not folders[0].exists()


@pytest.mark.parametrize(
    "arguments", [("score", "--qrels", "q", "--run", "r", "--measures", "x" * 100_000), ("list", "y" * 100_000)]
)
def test_a_message_is_at_most_two_kilobytes(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever was typed, on stderr and in JSON."""
    with pytest.raises(SystemExit) as status:
        main([*arguments, "--json"])
    printed = capsys.readouterr()
    assert status.value.code == 2
    message = printed.err.partition("bench: ")[2]
    assert 20 < len(message.encode()) <= 2_048
    assert len(printed.out.encode()) < 5 * 2_048
