"""The kit on methods with an encoder: a sound one keeps every promise, and each flaw is found by its check."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.core.contract import Contract
from bench.core.errors import PluginError
from bench.retrieval.encoder import TorchEncoder
from bench.studies.conformance import encoding, light, training
from bench.studies.conformance.kit import Check, carry_out
from bench.studies.conformance.trial import DenseSubject
from bench.training.config import TrainingConfig
from bench.types import Method, Preset


def check(name: str) -> Check:
    """Return a check by its name."""
    (found,) = (one for one in (*light.CHECKS, *training.CHECKS, *encoding.CHECKS) if one.name == name)
    return found


@pytest.mark.parametrize("one", [*light.CHECKS, *training.CHECKS, *encoding.CHECKS], ids=lambda one: str(one.name))
def test_a_sound_method_keeps(sound: DenseSubject, one: Check) -> None:
    """Every promise."""
    verdict = carry_out(one, sound)
    assert (verdict.state, verdict.reason) == ("kept", "")


FLAWS = {
    "deaf": (
        "gradients-reach-all",
        "no gradient reached ModuleDict.method.unused.weight, ModuleDict.method.unused.bias",
    ),
    "noisy": ("same-seed-same-bytes", "two trainings with one seed differ in encoder/model.safetensors, log.jsonl"),
    "forgetful": ("resumes-exactly", "a training that was killed after every step differs in encoder/model"),
    "anew": ("resumes-exactly", "it began anew after a kill"),
    "silent": ("resumes-exactly", "it never calls work.advance"),
    "global": ("global-state-untouched", "the environment (TOY_WAS_HERE), torch's matmul precision"),
    "litter": ("writes-under-its-folder", "/litter, expected nothing outside work.out and work.parts"),
    "lying": ("contract-kept", "the query encoder's contract is Contract(pooling='cls'"),
    "nan": ("short-training-ends", "log.jsonl holds numbers that are none: loss"),
    "uncounted": ("short-training-ends", "the trainer's facts hold tokens=None"),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_found(toy: Callable[..., DenseSubject], flaw: str) -> None:
    """Each by its check, with a reason that names it."""
    name, words = FLAWS[flaw]
    verdict = carry_out(check(name), toy(flaw))
    assert verdict.state == "broken"
    assert words in verdict.reason


def test_a_method_that_learns_nothing_is_found(toy: Callable[..., DenseSubject]) -> None:
    """A loss of zero leaves held-out questions where they were."""
    subject = toy("idle")
    subject.learn_tokens = 6_000
    verdict = carry_out(check("learns-planted-corpus"), subject)
    assert verdict.state == "broken"
    assert "expected at least 10% more" in verdict.reason


def test_a_method_that_claims_to_learn_nothing_is_not_trained(toy: Callable[..., DenseSubject]) -> None:
    """It says so itself; then nothing is tried."""
    subject = toy("idle", learns=False)
    verdict = carry_out(check("learns-planted-corpus"), subject)
    assert (verdict.state, verdict.reason) == (
        "not applicable",
        "it does not claim to learn topics from random weights (Method.learns)",
    )
    assert "long" not in vars(subject)


def test_it_is_tried_as_the_profile_mini_runs_it(tmp_path: Path) -> None:
    """With the preset of that name, and `--set` above it."""
    small = Preset({"pairs": 32, "log_every": 1}, "ours", "small")
    about = "sized", "1", "Two sentences.", "Nobody's."
    method = Method(*about, TrainingConfig, contract=lambda _: Contract(), presets={"mini": small})
    config = DenseSubject(method, "bench", tmp_path, sets=("method.pairs=8",)).config
    assert (config.pairs, config.log_every, config.accumulate) == (8, 1, 1)


def test_a_claim_to_have_no_chance_is_held(toy: Callable[..., DenseSubject]) -> None:
    """Another seed gives other weights, so the method is not deterministic."""
    verdict = carry_out(check("same-seed-same-bytes"), toy("", deterministic=True))
    assert (verdict.state, verdict.reason) == (
        "broken",
        "it is declared deterministic, but another seed gives other weights",
    )


def test_what_the_stage_refuses_is_told(toy: Callable[..., DenseSubject], monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer that raises breaks the promise with its own words."""

    def burst(*_: Any, **__: Any) -> Any:
        raise PluginError("the trainer broke its promise")

    monkeypatch.setattr("bench.pipeline.stages.train.run", burst)
    verdict = carry_out(check("short-training-ends"), toy(""))
    assert (verdict.state, verdict.reason) == ("broken", "PluginError: the trainer broke its promise")


def _averaged(vectors: Any, items: Any) -> Any:
    return vectors - vectors.mean(0) / 8 if len(vectors) else vectors


def _wide(vectors: Any, items: Any) -> Any:
    return vectors.astype(np.float64)


def _flat(vectors: Any, items: Any) -> Any:
    return np.ones_like(vectors) / 8


def _infinite(vectors: Any, items: Any) -> Any:
    return np.where([[item.text == ""] for item in items], np.inf, vectors) if len(items) else vectors


def _unscaled(vectors: Any, items: Any) -> Any:
    return vectors * 2


def _long(vectors: Any, items: Any) -> Any:
    return vectors + np.array([[len(item.text)] for item in items]) / 64 if len(items) else vectors


def _elsewhere(vectors: Any, items: Any) -> Any:
    return -vectors


def _loud(vectors: Any, items: Any) -> Any:
    os.environ["TOY_WAS_HERE"] = "1"
    torch.manual_seed(int(os.urandom(2).hex(), 16))
    return vectors


def _empty(vectors: Any, items: Any) -> Any:
    return vectors if len(items) else np.zeros(0, np.float32)


ENCODERS = {
    "company-changes-nothing": (_averaged, "other texts in the batch change the vector of a query"),
    "length-kept": (_long, "a query is read beyond the 64 tokens"),
    "fresh-process": (_elsewhere, "a fresh process gives other query vectors"),
    "encoding-touches-nothing": (_loud, "the environment (TOY_WAS_HERE), torch's random generator"),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoders_flaw_is_found(
    toy: Callable[..., DenseSubject], sound: DenseSubject, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What comes out of the encoder is spoilt; the check that looks at it says how."""
    spoil, words = ENCODERS[name]
    _spoil(monkeypatch, spoil)
    subject = toy("")
    vars(subject).update(short=sound.short)
    verdict = carry_out(check(name), subject)
    assert verdict.state == "broken"
    assert words in verdict.reason


@pytest.mark.parametrize(
    ("name", "spoil", "words"),
    [
        ("vectors-sound", _wide, "the vectors of a query are float64, expected float32"),
        ("vectors-sound", _flat, "all texts have the same vector as query"),
        ("vectors-sound", _unscaled, "these are not"),
        ("odd-texts", _infinite, "an empty text as query: the vector is not finite"),
        ("odd-texts", _empty, "no query at all gives the shape (0,), expected (0, 64)"),
    ],
)
def test_odd_vectors_are_found(
    toy: Callable[..., DenseSubject],
    sound: DenseSubject,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    spoil: Callable[[Any, Any], Any],
    words: str,
) -> None:
    """Other dtypes, one vector for all, other lengths, infinities, another shape for nothing."""
    _spoil(monkeypatch, spoil)
    subject = toy("")
    vars(subject).update(short=sound.short)
    verdict = carry_out(check(name), subject)
    assert verdict.state == "broken"
    assert words in verdict.reason


def _spoil(monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Any, Any], Any]) -> None:
    """Change what the harness's encoder returns."""
    encode = TorchEncoder.encode
    monkeypatch.setattr(TorchEncoder, "encode", lambda self, items, role: spoil(encode(self, items, role), items))
