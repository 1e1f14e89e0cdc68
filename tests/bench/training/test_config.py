"""The settings of trainings: promises of every config, contradictions, and how a tuned encoder reads."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from bench.config.base import Config
from bench.config.layers import check_config, resolve
from bench.config.profiles import PROFILES
from bench.core.contract import Contract
from bench.pipeline.settings import RunConfig
from bench.training.config import TrainingConfig
from bench.training.cross_encoder_config import CrossConfig
from bench.training.fine_tuning_config import FineTuningConfig
from methods.bm25 import BM25
from methods.crop import CROP

OWN = Contract(
    pooling="mean",
    layer=7,
    normalise=True,
    similarity="cos",
    query_prompt="ask: ",
    passage_prompt="text: ",
    query_length=20,
    passage_length=30,
    title=": ",
)


@pytest.mark.parametrize("config", [TrainingConfig, FineTuningConfig, CrossConfig])
def test_they_keep_the_promises_of_every_config(config: type[Config]) -> None:
    """Frozen, strict, closed; each default with source and help."""
    assert check_config(config) == []


@pytest.mark.parametrize(
    ("config", "bad", "kind"),
    [
        (TrainingConfig, {"learning_rate": 0.0}, "greater_than"),
        (TrainingConfig, {"learning_rate": "1e-3"}, "float_type"),
        (TrainingConfig, {"warm_up": 1.0}, "less_than"),
        (TrainingConfig, {"warm_up": -0.1}, "greater_than_equal"),
        (TrainingConfig, {"weight_decay": -1.0}, "greater_than_equal"),
        (TrainingConfig, {"beta1": 1.0}, "less_than"),
        (TrainingConfig, {"clip": 0.0}, "greater_than"),
        (TrainingConfig, {"pairs": 1}, "greater_than_equal"),
        (TrainingConfig, {"accumulate": 0}, "greater_than_equal"),
        (TrainingConfig, {"temperature": 0.0}, "greater_than"),
        (TrainingConfig, {"sentence_tokens": 2}, "greater_than_equal"),
        (TrainingConfig, {"language_exponent": 1.5}, "less_than_equal"),
        (TrainingConfig, {"precision": "float16"}, "literal_error"),
        (TrainingConfig, {"probe_pairs": 1}, "greater_than_equal"),
        (TrainingConfig, {"checkpoint_seconds": 0.0}, "greater_than"),
        (TrainingConfig, {"beta1": 0.9, "beta2": 0.5}, "value_error"),
        (TrainingConfig, {"leraning_rate": 1e-3}, "extra_forbidden"),
        (FineTuningConfig, {"loss": "xtreme-r", "similarity": "dot"}, "value_error"),
        (FineTuningConfig, {"patience": 3}, "value_error"),
        (FineTuningConfig, {"mine_from": 20, "mine_to": 10}, "value_error"),
        (FineTuningConfig, {"beta1": 0.9, "beta2": 0.5}, "value_error"),
        (FineTuningConfig, {"pairs": 1}, "greater_than_equal"),
        (FineTuningConfig, {"hard_share": 1.1}, "less_than_equal"),
        (FineTuningConfig, {"dev_share": 1.0}, "less_than"),
        (FineTuningConfig, {"loss": "hinge"}, "literal_error"),
        (FineTuningConfig, {"sentence_tokens": 64}, "extra_forbidden"),
    ],
)
def test_bad_values_are_refused(config: type[Config], bad: dict[str, Any], kind: str) -> None:
    """Out of range, of another type, contradictory, or unknown: one error, of that kind."""
    with pytest.raises(ValidationError) as caught:
        config(**bad)
    assert [error["type"] for error in caught.value.errors()] == [kind]


def test_large_models_are_saved_less_often() -> None:
    """The profiles of real backbones, for pretraining, fine-tuning and re-rankers; a method without the setting too."""
    methods = [CROP, BM25]
    for profile, seconds in (("mini", 60.0), ("small", 900.0), ("paper", 900.0)):
        found = resolve(methods, RunConfig, profile=PROFILES[profile])
        own: Any = found["crop"].method
        run: Any = found["crop"].run
        assert own.checkpoint_seconds == run.tune.checkpoint_seconds == run.rerank.train.checkpoint_seconds == seconds


def test_what_is_left_open_is_the_encoders() -> None:
    """Prompts always; pooling, layer, comparison, lengths and titles where nobody says otherwise."""
    assert FineTuningConfig(question_mark=False).contract(OWN) == OWN


def test_question_marks_are_left_out_in_the_test_as_in_tuning() -> None:
    """The last tuning says; a setting that keeps them keeps them in both."""
    dropped = FineTuningConfig().contract(OWN)
    assert dropped == replace(OWN, question_mark=False)
    assert FineTuningConfig(question_mark=False).contract(dropped).question_mark


def test_what_is_said_holds() -> None:
    """A comparison by dot product leaves lengths alone; a pooling is that of the last layer."""
    said: dict[str, Any] = {"pooling": "cls", "similarity": "dot", "title": " [SEP] "}
    found = FineTuningConfig(**said, query_tokens=9, passage_tokens=10).contract(OWN)
    changed: dict[str, Any] = {
        "layer": -1,
        "normalise": False,
        "query_length": 9,
        "passage_length": 10,
        "question_mark": False,
    }
    assert found == replace(OWN, **said, **changed)
    assert FineTuningConfig(titles=False).contract(OWN).title is None
    assert FineTuningConfig(precision="bfloat16").contract(OWN).dtype == "bfloat16"


def test_xtreme_r_compares_by_cosine() -> None:
    """Whatever the encoder did before."""
    tuned = FineTuningConfig(loss="xtreme-r").contract(Contract(similarity="dot", normalise=False))
    assert (tuned.similarity, tuned.normalise) == ("cos", True)
