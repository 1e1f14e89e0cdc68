"""A dense method from nothing: prepare, train, encode, search, score; what is reused, what is not."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModel, AutoTokenizer

RunJson = Callable[..., dict[str, Any]]


def _options(tmp_path: Path, corpus: Path, *more: str) -> tuple[str | Path, ...]:
    settings = "prepare.vocabulary=1500", "budget.tokens=5000", "compute.threads=1"
    small = ("--backbone", "scratch:1x32", *(word for one in settings for word in ("--set", one)))
    places = ("--store", tmp_path / "store", "--results", tmp_path / "results", "--corpus", corpus)
    return ("run", "--method", "crop", "--suite", "mrtydi", "--task", "en", *small, *places, *more)


def _ran(outcome: dict[str, Any]) -> set[str]:
    return {stage["stage"] for stage in outcome["stages"] if stage["state"] == "ran"}


def test_a_dense_run_and_what_it_reuses(tmp_path: Path, corpus: Path, run_json: RunJson) -> None:
    """Both rows; a second run runs nothing; a prompt encodes onward; a batch size does nothing; a seed trains again.

    What training leaves loads in transformers, and holds nothing but the encoder, its tokenizer and its contract.
    """
    first = run_json(*_options(tmp_path, corpus))
    assert [row["system"] for row in first["results"]] == ["crop", "crop@init"]
    assert _ran(first) == {"validate", "read", "prepare", "init", "train", "encode", "search", "score"}
    (contrast,) = first["comparisons"]
    assert {contrast["system"], contrast["other"]} == {"crop", "crop@init"}
    assert contrast["queries"] == first["results"][0]["queries"]
    (encoder,) = (tmp_path / "store" / "artefacts" / "train").glob("*/encoder")
    model, tokenizer = (
        AutoModel.from_pretrained(encoder, add_pooling_layer=False),
        AutoTokenizer.from_pretrained(encoder),
    )
    assert model.config.num_hidden_layers == 1
    assert len(tokenizer) == model.config.vocab_size
    assert (encoder / "contract.json").is_file()
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
    """Ended in the middle of training, thrice, with another checkpoint each: the same bytes in every artefact.

    SIGKILL ends a run, which is begun again; SIGTERM a job of SLURM, which is queued again while the run goes on.
    """
    environment |= {"BENCH_SLURM": "local", "SUBMITIT_PREEMPT_SIGNAL": "TERM"}
    more = ("--set", "budget.tokens=60000", "--set", "method.checkpoint_tokens=5000")
    whole = run_json(*_options(tmp_path / "whole", corpus, *more))
    for engine in ("local", "slurm") if find_spec("submitit") else ("local",):
        command = [str(part) for part in _options(tmp_path / engine, corpus, *more, "--executor", engine)]
        started = partial(subprocess.Popen, [sys.executable, "-m", "bench", *command], cwd=tmp_path, env=environment)
        process, before = started(), set[Path]()
        for _ in range(3):
            while not (found := _checkpoints(tmp_path / engine)) - before and process.poll() is None:
                time.sleep(0.01)
            assert process.poll() is None, "it is in the middle of training"
            before = found
            if engine == "local":
                process.kill()
                process.wait()
                process = started()
            else:
                _preempt(tmp_path / "cache")
        assert process.wait() == 0
        again = run_json(*command)
        assert not _ran(again)
        assert again["results"][0]["measures"] == whole["results"][0]["measures"]
        for one in sorted((tmp_path / "whole" / "store" / "artefacts").glob("*/*/**/*")):
            if one.is_file() and one.name != "manifest.json":
                other = tmp_path / engine / one.relative_to(tmp_path / "whole")
                assert other.read_bytes() == one.read_bytes(), one.name


def _checkpoints(folder: Path) -> set[Path]:
    return set((folder / "store" / "work").glob("train-*/parts/checkpoint-*.json"))


def _preempt(cache: Path) -> None:
    """Send SIGTERM to all jobs at work, and wait until they have been queued again."""
    for job in cache.glob("slurm/jobs-*/*_submitted.pkl"):
        number = job.name.partition("_")[0]  # of submitit's process that plays SLURM
        if not job.with_name(f"{number}_0_result.pkl").exists():
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
    done = bench(*_options(tmp_path, corpus, "--device", "cuda"))
    assert done.returncode == 2
    assert "sees none here; type --device cpu" in done.stderr
    assert not (tmp_path / "store" / "artefacts").exists()
