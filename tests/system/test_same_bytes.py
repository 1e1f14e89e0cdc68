"""Vectors, runs and scores are the same bytes whatever the machine does: threads, batches, hash seeds, locales."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import cases

pytestmark = pytest.mark.slow
STAGES = ("validate", "read", "index", "encode", "search", "score")
TURKISH = "tr_TR.UTF-8"
"""Where `I` is no capital `i`."""
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
    """A BEIR folder with texts of very different lengths, so that other batches are padded otherwise.

    Four ids and texts differ in the case and the dot of an `i` alone.
    """
    from tests.system.conftest import write_folder

    place = write_folder(tmp_path_factory.mktemp("made") / "folder", documents=60, queries=20)
    for name, prefix, title in (("corpus", "", '"title": "", '), ("queries", "q-", "")):
        with (place / f"{name}.jsonl").open("a", encoding="utf-8") as stream:
            stream.writelines(
                f'{{"_id": "{prefix}{letter}", {title}"text": "{letter}LIK {letter}"}}\n' for letter in "Iİıi"
            )
    with (place / "qrels" / "test.tsv").open("a", encoding="utf-8") as judged:
        judged.writelines(f"q-{letter}\t{letter}\t1\n" for letter in "Iİıi")
    return place


def digests(store: Path) -> Digests:
    """What stages wrote, by stage, file and content; keys are left out, for threads are part of some."""
    stages = {}
    for path in sorted(store.glob("artefacts/*/*/**/*")):
        stage = path.relative_to(store / "artefacts").parts[0]
        if path.is_file() and path.name != "manifest.json" and stage in STAGES:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            stages[f"{stage} {path.name} {content}"] = stage
    return stages


@pytest.fixture(scope="module")
def stage_outputs(tmp_path_factory: pytest.TempPathFactory, encoder: Path, folder: Path) -> Callable[..., Digests]:
    """Run BM25 and the encoder in a process of its own; return what the stages wrote."""

    def run(*sets: str, **environment: str) -> Digests:
        place = tmp_path_factory.mktemp("run")
        settings = ("compute.threads=1", f"method.model={encoder}", *sets)
        words = [word for setting in settings for word in ("--set", setting)]
        command = ["run", "--method", "bm25,pretrained", "--suite", "beir", "--task", str(folder), *words]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("BENCH_", "LC_"))}
        completed = subprocess.run(
            [sys.executable, "-m", "bench", *command, "--device", "cpu", "--json"],
            cwd=place,
            env={**inherited, "OMP_NUM_THREADS": "2", **environment},
            capture_output=True,
            check=False,
            timeout=240,
        )
        assert completed.returncode == 0, completed.stderr.decode(errors="replace")
        assert {stage["state"] for stage in json.loads(completed.stdout)["stages"]} == {"ran"}
        return digests(place / "store")

    return run


@pytest.fixture(scope="module")
def expected(stage_outputs: Callable[..., Digests]) -> Digests:
    """What one thread writes with the usual batches."""
    outputs = stage_outputs()
    assert set(outputs.values()) == set(STAGES)
    return outputs


@pytest.mark.parametrize(("sets", "changed"), cases("machines"), ids=str)
def test_of_any_machine(
    stage_outputs: Callable[..., Digests], expected: Digests, sets: str, changed: dict[str, str], tmp_path: Path
) -> None:
    """Two threads, batches of a few texts; hash seed, time zone, locale, which is made where the C library can."""
    if changed["LC_ALL"] == TURKISH and shutil.which("localedef"):
        subprocess.run([shutil.which("localedef") or "", "-i", "tr_TR", "-f", "UTF-8", tmp_path / TURKISH], check=False)
    assert stage_outputs(sets, **changed, LOCPATH=str(tmp_path)) == expected
