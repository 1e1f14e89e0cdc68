"""Housekeeping beside work in progress: what is leased or locked stays, what killed writers have left goes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cli import bench
from bench.core import files
from bench.core.errors import UsageError
from bench.store.housekeeping import Garbage, garbage, remove, tidy
from bench.store.leases import leased, leased_keys
from bench.store.store import Store
from bench.testing import fields

KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    folder = tmp_path / "artefacts" / "index" / KEY
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    return Store(tmp_path)


def removed(store: Store, days: float = 0) -> list[Path]:
    return [item.path for item in remove(store, garbage(store, (), days))]


def scratch(store: Store, name: str) -> Path:
    place = store.root / "work" / name
    (place / "parts").mkdir(parents=True)
    return place


def test_what_is_leased_or_locked_stays(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the lease lasts, with its unfinished work; also where it was listed before the lease was taken."""
    listed = list(garbage(store, (), 0))
    place = scratch(store, "search-abc")
    with leased(store, [KEY, "abc"]):
        assert remove(store, listed) == []
        assert removed(store) == []
        with leased_keys(store) as keys:
            assert keys == {KEY, "abc"}
        with monkeypatch.context() as patch:  # the lease ends while it is looked at
            patch.setattr(Path, "read_bytes", lambda path: path.with_name("gone").open("rb"))
            with leased_keys(store) as keys:
                assert keys == set()
    assert removed(store) == [store.root / "artefacts" / "index" / KEY, place]
    assert list((store.root / "leases").iterdir()) == list((store.root / "work").iterdir()) == []
    place = scratch(store, f"search-{'f' * 32}")
    with store.lock("f" * 32, "a title"):
        assert not remove(store, [Garbage(place, "", 0)])
        assert place not in [item.path for item in garbage(store, (KEY,), 0)]
    assert removed(store)[-1] == place


def test_a_result_that_is_written_meanwhile_keeps_its_artefacts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run gives its lease back after its result is there, so `gc` reads results again once it has the leases."""
    artefact, unused = store.root / "artefacts" / "index" / KEY, store.root / "artefacts" / "index" / ("f" * 32)
    unused.mkdir()
    result_keys: list[set[str]] = [set(), {KEY}]
    monkeypatch.setattr("bench.evaluation.results.keys", lambda _: result_keys.pop(0))
    places = ["--store", str(store.root), "--results", str(store.root)]
    bench.main(args=["gc", *places, "--older-than", "0"], standalone_mode=False)
    assert (artefact.exists(), unused.exists()) == (True, False)


def test_nothing_goes_where_the_results_are_not_found(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typed in another folder than usual, where `results` is not: else all trainings would be garbage."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    places = ["--store", str(store.root), "--older-than", "0"]
    with pytest.raises(UsageError, check=fields(where="results", found="no such folder")):
        bench.main(args=["gc", *places], standalone_mode=False)
    assert len(store.artefacts()) == 1
    (elsewhere / "results").mkdir()  # an empty folder is an answer: none is needed
    bench.main(args=["gc", *places], standalone_mode=False)
    assert store.artefacts() == []


def test_verifying_nothing_is_not_a_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt folder is said to be absent; of two, nothing is verified."""
    nowhere = str(tmp_path / "nowhere")
    with pytest.raises(UsageError, check=fields(found="no such folders")):
        bench.main(args=["verify", "--store", nowhere, "--results", nowhere], standalone_mode=False)
    bench.main(args=["verify", "--store", str(tmp_path), "--results", nowhere], standalone_mode=False)
    assert f"{nowhere}: no such folder" in capsys.readouterr().err


def test_the_lease_of_a_killed_process_is_void(store: Store) -> None:
    """Its lock is let go by the system; the next one to look clears the files away."""
    code = (
        "import os, sys; from pathlib import Path; from bench.store.leases import leased\n"
        "from bench.store.store import Store\n"
        f"with leased(Store(Path(sys.argv[1])), ['{KEY}']): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(store.root)], check=False, timeout=60)
    assert len(list((store.root / "leases").iterdir())) == 2
    with leased_keys(store) as keys:
        assert keys == set()
    assert list((store.root / "leases").iterdir()) == []


def test_a_store_that_takes_no_lease_is_used_all_the_same(store: Store) -> None:
    """A finished store may lie where nobody can write."""
    (store.root / "leases").write_text("a file stands where the folder belongs")
    with leased(store, [KEY]):
        assert (store.root / "artefacts" / "index" / KEY).exists()
    tidy(store)


def test_a_run_clears_what_killed_ones_have_left(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch of finished stages and temporaries of processes that are gone; unfinished work and live writers stay."""
    finished, unfinished = scratch(store, f"index-{KEY}"), scratch(store, f"search-{KEY}")
    half = scratch(store, f"removed-{KEY}")
    (store.root / "inputs").mkdir()
    with files.atomic(store.root / "inputs" / "x.json") as stream:
        (mine,) = (store.root / "inputs").iterdir()
        *_, process, _ = mine.name.split("-")
        assert int(process) == os.getpid()
        orphan = mine.with_name(mine.name.replace(f"-{process}-", "-999999999-"))
        foreign = mine.with_name(orphan.name.replace(files._machine(), "abcdef"))
        for path in (orphan, foreign):
            path.write_bytes(b"half")
        (store.root / "artefacts" / "index" / KEY / orphan.name).touch()  # of a manifest that was renewed
        Store(store.root).faults(store.root / "artefacts" / "index" / KEY)
        assert [path.name for path in (store.root / "artefacts" / "index" / KEY).iterdir()] == ["manifest.json"]
        tidy(store)
        assert sorted((store.root / "inputs").iterdir()) == sorted([mine, foreign])
        stream.write(b"{}")
    assert [path.exists() for path in (finished, half, unfinished)] == [False, False, True]
    os.utime(foreign, (0, 0))  # on another machine, and older than a day
    tidy(store)
    assert [path.name for path in (store.root / "inputs").iterdir()] == ["x.json"]


def test_half_a_lease_is_cleared_away(tmp_path: Path) -> None:
    """A run that was killed while it wrote its lease leaves nothing for the next one; a lease at work stays."""
    store = Store(tmp_path / "store")
    with leased(store, ["a"]):
        half_written = store.root / "leases" / ".1-0a.json.5bce98-1-ec04f1.part"
        half_written.write_bytes(b'["b"')
        tidy(store)
        assert not half_written.exists()
        with leased_keys(store) as keys:
            assert keys == {"a"}
    tidy(store)
    assert not [*(store.root / "leases").iterdir()]


def test_a_writer_that_nobody_waited_for_is_gone(tmp_path: Path) -> None:
    """A process that has ended keeps its number until its parent asks for its exit status."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        litter = tmp_path / f".manifest.json.{files._machine()}-{ended.pid}-ec04f1.part"
        at_work = tmp_path / f".manifest.json.{files._machine()}-{os.getpid()}-ec04f1.part"
        for path in (litter, at_work):
            path.write_bytes(b"{")
        files.clear_abandoned(tmp_path)
        assert [*tmp_path.iterdir()] == [at_work]
