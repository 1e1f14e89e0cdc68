"""Trainings on two processes: every method, killed and resumed; and started by the launcher."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import safetensors.torch
import torch.distributed as dist

from bench.core.children import child
from bench.core.encoder_config import TrainingJob
from bench.core.errors import UsageError
from bench.core.workspace import Parts, Workspace, noop
from bench.data.corpora.shards import Shards
from bench.plugins import load
from bench.training import processes
from bench.training.checkpoint import log_line
from bench.training.determinism import reproducible
from bench.training.distributed import rank
from bench.training.encoder import TrainableEncoder
from bench.training.processes import train_on_several
from bench.training.views import Documents
from methods.crop import CropConfig
from tests.conftest import TwoProcesses, present
from tests.methods.test_trainings import TABLES, KilledError, killer

OFTEN = {"learning_rate": 5e-3, "probe_pairs": 4, "checkpoint_tokens": 500}
JOB = TrainingJob(tokens=3000, seed=1, device="cpu", threads=1)


def _digest(encoder: TrainableEncoder) -> str:
    return hashlib.sha256(safetensors.torch.save(dict(encoder.model.named_parameters()))).hexdigest()


def both(name: str, start: str, shards: str, place: str) -> dict[str, Any]:
    """Train on two processes, whole, and stopped twice and resumed; return what this process has."""
    method = load().methods[name].value
    trainer = method.build_trainer(method.config.model_validate({**OFTEN, **TABLES["small"][name]}))
    folder, saved = Path(place) / name, list[str]()

    def train(kind: str, advance: Callable[[float], None] = noop) -> dict[str, Any]:
        out, parts = folder / f"{kind}-{rank()}", folder / f"{kind}-parts"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        if rank():
            copied_parts = folder / f"{kind}-{rank()}-parts"
            shutil.rmtree(copied_parts, ignore_errors=True)
            if parts.is_dir():
                shutil.copytree(parts, copied_parts)
            parts = copied_parts
        dist.barrier()
        with reproducible(JOB), patch.object(TrainableEncoder, "save", lambda self, _: saved.append(_digest(self))):
            return dict(trainer.train(Path(start), Path(shards), JOB, Workspace(out, Parts(parts), advance)))

    metadata = train("whole")
    for tokens in (1300, 2200):
        with pytest.raises(KilledError):
            train("stopped", killer(tokens))
        dist.barrier()
    train("stopped")
    assert list((folder / "stopped-parts").glob("checkpoint-*.json"))
    return {"saved": saved} | {name: metadata[name] for name in ("tokens", "steps", "pairs", "distinct_tokens", "loss")}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TABLES["small"]))
def test_both_processes_have_one_encoder(
    name: str, tmp_path: Path, corpus: Path, start_of: Any, two_processes: TwoProcesses
) -> None:
    """The same bits on both, counted together, whole or stopped twice; the first one alone writes checkpoints."""
    method = load().methods[name].value
    start = start_of(present(method.encoder_config)(method.config.model_validate(TABLES["small"][name])))
    first, second = two_processes(both, name, str(start), str(corpus), str(tmp_path))
    assert first == second
    assert first["saved"] == [first["saved"][0]] * 2
    assert first["tokens"] >= JOB.tokens


@pytest.mark.slow
def test_the_launcher_starts_watches_and_ends_them(tmp_path: Path, corpus: Path, start: Path) -> None:
    """Progress adds up to the tokens of both, the log arrives as written; a stop leaves checkpoints to go on from.

    So does the loss of a process, which is named with the signal.
    """
    config = CropConfig.model_validate({**OFTEN, **TABLES["small"]["crop"]})
    folders, lines, units = {"start": start, "shards": corpus}, list[Any](), list[float]()

    def train(kind: str, advance: Callable[[float], None]) -> tuple[Path, dict[str, Any]]:
        out = tmp_path / kind
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        work = Workspace(out, Parts(tmp_path / f"{kind}-parts"), advance, lines.append)
        return out, dict(train_on_several("methods.crop.trainer:CropTrainer", config, folders, JOB, work, 2))

    expected, metadata = train("whole", units.append)
    assert (metadata["processes"], sum(units)) == (2, metadata["tokens"])
    assert "".join(map(log_line, lines)) == (expected / "log.jsonl").read_text(encoding="utf-8")
    with pytest.raises(KilledError):
        train("stopped", killer(1500))

    workers = list[subprocess.Popen[bytes]]()

    @contextmanager
    def child_noted(*words: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
        with child(*words, **options) as worker:
            workers.append(worker)
            yield worker

    with (
        patch.object(processes, "child", child_noted),
        pytest.raises(UsageError, match="process 1 of the training run was ended by SIGKILL"),
    ):
        train("stopped", lambda _: workers[1].kill())
    assert [worker.returncode for worker in workers] == [-signal.SIGKILL] * 2
    stopped, _ = train("stopped", noop)
    for path in ("encoder/model.safetensors", "log.jsonl"):
        assert (stopped / path).read_bytes() == (expected / path).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trainer", "message"),
    [("methods.crop.trainer:CropTrainer", "training step"), ("os:_exit", "ended with exit status 1; its last lines")],
    ids=["an error", "a death"],
)
def test_what_a_process_raises_is_raised(trainer: str, message: str, tmp_path: Path, corpus: Path, start: Path) -> None:
    """Its own error where it has one, the end of its output where it died."""
    config = CropConfig.model_validate({**OFTEN, **TABLES["small"]["crop"], "learning_rate": 1e30})
    (tmp_path / "out").mkdir()
    work = Workspace(tmp_path / "out", Parts(tmp_path / "parts"))
    with pytest.raises(UsageError, match=message):
        train_on_several(trainer, config, {"start": start, "shards": corpus}, JOB, work, 2)


def _fake_python(folder: Path, second: str) -> str:
    """Write an interpreter whose first process notes its number and runs, and whose second one does something else."""
    script = f'[ "$5" = 1 ] && {{ {second}; }}\necho $$ > {folder}/first\nexec {sys.executable} "$@"\n'
    (path := folder / "python").write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)
    return str(path)


def _number(folder: Path) -> int:
    """Wait for the number of the first process of `_fake_python`."""
    while not (path := folder / "first").exists() or not path.read_text():
        time.sleep(0.01)
    return int(path.read_text())


@pytest.mark.parametrize(
    ("end", "message"), [("exit 0", "ended with exit status 0"), ("kill -9 $$", "was ended by SIGKILL")]
)
def test_a_process_that_ends_before_all_meet_ends_the_others(
    end: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, by its number and how it ended, though that may be with exit status 0."""
    python = _fake_python(tmp_path, f"while [ ! -s {tmp_path}/first ]; do sleep 0.01; done; {end}")
    monkeypatch.setattr(sys, "executable", python)
    with pytest.raises(UsageError, match=f"process 1 of the training run {message}"):
        train_on_several("os:_exit", CropConfig(), {}, JOB, Workspace(tmp_path, Parts(tmp_path)), 2)
    with pytest.raises(ProcessLookupError):
        os.kill(_number(tmp_path), 0)


@pytest.mark.slow
def test_no_process_outlives_the_one_that_started_it(tmp_path: Path) -> None:
    """Killed in the middle, it cannot end the others: they see that their standard input is closed."""
    call = (
        "import sys; from pathlib import Path; from tests.methods.test_several import *; sys.executable = sys.argv[1];"
        "train_on_several('os:_exit', CropConfig(), {}, JOB, Workspace(Path(), Parts(Path())), 2)"
    )
    python = _fake_python(tmp_path, "exec cat")  # the first process waits for it
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", call, python], cwd=tmp_path, env=environment) as parent:
        first = _number(tmp_path)
        parent.kill()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{first}/cmdline").exists() and Path(f"/proc/{first}/cmdline").read_bytes():
        assert time.monotonic() < deadline, "it has not ended"
        time.sleep(0.05)


Batches = list[tuple[list[int], list[str], float]]


def ten_batches(shards: str, pure: bool) -> Batches:
    """Return what a process draws in ten batches, the languages of these documents, and its next own number."""
    corpus, rng = Shards(Path(shards)), np.random.default_rng(5 + rank())
    config = CropConfig.model_validate({"probe_pairs": 2, "language_pure": pure})
    source = Documents(corpus, config, least=1, seed=3)
    batches = [(source.draw(4, rng), float(rng.random())) for _ in range(10)]
    return [
        (documents, [corpus.language_of(document) for document in documents], next_number)
        for documents, next_number in batches
    ]


def pure_and_mixed(shards: str) -> list[Batches]:
    """Ten batches of one language each, and ten of any."""
    return [ten_batches(shards, pure) for pure in (True, False)]


@pytest.fixture(scope="module")
def drawn(two_processes: TwoProcesses, corpus: Path) -> list[list[Batches]]:
    """What each of two processes draws."""
    return two_processes(pure_and_mixed, str(corpus))


@pytest.mark.parametrize("pure", [True, False])
def test_each_draws_its_own_documents_of_one_language(pure: bool, drawn: list[list[Batches]]) -> None:
    """Four each, none twice, views by chances of its own; the first process's generator counts."""
    first, second = (batches[not pure] for batches in drawn)
    for (first_documents, first_languages, first_number), (second_documents, second_languages, second_number) in zip(
        first, second, strict=True
    ):
        assert len({*first_documents, *second_documents}) == 8
        assert first_number != second_number
        assert not pure or len({*first_languages, *second_languages}) == 1
    assert len({first_languages[0] for _, first_languages, _ in first}) > 1
