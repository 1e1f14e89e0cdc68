"""The GPU day on the processor, with a small encoder: what it writes, and that it goes on where it stopped."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments import gpu_day

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
TOY = ["--device", "cpu", "--layers", "1", "--width", "64", "--tokens", "256"]


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_parts_are_written_once_and_what_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A method's trainings of two precisions and the search; then nothing; then a part that fails."""
    typed = [str(tmp_path), *TOY, "--parts", "train-mlm", "search"]
    assert gpu_day.main(typed) == 0
    assert {path.stem for path in tmp_path.glob("*.json")} == {"train-mlm", "search"}
    rows = read(tmp_path / "train-mlm.json")
    assert rows.keys() == {"bfloat16-256", "float32-256"}
    for row in rows.values():
        seconds = row["per_step"]["seconds"]
        assert row["tokens_per_second"] == pytest.approx(row["tokens_per_step"] / seconds)
        assert row["per_step"]["operations"] > 10
    assert read(tmp_path / "search.json").keys() == {"k=100", "k=1000"}
    capsys.readouterr()
    assert gpu_day.main(typed) == 0
    assert capsys.readouterr().out == ""

    def broken(day: gpu_day.Day) -> dict[str, Any]:
        raise RuntimeError(f"no {day.device} today")

    monkeypatch.setattr(gpu_day, "card", broken)
    assert gpu_day.main([str(tmp_path), *TOY, "--parts", "card"]) == 1
    assert "RuntimeError: no cpu today" in read(tmp_path / "card.json")["error"]
