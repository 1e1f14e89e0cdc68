"""The harness's section `train`: declared once, filled into every training, and refused under its old keys."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.config.base import Config, setting, shared
from bench.config.fields import with_shared
from bench.config.layers import check_config, check_preset, describe, identity
from bench.config.profiles import PROFILES
from bench.config.request import Request
from bench.core.errors import ConfigError
from bench.pipeline.plan import Plan, plan
from bench.pipeline.settings import RunConfig, resolve
from bench.pipeline.stages.train import Train
from bench.pipeline.stages.train_cross import TrainCross
from bench.pipeline.stages.tune import Tune
from bench.plugins import load
from bench.store.graph import closure
from bench.store.store import Store
from bench.testing import fields
from bench.training.config import TrainingConfig, TrainSection
from bench.types import Method

TYPED: dict[str, Any] = {
    "precision": "bfloat16",
    "checkpoint_seconds": 7.0,
    "vocabulary": "whole",
    "probe_every": 9,
    "probe_pairs": 5,
    "probe_languages": 2,
}
SETS = tuple(f"train.{name}={value}" for name, value in TYPED.items())
METHODS = {name: owned.value for name, owned in load().methods.items()}
TRAINED = sorted(name for name, method in METHODS.items() if method.trainer is not None)


class OwnConfig(Config):
    """A config of a plugin's own, with a field that is called like one of the harness's."""

    precision: str = setting("float64", source="ours: a test", help="for tests")


class PluginConfig(TrainingConfig):
    """A config of a plugin that is trained as ours are, but for its own rule of one field."""

    probe_pairs: int = setting(6, ge=2, source="ours: a test", help="for tests")


def method(config: type[Config]) -> Method:
    return Method("toy", "1", "", "", config, lambda _: pytest.fail("built"))


@pytest.fixture
def planned(tmp_path: Path) -> Callable[..., Plan]:
    request = Request(("crop",), ("mrtydi",), tasks=("sw",), regimes=("english",), rerank="trained", device="cpu")

    def make(*sets: str, **changes: Any) -> Plan:
        return plan(replace(request, sets=sets, **changes), load(), Store(tmp_path / "store"))

    return make


def test_the_section_is_what_configs_share() -> None:
    """Every field of it is shared by configs of trainings, with one default; no config lists them as its own."""
    assert set(TrainSection.model_fields) == set(TYPED)
    config = TrainingConfig()
    assert {name: getattr(config, name) for name in TYPED} == dict(TrainSection())
    assert not {row.key for row in describe(config)} & set(TYPED)
    assert {"precision", "vocabulary", "probe_pairs", "probe_languages"} <= identity(config).keys()
    assert {row.key for row in describe(RunConfig()) if row.key.rpartition(".")[2] in TYPED} == {
        *(f"train.{name}" for name in TYPED),
        "prepare.vocabulary",
    }


@pytest.mark.parametrize("name", TRAINED)
def test_it_reaches_every_trainer(name: str) -> None:
    """The config that a method's trainer is built with has what was typed."""
    config = resolve([METHODS[name]], sets=SETS)[name].method
    assert {field: getattr(config, field) for field in TYPED} == TYPED


def test_it_reaches_fine_tunings_and_rerankers(planned: Callable[..., Plan]) -> None:
    """Precision and checkpoints of what is trained after a pretraining; what is typed, else what the profile says."""
    stages = closure([subset.score for cell in planned(*SETS).subsets for subset in cell])
    trainings = [stage for stage in stages if isinstance(stage, Train | Tune | TrainCross)]
    assert {type(stage) for stage in trainings} == {Train, Tune, TrainCross}
    assert {(stage.config.precision, stage.config.checkpoint_seconds) for stage in trainings} == {("bfloat16", 7.0)}
    for config in (run := resolve([METHODS["bm25"]], profile=PROFILES["paper"])["bm25"].run).tune, run.rerank.train:
        assert (config.precision, config.checkpoint_seconds) == ("bfloat16", 900.0)


def test_what_of_it_identifies_a_system(planned: Callable[..., Plan]) -> None:
    """What changes weights changes the hash and the label; what changes a log or a pause changes no key."""
    before = planned(rerank=None)

    def hashes(changed: Plan) -> dict[str, str]:
        return {cell.regime: cell.identity.hash for cell in changed.cells if not cell.system.untrained}

    for sets, suffix in (
        ("train.precision=bfloat16", "@precision=bfloat16"),
        ("train.vocabulary=whole", "@vocabulary=whole"),
        ("train.probe_pairs=4", "@probe_pairs=4"),
        ("train.probe_languages=1", "@probe_languages=1"),
    ):
        after = planned(sets, rerank=None)
        assert not hashes(before).items() & hashes(after).items(), sets
        assert f"crop{suffix}" in {cell.system.label for cell in after.cells}
    for sets in ("train.checkpoint_seconds=7", "train.probe_every=9"):
        after = planned(sets, rerank=None)
        assert [step.stage.key for step in after.steps] == [step.stage.key for step in before.steps], sets
        assert {cell.system.label for cell in after.cells} == {cell.system.label for cell in before.cells}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((f"method.{name}", f"train.{name}") for name in TYPED),
        *((f"{section}.{name}", f"train.{name}") for section in ("tune", "rerank.train") for name in list(TYPED)[:2]),
    ],
)
def test_an_old_key_is_refused_with_the_new_one(old: str, new: str, tmp_path: Path) -> None:
    """Typed and in a file; the sentence is what to type."""
    value = TYPED[new.removeprefix("train.")]
    with pytest.raises(ConfigError, check=fields(found=old, expected=new, exit_code=2)) as caught:
        resolve([METHODS["crop"]], sets=[f"{old}={value}"])
    assert str(caught.value) == (
        f"{old} (--set) is {new} since 0.2.0, one for the whole run; expected --set {new}={value}"
    )
    file = tmp_path / "run.toml"
    file.write_text(f"{old} = {value!r}\n")
    with pytest.raises(ConfigError, check=fields(found=old, expected=new, where="")):
        resolve([METHODS["crop"]], file=file)


def test_a_preset_cannot_set_it() -> None:
    """A plugin's preset says how a method is run, not the harness."""
    (fault,) = check_preset(TrainingConfig, {"precision": "bfloat16", "pairs": 8})
    assert fault.startswith("precision (preset) is train.precision since 0.2.0, one for the whole run; expected ")


def test_a_field_of_a_config_of_its_own_stays_its_own() -> None:
    """A plugin's config may declare a field of the same name; so does that of models that nothing trains here."""
    sets = ("method.precision=float16", "train.precision=bfloat16")
    resolved = resolve([method(OwnConfig)], sets=sets)["toy"]
    assert identity(resolved.method) == {"precision": "float16"}
    assert [row.key for row in resolved.method_rows()] == ["method.precision"]
    inherited: Any = resolve([method(PluginConfig)], sets=("method.probe_pairs=8", *SETS))["toy"].method
    assert (inherited.probe_pairs, inherited.probe_languages) == (8, 2)
    assert check_config(PluginConfig) == check_config(OwnConfig) == []
    ready: Any = resolve([METHODS["pretrained"]], profile=PROFILES["small"])["pretrained"]
    assert (ready.method.precision, ready.run.train.precision) == ("float32", "bfloat16")
    typed: Any = resolve([METHODS["pretrained"]], sets=("method.precision=bfloat16",))["pretrained"]
    assert (typed.method.precision, typed.run.train.precision) == ("bfloat16", "float32")


class Part(Config):
    """A section of a config, with a field of the harness's."""

    seconds: float = shared(TrainSection, "train.checkpoint_seconds")


class Whole(Config):
    """A config with a section."""

    part: Part = Part()
    pairs: int = setting(3, source="ours: a test", help="for tests")


def test_sections_of_a_config_are_filled_too() -> None:
    """And what is not shared is as it was."""
    run = RunConfig(train=TrainSection(checkpoint_seconds=7.0))
    assert with_shared(Whole(pairs=4), run) == Whole(part=Part(seconds=7.0), pairs=4)
