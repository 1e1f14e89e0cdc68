"""Killed at any instant, or out of room: a sentence, finished stages kept, and the same bytes when typed again."""

import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.system.conftest import alive

RunJson = Callable[..., dict[str, Any]]
Options = Callable[[Path, Path, Path], list[str]]
MOMENTS = 5


def _run_hash(outcome: dict[str, Any]) -> str:
    return hashlib.sha256(Path(outcome["results"][0]["run_file"]).read_bytes()).hexdigest()


MARK = "BENCH_TEST_ENDED"
"""Environment variable of a command and of all processes that it begins."""
EXECUTORS_ENDED = [
    *(("slurm", name, is_group) for name in ("SIGTERM", "SIGINT") for is_group in (False, True)),
    *(("ray", name, False) for name in ("SIGTERM", "SIGINT")),
]


def _artefacts(store: Path) -> dict[str, float]:
    """Every finished artefact and when it was committed."""
    return {str(path.parent): path.stat().st_mtime_ns for path in store.glob("artefacts/*/*/manifest.json")}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_killed_at_five_moments(
    tmp_path: Path, folder: Path, environment: dict[str, str], run_json: RunJson, options: Options
) -> None:
    """SIGKILL in every fifth of a run, then a run: byte-identical run files, no finished stage repeated.

    `make fuzz TARGETS=kills` has as many moments as it is asked for.
    """
    length = float("inf")
    for attempt in ("whole", "again"):  # the shorter of two, for machines are shared
        start = time.monotonic()
        uninterrupted = run_json(*options(folder, tmp_path / attempt, tmp_path / "results"), seconds=240)
        length = min(length, time.monotonic() - start)
    expected, draw = _run_hash(uninterrupted), random.Random(20)
    interrupted = 0
    for number in range(MOMENTS):
        store, results = tmp_path / f"store-{number}", tmp_path / f"results-{number}"
        command = [*options(folder, store, results), "--workers", str(1 + number % 2), "--json"]
        process = subprocess.Popen(
            [sys.executable, "-m", "bench", *command], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL
        )
        time.sleep((0.1 + 0.85 * (number + draw.random()) / MOMENTS) * length)
        process.send_signal(signal.SIGKILL)
        interrupted += process.wait() == -signal.SIGKILL
        finished = _artefacts(store)
        resumed = run_json(*command[:-1])
        assert _run_hash(resumed) == expected
        after = _artefacts(store)
        assert {path: after[path] for path in finished} == finished, "a finished stage was made again"
        rerun = {stage["key"] for stage in resumed["stages"] if stage["state"] == "ran"}
        assert not rerun & {Path(path).name for path in finished}
        assert resumed["results"][0]["measures"] == uninterrupted["results"][0]["measures"]
        litter = [*(store / "work").iterdir(), *(store / "leases").iterdir(), *store.rglob(".*.part")]
        assert litter == [], "the next run clears what a kill has left"
    assert interrupted >= MOMENTS / 2, "most runs should have been hit while at work"


@pytest.mark.slow
def test_two_identical_runs_at_once_do_the_work_once(
    tmp_path: Path, folder: Path, environment: dict[str, str], options: Options
) -> None:
    """Both succeed, on one store; every stage was run by exactly one of them."""
    command = [sys.executable, "-m", "bench", *options(folder, tmp_path / "store", tmp_path / "results"), "--json"]
    both = [
        subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    answers = []
    for process in both:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        answers.append(json.loads(out))
    assert answers[0]["results"] == answers[1]["results"]
    for key in {stage["key"] for stage in answers[0]["stages"]}:
        states = [stage["state"] for answer in answers for stage in answer["stages"] if stage["key"] == key]
        assert states.count("ran") == 1, states


def test_a_flipped_byte_anywhere_is_found_and_rebuilt(
    tmp_path: Path, tiny: Path, bench: Any, run_json: RunJson, options: Options
) -> None:
    """`verify` names the file; the next run makes the artefact again, to the same bytes, and verify is content."""
    command = options(tiny, tmp_path / "store", tmp_path / "results")
    run_json(*command)
    places = ("--store", tmp_path / "store", "--results", tmp_path / "results")
    files = sorted(path for path in tmp_path.glob("store/artefacts/**/*") if path.is_file())
    stages = {path.relative_to(tmp_path / "store" / "artefacts").parts[0] for path in files}
    assert stages == {"validate", "read", "index", "search", "score"}
    draw = random.Random(1)
    payload = {path: path.read_bytes() for path in files if path.name != "manifest.json"}
    for path in [draw.choice([path for path in payload if stage in path.parts]) for stage in sorted(stages)]:
        good = path.read_bytes()
        damaged = bytearray(good)
        damaged[draw.randrange(len(good))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        completed = bench("verify", *places, "--json", status=1)
        assert str(path) in {fault["path"] for fault in json.loads(completed.stdout)["corrupt"]}
        repaired = run_json(*command)
        rebuilt = [stage["stage"] for stage in repaired["stages"] if stage["state"] == "ran"]
        assert rebuilt == [path.relative_to(tmp_path / "store" / "artefacts").parts[0]]
        assert path.read_bytes() == good
        bench("verify", *places)


def test_a_damaged_result_is_named_and_written_again(
    tmp_path: Path, tiny: Path, bench: Any, run_json: RunJson, options: Options
) -> None:
    """A flipped byte in the result file or its bundle is found; the next run mends it without running a stage."""
    command = options(tiny, tmp_path / "store", tmp_path / "results")
    first = run_json(*command)
    result = Path(first["results"][0]["result_file"])
    for path in sorted(path for path in result.parent.rglob("*") if path.is_file()):
        good = path.read_bytes()
        path.write_bytes(good[:-2] + bytes([good[-2] ^ 1]) + good[-1:])
        places = ("--store", tmp_path / "store", "--results", tmp_path / "results")
        completed = bench("verify", *places, "--json", status=1)
        assert str(path) in {fault["path"] for fault in json.loads(completed.stdout)["corrupt"]}
        repaired = run_json(*command)
        assert not [stage for stage in repaired["stages"] if stage["state"] == "ran"]
        assert path.read_bytes() == good


@pytest.mark.parametrize(
    ("name", "workers"),
    [
        ("SIGINT", 1),
        pytest.param("SIGTERM", 2, marks=pytest.mark.slow),
        pytest.param("SIGTERM", 1, marks=pytest.mark.slow),
        pytest.param("SIGHUP", 2, marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_a_run_with_a_sentence(
    name: str,
    workers: int,
    tmp_path: Path,
    folder: Path,
    environment: dict[str, str],
    options: Options,
    run_json: RunJson,
) -> None:
    """The usual exit status, finished stages kept, nothing that the next run would trip over."""
    command, number = options(folder, tmp_path / "store", tmp_path / "results"), signal.Signals[name]
    call = [sys.executable, "-m", "bench", *command, "--workers", str(workers)]
    before = signal.signal(number, signal.SIG_DFL)  # inherited, also where the tests themselves run under nohup
    with subprocess.Popen(call, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        signal.signal(number, before)
        deadline = time.monotonic() + 120
        while not (tmp_path / "store" / "artefacts" / "validate").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=120)
    ending = "interrupted" if name == "SIGINT" else f"ended by {name}"
    assert f"bench: {ending}; finished stages are kept, type the same command to resume" in stderr
    assert "Traceback" not in stderr
    assert process.returncode == 128 + number
    finished = _artefacts(tmp_path / "store")
    run_json(*command)
    assert finished.items() <= _artefacts(tmp_path / "store").items()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder for temporary files whose name leaves room for those of sockets."""
    folder = Path(tempfile.gettempdir(), f"b{os.getpid() % 1000}")
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.parametrize(("executor", "name", "is_group"), EXECUTORS_ENDED)
def test_a_signal_ends_a_run_on_other_executors_with_a_sentence(
    executor: str,
    name: str,
    is_group: bool,
    tmp_path: Path,
    short_folder: Path,
    folder: Path,
    environment: dict[str, str],
    run_json: RunJson,
) -> None:
    """As here: the same status and sentence, no traceback, nothing at work afterwards, and no temporary folder."""
    pytest.importorskip({"slurm": "submitit", "ray": "ray"}[executor], reason="needs the extra")
    marked = {"BENCH_SLURM": "local", "TMPDIR": str(short_folder), MARK: str(tmp_path)}
    places = ("--store", str(tmp_path / "store"), "--results", str(tmp_path / "results"))
    command = ["run", "--method", "bm25", "--suite", "beir", "--task", str(folder), *places]
    number = signal.Signals[name]
    before = signal.signal(number, signal.SIG_DFL)  # inherited, also where the tests themselves run in the background
    with subprocess.Popen(
        [sys.executable, "-m", "bench", *command, "--executor", executor],
        cwd=tmp_path,
        env=environment | marked,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        signal.signal(number, before)
        deadline = time.monotonic() + 240
        while not any((tmp_path / "store").glob("work/*")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        if is_group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        _, stderr = process.communicate(timeout=240)
    ending = "interrupted" if name == "SIGINT" else f"ended by {name}"
    assert stderr.endswith(f"bench: {ending}; finished stages are kept, type the same command to resume\n")
    assert "Traceback" not in stderr
    assert process.returncode == 128 + number
    deadline = time.monotonic() + 60
    while (going_on := [*alive(MARK, str(tmp_path))]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert going_on == []
    assert not [path for path in short_folder.iterdir() if path.name.startswith("bench-")]
    assert [row["task"] for row in run_json(*command)["results"]] == ["beir/made"]


CLEANER = """
import sys
from pathlib import Path
from bench.store.housekeeping import garbage, remove
from bench.store.store import Store
store = Store(Path(sys.argv[1]))
print("ready", flush=True)
while not Path(sys.argv[2]).exists():
    remove(store, garbage(store, (), 0))
"""


def test_gc_beside_runs_kills_none(
    tmp_path: Path, tiny: Path, environment: dict[str, str], bench: Any, options: Options
) -> None:
    """A process removes all that no run needs, again and again; every run ends, and finds the same."""
    store, stop, runs = tmp_path / "store", tmp_path / "stop", set[bytes]()
    call = [sys.executable, "-c", CLEANER, str(store), str(stop)]
    with subprocess.Popen(call, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as cleaner:
        assert cleaner.stdout
        cleaner.stdout.readline()
        try:
            for number in range(6):
                bench(*options(tiny, store, tmp_path / f"results-{number}"))
                (run,) = (tmp_path / f"results-{number}").rglob("*.trec.gz")
                runs.add(run.read_bytes())
            assert cleaner.poll() is None, "it was at work to the end"
        finally:
            stop.touch()
    assert (cleaner.returncode, len(runs)) == (0, 1)


def test_results_that_cannot_be_written_stop_before_any_work(
    tmp_path: Path, tiny: Path, bench: Any, options: Options
) -> None:
    """A file stands where a folder is needed; root may write anywhere, so no permission is tried."""
    (tmp_path / "file").write_text("I am a file")
    completed = bench(*options(tiny, tmp_path / "store", tmp_path / "file" / "results"), status=1)
    assert "cannot write to the results folder" in completed.stderr
    assert "choose another folder by --results" in completed.stderr
    assert "Traceback" not in completed.stderr
    assert not (tmp_path / "store" / "artefacts").exists()


@pytest.mark.slow
def test_a_write_that_fails_half_way_keeps_finished_stages(
    tmp_path: Path, folder: Path, environment: dict[str, str], run_json: RunJson, options: Options
) -> None:
    """Files may not grow beyond 60 kB (the system then refuses the write, as a full disk does): the index fails."""
    command = options(folder, tmp_path / "store", tmp_path / "results")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    completed = subprocess.run(
        [sys.executable, "-m", "bench", *command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
        timeout=240,
    )
    assert completed.returncode == 1, completed.stderr
    assert "Traceback" not in completed.stderr
    assert "finished stages are kept" in completed.stderr
    finished = {path.parent.parent.name for path in (tmp_path / "store").glob("artefacts/*/*/manifest.json")}
    assert {"validate", "read"} <= finished
    assert "search" not in finished
    resumed = run_json(*command)
    states = {stage["stage"]: stage["state"] for stage in resumed["stages"]}
    assert (states["validate"], states["read"], states["index"]) == ("cached", "cached", "ran")


@contextmanager
def _mounted(place: Path, options: str) -> Iterator[Path]:
    """A file system of its own, where this user may mount one."""
    place.mkdir()
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or not (mount and unmount):
        pytest.skip("only root may mount a file system")
    mounted = subprocess.run(
        [mount, "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("no file system may be mounted here")
    try:
        yield place
    finally:
        subprocess.run([unmount, str(place)], check=True)


def test_a_really_full_disk(tmp_path: Path, folder: Path, bench: Any, options: Options) -> None:
    """The store lies on a disk of 300 kB."""
    with _mounted(tmp_path / "disk", "size=300k") as disk:
        completed = bench(*options(folder, disk / "store", tmp_path / "results"), status=1)
        assert "the disk is full" in completed.stderr
        assert "finished stages are kept" in completed.stderr
        assert "Traceback" not in completed.stderr
        assert list((disk / "store").glob("artefacts/validate/*/manifest.json"))


def test_a_read_only_results_folder(
    tmp_path: Path, tiny: Path, bench: Any, run_json: RunJson, options: Options
) -> None:
    """It is refused before any work; what an earlier run finished is kept."""
    run_json(*options(tiny, tmp_path / "store", tmp_path / "good"))
    finished = sorted((tmp_path / "store").glob("artefacts/*/*"))
    with _mounted(tmp_path / "disk", "ro") as disk:
        completed = bench(*options(tiny, tmp_path / "store", disk), status=1)
    assert "the file system is read-only" in completed.stderr
    assert "Traceback" not in completed.stderr
    assert sorted((tmp_path / "store").glob("artefacts/*/*")) == finished
