"""`bench data` as a user types it, on a stranger's suite whose official files a real local HTTP server has."""

import contextlib
import hashlib
import json
import os
import pty
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from rich.filesize import decimal

from bench.cli import main
from tests.system.conftest import alive
from tests.terminal import displayed

FIXTURES = Path(__file__).parents[1] / "fixtures"
TINY = FIXTURES / "tiny-beir"
NOTE = b"made by hand\n"


class Files(SimpleHTTPRequestHandler):
    """Serves a folder and keeps quiet; remembers what it was asked."""

    requests: list[str]

    def log_message(self, format: str, *args: Any) -> None:
        """Remember the request line."""
        self.requests.append(str(args[0]) if args else "")


@dataclass
class Toy:
    """A suite, its server, and the command."""

    home: Path
    site: Path  # what the server has
    url: str
    requests: list[str]  # request lines that it heard
    environment: dict[str, str]
    capture: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch

    def describe(self, *releases: dict[str, Any], documents: int | None = None, **more: Any) -> None:
        full_releases = [{"urls": [], "tasks": [], "licence": "CC0", **release} for release in releases]
        description = {"documents": documents, "releases": full_releases, **more}
        (self.home / "plugin" / "releases.json").write_text(json.dumps(description))

    def archive(self, **overrides: Any) -> dict[str, Any]:
        data = (self.site / "one.zip").read_bytes()
        published = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "licence": "CC BY 4.0"}
        return {"path": "toy/one.zip", "urls": [f"{self.url}/one.zip"], "unpack": "toy", **published, **overrides}

    def note(self, **overrides: Any) -> dict[str, Any]:
        """Describe the file that only a person can get."""
        published = {"size": len(NOTE), "md5": hashlib.md5(NOTE, usedforsecurity=False).hexdigest(), "tasks": ["noted"]}
        return {"path": "toy/note.txt", "instructions": "Write it down.", **published, **overrides}

    def __call__(self, *arguments: str | Path, status: int = 0, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run `bench data …` in this process, with variables more, and expect a status."""
        return self.bench("data", *arguments, status=status, **more)

    def bench(self, *arguments: str | Path, status: int = 0, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run `bench …` in the same way."""
        command = [*map(str, arguments)]
        self.capture.readouterr()
        with self.patch.context() as patch:
            for name, value in more.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main(command)
        printed = self.capture.readouterr()
        assert ended.value.code == status, printed.err
        return subprocess.CompletedProcess(command, status, printed.out, printed.err)

    def run_in_process(self, *arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run `bench …` in a process of its own."""
        command = [sys.executable, "-m", "bench", *map(str, arguments)]
        keywords = {"capture_output": True, "text": True, "timeout": 120, "stdin": subprocess.DEVNULL, **more}
        return subprocess.run(command, cwd=self.home, env=self.environment, check=False, **keywords)

    def json(self, *arguments: str | Path, status: int = 0) -> dict[str, Any]:
        """Run `bench data … --json`, expect a status and one object."""
        value: dict[str, Any] = json.loads(self(*arguments, "--json", status=status).stdout)
        return value

    def states(self) -> dict[str, str]:
        return {file["path"]: file["state"] for file in self.json("list", "toy")["suites"][0]["files"]}

    @property
    def cache(self) -> Path:
        return self.home / "cache" / "data"


@pytest.fixture
def toy(
    tmp_path: Path, environment: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Toy]:
    """A stranger's suite, installed; its archive is the small BEIR folder of the repository."""
    plugin, site = tmp_path / "plugin", tmp_path / "site"
    metadata = plugin / "bench_toy-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-toy\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[bench]\ntoy = bench_toy\n")
    shutil.copy(FIXTURES / "toy_suite" / "bench_toy.py", plugin)
    site.mkdir()
    with zipfile.ZipFile(site / "one.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(TINY.rglob("*")):
            if path.is_file():
                archive.write(path, f"one/{path.relative_to(TINY).as_posix()}")
    requests: list[str] = []
    handler = partial(type("NullListener", (Files,), {"requests": requests}), directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        places = os.pathsep.join(filter(None, (str(plugin), os.environ.get("PYTHONPATH"))))
        paths = {"PYTHONPATH": places, "BENCH_CACHE": str(tmp_path / "cache"), "NO_PROXY": "*"}
        for name in [name for name in os.environ if name.startswith("BENCH_")]:
            monkeypatch.delenv(name)
        for name, value in {**paths, "OMP_WAIT_POLICY": "PASSIVE"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.syspath_prepend(str(plugin))
        monkeypatch.delitem(sys.modules, "bench_toy", raising=False)
        monkeypatch.chdir(tmp_path)
        url = f"http://127.0.0.1:{server.server_address[1]}"
        suite = Toy(tmp_path, site, url, requests, {**environment, **paths}, capsys, monkeypatch)
        suite.describe(suite.archive(), suite.note())
        yield suite
        server.shutdown()
        thread.join()


def documents() -> int:
    """Passages of the small BEIR folder, counted by lines."""
    return len((TINY / "corpus.jsonl").read_text().splitlines())


@pytest.mark.slow
def test_from_nothing_to_a_run(toy: Toy) -> None:
    """List, dry run, fetch, list, put the rest by hand, check, run: each says what is next, and the last one works."""
    assert toy.states() == {"toy/one.zip": "missing", "toy/note.txt": "missing"}
    shown = toy("fetch", "toy", "--dry-run")
    assert "licence of toy: CC BY 4.0 of toys.\nlicence of its files: CC BY 4.0\n" in shown.stdout
    assert f"into: {toy.cache}" in shown.stdout
    assert (toy.requests, (toy.home / "cache").exists()) == ([], False)
    assert "nDCG" not in shown.stdout
    fetched = toy("fetch", "toy", "--yes", status=1)
    place = toy.cache / "toy" / "note.txt"
    md5 = hashlib.md5(NOTE, usedforsecurity=False).hexdigest()
    instructions = (
        f"1 file cannot be fetched. Write it down.\n  toy/note.txt (13 bytes, md5 {md5}): put it at {place}\n"
    )
    assert instructions in fetched.stdout
    assert fetched.stdout.endswith("toy: 1 of 2 files there, not complete\n")
    assert (toy.cache / "toy/one/corpus.jsonl").read_bytes() == (TINY / "corpus.jsonl").read_bytes()
    assert toy.states() == {"toy/one.zip": "present", "toy/note.txt": "missing"}
    place.write_bytes(NOTE)
    assert toy("fetch", "toy").stdout == "toy: 2 files, nothing missing\n"
    assert len(toy.requests) == 1
    checked = toy.json("check", "toy")
    assert checked["faults"] == 0
    assert [file["held_against"] for file in checked["files"]] == ["sha256", "md5"]
    unchecked = "1 file without a published sha256, compared with what was fetched first: toy/note.txt (md5 alone)"
    assert unchecked in toy("check", "toy").stdout
    counts = {subset["task"]: subset["counts"]["documents"] for subset in checked["subsets"]}
    assert counts == {"toy/one": documents(), "toy/noted": documents()}
    ran = toy.run_in_process("run", "--method", "bm25", "--suite", "toy", "--data", "official", "--json")
    assert ran.returncode == 0, ran.stderr
    states = {stage["stage"]: stage["state"] for stage in json.loads(ran.stdout)["stages"]}
    assert (states["validate"], states["read"]) == ("cached", "cached")


def test_only_what_a_task_needs_and_is_agreed_to(toy: Toy) -> None:
    """Without a terminal --yes is needed; nothing is fetched, but size and licence are shown."""
    completed = toy("fetch", "toy", status=2)
    assert "there is no terminal to ask on; type --yes" in completed.stderr
    assert "to fetch: 1 file, " in completed.stdout
    assert (toy.requests, toy.states()["toy/one.zip"]) == ([], "missing")
    # The other task's file is not spoken of; an unknown task is named.
    fetched = toy.json("fetch", "toy", "--task", "toy/one", "--yes")
    assert (fetched["complete"], [file["path"] for file in fetched["files"]]) == (True, ["toy/one.zip"])
    assert fetched["into"] == [str(toy.cache)]
    wrong = toy("fetch", "toy", "--task", "tow", "--yes", status=2)
    assert "Traceback" not in wrong.stderr
    assert "no task of toy 'tow'" in wrong.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "state"), [("y\n", "present"), ("n\n", "missing")])
def test_somebody_to_ask(toy: Toy, answer: str, state: str) -> None:
    """On a terminal the question comes after the licence; no is no."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer.encode())
        completed = toy.run_in_process("data", "fetch", "toy", "--task", "one", stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert "Fetch them under these licences? [Y/n]" in completed.stderr
    assert "licence of toy: CC BY 4.0 of toys." in completed.stdout
    assert (completed.returncode, toy.states()["toy/one.zip"]) == (int(state == "missing"), state)
    assert ("nothing was fetched" in completed.stderr) == (state == "missing")


@pytest.mark.slow
def test_bars_of_files_side_by_side(toy: Toy) -> None:
    """On a terminal each file has its bar while it comes, and one sentence; nothing of the bars is left at the end."""
    names = ["a", "b", "c", "d", "e"]
    for name in names:
        (toy.site / name).write_bytes(name.encode() * 3_000_000)
    toy.describe(*({"path": f"toy/{name}", "urls": [f"{toy.url}/{name}"], "size": 3_000_000} for name in names))
    ours, theirs = pty.openpty()
    heard: list[bytes] = []

    def hear() -> None:
        with contextlib.suppress(OSError):
            while block := os.read(ours, 1 << 16):
                heard.append(block)

    listener = threading.Thread(target=hear)
    listener.start()
    try:
        ended = toy.run_in_process(
            "data", "fetch", "toy", "--yes", capture_output=False, stdout=subprocess.DEVNULL, stderr=theirs
        )
    finally:
        os.close(theirs)
        listener.join()
        os.close(ours)
    screen = b"".join(heard).decode()
    assert ended.returncode == 0
    for number, name in enumerate(names, 1):
        assert f"[{number}/5] toy/{name}" in screen
        assert screen.count(f"bench: toy/{name} (3.0 MB) is there") == 1
    left = [line for line in displayed(screen) if line and not line.startswith("bench: toy/")]
    assert left == []


def test_offline(toy: Toy) -> None:
    """No request is made, what is missing is named; an archive that lies there is unpacked."""
    completed = toy("fetch", "toy", "--offline", status=1)
    assert "missing: toy/one.zip; without --offline 1 file would be fetched" in completed.stdout
    (toy.cache / "toy").mkdir(parents=True)
    shutil.copy(toy.site / "one.zip", toy.cache / "toy")
    assert toy.states()["toy/one.zip"] == "packed"
    assert toy.json("fetch", "toy", "--task", "one", "--offline")["complete"] is True
    assert toy.states()["toy/one.zip"] == "present"
    (toy.cache / "toy/one/corpus.jsonl").unlink()
    assert toy.states()["toy/one.zip"] == "damaged"
    assert toy.json("fetch", "toy", "--task", "one", "--offline")["complete"] is True
    assert toy.requests == []


def test_where_files_go(toy: Toy) -> None:
    """--data-dir before all; BENCH_DATA where the cache holds nothing of the suite; never both for one suite."""
    chosen_folder, data_folder = toy.home / "here", toy.home / "named"
    data_folder.mkdir()
    variables: dict[str, Any] = {"BENCH_DATA": str(data_folder)}
    toy("fetch", "toy", "--task", "one", "--yes", "--data-dir", chosen_folder, **variables)
    assert (chosen_folder / "toy/one/corpus.jsonl").is_file()
    assert list(data_folder.iterdir()) == []
    toy("fetch", "toy", "--task", "one", "--yes", **variables)
    assert (data_folder / "toy/one/corpus.jsonl").is_file()
    assert not toy.cache.exists()
    shutil.rmtree(data_folder / "toy")
    toy("fetch", "toy", "--task", "one", "--yes")
    assert (toy.cache / "toy/one/corpus.jsonl").is_file()
    assert "toy: 1 file, nothing missing" in toy("fetch", "toy", "--task", "one", "--yes", **variables).stdout
    toy("check", "toy", "--task", "one", **variables)


def test_wrong_bytes_and_another_address(toy: Toy) -> None:
    """A checksum that does not hold keeps nothing and is told; the mirror is taken where there is one."""
    (toy.site / "bad.zip").write_bytes(b"x" * (toy.site / "one.zip").stat().st_size)
    bad = f"{toy.url}/bad.zip"
    toy.describe(toy.archive(urls=[bad]))
    completed = toy("fetch", "toy", "--yes", status=1)
    assert f"toy/one.zip was not fetched: {bad} gave another file: sha256 " in completed.stderr
    assert "Traceback" not in completed.stderr
    assert [path for path in (toy.cache / "toy").rglob("*") if path.is_file()] == []
    toy.describe(toy.archive(urls=[f"{toy.url}/none.zip", bad, f"{toy.url}/one.zip"]))
    completed = toy("fetch", "toy", "--yes")
    assert f"{toy.url}/none.zip answered 404 File not found; trying the next" not in completed.stderr
    assert f"{toy.url}/none.zip answered 404 Not Found; trying the next address" in completed.stderr


def test_sizes_that_were_not_published_are_asked(toy: Toy) -> None:
    """The server tells them before the question; a file of unknown checksum is remembered as it came."""
    toy.describe(toy.archive(size=None, sha256=""))
    shown = toy("fetch", "toy", "--dry-run")
    assert "to fetch: 1 file, " in shown.stdout
    assert "unknown size" not in shown.stdout
    assert [line.split()[0] for line in toy.requests] == ["HEAD"]
    toy("fetch", "toy", "--yes")
    (file,) = toy.json("check", "toy", "--task", "one")["files"]
    assert (file["verdict"], file["held_against"]) == ("ok", "sha256 when fetched")


Break = Callable[[Path], object]
DAMAGE: list[tuple[Break, str]] = [
    (lambda root: (root / "toy/one.zip").write_bytes(b"cut"), "sha256 "),
    (lambda root: (root / "toy/one/corpus.jsonl").unlink(), "corpus.jsonl: no such file"),
    (lambda root: (root / "toy/one/queries.jsonl").write_bytes(b""), "queries.jsonl: 0 bytes, expected"),
    (lambda root: flip(root / "toy/one/corpus.jsonl"), "corpus.jsonl: sha256 "),
    (lambda root: flip(root / "toy/one.zip"), "sha256 "),
]


def flip(path: Path) -> None:
    """Change a byte in the middle."""
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize(("damage", "reason"), DAMAGE)
def test_damage_is_found_and_mended(toy: Toy, damage: Break, reason: str) -> None:
    """`check` names it with status 1; what it names, a new `fetch` mends after the file is removed or at once."""
    toy.describe(toy.archive())
    toy("fetch", "toy", "--yes")
    damage(toy.cache)
    checked = toy("check", "toy", "--task", "one", "--json", status=1)
    (file,) = json.loads(checked.stdout)["files"]
    assert file["verdict"] == "wrong"
    assert reason in file["reason"]
    toy("fetch", "toy", "--yes")
    assert toy.json("check", "toy", "--task", "one")["faults"] == 0


def test_counts_are_held_by_reading(toy: Toy) -> None:
    """The bytes are right and the published count is not: the subset is wrong, and says what was found."""
    toy.describe(toy.archive(), documents=documents() + 1)
    toy("fetch", "toy", "--yes")
    completed = toy("check", "toy", "--task", "one", status=1)
    assert f"found {documents():,} documents, expected {documents() + 1:,}" in completed.stdout
    assert "1 faults" in completed.stdout
    missing = toy.json("check", "toy", "--task", "noted", status=1)["subsets"]
    assert [(subset["verdict"], "note.txt: found no such file" in subset["reason"]) for subset in missing] == [
        ("missing", True)
    ]


@pytest.mark.slow
def test_a_file_that_may_not_grow(toy: Toy) -> None:
    """The system refuses to write on, as a full disk does: a sentence, what came is kept, and it goes on from there."""
    (toy.site / "large.bin").write_bytes(bytes(300_000))
    toy.describe({"path": "toy/large.bin", "urls": [f"{toy.url}/large.bin"], "size": 300_000})

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    completed = toy.run_in_process("data", "fetch", "toy", "--yes", preexec_fn=limit)
    assert completed.returncode == 1
    assert "stopped while fetching toy/large.bin: the file would be larger than is allowed" in completed.stderr
    assert "what was fetched is kept" in completed.stderr
    assert "Traceback" not in completed.stderr
    assert toy.states() == {"toy/large.bin": "partial"}
    toy("fetch", "toy", "--yes")
    assert (toy.cache / "toy/large.bin").stat().st_size == 300_000


def test_the_overview(toy: Toy) -> None:
    """One row a suite, those without official files too, which say where to look; the machine's view has every file."""
    completed = toy("fetch", "bare-toy", "--yes", status=2)
    assert "bare-toy lists no official files; `bench show bare-toy` says what it reads" in completed.stderr
    completed = toy("list")
    rows = {line.split()[0]: line for line in completed.stdout.splitlines() if line.strip()}
    assert "0 of 2" in rows["toy"]
    assert "lists none" in rows["bare-toy"]
    (suite,) = toy.json("list", "toy")["suites"]
    assert suite["totals"]["complete"] == 0
    assert suite["totals"]["bytes_left"] == (toy.site / "one.zip").stat().st_size + len(NOTE)
    note = suite["files"][1]
    assert (note["by_hand"], note["instructions"], note["where"]) == (
        True,
        "Write it down.",
        str(toy.cache / "toy/note.txt"),
    )


def test_a_plan_says_what_is_to_be_fetched(toy: Toy) -> None:
    """Files of the tasks alone, and the command; the size is the one that `bench data list` knows."""
    planned = toy.bench("plan", "--method", "bm25", "--suite", "beir", "--task", "nq", "--data", "official", "--json")
    (nq,) = [file for file in toy.json("list", "beir")["suites"][0]["files"] if file["path"] == "beir/nq.zip"]
    (download,) = json.loads(planned.stdout)["downloads"]
    expected = {"kind": "suite", "name": "beir", "files": 1, "bytes": nq["published"]["bytes"], "unknown": 0}
    assert expected.items() <= download.items()
    assert (download["command"], download["into"]) == ("beir --task nq", str(toy.cache / "beir"))


def test_all_that_a_run_needs_by_one_command(toy: Toy) -> None:
    """Suite and corpus with size, licence and place, asked once, then fetched; the run that it names goes through."""
    tale = '{"text": "Hadithi ya paka moja. Na ya mbwa mbili. Simba anasema kitu kingine hapa."}\n'
    (toy.site / "sw.jsonl").write_text(tale * 60)
    toy.describe(toy.archive(tasks=["one"]), corpus=[f"{toy.url}/{{language}}.jsonl"])
    words = "run --method crop --suite toy --task one --data official --corpus tales:sw --backbone scratch:1x16"
    sets = ("method.pairs=2", "train.probe_pairs=2", "budget.tokens=100", "prepare.dedupe=false")
    words = " ".join([words, *(f"--set {setting}" for setting in sets)])
    archive, corpus = ((toy.site / name).stat().st_size for name in ("one.zip", "sw.jsonl"))
    shown = toy("fetch", "--for", words, "--dry-run").stdout
    assert f"toy: 1 file, {decimal(archive)}; licence: CC BY 4.0 of toys.; into {toy.cache / 'toy'}" in shown
    assert f"tales:sw: 1 file, {decimal(corpus)}; licence: CC0; into {toy.cache / 'tales'}" in shown
    assert shown.endswith(f"to fetch in all: 2 files, {decimal(archive + corpus)}\n")
    assert "there is no terminal to ask on" in toy("fetch", "--for", words, status=2).stderr
    assert toy.states()["toy/one.zip"] == "missing"
    planned = toy.bench("plan", *shlex.split(words)[1:])
    hint = shlex.split(planned.stdout.split("bench data fetch --for ")[1])[0]
    assert sorted(hint.split()) == sorted(words.split()), "in another order"
    fetched = toy.json("fetch", "--for", f"bench {words}", "--yes")
    assert (fetched["complete"], sorted(fetched["asked_for"])) == (True, ["tales/sw.jsonl", "toy/one.zip"])
    assert [(row["kind"], row["name"]) for row in fetched["downloads"]] == [("suite", "toy"), ("corpus", "tales:sw")]
    toy.bench(*shlex.split(words), "--offline")
    assert toy("fetch", "--for", words).stdout == f"{words}: nothing missing\n"
    toy.bench("plan", *shlex.split(words)[1:], "--save", "toy.toml")
    assert "nothing missing" in toy("fetch", "--for", "toy.toml").stdout, "a run's file says the same"


@pytest.mark.parametrize(
    ("words", "more", "message"),
    [
        ("rin --method bm25", (), "expected the words of bench run or bench plan"),
        ("run --method bm25 'x", (), "No closing quotation"),
        ("run --metod bm25", (), "did you mean --method?"),
        ("run --method bm25 --suite nobody", (), "no suite 'nobody'"),
        ("run --method bm25 --suite beir", ("toy",), "found a name next to it"),
        ("run --method bm25 --suite beir", ("--task", "nq"), "found --task next to it"),
        ("run --method bm25 --suite beir", ("--data-dir", "."), "found --data-dir next to it"),
    ],
)
def test_words_that_no_command_takes(toy: Toy, words: str, more: tuple[str, ...], message: str) -> None:
    """They are refused as the command itself refuses them; options that narrow belong into the words."""
    assert message in toy("fetch", "--for", words, *more, "--yes", status=2).stderr
    assert toy.requests == []


def test_a_name_or_words(toy: Toy) -> None:
    """One of the two is wanted."""
    assert "Missing argument 'SUITE|CORPUS'" in toy("fetch", "--yes", status=2).stderr


def test_a_corpus_from_nothing_to_a_training(toy: Toy) -> None:
    """A plugin's corpus is listed, fetched by language, checked and trained on; what is missing stops a run at once."""
    tales = "".join(
        f'{{"text": "Hadithi ya {word} moja. Na ya {word} mbili."}}\n' for word in ["paka", "mbwa", "simba"]
    )
    (toy.site / "sw.jsonl").write_text(tales * 60)
    toy.describe(corpus=[f"{toy.url}/none/{{language}}.jsonl", f"{toy.url}/{{language}}.jsonl"])
    run = ["--method", "crop", "--suite", "mrtydi", "--task", "sw", "--corpus", "tales:sw", "--set", "method.pairs=2"]
    run += ["--set", "train.probe_pairs=2", "--set", "budget.tokens=100", "--set", "prepare.dedupe=false"]
    run += ["--backbone", "scratch:1x16"]
    early = toy.bench("run", *run, status=2)
    assert "type bench data fetch 'tales:sw'" in early.stderr
    assert not list((toy.home / "store").glob("artefacts/*")), "nothing was run"
    planned = toy.bench("plan", *run, "--json")
    assert "1 of its files missing" in json.loads(planned.stdout)["warnings"][-1], planned.stderr
    toy("check", "tales", "--languages", "sw", status=1)
    assert "found --task" in toy("fetch", "tales", "--task", "sw", "--yes", status=2).stderr
    fetched = toy.json("fetch", "tales", "--languages", "sw", "--yes")
    assert (fetched["complete"], [file["path"] for file in fetched["files"]]) == (True, ["tales/sw.jsonl"])
    checked = toy.json("check", "tales", "--languages", "sw")
    assert [(subset["subset"], subset["counts"]["sentences"]) for subset in checked["subsets"]] == [("sw", 2)]
    listed = json.loads(toy.bench("list", "corpora", "--json").stdout)["corpora"]
    assert {corpus["name"]: corpus["size"] for corpus in listed}[
        "tales"
    ] == "about 100 bytes and 1 file of unknown size"
    ran = toy.bench("run", *run, "--offline", "--json")
    keys = {stage["stage"]: stage["key"] for stage in json.loads(ran.stdout)["stages"]}
    before = {step["stage"]: step["key"] for step in json.loads(planned.stdout)["steps"]}
    assert keys["prepare"] == before["prepare"], "the key is the same before anything is fetched"


def test_a_corpus_whose_files_the_hub_lists(toy: Toy) -> None:
    """Fetched by the hub's list, compared with its checksums, and complete without a network ever after."""
    commit, (api, files) = "a" * 40, ("api/datasets/o/n/tree", "datasets/o/n/resolve")
    texts = {f"sw/train-{number}.jsonl": f'{{"text": "Hadithi ya {number}."}}\n'.encode() for number in range(2)}
    entries = [
        {"type": "file", "oid": "0", "path": name, "size": len(text), "lfs": lfs(text)} for name, text in texts.items()
    ]
    for name, text in {f"{api}/{commit}/sw": json.dumps(entries).encode()}.items() | {
        f"{files}/{commit}/{name}": text for name, text in texts.items()
    }.items():
        (toy.site / name).parent.mkdir(parents=True, exist_ok=True)
        (toy.site / name).write_bytes(text)
    toy.patch.setenv("HF_ENDPOINT", toy.url)
    pattern = "hf://datasets/o/n@{revision}/{language}/train-*.jsonl"
    toy.describe(corpus=[pattern], revision=commit)
    offline = toy("fetch", "tales", "--languages", "sw", "--offline", status=1)
    assert "missing: tales/sw/train-*.jsonl" in offline.stdout
    dry = toy.json("fetch", "tales", "--languages", "sw", "--dry-run")
    assert [file["path"] for file in dry["files"]] == ["tales/sw/train-0.jsonl", "tales/sw/train-1.jsonl"]
    assert [file["published"]["bytes"] for file in dry["files"]] == [len(text) for text in texts.values()]
    assert not list(toy.cache.glob("**/listings/*")), "nothing was fetched, and nothing written down"
    probed = toy.json("probe", "tales", "--languages", "sw")
    assert [(row["verdict"], row["reason"]) for row in probed["addresses"]] == [("open", "2 files")]
    second = toy.site / files / commit / "sw/train-1.jsonl"
    second.write_bytes(b'{"text": "Hadithi ya X."}\n')
    failed = toy.json("fetch", "tales", "--languages", "sw", "--yes", status=1)
    assert [row["path"] for row in failed["failed"]] == ["tales/sw/train-1.jsonl"]
    assert "gave another file: sha256" in failed["failed"][0]["reason"]
    second.write_bytes(texts["sw/train-1.jsonl"])
    toy.requests.clear()
    assert toy.json("fetch", "tales", "--languages", "sw", "--yes")["complete"]
    assert [request.split()[1] for request in toy.requests] == [f"/{files}/{commit}/sw/train-1.jsonl"], "listed once"
    assert toy.json("fetch", "tales", "--languages", "sw", "--offline")["complete"]
    assert toy.json("check", "tales", "--languages", "sw")["faults"] == 0


def lfs(text: bytes) -> dict[str, Any]:
    return {"oid": hashlib.sha256(text).hexdigest(), "size": len(text), "pointerSize": 134}


def test_addresses_are_asked(toy: Toy) -> None:
    """A suite's files one by one; a file that no address has ends with status 1, and nothing is asked offline."""
    note = toy.note(urls=[f"{toy.url}/none.txt", f"{toy.url}/note.txt"])
    (toy.site / "note.txt").write_bytes(NOTE)
    toy.describe(toy.archive(), note)
    probed = toy("probe", "toy")
    assert "toy: 2 open, 1 gone" in probed.stdout
    assert "answered 404" in probed.stdout
    (toy.site / "note.txt").write_bytes(NOTE.upper())
    answers = toy.json("probe", "toy", status=1)
    assert answers["answering"] is False
    verdicts = [(row["path"], row["verdict"]) for row in answers["addresses"]]
    assert verdicts == [("toy/one.zip", "open"), ("toy/note.txt", "gone"), ("toy/note.txt", "other")]
    assert answers["addresses"][2]["reason"].startswith("md5 ")
    assert "1 file that no address answered with: toy/note.txt" in toy("probe", "toy", status=1).stdout
    assert "no suite or corpus 'toi'; did you mean toy?" in toy("probe", "toi", status=2).stderr
    assert "expected the name of a corpus" in toy("probe", "toy", "--languages", "sw", status=2).stderr
    toy.requests.clear()
    assert "HF_HUB_OFFLINE" in toy("probe", "toy", status=2, HF_HUB_OFFLINE="1").stderr
    assert toy.requests == []


def test_a_corpus_of_many_files_by_quota(toy: Toy) -> None:
    """Two of eight files are fetched, offered by the run's own sentence, and all that the run reads."""
    for number in range(8):
        rows = [
            f"Hadithi ya {word} {number} {line}. Na ya simba {line}." for line in range(40) for word in ["paka", "mbwa"]
        ]
        (toy.site / f"sw-{number}.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
    size = sum(path.stat().st_size for path in toy.site.glob("sw-*.jsonl"))
    toy.describe(corpus=[f"{toy.url}/{{language}}-{{shard}}.jsonl"], size=size, shards=8)
    tokens = round(1.5 * size / 8 / 5)  # five bytes a token
    run = ["--method", "crop", "--suite", "mrtydi", "--task", "sw", "--corpus", "tales:sw", "--set", "method.pairs=2"]
    run += ["--set", "train.probe_pairs=2", "--set", "budget.tokens=100", "--backbone", "scratch:1x16"]
    early = toy.bench("run", *run, "--set", f"prepare.quota={tokens}", status=2)
    assert f"type bench data fetch 'tales:sw' --quota {tokens}" in early.stderr
    fetched = toy.json("fetch", "tales:sw", "--quota", str(tokens), "--yes")
    assert (fetched["complete"], len(fetched["files"])) == (True, 2)
    assert len(list(toy.cache.glob("tales/*.jsonl"))) == 2
    ran = toy.bench("run", *run, "--set", f"prepare.quota={tokens}", "--offline", "--json")
    assert f"tales:sw (2 of 8 files), {tokens:,} tokens a language" in ran.stdout
    whole = toy.bench("run", *run, "--offline", status=2)
    assert "6 of its files missing" in whole.stderr
    assert "found --quota" in toy("fetch", "toy", "--quota", "5", "--yes", status=2).stderr
    for bad in ("0", "-3", "many"):
        assert "--quota" in toy("fetch", "tales", "--quota", bad, "--yes", status=2).stderr


@pytest.mark.slow
def test_a_fetch_that_is_killed_at_random_instants(toy: Toy) -> None:
    """Typed again it leaves the same files, nothing half fetched or unpacked, and no process."""
    padding = random.Random(0).randbytes(30 << 20)
    with zipfile.ZipFile(toy.site / "one.zip", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one/padding.bin", padding)
    toy.describe(toy.archive())

    def contents() -> dict[str, str]:
        files = {str(path.relative_to(toy.cache)): path for path in toy.cache.rglob("*") if path.is_file()}
        return {  # records of what was fetched name the time
            name: hashlib.sha256(path.read_bytes()).hexdigest() if "records" not in name else ""
            for name, path in files.items()
            if not name.endswith(".lock")
        }

    began = time.monotonic()
    assert toy.run_in_process("data", "fetch", "toy", "--yes").returncode == 0
    duration, whole, draw, struck = time.monotonic() - began, contents(), random.Random(1), 0
    assert any(name.endswith("padding.bin") for name in whole)
    for number in range(8):
        shutil.rmtree(toy.cache)
        marked = {**toy.environment, "BENCH_TEST_FETCH": str(number)}
        command = [sys.executable, "-m", "bench", "data", "fetch", "toy", "--yes"]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, cwd=toy.home, env=marked, **quiet) as process:
            time.sleep(draw.uniform(0.3, 1.0) * duration)
            process.kill()
        struck += process.returncode == -signal.SIGKILL
        assert [*alive("BENCH_TEST_FETCH", str(number))] == []
        assert toy.run_in_process("data", "fetch", "toy", "--yes").returncode == 0
        assert contents() == whole
    assert struck >= 4
