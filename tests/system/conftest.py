"""What the tests of the whole command share: BEIR folders, and the command as a user types it."""

import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.cli import main

Answer = tuple[int, str, str]
"""Exit status, stdout, stderr."""
Bench = Callable[..., "subprocess.CompletedProcess[str]"]
Options = Callable[[Path, Path, Path], list[str]]
TINY = Path(__file__).parents[1] / "fixtures" / "tiny-beir"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    return {**inherited, "COLUMNS": "200", "BENCH_CACHE": str(tmp_path / "cache")}


@pytest.fixture
def bench(tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, unbounded: None) -> Bench:
    """Run `bench …` in a folder of its own and return what it printed.

    It runs in this process, or, where `seconds` are given, in one of its own that may take so long, and ends with the
    status that is expected.
    """

    def run_here(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        out, err = io.StringIO(), io.StringIO()
        with monkeypatch.context() as patch:
            for name in set(os.environ) - set(environment):
                patch.delenv(name)
            for name, value in {**environment, **extra}.items():
                patch.setenv(name, value)
            patch.chdir(tmp_path)
            with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
                main(arguments)
        return subprocess.CompletedProcess(arguments, int(str(ended.value.code)), out.getvalue(), err.getvalue())

    def run_in_process(*arguments: str, seconds: float, **extra: str) -> subprocess.CompletedProcess[str]:
        command, variables = [sys.executable, "-m", "bench", *arguments], {**environment, **extra}
        return subprocess.run(
            command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=seconds, check=False
        )

    def call(
        *arguments: str | Path, seconds: float = 0, status: int | None = 0, **extra: str
    ) -> subprocess.CompletedProcess[str]:
        words = [*map(str, arguments)]
        completed = run_in_process(*words, seconds=seconds, **extra) if seconds else run_here(*words, **extra)
        assert status in (None, completed.returncode), completed.stderr
        return completed

    return call


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Callable[..., Answer]]]:
    """Return a folder and what runs `bench …` there, in one process for a module, with nothing of this machine in keys.

    What is pinned, and how, is told in `tests/system/pinned.py`.
    """
    place = tmp_path_factory.mktemp("pinned")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    places = {name: str(place / name.lower()) for name in ("BENCH_CACHE", "HF_HOME", "NUMBA_CACHE_DIR")}
    root = str(Path(__file__).parents[2])
    paths = {"IR_DATASETS_HOME": str(place / "irds"), "PYTHONPATH": os.pathsep.join((root, *sys.path))}
    environment = {**inherited, **places, **paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name("pinned.py"))]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=place, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        requests, answers = process.stdin, process.stdout
        assert requests
        assert answers

        def call(*words: str) -> Answer:
            requests.write(json.dumps(words) + "\n")
            requests.flush()
            status, out, err = json.loads(answers.readline())
            return status, out, err

        yield place, call
        process.kill()  # of itself it would take a second to leave


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small pretraining corpus of two mini languages, one file each."""
    from bench.data.mini import documents

    folder = tmp_path_factory.mktemp("corpus")
    for language in ("en", "sw"):
        rows = (
            {"id": document.id, "sentences": document.sentences, "title": document.title}
            for document in documents(language)
        )
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in islice(rows, 150))
        (folder / f"{language}.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def options() -> Options:
    """The arguments of a run of BM25 on a BEIR folder, with places for stage outputs and results."""

    def of(folder: Path, store: Path, results: Path) -> list[str]:
        options = {"method": "bm25", "suite": "beir", "task": folder, "store": store, "results": results}
        return ["run", *(str(word) for name, value in options.items() for word in (f"--{name}", value))]

    return of


@pytest.fixture
def run_json(bench: Bench) -> Callable[..., dict[str, Any]]:
    """Run `bench … --json`, expect success and one object on stdout."""

    def call(*arguments: str | Path, **extra: Any) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(bench(*arguments, "--json", **extra).stdout)
        return value

    return call


@pytest.fixture
def tiny() -> Path:
    """The small BEIR folder of the repository."""
    return TINY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A BEIR folder of 3,000 generated documents and 300 queries, enough for a run of some seconds."""
    return write_folder(tmp_path / "made", documents=3000, queries=300)


def alive(variable: str, value: str) -> Iterator[str]:
    """Yield the command lines of the processes with a variable in their environment, but for those that have ended."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(variable) == value and process.status() != psutil.STATUS_ZOMBIE:
                yield " ".join(process.cmdline())


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A folder that is called like an encoder of E5's: three blocks with random weights, which reads characters."""
    from bench.data.corpora import tokenizer
    from bench.retrieval.backbones import random_model, save, scratch
    from bench.types import DataRequest
    from suites.tatoeba import SUITE

    folder, sizes = tmp_path / "e5-small-of-ours", scratch("scratch:3x32")
    assert sizes
    subsets = SUITE.load("swh-eng", DataRequest("mini")).subsets
    texts = [item.text for subset in subsets for item in subset.queries.read()]
    tokenizer.save(tokenizer.train({"x": texts}, 700), folder, 512)
    words = tokenizer.load(folder)
    save(random_model(sizes, words, 0), words, folder)
    return folder


def write_folder(place: Path, documents: int, queries: int, seed: int = 0) -> Path:
    """Generate a BEIR folder: words drawn by Zipf's law; a query is five words of a document, which answers it."""
    draw = random.Random(seed)
    words = [f"w{number}" for number in range(5000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    (place / "qrels").mkdir(parents=True)
    texts = [" ".join(draw.choices(words, weights, k=draw.randint(20, 60))) for _ in range(documents)]
    with (place / "corpus.jsonl").open("w") as corpus:
        for number, text in enumerate(texts):
            corpus.write(json.dumps({"_id": f"d{number}", "title": "", "text": text}) + "\n")
    with (place / "queries.jsonl").open("w") as queries_file, (place / "qrels" / "test.tsv").open("w") as qrels:
        qrels.write("query-id\tcorpus-id\tscore\n")
        for number in range(queries):
            answer = draw.randrange(documents)
            queries_file.write(
                json.dumps({"_id": f"q{number}", "text": " ".join(draw.sample(texts[answer].split(), 5))}) + "\n"
            )
            qrels.write(f"q{number}\td{answer}\t1\n")
    return place
