"""Layers of settings, and files and values that cannot be read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError, model_validator

from bench.config.base import Config, constant, setting
from bench.config.layers import check_config, check_preset, describe, dump, identity, parse_set, read_toml
from bench.config.profiles import PROFILES, Profile
from bench.core.errors import ConfigError, DataError, UsageError
from bench.core.files import canonical
from bench.pipeline.settings import RunConfig, Settings, resolve, resolve_run
from bench.testing import fields
from bench.types import Method, Preset
from tests.conftest import cases

OURS: dict[str, Any] = {"source": "ours: a test", "help": "for tests"}


class HeadConfig(Config):
    """A section within a method's config."""

    width: int = setting(128, ge=1, **OURS)
    bias: bool = setting(False, **OURS)


class BM25Config(Config):
    """A config with a field of every type."""

    k1: float = setting(
        1.2, ge=0, source="Robertson & Zaragoza 2009, §3.3", help="how soon a repeated word tells no more"
    )
    b: float = setting(0.75, ge=0, le=1, **OURS)
    variant: Literal["lucene", "rank_bm25"] = setting("lucene", **OURS)
    name: str = setting("", **OURS)
    layers: tuple[int, ...] = setting((1, 2), **OURS)
    depth: int | None = setting(None, ge=1, **OURS)
    head: HeadConfig = HeadConfig(width=64)


class OtherConfig(Config):
    """The config of another method in the same run."""

    tau: float = setting(0.05, gt=0, lt=1, **OURS)
    k1: float = setting(2.0, ge=0, **OURS)


def method(name: str, config: type[Config], **presets: Mapping[str, Any]) -> Method:
    preset_table = {key: Preset(values, "a paper, Table 1", "") for key, values in presets.items()}
    return Method(name, "1", "", "", config, lambda _: pytest.fail("built"), presets=preset_table)


BM25 = method("bm25", BM25Config, tuned={"k1": 0.9, "head": {"bias": True}}, bare={})
OTHER_METHOD = method("other", OtherConfig)
PROFILE = replace(PROFILES["mini"], values={"search": {"k": 7}})


def bm25(*sets: str, **layers: Any) -> Settings:
    """Resolve BM25's settings alone."""
    return resolve([BM25], sets=sets, **layers)["bm25"]


def bm25_config(resolved: Settings) -> BM25Config:
    assert isinstance(resolved.method, BM25Config)
    return resolved.method


def refused(*sets: str, **layers: Any) -> str:
    """Return the message about settings that cannot be meant."""
    with pytest.raises(ConfigError) as error:
        bm25(*sets, **layers)
    assert error.value.exit_code == 2
    return str(error.value)


def test_layers_lie_in_order(tmp_path: Path) -> None:
    """Each layer wins over the ones below, key by key, and every row says who set it."""
    file = tmp_path / "run.toml"
    file.write_text("[search]\nk = 8\n[method]\nb = 0.5\nk1 = 1.0\n")
    resolved = bm25("method.k1=2", "method.head.width=3", profile=PROFILE, preset="tuned", file=file)
    config = bm25_config(resolved)
    assert (config.k1, config.b, config.head, resolved.run.search.k) == (2.0, 0.5, HeadConfig(width=3, bias=True), 8)
    origins = {row.key: row.origin for row in resolved.rows()}
    assert {row.key for row in describe(RunConfig())} <= set(origins)
    assert {key: origin for key, origin in origins.items() if key.startswith(("method", "search", "data"))} == {
        "method.k1": "--set",
        "method.b": str(file),
        **dict.fromkeys(("method.variant", "method.name", "method.layers", "method.depth"), "default"),
        "method.head.width": "--set",
        "method.head.bias": "preset tuned",
        "search.k": str(file),
        "data.unknown_ids": "default",
        "data.language": "default",
    }
    assert bm25(profile=PROFILE).run.search.k == 7
    assert bm25(profile=PROFILE).origins == {"search.k": "profile mini"}
    assert bm25_config(bm25(preset="tuned")).k1 == 0.9


def test_rows(tmp_path: Path) -> None:
    """Value, default, source, help, limits, origin, effect; a section's other keys keep the defaults of its place."""
    (row,) = [row for row in bm25("method.k1=2").rows() if row.key == "method.k1"]
    assert row[:4] == ("method.k1", 2.0, 1.2, "Robertson & Zaragoza 2009, §3.3")
    assert row[4:] == ("how soon a repeated word tells no more", "a number ≥ 0", "--set", True)
    assert [row.key for row in describe(OtherConfig())] == ["tau", "k1"]
    assert bm25_config(bm25("method.head.bias=true")).head == HeadConfig(width=64, bias=True)


@pytest.mark.parametrize(("text", "near"), cases("unknown-keys"))
def test_an_unknown_key_is_reported_with_the_nearest(text: str, near: str) -> None:
    """The nearest key of any section with the values that it takes, and where all of them are listed."""
    with pytest.raises(ConfigError, check=fields(found=text.partition("=")[0], hint=near, exit_code=2)) as error:
        bm25(text)
    first, last = str(error.value).splitlines()
    assert near in first
    assert last == "`bench show bm25` lists every setting."


@pytest.mark.parametrize(("text", "sentence"), cases("misfits"))
def test_a_value_that_does_not_fit_is_refused(text: str, sentence: str) -> None:
    """Key, value, where it came from, and what is allowed in plain words."""
    assert refused(text) == sentence


class FixedConfig(OtherConfig):
    """A constant next to two settings."""

    steady: float = constant(0.5, source="a paper, table 2")


def test_a_constant_is_refused_wherever_it_is_typed(tmp_path: Path) -> None:
    """With its value and source; it is in no listing, no dump and no key, and Python code may give another value."""
    fixed, sentence = method("fixed", FixedConfig), "method.steady is fixed at 0.5 since 0.2.0 (a paper, table 2)"
    file = tmp_path / "run.toml"
    file.write_text("[method]\nsteady = 0.25\n")
    for layers in ({"sets": ["method.steady=0.25"]}, {"file": file}):
        with pytest.raises(ConfigError) as error:
            resolve([fixed], **layers)
        assert str(error.value).splitlines()[0] == sentence
    assert check_preset(FixedConfig, {"steady": 0.25}) == [sentence.removeprefix("method.")]
    assert check_config(FixedConfig) == []
    changed = FixedConfig(steady=0.25)
    assert changed.steady == 0.25
    assert [row.key for row in describe(changed)] == list(dump(changed)) == list(identity(changed)) == ["tau", "k1"]


def test_the_record_of_a_sweep_is_read_apart_from_settings(tmp_path: Path) -> None:
    """The table `[tuning]` of a file is kept as it is; what is no part of it is refused, and so is typing it."""
    file = tmp_path / "swept.toml"
    file.write_text('[method]\nk1 = 2.0\n[tuning]\nmethod = "bm25"\ntrials = 4\n')
    resolved = bm25(file=file)
    assert (bm25_config(resolved).k1, resolved.sweep.method, resolved.sweep.trials, resolved.sweep.seed) == (
        2,
        "bm25",
        4,
        None,
    )
    assert "tuning.trials (--set) is no setting" in refused("tuning.trials=4")
    file.write_text('[tuning]\ntrials = "four"\ntrial = 4\n')
    assert refused(file=file).splitlines()[:2] == [
        f'tuning.trials is "four" ({file}), expected a whole number, or nothing',
        f"tuning.trial ({file}) is no part of a sweep's record",
    ]
    file.write_text("tuning = 4\n")
    assert f"tuning ({file}) is no table" in refused(file=file)


def test_values_are_kept_and_dumped() -> None:
    """A whole number does for a number, a list for a tuple; `1` and `1.0` hash alike; infinities cannot be dumped."""
    config = bm25_config(bm25("method.k1=1", "method.layers=[]", "method.depth=", "method.name=1a"))
    assert (config.k1, type(config.k1), config.layers, config.depth, config.name) == (1.0, float, (), None, "1a")
    assert bm25_config(bm25("method={k1 = 3, head.bias = true}")).head.bias is True
    typed = ("2k", "1e3", "1_000", "0.5k", "1.5M", "1G")
    assert [bm25(f"search.k={typed_value}").run.search.k for typed_value in typed] == [
        2000,
        1000,
        1000,
        500,
        1_500_000,
        10**9,
    ]
    assert bm25_config(bm25("method.name=2k")).name == "2k"
    whole_number, decimal = bm25("method.k1=1"), bm25("method.k1=1.0")
    assert canonical(whole_number.dump()) == canonical(decimal.dump())
    assert json.loads(canonical(whole_number.dump())) == whole_number.dump() | {
        "method": dump(whole_number.method) | {"layers": [1, 2]}
    }
    assert list(whole_number.dump())[:3] == ["method", "search", "data"]
    assert dump(RunConfig())["data"] == {"unknown_ids": "refuse", "language": None}
    with pytest.raises(ConfigError, check=fields(where="k1", found="inf", expected="a finite number")):
        dump(BM25Config(k1=math.inf))


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    """Unknown keys and misfits of every layer in one message, each with its layer; a section with its keys."""
    file = tmp_path / "run.toml"
    file.write_text("[method]\nb = 2\n[serch]\nk = 1\n")
    lines = refused("method.k1=-1", "search.k=0", file=file).splitlines()
    assert lines == [
        f"serch.k ({file}) is no setting; did you mean search.k (a whole number ≥ 1, or nothing)?",
        "search.k is 0 (--set), expected a whole number ≥ 1, or nothing",
        "method.k1 is -1 (--set), expected a number ≥ 0",
        f"method.b is 2 ({file}), expected a number from 0 to 1",
        "`bench show bm25` lists every setting.",
    ]
    wrong = replace(PROFILE, values={"search.k": 0})
    assert refused(profile=wrong) == "search.k is 0 (profile mini), expected a whole number ≥ 1, or nothing"
    broken = method("bm25", BM25Config, tuned={"b": 3.0})
    with pytest.raises(ConfigError, match=r"method\.b is 3\.0 \(preset tuned\), expected a number from 0 to 1"):
        resolve([broken], preset="tuned")
    first, _ = refused("method.head=1").splitlines()
    assert [key in first for key in ("method.head.width", "method.head.bias", "method.k1")] == [True, True, False]


def test_settings_and_presets_hold_for_the_methods_that_have_them() -> None:
    """One method at least; an empty preset is one, and an unknown name comes with what there is."""
    both = resolve([BM25, OTHER_METHOD], sets=["method.k1=3", "method.tau=0.2"])
    assert dump(both["other"].method) == {"tau": 0.2, "k1": 3.0}
    assert (bm25_config(both["bm25"]).k1, bm25_config(both["bm25"]).b) == (3.0, 0.75)
    assert both["bm25"].origins == {"method.k1": "--set"}
    with pytest.raises(ConfigError, check=fields(found="method.taw", hint="method.tau")):
        resolve([BM25, OTHER_METHOD], sets=["method.taw=1"])
    message = r"^method\.tau is 1 \(--set\), expected a number > 0 and < 1 \(method other\)$"
    with pytest.raises(ConfigError, match=message):
        resolve([BM25, OTHER_METHOD], sets=["method.tau=1"])
    both = resolve([BM25, OTHER_METHOD], preset="Tuned")
    assert (bm25_config(both["bm25"]).k1, both["other"].method) == (0.9, OtherConfig())
    assert bm25_config(bm25(preset="bare")) == BM25Config()
    with pytest.raises(UsageError, check=fields(found="preset 'tunde'", expected="bare, tuned", hint="tuned")):
        resolve([BM25, OTHER_METHOD], preset="tunde")


def test_the_harness_alone_has_no_method() -> None:
    """Its own settings resolve without one; a method's key is unknown."""
    config, rows = resolve_run(profile=PROFILE, sets=["data.unknown_ids=keep"])
    assert (config.search.k, config.data.unknown_ids) == (7, "keep")
    origins = {row.key: row.origin for row in rows}
    assert {key: origin for key, origin in origins.items() if origin != "default"} == {
        "search.k": "profile mini",
        "data.unknown_ids": "--set",
    }
    assert origins["data.language"] == "default"
    with pytest.raises(ConfigError, check=fields(found="method.k1")):
        resolve_run(sets=["method.k1=1"])


class Crossed(Config):
    """A config with a rule between two fields."""

    low: int = setting(1, **OURS)
    high: int = setting(2, **OURS)

    @model_validator(mode="after")
    def _in_order(self) -> Crossed:
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self


def test_a_rule_between_fields_is_reported_in_its_authors_words() -> None:
    """It belongs to no key, so the section stands before it."""
    with pytest.raises(ConfigError, match=r"^method: low 5 is above high 2$"):
        resolve([method("crossed", Crossed)], sets=["method.low=5"])
    with pytest.raises(ConfigError, match=r"^budget: found tokens 5 and flops 1000000000\.0; a training run has"):
        resolve_run(sets=["budget.tokens=5", "budget.flops=1e9"])


class Faulty(Config):
    """A config that breaks the promises of a config."""

    plain: float = 0.1
    helpless: int = setting(1, source="ours: a test", help="")
    outside: Annotated[float, Field(le=1)] = setting(2.0, **OURS)
    loose: list[int] = setting([1], **OURS)
    endless: float = setting(math.inf, **OURS)


class Required(Config):
    """A config that nobody can build without saying something."""

    must: int = Field(description="a number", json_schema_extra={"source": "nobody"})


class Lax(Config, extra="allow"):
    """A config that opens what every config closes."""


def test_config_classes_and_presets_are_checked() -> None:
    """Frozen, strict and closed; every broken promise names the field, a good class and packaged profiles have none."""
    assert check_config(BM25Config) == check_config(RunConfig) == []
    assert check_config(Faulty) == [
        "plain names no source of its default",
        "plain has no help line",
        "helpless has no help line",
        "loose is of a type that can change in place; use a tuple",
        "endless is inf, expected a finite number",
        "outside is 2.0, expected a number ≤ 1",
    ]
    assert check_config(Required) == ["must has no default"]
    assert check_config(Lax) == ["Lax changes extra, which every config keeps"]
    assert check_config(3) == ["config is 3, expected a subclass of bench.config.layers.Config"]
    assert check_preset(BM25Config, {"k1": 1, "head": {"width": 5}}) == []
    assert check_preset(BM25Config, {"k2": 1, "b": 2}) == [
        "k2 is no setting of BM25Config",
        "b is 2 (preset), expected a number from 0 to 1",
    ]
    for packaged in PROFILES.values():
        assert isinstance(packaged, Profile)
        resolve_run(profile=packaged)
    config = BM25Config()
    with pytest.raises(ValidationError, match="frozen"):
        config.k1 = 2.0  # type: ignore[misc]  # the mistake under test
    with pytest.raises(ValidationError, match="k2"):
        BM25Config.model_validate({"k2": 1.0})
    with pytest.raises(ValidationError, match="k1"):
        BM25Config.model_validate({"k1": "1"})
    assert hash(config) == hash(BM25Config())


@pytest.mark.parametrize(("text", "path", "value"), cases("sets"))
def test_set_reads_toml_or_text(text: str, path: list[str], value: object) -> None:
    """TOML where it is TOML, text where it is not, nothing where nothing stands."""
    parsed = parse_set(text)
    assert parsed == (tuple(path), value)
    assert type(parsed[1]) is type(value)


@pytest.mark.parametrize("text", ["search.k", "=5", ".k=5", "search.=5", "", "a..b=1"])
def test_set_without_key_or_equals_is_refused(text: str) -> None:
    """With an example of what to type."""
    with pytest.raises(ConfigError, check=fields(where="--set", expected="KEY=VALUE", hint="search.k=50")):
        parse_set(text)


@given(st.text())
def test_set_never_breaks_on_a_value(value: str) -> None:
    """Whatever stands behind the equals sign, the key is the key, and the value is one that a config can judge."""
    path, parsed = parse_set(f"a.b={value}")
    assert path == ("a", "b")
    assert parsed is None or isinstance(parsed, str | bool | int | float | list | dict)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[method]\nk1 = \n", ":2: found a fault: Invalid value, expected TOML"),
        (b"a = 1\na = 2\n", ":2: found a fault: Cannot overwrite a value, expected TOML"),
        (b"a = 1\nb = \xff\n", ":2: found byte 0xff, expected UTF-8 text"),
    ],
)
def test_a_file_that_is_not_toml_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    """File and line, what was found, what was expected."""
    file = tmp_path / "run.toml"
    file.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_toml(file)
    assert str(error.value).startswith(f"{file}{message}")


NESTED = "more than 32 values within each other"
DIGITS = "a number of hundreds of digits or more"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("9" * 5000, DIGITS),
        ("0x" + "f" * 5000, DIGITS),
        ("[" * 2000, NESTED),
        ("[" * 50 + "]" * 50, NESTED),
        ("{a = " * 300 + "1" + "}" * 300, NESTED),
    ],
)
def test_values_that_no_setting_has(tmp_path: Path, value: str, found: str) -> None:
    """Too many digits or levels to be parsed, printed or compared: refused where they are read, in few words."""
    with pytest.raises(ConfigError, check=fields(where="--set", found=found)) as typed:
        parse_set(f"search.k={value}")
    file = tmp_path / "run.toml"
    for text in (f"k = {value}\n", f"[search]\nk = {value}\n"):
        file.write_text(text)
        with pytest.raises(DataError, check=fields(where="run.toml", found=found)):
            read_toml(file)
    assert len(str(typed.value)) < 400


def test_keys_and_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A table a part, each within the one before; a missing file and a folder."""
    file = tmp_path / "run.toml"
    file.write_text("a." * 3000 + "b = 1\n")
    with pytest.raises(DataError, check=fields(found=NESTED)):
        read_toml(file)
    with pytest.raises(DataError, check=fields(found="No such file", expected="a TOML file")):
        read_toml(tmp_path / "none.toml")
    with pytest.raises(DataError, check=fields(found="Is a directory")):
        read_toml(tmp_path)
