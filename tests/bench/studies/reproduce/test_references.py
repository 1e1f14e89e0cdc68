"""Reference scores: each expected value is compared; what cannot be run is skipped with the reason."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import run
from bench.cli import reproduce
from bench.config.request import RunPreset
from bench.core.errors import UsageError
from bench.plugins import load
from tests.conftest import plugin

PRESET = RunPreset("known", "One.", ("bm25",), ("mrtydi", "lareqa", "beir"), data="mini", tolerance=0.002)


def check(monkeypatch: pytest.MonkeyPatch, *presets: RunPreset, names: tuple[str, ...] = ()) -> dict[str, object]:
    plugins = load({}, extra=[plugin("bench_runs", *presets)])
    runs = {preset.name: plugins.runs[preset.name] for preset in presets}
    monkeypatch.setattr("bench.plugins.load", lambda: replace(plugins, runs=runs))
    outcome = CliRunner().invoke(reproduce.command, ["--references", "--json", *names])
    if isinstance(outcome.exception, UsageError) and not outcome.stdout:
        raise outcome.exception
    rows = json.loads(outcome.stdout)["references"]
    return {**{f"{row['suite']}/{row['name']}": row["verdict"] for row in rows}, "exit": outcome.exit_code}


def test_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Printed digits are the same, a preset's tolerance is close, more differs; other suites are not run."""
    outcome = run(
        "bm25", "mrtydi", tasks="en,sw,th", data="mini", store=tmp_path / "store", results=tmp_path / "results"
    )
    true = {row["task"].rpartition("/")[2]: row["measures"]["RR@100"] for row in outcome.rows}
    expects = {"mrtydi": {"en": round(true["en"], 4), "sw": true["sw"] + 0.0019, "th": true["th"] - 0.0021}}
    preset = replace(PRESET, expects={**expects, "lareqa": {"nowhere": 0.5}})
    verdicts = check(monkeypatch, preset, names=("mrtydi",))
    assert verdicts == {"mrtydi/en": "OK", "mrtydi/sw": "close", "mrtydi/th": "differs", "exit": 1}


def test_what_cannot_run_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that is not there fails its own suite alone; where nothing can be run, that is an error."""
    lost = replace(PRESET, name="lost", expects={"beir": {"nowhere": 0.5}})
    preset = replace(PRESET, expects={"mrtydi": {"en": 0.0}})
    assert check(monkeypatch, preset, lost) == {"mrtydi/en": "differs", "beir/nowhere": "skipped", "exit": 1}
    assert check(monkeypatch, lost) == {"beir/nowhere": "skipped", "exit": 1}
    with pytest.raises(UsageError, match="no reference 'crop'"):
        check(monkeypatch, preset, names=("crop",))


def test_ours_name_what_is_there() -> None:
    """One method and one seed each, fractions, and tasks or averages of the suite."""
    plugins = load()
    for preset in (owned.value for owned in plugins.runs.values() if owned.value.expects):
        assert (len(preset.methods), len(preset.seeds)) == (1, 1)
        assert set(preset.suites) == set(preset.expects)
        for name, values in preset.expects.items():
            suite = plugins.suite(name)
            assert {*values} <= {*suite.task_names(preset.data or ""), *(average.name for average in suite.macros)}
            assert all(0 < value <= 1 for value in values.values())
