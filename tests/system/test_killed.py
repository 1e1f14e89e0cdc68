"""SIGKILL of a whole command at random instants: typed again it gives the same bytes; no litter, no process goes on."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bench.core.files import is_temporary, read_sealed
from bench.core.scratch import sweep
from tests.system.conftest import TINY, alive, write_folder

MARK = "BENCH_TEST_KILLED"
"""Environment variable of a command and of all processes that it begins."""
BM25 = ("--method", "bm25", "--suite", "beir", "--task", "made", "--offline")
CROP = ("--method", "crop", "--suite", "beir", "--task", "made", "--offline", "--backbone", "scratch:1x16")
SMALL = ("--set", "budget.tokens=300", "--set", "prepare.vocabulary=1500", "--set", "compute.threads=1")
_CURVE = (
    *("budget.tokens=5000", "method.pairs=4", "train.checkpoint_seconds=0.05"),
    *("curve.points=4", "curve.cool=0.4"),
)
POINTS = tuple(word for text in _CURVE for word in ("--set", text))
COMMANDS = {
    "run --workers 2": (("run", *BM25, "--workers", "2"), "new", 4),
    "encode shares": (("run", *CROP, *SMALL, "--corpus", "texts", "--shard-workers", "2", "--workers", "2"), "new", 2),
    "points": (("run", *CROP, *SMALL, *POINTS, "--corpus", "texts", "--workers", "1"), "new", 3),
    "plan": (("plan", *BM25), "new", 3),
    "compare": (("compare", "bm25", "bm25@k1=1.2", "--suite", "beir", "--json"), "results", 3),
    "leaderboard build": (("leaderboard", "build"), "results", 3),
    "leaderboard add": (("leaderboard", "add", "results", "--results", "board", "--task", "made"), "results", 3),
}
"""Command, what it begins with, and how often it is killed, times what `BENCH_KILLS` says."""
TIMES = int(os.environ.get("BENCH_KILLS", "1"))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders to begin in: with data alone, and with results of two systems."""
    folder = tmp_path_factory.mktemp("begun")
    write_folder(folder / "new" / "made", documents=400, queries=20)
    (folder / "new" / "texts").mkdir()
    lines = (TINY / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    rows = [{"id": str(at), "sentences": texts[at : at + 4]} for at in range(0, len(texts), 4)]
    (folder / "new" / "texts" / "en.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    shutil.copytree(folder / "new", folder / "results")
    for sets in (), ("--set", "method.k1=1.2"):
        typed(folder / "results", "run", *BM25, *sets)
    return {name: folder / name for name in ("new", "results")}


def start(place: Path, *words: str) -> "subprocess.Popen[str]":
    (place / "temporary").mkdir(exist_ok=True)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    own = {MARK: str(place), "TMPDIR": str(place / "temporary"), "BENCH_CACHE": str(place / "cache")}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-m", "bench", *words], cwd=place, env={**inherited, **own}, **pipes)


def typed(place: Path, *words: str) -> str:
    """Type a command to its end; return what it printed."""
    with start(place, *words) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def contents(place: Path) -> dict[str, bytes]:
    """Return the bytes of what a command leaves; of result files, all that is not about time."""
    files = {}
    for path in sorted(path for path in place.rglob("*") if path.is_file()):
        name = path.relative_to(place).as_posix()
        if not name.startswith(("store/artefacts", "results", "board", "site")) or path.name.startswith("."):
            continue
        if path.name == "result.json":
            files[name] = repr([read_sealed(path)[part] for part in ("system", "suite", "macro", "files")]).encode()
        elif path.name not in ("manifest.json", "accepted.json", "log.jsonl", "curves.json"):
            files[name] = path.read_bytes()
    return files


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_random_instants(name: str, begun: dict[str, Path], tmp_path: Path) -> None:
    """The command alone is killed, not those that it began: these end by themselves."""
    words, first, kills = COMMANDS[name]
    kills *= TIMES
    shutil.copytree(begun[first], tmp_path / "whole")
    began = time.monotonic()
    printed = typed(tmp_path / "whole", *words)
    duration, whole = time.monotonic() - began, contents(tmp_path / "whole")
    draw, struck = random.Random(name), 0
    for number in range(kills):
        place = tmp_path / str(number)
        shutil.copytree(begun[first], place)
        began = time.monotonic()
        with start(place, *words) as process:
            instant = draw.uniform(0.2, 0.9) * duration
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(instant)
                # It ended before its instant: the machine was busier when the whole command was timed.
                duration = min(duration, time.monotonic() - began)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        struck += process.returncode == -signal.SIGKILL
        deadline = time.monotonic() + 60
        while (going_on := [*alive(MARK, str(place))]) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert going_on == []
        again = typed(place, *words)
        assert contents(place) == whole
        assert name != "compare" or again == printed
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tempfile.tempdir", str(place / "temporary"))
            sweep(older_than=0)
        assert [path for path in (place / "temporary").iterdir() if path.name.startswith("bench-")] == []
        work = [*place.glob("store/work/*"), *place.glob("store/leases/*")]
        assert [path for path in (*place.rglob("*"), *work) if is_temporary(path) or path in work] == []
    assert struck >= kills // 2, "commands that had ended were not killed"
