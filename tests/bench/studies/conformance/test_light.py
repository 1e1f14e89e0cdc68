"""What every plugin promises before any work, and how side effects are seen."""

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pydantic import field_validator

from bench.config.base import Config, setting
from bench.core.errors import UsageError
from bench.studies.conformance.kit import Check, NotApplicableError, Verdict, expect, try_promises
from bench.studies.conformance.light import CHECKS, MethodSubject
from bench.studies.conformance.watch import writes
from bench.testing import fields as has_fields
from bench.types import Method, Preset

Broken = Callable[..., str]


class Free(Config):
    """A setting that takes anything."""

    anything: Any = setting(1, source="ours: a flaw", help="anything")


class Shifting(Config):
    """A setting that is another one when it is read again."""

    name: str = setting("a", source="ours: a flaw", help="grows")

    @field_validator("name")
    @classmethod
    def _grow(cls, name: str) -> str:
        return name + "a"


class Open(Config):
    """Takes keys that it does not have, and says nothing."""

    size: int = setting(1, ge=0, source="ours: sound", help="a number")


def subject(tmp_path: Path, config: type[Config], module: str = "bench", **fields: Any) -> MethodSubject:
    return MethodSubject(Method("made", "1", "s", "c", config, lambda _: None, **fields), module, tmp_path)  # type: ignore[arg-type, return-value]  # never called


@pytest.mark.parametrize(
    ("name", "config", "words"),
    [
        ("bad-value-named", Free, "method.anything takes anything"),
        ("config-round-trip", Shifting, "the defaults come back changed"),
    ],
)
def test_a_flaw_is_found(tmp_path: Path, broken: Broken, name: str, config: type[Config], words: str) -> None:
    """Each by its check."""
    assert words in broken(CHECKS, name, subject(tmp_path, config))


def test_what_resolves_wrongly_is_found(tmp_path: Path, broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preset that its config refuses, and an unknown key where nothing refuses it."""
    low_preset = subject(tmp_path, Open, presets={"low": Preset({"size": -1}, "s", "s")})
    assert broken(CHECKS, "config-round-trip", low_preset).startswith("low: size is -1")
    monkeypatch.setattr("bench.studies.conformance.light.resolve", lambda *_, **__: {})
    assert "was taken" in broken(CHECKS, "unknown-key-refused", subject(tmp_path, Open))


def test_a_heavy_import_is_found(tmp_path: Path, broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that brings torch; one that cannot be imported at all."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "torch.py").touch()
    (tmp_path / "heavy_plugin.py").write_text("import torch\n")
    (tmp_path / "burst_plugin.py").write_text("raise RuntimeError('no')\n")
    heavy, burst = (
        broken(CHECKS, "light-import", subject(tmp_path, Open, name)) for name in ("heavy_plugin", "burst_plugin")
    )
    assert heavy == "importing the plugins brings torch"
    assert burst == "importing burst_plugin failed: RuntimeError: no"


def test_what_is_written_outside_is_seen(tmp_path: Path) -> None:
    """Trees are removed by names relative to open folders; those are not names in the working folder."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    with writes([inside]) as paths, TemporaryDirectory(dir=inside) as between:
        (Path(between) / "deep").mkdir()
        (Path(between) / "deep" / "terms.txt").write_text("x")
    assert not paths
    with writes([inside]) as paths, TemporaryDirectory(dir=outside) as between:
        (Path(between) / "terms.txt").write_text("x")
    assert str(Path(between) / "terms.txt") in paths


def _raises(error: BaseException) -> Callable[[Any], str | None]:
    def body(_: Any) -> str | None:
        raise error

    return body


def test_a_verdict_says_how_a_trial_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, as they end, whatever options of pytest the environment has."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    bodies: dict[str, Callable[[Any], str | None]] = {
        "kept": lambda _: None,
        "partly": lambda subject: f"not {subject}",
        "broken": lambda _: expect(False, "found a hen", "feed the fox"),
        "raised": _raises(ValueError("no fox")),
        "skipped": _raises(NotApplicableError("no hens")),
    }
    reported: list[Verdict] = []
    verdicts = try_promises(
        [Check(name, "it holds", "look", body) for name, body in bodies.items()], "all", reported.append
    )
    assert verdicts == reported
    assert [(verdict.check.name, verdict.state, verdict.reason, verdict.remedy) for verdict in verdicts] == [
        ("kept", "kept", "", "look"),
        ("partly", "kept", "not all", "look"),
        ("broken", "broken", "found a hen", "feed the fox"),
        ("raised", "broken", "ValueError: no fox", "look"),
        ("skipped", "not applicable", "no hens", "look"),
    ]


def test_an_interrupt_ends_the_trials() -> None:
    """The very exception, which may say by which signal."""
    error = KeyboardInterrupt("SIGTERM")
    with pytest.raises(KeyboardInterrupt) as raised:
        try_promises([Check("x", "it holds", "look", _raises(error))], None)
    assert raised.value is error


def test_without_pytest_the_command_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in an extra."""
    monkeypatch.setitem(sys.modules, "pytest", None)
    with pytest.raises(UsageError, check=has_fields(found="no pytest", hint="retrieval-bench[check]")):
        try_promises(CHECKS, None)
