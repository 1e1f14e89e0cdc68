"""What all our methods have in common: one budget, presets, a card, validated settings, and the conformance kit."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bench.config.layers import check_preset
from bench.config.plugin_faults import method_faults
from bench.config.profiles import PROFILES, profile
from bench.config.request import Request
from bench.core.encoder_config import Trainer
from bench.core.errors import ConfigError, UsageError
from bench.pipeline.settings import resolve, variants
from bench.plugins import load
from bench.studies.conformance.checks import run
from bench.training.config import TrainingConfig

OWNED = {name: owned for name, owned in load().methods.items() if owned.module.startswith("methods.")}
METHODS = {name: owned.value for name, owned in OWNED.items()}
TRAINED = [name for name, method in METHODS.items() if method.trains]
COMMON = {"mlm", "cmlm", "msm", "quickthought", "auto-mlm"}
"""Methods whose card describes their own settings alone; those of every training are in the documents."""

SILENT = {"cmlm", "mlm", "simcse"}
"""Methods that do not claim to learn topics from random weights."""

FIXTURES = Path(__file__).parents[1] / "fixtures" / "methods"
REFUSED = json.loads((FIXTURES / "refused.json").read_text(encoding="utf-8"))
"""(method, settings that it refuses, what the error says)."""
PRESETS = json.loads((FIXTURES / "presets.json").read_text(encoding="utf-8"))
"""(method, preset, values that it has): as the papers print them, or as the mini world needs them."""


@pytest.mark.parametrize(("name", "preset", "values"), PRESETS)
def test_presets_as_printed(name: str, preset: str, values: dict[str, object]) -> None:
    """What a config has when the preset is named."""
    config = resolve([METHODS[name]], profile=None, preset=preset)[name].method.model_dump()
    for key, value in values.items():
        setting = config
        for part in key.split("."):
            setting = setting[part]
        assert setting == value, key


@pytest.mark.parametrize("grid", ["queue", "negatives"])
def test_a_grid_says_what_budget_it_needs(grid: str) -> None:
    """A million tokens fill no large queue and make two steps of 4096 pairs; the summary and the card say so."""
    assert "budget" in METHODS["contriever"].presets[grid].summary
    rows = [line for line in METHODS["contriever"].card().splitlines() if line.startswith(f"| `{grid}` | grid")]
    assert ["profile `mini`" in row for row in rows] == [True]


def test_the_methods_are_there() -> None:
    """The seven, and the baselines; what is trained, and BM25, can be tuned."""
    seven = {"bm25", "ict", "crop", "ccp", "msm", "auto-mlm", "contriever"}
    assert set(METHODS) == seven | {"pretrained", "mlm", "simcse", "quickthought", "cmlm"}
    assert [name for name in (*TRAINED, "bm25") if not METHODS[name].space] == []


@pytest.mark.parametrize("name", METHODS)
def test_a_plugin_brings_one_sound_method(name: str) -> None:
    """Its config, presets, grids and search space are sound; its doors open; its card is its README."""
    method, module = METHODS[name], import_module(OWNED[name].module)
    assert [*module.bench_methods()] == [method]
    assert method_faults(method) == []
    if method.trainer is not None:
        trainer: Trainer = method.build_trainer(method.config())
        assert callable(trainer.train)
    assert method.card() == Path(str(module.__file__)).with_name("README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", METHODS)
def test_a_card_describes_every_setting_and_preset(name: str) -> None:
    """By its name; a group of settings by its own or by those of all its members."""
    method = METHODS[name]
    card, missing = method.card(), [name for name in method.presets if f"`{name}`" not in method.card()]
    for row in resolve([method])[name].rows():
        section, _, key = row.key.partition(".")
        group = key.partition(".")[0]
        if section == "method" and not (name in COMMON and group in TrainingConfig.model_fields):
            missing += [] if f"`{key}`" in card or f"`{group}`" in card else [key]
    assert missing == []


@pytest.mark.parametrize(("name", "sets", "message"), REFUSED)
def test_a_wrong_setting_is_refused(name: str, sets: str, message: str) -> None:
    """The error says what is allowed, before anything starts."""
    with pytest.raises(ConfigError, match=message):
        resolve([METHODS[name]], sets=[f"method.{setting}" for setting in sets.split()])


@pytest.mark.parametrize("name", TRAINED)
def test_what_its_paper_prints_is_a_preset(name: str) -> None:
    """Large profiles take it; it says where its values come from, and is one that a config takes."""
    method = METHODS[name]
    paper = method.presets["paper"]
    assert paper.source
    assert check_preset(method.config, paper.values) == []
    for size in ("small", "paper"):
        resolved = resolve([method], profile=profile(size))[name]
        assert all(resolved.origins[f"method.{key}"] == f"profile {size}" for key in paper.values)
        assert getattr(resolved.method, "learning_rate", 0) <= 5e-4  # weights that were trained before want small steps


@pytest.mark.parametrize("name", TRAINED)
def test_the_negatives_of_a_paper_do_not_depend_on_the_processes(name: str) -> None:
    """Under the profile `paper`: pairs that one pair meets, all processes' where they are gathered; or a refusal."""
    counts, processes_alike = set(), [1, 2, 5, 10] if name == "quickthought" else [1, 2, 4, 8, 16, 32, 64]
    for processes in sorted({*processes_alike, 1, 2, 3, 4, 8}):
        request = Request(methods=(name,), suites=("mrtydi",), sets=(f"compute.processes={processes}",))
        try:
            (variant,) = variants(request, [METHODS[name]], None, profile("paper"))
        except UsageError:
            assert processes not in processes_alike
            continue
        config: Any = variant.resolved.method
        together = processes if getattr(config, "gather_negatives", False) else 1
        queued = getattr(config, "loss", None) == "moco"  # other keys of a batch are none
        counts.add(config.queue if queued else together * getattr(config, "documents", config.pairs))
    assert len(counts) == 1


def test_a_named_preset_replaces_that_of_the_profile() -> None:
    """A plain one does; the cells of a grid lie over it."""
    ccp, size = METHODS["ccp"], PROFILES["mini"]
    assert resolve([ccp], profile=size)["ccp"].origins["method.bank.capacity"] == "profile mini"
    assert resolve([ccp], profile=size, preset="paper")["ccp"].origins["method.bank.capacity"] == "preset paper"
    plain = resolve([ccp], profile=None)["ccp"]
    assert "method.bank.capacity" not in plain.origins
    replaced = resolve([METHODS["contriever"]], profile=size, preset="mcontriever")["contriever"]
    assert replaced.origins["method.queue"] == "preset mcontriever"


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_promise_is_kept(name: str, tmp_path: Path) -> None:
    """None is broken, and the one that three methods do not make is said to be theirs not to make."""
    verdicts = list(run(name, tmp_path, plugins=load()))
    assert [f"{verdict.check.name}: {verdict.reason}" for verdict in verdicts if verdict.state == "broken"] == []
    left_out = [verdict.check.name for verdict in verdicts if verdict.state == "not applicable"]
    assert left_out == (["learns-planted-corpus"] if name in SILENT else [])
