"""Vectors, runs and scores are the same bytes whatever the machine does: threads, batches, hash seeds, locales."""

import hashlib
import json
import locale
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
STAGES = ("validate", "read", "index", "encode", "search", "score")
Digests = dict[str, str]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers with random weights, which read characters."""
    from bench.data.corpora import tokenizer
    from bench.retrieval.backbones import random_model, save, scratch

    folder, sizes = tmp_path_factory.mktemp("made") / "encoder", scratch("scratch:2x64")
    assert sizes
    tokenizer.save(tokenizer.train({"en": ["the quick brown fox jumps over a lazy dog"] * 4}, 512), folder, 128)
    words = tokenizer.load(folder)
    save(random_model(sizes, words, 0), words, folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BEIR folder with texts of very different lengths, so that other batches are padded otherwise."""
    from tests.system.conftest import write_folder

    return write_folder(tmp_path_factory.mktemp("made") / "folder", documents=60, queries=20)


def digests(store: Path) -> Digests:
    """What stages wrote, by stage, file and content; keys are left out, for threads are part of some."""
    found = {}
    for path in sorted(store.glob("artefacts/*/*/**/*")):
        stage = path.relative_to(store / "artefacts").parts[0]
        if path.is_file() and path.name != "manifest.json" and stage in STAGES:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[f"{stage} {path.name} {content}"] = stage
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, encoder: Path, folder: Path) -> Callable[..., Digests]:
    """Run BM25 and the encoder in a process of its own; return what the stages wrote."""

    def run(*sets: str, **environment: str) -> Digests:
        place = tmp_path_factory.mktemp("run")
        given = ("compute.threads=1", f"method.model={encoder}", *sets)
        words = [word for one in given for word in ("--set", one)]
        command = ["run", "--method", "bm25,pretrained", "--suite", "beir", "--task", str(folder), *words]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BENCH_", "LC_"))}
        done = subprocess.run(
            [sys.executable, "-m", "bench", *command, "--device", "cpu", "--json"],
            cwd=place,
            env={**kept, "OMP_NUM_THREADS": "2", **environment},
            capture_output=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        assert {stage["state"] for stage in json.loads(done.stdout)["stages"]} == {"ran"}
        return digests(place / "store")

    return run


@pytest.fixture(scope="module")
def expected(made: Callable[..., Digests]) -> Digests:
    """What one thread writes with the usual batches."""
    found = made()
    assert set(found.values()) == set(STAGES)
    return found


def installed(name: str) -> bool:
    """Whether the C library has a locale, such as those in which `I` is no capital `i`."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, name)
    except locale.Error:
        return False
    locale.setlocale(locale.LC_CTYPE, before)
    return True


@pytest.mark.parametrize(
    ("sets", "changed"),
    [
        ("compute.threads=2", {"PYTHONHASHSEED": "7", "TZ": "Asia/Kolkata"}),
        (
            "encode.batch_tokens=512",
            {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONHASHSEED": "99"},
        ),
        *(("compute.threads=1", {"LC_ALL": name}) for name in ("tr_TR.UTF-8", "tr_TR.ISO8859-9") if installed(name)),
    ],
    ids=str,
)
def test_of_any_machine(made: Callable[..., Digests], expected: Digests, sets: str, changed: dict[str, str]) -> None:
    """Two threads, batches of a few texts; hash seed, time zone, locale."""
    assert made(sets, **changed) == expected
