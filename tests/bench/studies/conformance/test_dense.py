"""The kit on methods with an encoder: a sound one keeps every promise, and each flaw is found by its check."""

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
import torch

from bench.core.encoder_config import EncoderConfig
from bench.core.errors import PluginError
from bench.retrieval.encoder import TorchEncoder
from bench.studies.conformance import encoding, light, training
from bench.studies.conformance.kit import Check, try_promises
from bench.studies.conformance.trial import DenseSubject
from bench.training.config import TrainingConfig
from bench.types import Method, Preset

Broken = Callable[..., str]
Toy = Callable[..., DenseSubject]
CHECKS = (*light.CHECKS, *training.CHECKS, *encoding.CHECKS)


@pytest.mark.parametrize(
    "check",
    [pytest.param(check, marks=[pytest.mark.slow] * (check.name == "fresh-process")) for check in CHECKS],
    ids=lambda check: str(check.name),
)
def test_a_sound_method_keeps(sound: DenseSubject, check: Check) -> None:
    """Every promise."""
    (verdict,) = try_promises([check], sound)
    assert (verdict.state, verdict.reason) == ("kept", "")


UNUSED = "ModuleDict.method.unused"
FLAWS = {
    "deaf": ("gradients-reach-all", f"no gradient reached {UNUSED}.weight, {UNUSED}.bias"),
    "noisy": ("same-seed-same-bytes", "two training runs with one seed differ in encoder/model.safetensors, log.jsonl"),
    "forgetful": ("resumes-exactly", "a training run that was killed after every step differs in encoder/model"),
    "anew": ("resumes-exactly", "it began anew after a kill"),
    "silent": ("resumes-exactly", "it never calls work.advance"),
    "global": ("global-state-untouched", "the environment (TOY_WAS_HERE), torch's matmul precision"),
    "litter": ("writes-under-its-folder", "/litter, expected nothing outside work.out and work.parts"),
    "lying": ("encoder-config-kept", "the query encoder's config is EncoderConfig(pooling='cls'"),
    "nan": ("short-training-ends", "log.jsonl holds numbers that are none: loss"),
    "uncounted": ("short-training-ends", "the trainer's metadata holds tokens=None"),
}


@pytest.mark.parametrize(
    "flaw", [pytest.param(flaw, marks=[pytest.mark.slow] * (flaw == "anew")) for flaw in FLAWS], ids=[*FLAWS]
)
def test_a_flaw_is_found(toy: Toy, broken: Broken, flaw: str) -> None:
    """Each by its check, with a reason that names it."""
    name, words = FLAWS[flaw]
    assert words in broken(CHECKS, name, toy(flaw))


@pytest.mark.parametrize("checks", [(*training.CHECKS, *encoding.CHECKS), encoding.CHECKS[::-1]])
def test_a_training_that_fails_is_told_once_with_its_place(toy: Toy, checks: Sequence[Check]) -> None:
    """File, line and cause by the first promise that needs it, whichever that is; those that rest on it are skipped."""
    verdicts = try_promises(checks, toy("misspelt", module="tests"))
    (broken,) = (verdict for verdict in verdicts if verdict.state == "broken")
    source = Path(__file__).with_name("conftest.py").read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if "self.config.noise" in text)
    place, _, cause = broken.reason.partition(": ")
    assert (Path(place.rpartition(":")[0]).name, place.rpartition(":")[2]) == ("conftest.py", str(line))
    assert cause == "AttributeError: 'ToyConfig' object has no attribute 'noise'"
    assert broken.remedy.startswith("fix it there")
    rests = {verdict.reason for verdict in verdicts if verdict.state == "not applicable"}
    assert rests == {"the short training failed, on which this rests"}
    kept = {verdict.check.name for verdict in verdicts if verdict.state == "kept"}
    assert not kept & {check.name for check in training.CHECKS}


def test_a_method_that_learns_nothing_is_found_unless_it_says_so(toy: Toy, broken: Broken) -> None:
    """A loss of zero leaves held-out questions where they were; who claims to learn nothing is not trained."""
    subject = toy("idle")
    subject.learn_tokens = 6_000
    assert "expected at least 10% more" in broken(CHECKS, "learns-planted-corpus", subject)
    subject = toy("idle", learns=False)
    (check,) = (check for check in training.CHECKS if check.name == "learns-planted-corpus")
    (verdict,) = try_promises([check], subject)
    reason = "it does not claim to learn topics from random weights (Method.learns)"
    assert (verdict.state, verdict.reason) == ("not applicable", reason)
    assert "long" not in vars(subject)


def test_what_is_declared_holds(tmp_path: Path, toy: Toy, broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another seed gives other weights, so it is not deterministic; the preset mini is tried, and `--set` above it."""
    small = Preset({"pairs": 32, "clip": 0.5}, "ours", "small")
    identity = "sized", "1", "Two sentences.", "Nobody's."
    method = Method(*identity, TrainingConfig, encoder_config=lambda _: EncoderConfig(), presets={"mini": small})
    config = DenseSubject(method, "bench", tmp_path, sets=("method.pairs=8",)).config
    assert (config.pairs, config.clip, config.accumulate) == (8, 0.5, 1)
    monkeypatch.setattr("bench.pipeline.compute.bfloat16_speed", lambda: 4.0)
    assert DenseSubject(method, "bench", tmp_path, sets=("train.precision=auto",)).config.precision == "bfloat16"
    reason = broken(CHECKS, "same-seed-same-bytes", toy("", deterministic=True))
    assert reason == "it is declared deterministic, but another seed gives other weights"


def test_what_the_stage_refuses_is_the_reason(toy: Toy, broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer that raises breaks the promise with its own words."""

    def burst(*_: Any, **__: Any) -> Any:
        raise PluginError("the trainer broke its promise")

    monkeypatch.setattr("bench.pipeline.stages.train.run", burst)
    assert broken(CHECKS, "short-training-ends", toy("")) == "PluginError: the trainer broke its promise"


def _loud(vectors: Any) -> Any:
    os.environ["TOY_WAS_HERE"] = "1"
    torch.manual_seed(int(os.urandom(2).hex(), 16))
    return vectors


def _lengths(items: Any) -> Any:
    return np.array([[len(item.text)] for item in items])


def _unbounded(vectors: Any, items: Any) -> Any:
    return np.where(_lengths(items), vectors, np.inf)


@pytest.mark.parametrize(
    ("name", "spoil", "words"),
    [
        ("company-changes-nothing", lambda v, _: v - v.mean(0) / 8, "other texts in the batch change the vector of a"),
        ("length-kept", lambda v, items: v + _lengths(items) / 64, "a query is read beyond the 64 tokens"),
        ("fresh-process", lambda v, _: -v, "a fresh process gives other query vectors"),
        ("encoding-touches-nothing", lambda v, _: _loud(v), "(TOY_WAS_HERE), torch's random generator"),
        ("vectors-sound", lambda v, _: v.astype(np.float64), "the vectors of a query are float64, expected float32"),
        ("vectors-sound", lambda v, _: np.ones_like(v) / 8, "all texts have the same vector as query"),
        ("vectors-sound", lambda v, _: v * 2, "these are not"),
        ("odd-texts", _unbounded, "an empty text as query: the vector is not finite"),
        ("odd-texts", None, "no query at all gives the shape (0,), expected (0, 64)"),
    ],
)
def test_an_encoders_flaw_is_found(
    toy: Toy, sound: DenseSubject, broken: Broken, monkeypatch: pytest.MonkeyPatch, name: str, spoil: Any, words: str
) -> None:
    """What comes out of the encoder is spoilt, or has another shape for no text; the check that looks says how."""
    encode = TorchEncoder.encode

    def spoilt(self: TorchEncoder, items: Any, role: Any) -> Any:
        vectors = encode(self, items, role)
        if spoil is None:
            return vectors if len(items) else np.zeros(0, np.float32)
        return spoil(vectors, items) if len(items) else vectors

    def unspoilt(_: str, script: str, *, stdin: str, **__: Any) -> CompletedProcess[str]:
        """Run here what a process of its own, which imports torch for seconds, would do without the flaw."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TorchEncoder, "encode", encode)
            patch.setattr("sys.stdin", io.StringIO(stdin))
            exec(script, {})  # noqa: S102 (the kit's)
        return CompletedProcess(script, 0, "", "")

    monkeypatch.setattr(TorchEncoder, "encode", spoilt)
    monkeypatch.setattr(encoding, "run_python", unspoilt)
    subject = toy("")
    vars(subject).update(short=sound.short)
    assert words in broken(CHECKS, name, subject)
