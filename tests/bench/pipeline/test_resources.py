"""The machine of encoders: device and threads here, and what trainings take elsewhere."""

import json
import os
import platform
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.cli import main
from bench.config.layers import pretrained_as
from bench.config.profiles import PROFILES, profile
from bench.core.errors import UsageError
from bench.core.machine import cores, processor
from bench.pipeline.compute import compute
from bench.pipeline.resources import machine
from bench.pipeline.settings import ComputeConfig, resolve
from bench.pipeline.sizes import EncoderSize, learning, operations
from bench.plugins import load
from bench.testing import fields
from tests.conftest import cases


@pytest.mark.parametrize(("cgroup", "files", "expected"), cases("processors-of-control-groups"))
def test_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cgroup: str, files: Mapping[str, str], expected: int
) -> None:
    """Affinity, here 8 of 16, then the quotas of the group and of those above it, in the files of the kernel."""
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    (tmp_path / "own").write_text(cgroup)
    for name, content in files.items():
        (path := tmp_path / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert cores(tmp_path / "own", tmp_path / "groups") == expected


def test_without_limits_all_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As before there were limits to look at, so that keys are what they were; the user's number holds over all."""
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert cores(tmp_path / "none", tmp_path / "none") == 6
    for available, threads, expected in ((6, None, 6), (6, 11, 11), (64, None, 8)):
        monkeypatch.setattr("bench.pipeline.compute.cores", partial(int, available))
        assert compute(ComputeConfig(threads=threads), profile(), "auto", "local", 1).threads == expected


def test_the_processor_has_a_name(tmp_path: Path) -> None:
    """As the system calls it, without marks; the architecture where it does not say."""
    (tmp_path / "cpuinfo").write_text("vendor_id\t: x\nmodel name\t: Intel(R) Xeon(R) Gold 6 Processor  @ 2 GHz\n")
    assert processor(tmp_path / "cpuinfo") == "Intel Xeon Gold 6 @ 2 GHz"
    assert processor(tmp_path / "none") == platform.machine()


@pytest.mark.parametrize(("device", "workers", "executor", "shard_workers", "expected"), cases("shares-of-corpora"))
def test_workers_share_a_corpus(
    monkeypatch: pytest.MonkeyPatch,
    device: str,
    workers: int | None,
    executor: str,
    shard_workers: int,
    expected: list[int],
) -> None:
    """On three GPUs: a share each unless somebody says otherwise; one where stages run one after the other."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    result = compute(ComputeConfig(shard_workers=shard_workers), profile(), device, executor, workers)
    assert [result.shares, result.searchers] == expected


@pytest.mark.parametrize(
    ("device", "processes", "gpus", "refused"),
    [("cuda", 2, 2, False), ("cuda", 2, 1, True), ("cuda:1", 2, 4, True), ("cuda:1", 1, 4, False)],
)
def test_each_process_has_a_gpu(
    monkeypatch: pytest.MonkeyPatch, device: str, processes: int, gpus: int, refused: bool
) -> None:
    """There are too few, or all would share the one that is named."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    config = ComputeConfig(processes=processes)
    found = f"{processes} with device {device}, where torch sees {gpus} GPUs"
    expected = fields(where="--processes", found=found, expected="a GPU for each process")
    with pytest.raises(UsageError, check=expected) if refused else nullcontext():
        assert compute(config, profile(), device, "local", 1).processes == processes


@pytest.mark.parametrize(("method", "size", "steps", "tokens", "flops", "seconds"), cases("measured-trainings"))
def test_the_formula_against_trainings(
    method: str, size: list[int], steps: int, tokens: int, flops: float, seconds: float
) -> None:
    """On one core, profile mini: tokens and operations of the meter within 15 %, seconds within half as much again."""
    config = resolve([load().method(method)], profile=PROFILES["mini"])[method].method
    passes = config.passes(14.3, 129.0)  # type: ignore[attr-defined]  # average tokens of the world's texts
    shape = EncoderSize(size[0], size[1], 4 * size[1], 8000)
    flop_count = sum(share * operations(batch, shape) for share, batch in passes)
    assert steps * sum(share * batch.tokens for share, batch in passes) == pytest.approx(tokens, rel=0.15)
    assert steps * flop_count == pytest.approx(flops, rel=0.15)
    assert learning(passes, shape, None) == pytest.approx(flops / tokens, rel=0.15)
    assert 1 / 1.5 < steps * flop_count / machine("1xcpu").rate("float32") / seconds < 1.5


def _planned(capsys: pytest.CaptureFixture[str], store: Path, *arguments: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--profile", "paper", *arguments, "--json", "--store", str(store), "--data-dir", str(store)])
    printed = capsys.readouterr()
    assert ended.value.code == 0, printed.err
    planned: dict[str, Any] = json.loads(printed.out)
    return planned


@pytest.mark.slow
def test_the_table_of_the_guide(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`--profile paper --devices 8xA100` needs neither a GPU nor a file; the batch is the paper's on any number."""
    rows, single = [], ("ict", "crop", "ccp", "msm", "auto-mlm", "contriever")
    for method, more in (*((name, ()) for name in single), ("contriever", ("--preset", "mcontriever"))):
        plan = _planned(capsys, tmp_path, "--devices", "8xA100", "--suite", "mrtydi", "--method", method, *more)
        stages, (corpus,) = plan["stages"], [row for row in plan["downloads"] if row["kind"] == "corpus"]
        prepare, train = (
            next(estimate for estimate in stages if estimate["stage"] == name) for name in ("prepare", "train")
        )
        tested = sum(
            estimate["hours"]
            for estimate in stages
            if estimate["stage"] in "encode search" and "@init" not in estimate["title"]
        )
        cells = [f"{train['tokens']:.1e}", f"{train['flops']:.1e}", f"{train['hours']:.1f}", train["bound"]]
        cells += [f"{tested:.1f}", f"{prepare['hours']:,.0f}", f"{train['memory'] / 1e9:,.1f} GB"]
        cells += [f"{size / 1e9:,.1f} GB" for size in (prepare["disk"], corpus["bytes"])]
        rows.append(f"| {' | '.join((*(more[1:] or (f'`{method}`',)), prepare['title'], *cells))} |")
    guide = Path(__file__).parents[3] / "docs" / "guide" / "train.md"
    assert "\n".join(rows) in guide.read_text(encoding="utf-8"), "\n".join(rows)
    more = ("--suite", "mrtydi", "--task", "sw", "--regime", "english", "--rerank", "trained")
    stages = _planned(capsys, tmp_path, "--devices", "2xA100", "--method", "auto-mlm", *more)["stages"]
    two = {estimate["stage"]: estimate for estimate in stages}
    assert two["train"]["tokens"] == pytest.approx(300_000 * 2 * 2 * 128 * 32)
    assert [name for name in two if not two[name]["hours"]] == ["tune", "train_cross"]


@pytest.mark.parametrize("stage", ["train", "encode"])
def test_work_costs_what_the_backbone_does(tmp_path: Path, capsys: pytest.CaptureFixture[str], stage: str) -> None:
    """An empty store knows that a larger encoder takes longer; progress counts tokens or texts all the same."""
    seconds = list[float]()
    for backbone in ("scratch:2x128", "scratch:12x384"):
        typed = f"plan --method crop --suite mrtydi --task ko --json --backbone {backbone} --store {tmp_path}"
        with pytest.raises(SystemExit):
            main(typed.split())
        steps = json.loads(capsys.readouterr().out)["steps"]
        costs = [step["seconds"] for step in steps if step["stage"] == stage]
        seconds.append(max(costs[1:] or costs))  # the first work of a kind loads libraries, whatever the encoder
    assert seconds[1] > 3 * seconds[0]


def test_every_method_has_what_a_profile_needs() -> None:
    """A named corpus, and tokens or steps: the papers' own in `paper`. Devices have names in any spelling."""
    assert machine("8xa100").rate("bfloat16") == pytest.approx(8 * machine("1xA100").rate("bfloat16"))
    with pytest.raises(UsageError, check=fields(where="--devices", found="device 'B900'")):
        machine("8xB900")
    plugins, steps = load(), dict[str, int | None]()
    for size in (PROFILES["small"], PROFILES["paper"]):
        for name, owned in plugins.methods.items():
            preset = pretrained_as(owned.value, size, None)
            assert ((preset and preset.corpus) or size.corpus).partition(":")[0] in plugins.corpora_by_name
            steps[name] = None if size.budget else (preset and preset.steps) or size.steps
    expected = {"msm": 200_000, "contriever": 500_000, "auto-mlm": 300_000, "ict": 100_000, "ccp": 200_000}
    assert {name: steps[name] for name in expected} == expected
