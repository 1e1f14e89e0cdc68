"""The GPU day on the processor, with a small encoder: what it writes, that it goes on, and that it ends."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from experiments import gpu_day
from experiments.gpu_day import METHODS, OTHERS, TOY, VARIANTS, Day, Measurement, Sizes

CARD = {"name": "NVIDIA H200", "operations_per_second": {"tf32": 400e12, "bfloat16": 780e12}}


def read(folder: Path) -> Any:
    return json.loads((folder / "day.json").read_text(encoding="utf-8"))


def rate(tokens: float, flops: float, **per_step: float) -> dict[str, Any]:
    return {"tokens_per_second": tokens, "operations_per_second": flops, "per_step": per_step}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_day_that_was_killed_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everything at toy size: what was measured before the kill stays, what is finished is not measured again."""
    typed = [str(tmp_path), "--toy"]
    whole = gpu_day.training

    def killed(day: Day, name: str, *rest: Any) -> dict[str, Any]:
        if name == "cmlm":
            raise KeyboardInterrupt
        return whole(day, name, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(gpu_day, "training", killed)
        with pytest.raises(KeyboardInterrupt):
            gpu_day.main(typed)
    before = read(tmp_path)["results"]
    assert {"card", "tests", "corpus", "ccp, 1024, bfloat16"} <= before.keys()
    assert not [name for name in before if name.startswith("cmlm")]
    assert gpu_day.main(typed) == 0
    results = read(tmp_path)["results"]
    assert {name: results[name] for name in before} == before
    assert results.keys() == gpu_day.measurements(Day(tmp_path, TOY)).keys()
    assert (results["tests"]["passed"], results["tests"]["failed"]) == (2, {})
    for name, row in results.items():
        if name.split(", ")[0] in METHODS:
            seconds = row["per_step"]["seconds"]
            assert row["tokens_per_second"] == pytest.approx(row["tokens_per_step"] / seconds)
            assert row["per_step"]["operations"] > 10
            assert row["operations_per_second"] > row["tokens_per_second"] > 0
    assert results["pairs, 1024"]["tokens"] > 1.5 * results["pairs, 512"]["tokens"]
    assert results["encoding"]["bfloat16"].keys() == {"ours", OTHERS}
    page = (tmp_path / "day.md").read_text(encoding="utf-8")
    for name in METHODS:
        assert f"| `{name}` | 512 | " in page
    capsys.readouterr()
    assert gpu_day.main(typed) == 0
    assert capsys.readouterr().out == ""


def test_the_limits_are_45_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all measurements together, in all variants, beside all packages, however long each of them takes."""
    monkeypatch.setattr(gpu_day, "find_spec", lambda _: True)
    day = Day(tmp_path, Sizes())
    others = [row.seconds for name, row in gpu_day.measurements(day).items() if name.split(", ")[0] not in METHODS]
    trainings = len(METHODS) * len(day.sizes.tokens) * sum(variant.seconds for variant in VARIANTS.values())
    assert sum(others) + trainings <= 60 * gpu_day.MINUTES == 60 * 45


@pytest.mark.slow
def test_what_fails_or_takes_too_long_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is written with its message and not tried again; what has no time left is left to another call."""

    def broken() -> dict[str, Any]:
        raise RuntimeError("no kernel | today")

    def slow() -> dict[str, Any]:
        time.sleep(60)
        return {}

    table = {
        "card": Measurement(lambda: dict(CARD), 5),
        "crop, 4096, bfloat16": Measurement(broken, 5),
        "slow": Measurement(slow, 1),
        "long": Measurement(lambda: {"done": True}, 90),
    }
    monkeypatch.setattr(gpu_day, "measurements", lambda _: table)
    assert gpu_day.main([str(tmp_path), "--toy", "--minutes", "1"]) == 1
    results = read(tmp_path)["results"]
    assert list(results) == ["card", "crop, 4096, bfloat16", "slow"]
    assert results["slow"]["error"] == "TimeoutError: took longer than 1 s"
    assert 1 <= results["slow"]["took"] < 30  # of the 60 that it would take
    assert "| `crop` | 4,096 | RuntimeError: no kernel / today |" in (tmp_path / "day.md").read_text(encoding="utf-8")
    capsys.readouterr()
    assert gpu_day.main([str(tmp_path), "--toy"]) == 1
    assert read(tmp_path)["results"].keys() == table.keys()
    assert capsys.readouterr().out.startswith('long: {"done": true')


def test_the_table() -> None:
    """By hand: 98.9 of the maker's 989 TFLOP/s are 10 %; what is unknown has its products' rate, and none no share."""
    rows = {
        "card": CARD,
        "crop, 16384, bfloat16": rate(200_000, 98.9e12, kernels=1100),
        "crop, 4096, float32": rate(60_000, 99e12),
        "pairs, 4096": {key: {"ours": 1e4, OTHERS: 5e3} for key in gpu_day.RATES},
    }
    lines = gpu_day.page(rows).splitlines()
    assert lines[0] == "| tokens/s (share of peak) | micro-batch | bfloat16 | float32 |"
    assert "| `crop` | 16,384 | 200,000 (10 %, 1,100 kernels) |  |" in lines
    assert "| `crop` | 4,096 |  | 60,000 (20 %) |" in lines
    assert f"| pairs, {OTHERS} | 4,096 | 5,000 (5.1e-10 %) |  |" in lines
    assert gpu_day.peak({**CARD, "name": "new"}, "bfloat16") == 780e12
    assert gpu_day.peak({"error": "none"}, "bfloat16") is None
    assert gpu_day.cell(rate(60_000, 99e12), None) == "60,000"


def test_other_sizes_want_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One table has one encoder; and without a GPU the command says what to type."""
    monkeypatch.setattr(gpu_day, "measurements", lambda _: {})
    (tmp_path / "day.json").write_text(json.dumps({"sizes": {"layers": 12}, "results": {}}), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        gpu_day.main([str(tmp_path), "--toy"])
    assert ended.value.code == 2
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit) as ended:
        gpu_day.main([str(tmp_path / "new")])
    assert ended.value.code == 2
