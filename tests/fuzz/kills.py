"""SIGKILL of a command, alone or next to another; typed again: same bytes, no litter, and no process that goes on."""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.fuzz.harness import Case, Draw, Outcome, carried_out, command, ended, scratch, start_child, waited
from tests.system.conftest import alive

TINY = Path(__file__).parents[1] / "fixtures" / "tiny-beir"
RUN = ("run", "--offline", "--suite", "beir", "--task", str(TINY), "--device", "cpu", "--set", "compute.threads=1")
SMALL = ("--backbone", "scratch:1x16", "--set", "prepare.vocabulary=512", "--set", "budget.tokens=300")
BM25 = (*RUN, "--method", "bm25")
TRAIN = (*RUN, "--method", "crop", *SMALL)
TUNE = (*TRAIN, "--regime", "english", "--set", "tune.epochs=1")
PLACES = ("--store", "PLACE/store", "--results", "PLACE/results")
GC = ("gc", "--older-than", "0", *PLACES)
ADD = ("leaderboard", "add", "PLACE/results", "--task", str(TINY), "--store", "PLACE/store", "--results", "PLACE/board")
LATER = ("encode", "search", "score")


@dataclass(frozen=True)
class Job:
    """A command that is killed; `run` makes all that it needs, `undone` are stages that it has to make again."""

    run: tuple[str, ...]
    undone: tuple[str, ...] = ()
    command: tuple[str, ...] = ()  # the command, where it is not that run; `PLACE` is the folder of all

    def words(self, place: Path) -> list[str]:
        if not self.command:
            return _run(self.run, place)
        return [word.replace("PLACE", str(place)) for word in self.command]


JOBS = {
    "run": Job(BM25, ("validate", "read", "index", *LATER)),
    "train": Job(TRAIN, ("train", *LATER)),
    "tune": Job(TUNE, ("tune", *LATER)),
    "add": Job(BM25, command=ADD),
    "gc": Job(BM25, command=GC),
    "plan": Job(BM25, command=("plan", *BM25[1:], *PLACES)),
    "compare": Job(TRAIN, command=("compare", "crop", "crop@init", "--suite", "beir", "--results", "PLACE/results")),
    "build": Job(BM25, command=("leaderboard", "build", "--results", "PLACE/results", "--out", "PLACE/site")),
}
MARK = "BENCH_KILLED"
"""Environment variable of a command that is killed, and of all processes that it began: the folder of the case."""
_MEMORY = 6 << 30  # address space of a training: kernels for matrix units reserve gigabytes that they do not touch
_CHANGES = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.truncate", "shutil.rmtree")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class _Counter:
    """Count the changes below a folder; at one of them this process ends, as by a power cut."""

    def __init__(self, folder: Path, last: int = -1) -> None:
        self.folder, self.last, self.count = str(folder), last, 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" and event not in _CHANGES:
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & _WRITING):
            return
        if isinstance(arguments[0], str | os.PathLike) and os.fspath(arguments[0]).startswith(self.folder):
            self.count += 1
            if self.count == self.last:
                os.kill(os.getpid(), signal.SIGKILL)


def _run(words: Sequence[str], place: Path) -> list[str]:
    corpus = ["--corpus", str(_inputs() / "corpus")] if "crop" in words else []
    pairs = ["--set", f"tune.data={_inputs() / 'pairs.jsonl'}"] if "--regime" in words else []
    return [*words, *corpus, *pairs, "--store", str(place / "store"), "--results", str(place / "results")]


@cache
def _inputs() -> Path:
    folder, texts = scratch(), [json.loads(line)["text"] for line in (TINY / "corpus.jsonl").open()]
    (folder / "corpus").mkdir()
    documents = [{"id": str(at), "sentences": texts[at : at + 4]} for at in range(0, len(texts), 4)]
    pairs = [{"query": " ".join(text.split()[:4]), "positive": text} for text in texts]
    for name, rows in (("corpus/en.jsonl", documents), ("pairs.jsonl", pairs)):
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    os.environ["_BENCH_LIMITED"] = "1"  # a child has limits, and is counted itself
    return folder


def _contents(place: Path) -> dict[str, bytes]:
    """Return the bytes of results, boards and artefacts, by path; of result files all that is not about time."""
    contents = {}
    for path in sorted(place.rglob("*")):
        top = path.relative_to(place).parts[0]
        if not path.is_file() or (top == "store" and "artefacts" not in path.parts) or path.name.startswith("."):
            continue
        name = str(path.relative_to(place))
        if path.name == "result.json":
            result = json.loads(path.read_bytes())
            contents[name] = json.dumps([result[part] for part in ("system", "suite", "macro", "files")]).encode()
        elif path.name not in ("manifest.json", "accepted.json", "log.jsonl", "curves.json"):
            contents[name] = path.read_bytes()
    return contents


@dataclass(frozen=True)
class _Reference:
    """A folder to begin in, and what comes of the undisturbed command: contents, changes of files, seconds."""

    start: Path
    contents: dict[str, bytes]
    changes: int
    seconds: float


@cache
def _reference(name: str) -> _Reference:
    job, folder = JOBS[name], scratch()
    _inputs()
    for module in ("leaderboard.build",) if name == "add" else ("torch", "transformers") if "crop" in job.run else ():
        import_module(module)  # no child imports it again

    def counted() -> int:
        sys.addaudithook(counter := _Counter(folder / "done"))
        assert ended(command(*job.words(folder / "done"))) == 0
        return counter.count

    def make_start() -> None:
        assert ended(command(*_run(job.run, folder / "start"))) == 0
        if name == "gc":  # of a run whose result is gone
            assert ended(command(*_run((*job.run, "--set", "method.k1=1.5"), folder / "start"))) == 0

    outcome = carried_out(Case(make_start, memory=_MEMORY))
    assert outcome.code == 0, outcome.stderr
    for stage in job.undone:
        shutil.rmtree(folder / "start" / "store" / "artefacts" / stage, ignore_errors=True)
    if name == "gc":
        (removed_result,) = (folder / "start" / "results").rglob("*k1=1.5*")
        shutil.rmtree(removed_result)
    if not job.command:
        shutil.rmtree(folder / "start" / "results")
    shutil.copytree(folder / "start", folder / "done")
    outcome = carried_out(Case(counted, memory=_MEMORY))
    assert outcome.code == 0, outcome.stderr
    return _Reference(folder / "start", _contents(folder / "done"), outcome.value, outcome.seconds)


def _killed(call: Callable[[], None], place: Path, at: int, after: float) -> Callable[[], int]:
    """Begin a command that ends at a change of files, or after so many seconds; return what waits for its end."""

    def hooked() -> None:
        os.environ[MARK] = str(place)
        sys.addaudithook(_Counter(place, at))
        call()

    start = time.monotonic()
    with tempfile.TemporaryFile() as out:
        child = start_child(Case(hooked, memory=_MEMORY), out.fileno(), out.fileno(), out.fileno())
        descriptor = os.dup(out.fileno())

    def wait() -> int:
        time.sleep(max(0.0, start + after - time.monotonic()) if after else 0)
        if after:
            os.kill(child, signal.SIGKILL)
        code, _ = waited(child, start)
        with open(descriptor, "rb") as stream:  # noqa: PTH123 (a descriptor)
            stream.seek(0)
            text = stream.read().decode()
        assert code in (-signal.SIGKILL, 0), text
        return code

    return wait


def _orphans(place: Path, seconds: float = 30.0) -> list[str]:
    """Return the processes of killed commands that do not end by themselves."""
    deadline = time.monotonic() + seconds
    while (orphans := [*alive(MARK, str(place))]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return orphans


def case(draw: Draw, folder: Path) -> Case:
    """Kill a command, or two at once of which one may go on; type it again."""
    name = draw.choice([*JOBS])
    job, reference, place = JOBS[name], _reference(name), folder / "place"
    shutil.copytree(reference.start, place)
    second_commands = [
        None,
        None,
        job.words(place),
        JOBS["gc"].words(place),
    ]
    commands = [job.words(place), *filter(None, [draw.choice(second_commands)])]
    waiting = []
    for number, words in enumerate(commands):
        by_clock = draw.random() < 0.5 or not reference.changes
        unharmed = number and draw.random() < 0.5
        at = draw.randint(1, reference.changes) if not (by_clock or unharmed) else -1
        after = draw.uniform(0.05, 1) * reference.seconds if by_clock and not unharmed else 0.0
        waiting.append(_killed(command(*words), place, at, after))
    description = f"{name} of {len(commands)} commands, ended with {[wait() for wait in waiting]}"
    orphans = _orphans(place)

    def call() -> list[str]:
        repeated = [job.words(place), *([_run(job.run, place)] if name == "gc" else [])]
        for words in (*repeated, ["verify", "--store", str(place / "store"), "--results", str(place / "results")]):
            if code := ended(command(*words)):
                raise SystemExit(code)
        inside = (
            path for path in place.rglob("*") if path.name.endswith(".part") or path.parent.name in ("work", "leases")
        )
        return [str(path.relative_to(place)) for path in inside]

    def judge(outcome: Outcome) -> str:
        if orphans:
            return f"orphans after {description}: {orphans}"
        contents = _contents(place)
        if differing := {
            path for path in {*contents, *reference.contents} if contents.get(path) != reference.contents.get(path)
        }:
            return f"other bytes after {description}: {sorted(differing)[:5]}"
        return f"litter after {description}: {outcome.value}" if outcome.value else ""

    return Case(call, judge, allowed=(0,), memory=_MEMORY)
