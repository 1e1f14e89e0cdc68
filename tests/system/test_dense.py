"""A dense method from nothing: prepare, train, encode, search, score; what is reused, what is not."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModel, AutoTokenizer

RunJson = Callable[..., dict[str, Any]]


def _options(tmp_path: Path, corpus: Path, *more: str) -> tuple[str | Path, ...]:
    settings = "prepare.vocabulary=1500", "budget.tokens=5000", "compute.threads=1"
    small = ("--backbone", "scratch:1x32", *(word for setting in settings for word in ("--set", setting)))
    places = ("--store", tmp_path / "store", "--results", tmp_path / "results", "--corpus", corpus)
    return ("run", "--method", "crop", "--suite", "mrtydi", "--task", "en", *small, *places, *more)


def _ran(outcome: dict[str, Any]) -> set[str]:
    return {stage["stage"] for stage in outcome["stages"] if stage["state"] == "ran"}


@pytest.mark.slow
def test_a_dense_run_and_what_it_reuses(tmp_path: Path, corpus: Path, run_json: RunJson) -> None:
    """Both rows; a second run runs nothing; a prompt encodes onward; a batch size does nothing; a seed trains again.

    What training leaves loads in transformers, and holds nothing but the encoder, its tokenizer and its encoder config.
    """
    first = run_json(*_options(tmp_path, corpus))
    assert [row["system"] for row in first["results"]] == ["crop", "crop@init"]
    assert _ran(first) == {"validate", "read", "prepare", "init", "train", "encode", "search", "score"}
    (gain,) = first["gains"]
    assert (gain["system"], gain["other"]) == ("crop", "crop@init")
    assert gain["queries"] == first["results"][0]["queries"]
    (encoder,) = (tmp_path / "store" / "artefacts" / "train").glob("*/encoder")
    model, tokenizer = (
        AutoModel.from_pretrained(encoder, add_pooling_layer=False),
        AutoTokenizer.from_pretrained(encoder),
    )
    assert model.config.num_hidden_layers == 1
    assert len(tokenizer) == model.config.vocab_size
    assert (encoder / "encoder_config.json").is_file()
    log = (encoder.parent / "log.jsonl").read_text().splitlines()
    assert json.loads(log[-1])["tokens"] >= 5000
    assert not _ran(run_json(*_options(tmp_path, corpus)))
    assert not _ran(run_json(*_options(tmp_path, corpus, "--set", "encode.batch_tokens=2048")))
    deeper = run_json(*_options(tmp_path, corpus, "--set", "search.k=10"))
    assert _ran(deeper) == {"search", "score"}
    prompted = run_json(*_options(tmp_path, corpus, "--set", "encode.query_prompt=query: "))
    assert _ran(prompted) == {"encode", "search", "score"}
    passages = [stage for stage in prompted["stages"] if stage["stage"] == "encode" and "queries" not in stage["title"]]
    assert {stage["state"] for stage in passages} == {"cached"}, "the passages' prompt did not change"
    assert _ran(run_json(*_options(tmp_path, corpus, "--seed", "1"))) == {"init", "train", "encode", "search", "score"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_training_killed_and_begun_again_is_the_same(
    tmp_path: Path, corpus: Path, environment: dict[str, str], run_json: RunJson
) -> None:
    """Ended in the middle of training, twice, with another checkpoint each: the same bytes in every artefact.

    SIGKILL ends a run, which is begun again; SIGTERM a job of SLURM, which is queued again while the run goes on.
    """
    environment |= {"BENCH_SLURM": "local", "SUBMITIT_PREEMPT_SIGNAL": "TERM"}
    # Long enough for a busy disk: after a checkpoint that took a second to write comes none for twenty.
    more = ("--set", "budget.tokens=500000", "--set", "train.checkpoint_seconds=0.05")
    uninterrupted = run_json(*_options(tmp_path / "whole", corpus, *more))
    for engine in ("local", "slurm") if find_spec("submitit") else ("local",):
        command = [str(part) for part in _options(tmp_path / engine, corpus, *more, "--executor", engine)]
        call = [sys.executable, "-m", "bench", *command]
        process, before = subprocess.Popen(call, cwd=tmp_path, env=environment), set[Path]()
        for _ in range(2):
            while not (checkpoints := _checkpoints(tmp_path / engine)) - before and process.poll() is None:
                time.sleep(0.01)
            assert process.poll() is None, "it is in the middle of training"
            before = checkpoints
            if engine == "local":
                process.kill()
                process.wait()
                process = subprocess.Popen(call, cwd=tmp_path, env=environment)
            else:
                _preempt(tmp_path / "cache")
        assert process.wait() == 0
        repeated = run_json(*command)
        assert not _ran(repeated)
        assert repeated["results"][0]["measures"] == uninterrupted["results"][0]["measures"]
        _same_artefacts(tmp_path / "whole", tmp_path / engine)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_launchers_train_as_processes_do(
    tmp_path: Path, corpus: Path, environment: dict[str, str], run_json: RunJson
) -> None:
    """By torchrun, and by srun's variables, where one process is lost on the way: what `--processes 2` makes."""
    environment |= {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    more = ("--set", "budget.tokens=20000", "--set", "train.checkpoint_seconds=0.05")
    reference = run_json(*_options(tmp_path / "processes", corpus, *more, "--processes", "2"))

    def started(launcher: str, *words: str, **variables: str) -> subprocess.Popen[str]:
        command = [sys.executable, *words, "-m", "bench", *map(str, _options(tmp_path / launcher, corpus, *more))]
        return subprocess.Popen(command, cwd=tmp_path, env=environment | variables, stderr=subprocess.PIPE, text=True)

    def tasks() -> list[subprocess.Popen[str]]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "SLURM_STEP_NUM_TASKS": "2"}
        return [started("srun", **place, SLURM_PROCID=rank, SLURM_LOCALID=rank) for rank in ("0", "1")]

    first, second = tasks()
    while not _checkpoints(tmp_path / "srun") and first.poll() is None:
        time.sleep(0.01)
    second.kill()
    assert "if another process was lost, type the same command again" in first.communicate()[1]
    second.communicate()
    for process in (*tasks(), started("torchrun", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")):
        stderr = process.communicate()[1]
        assert process.returncode == 0, stderr
    for launcher in ("srun", "torchrun"):
        assert not _ran(repeated := run_json(*_options(tmp_path / launcher, corpus, *more, "--processes", "2")))
        assert repeated["results"][0]["measures"] == reference["results"][0]["measures"]
        _same_artefacts(tmp_path / "processes", tmp_path / launcher)
    lone = started("lone", RANK="0", WORLD_SIZE="2", LOCAL_RANK="0")
    assert "set MASTER_ADDR to the machine of the first" in lone.communicate()[1]


def _same_artefacts(first: Path, second: Path) -> None:
    for path in sorted((first / "store" / "artefacts").glob("*/*/**/*")):
        if path.is_file() and path.name != "manifest.json":
            assert (second / path.relative_to(first)).read_bytes() == path.read_bytes(), path.name


def _checkpoints(folder: Path) -> set[Path]:
    return set((folder / "store" / "work").glob("train-*/parts/checkpoint-*.json"))


def _preempt(cache: Path) -> None:
    """Send SIGTERM to the job that trains, and wait until it has been queued again."""
    (job,) = (path for path in cache.glob("slurm/jobs-*/*_submitted.pkl") if b"stages.train" in path.read_bytes())
    number = job.name.partition("_")[0]  # of submitit's process that plays SLURM
    log = job.with_name(f"{number}_0_log.out")
    before = log.read_text().count("Requeued")
    os.kill(int(number), signal.SIGTERM)
    while log.read_text().count("Requeued") == before:
        time.sleep(0.1)


def test_another_device_never_reuses_and_must_be_there(tmp_path: Path, corpus: Path, bench: Any) -> None:
    """Device class and threads are part of every key that they can change; the device's number is not."""
    import torch

    from bench.pipeline.compute import Compute

    cpu, cuda = Compute("cpu", 2), Compute("cuda:1", 2)
    assert cpu.identity() != cuda.identity()
    assert cuda.identity() == replace(cuda, device="cuda").identity()
    assert cpu.identity() != Compute("cpu", 3).identity()
    # One that is not there is refused before anything runs.
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    completed = bench(*_options(tmp_path, corpus, "--device", "cuda"), status=2)
    assert "sees none here; type --device cpu" in completed.stderr
    assert not (tmp_path / "store" / "artefacts").exists()
