"""The harness's section `train`: declared once, filled into every training, and refused under its old keys."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bench.config.base import Config, setting, shared
from bench.config.fields import with_shared
from bench.config.layers import check_config, check_preset, describe, identity
from bench.config.profiles import PROFILES
from bench.config.request import Request
from bench.core.errors import ConfigError, UsageError
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
    "stop_when": "collapsed",
    "probe_every": 9,
    "probe_pairs": 5,
    "probe_languages": 2,
    "token_bucket": 256,
    "compile": True,
    "average": 0.25,
}
SETS = tuple(f"train.{name}={str(value).lower()}" for name, value in TYPED.items())
METHODS = {name: owned.value for name, owned in load().methods.items()}
Patch = pytest.MonkeyPatch
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
    """The config that a method's trainer is built with has what was typed; `mlm` has no vectors that could collapse."""
    config = resolve([METHODS[name]], sets=SETS)[name].method
    expected = TYPED | ({"stop_when": "never"} if name == "mlm" else {})
    assert {field: getattr(config, field) for field in TYPED} == expected


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
        ("train.token_bucket=256", "@token_bucket=256"),
        ("train.token_bucket=256 train.compile=true", "@token_bucket=256,compile=True"),
        ("train.average=0.2", "@average=0.2"),
        ("train.stop_when=collapsed", "@stop_when=collapsed"),
    ):
        after = planned(*sets.split(), rerank=None)
        assert not hashes(before).items() & hashes(after).items(), sets
        assert f"crop{suffix}" in {cell.system.label for cell in after.cells}
    for sets in ("train.checkpoint_seconds=7", "train.probe_every=9"):
        after = planned(sets, rerank=None)
        assert [step.stage.key for step in after.steps] == [step.stage.key for step in before.steps], sets
        assert {cell.system.label for cell in after.cells} == {cell.system.label for cell in before.cells}


def test_shapes_are_in_keys_only_where_they_are_asked_for(planned: Callable[..., Plan]) -> None:
    """They came late: typed at their defaults they change no key. Passes are compiled for rows of few shapes alone."""
    keys = [step.stage.key for step in planned().steps]
    assert [step.stage.key for step in planned("train.compile=false", "train.token_bucket=").steps] == keys
    assert not {"token_bucket", "compile"} & identity(TrainingConfig()).keys()
    assert identity(TrainingConfig(token_bucket=64))["token_bucket"] == 64
    refusal = "compile is true and token_bucket nothing"
    with pytest.raises(ConfigError, match=refusal):
        planned("train.compile=true")
    with pytest.raises(ValidationError, match=refusal):
        TrainingConfig(compile=True)


FAST, SLOW = 4.3, 1 / 6
"""Times that products in bfloat16 are as fast as in float32: measured with units for it, and without."""


@pytest.mark.parametrize(("speed", "typed"), [(FAST, "bfloat16"), (1.2, "float32"), (SLOW, "float32")])
def test_the_machine_decides_a_precision(
    speed: float, typed: str, planned: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything has a key: keys, hashes, labels and settings are those of the precision that auto means here."""
    monkeypatch.setattr("bench.pipeline.compute.bfloat16_speed", lambda: speed)
    decided, expected = planned("train.precision=auto"), planned(f"train.precision={typed}")
    assert [step.stage.key for step in decided.steps] == [step.stage.key for step in expected.steps]

    def rows(made: Plan) -> list[tuple[str, str, list[object]]]:
        return [
            (cell.system.label, cell.identity.hash, [row.value for row in cell.system.rows() if "precision" in row.key])
            for cell in made.cells
        ]

    assert rows(decided) == rows(expected)
    trainings = [step.stage for step in decided.steps if isinstance(step.stage, Train | Tune | TrainCross)]
    assert {stage.config.precision for stage in trainings} == {typed}


def test_a_ready_model_is_read_as_the_machine_decides(planned: Callable[..., Plan], monkeypatch: Patch) -> None:
    """Its own setting, which has no say in trainings; a config that no run has decided is refused."""
    monkeypatch.setattr("bench.pipeline.compute.bfloat16_speed", lambda: FAST)
    model: Any = {"methods": ("pretrained",), "rerank": None, "regimes": (), "suites": ("mrtydi",)}
    texts = {"query_prompt": "q", "passage_prompt": "p", "query_tokens": 9, "passage_tokens": 9}
    values = {"model": "owner/name", "pooling": "mean", "normalise": "true", "similarity": "cos", **texts}
    sets = [f"method.{name}={value}" for name, value in values.items()]
    (cell,) = planned(*sets, "method.precision=auto", **model).cells
    system: Any = cell.system
    assert system.own_encoder_config.dtype == "bfloat16"
    assert system.resolved.run.train.precision == "float32"
    config: Any = resolve([METHODS["pretrained"]], sets=[*sets, "method.precision=auto"])["pretrained"].method
    with pytest.raises(UsageError, check=fields(where="precision", found="auto")):
        METHODS["pretrained"].encoder_config(config)  # type: ignore[misc]
    with pytest.raises(ValidationError, match="precision"):
        TrainingConfig.model_validate({"precision": "auto"})


@pytest.mark.parametrize(("devices", "expected"), [("8xA100", "bfloat16"), ("V100", "float32"), ("4xcpu", "bfloat16")])
def test_a_machine_that_is_not_here(devices: str, expected: str, planned: Callable[..., Plan]) -> None:
    """Is asked by its rates; where others compute than plan, nobody can try them."""
    stages = [step.stage for step in planned("train.precision=auto", devices=devices, rerank=None).steps]
    assert {stage.config.precision for stage in stages if isinstance(stage, Train)} == {expected}
    with pytest.raises(UsageError, check=fields(where="precision", expected="float32 or bfloat16")):
        planned("train.precision=auto", executor="slurm")


def test_bfloat16_without_units_is_never_silent(planned: Callable[..., Plan], monkeypatch: Patch) -> None:
    """A sentence with the factor, for a start too; none where the processor has units, nor in float32."""
    for speed, sets, said in ((SLOW, "bfloat16", 1), (FAST, "bfloat16", 0), (SLOW, "float32", 0)):
        monkeypatch.setattr("bench.pipeline.plan.bfloat16_speed", lambda speed=speed: speed)
        warnings = planned(f"train.precision={sets}").warnings
        sentences = [sentence for sentence in warnings if "take this processor 6.0 times as long" in sentence]
        assert len(sentences) == said, (speed, sets)
    monkeypatch.setattr("bench.pipeline.plan.bfloat16_speed", lambda: pytest.fail("tried"))
    planned()  # where nobody asks for it, it is not tried


def test_a_start_in_another_precision_is_another_name(planned: Callable[..., Plan]) -> None:
    """A start encodes in the precision that was typed, so it is called so; not where the profile says it."""

    def starts(*sets: str, **changes: Any) -> dict[str, str]:
        cells = planned(*sets, rerank=None, **changes).cells
        return {cell.system.label: cell.identity.hash for cell in cells if cell.system.untrained}

    usual, half = starts(), starts("train.precision=bfloat16")
    assert [*usual] == ["crop@init"]
    assert [*half] == ["crop@init@precision=bfloat16"]
    assert not {*usual.values()} & {*half.values()}
    varied = starts(varied=(("train.precision=bfloat16",),))
    assert varied == usual | half


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
    file.write_text(f"{old} = {json.dumps(value)}\n")
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
