"""The settings of trainings: promises of every config, contradictions, and how a tuned encoder reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from bench.config.base import Config
from bench.config.layers import check_config
from bench.core.contract import Contract
from bench.training.config import TrainingConfig
from bench.training.cross_encoder_config import CrossConfig
from bench.training.fine_tuning_config import FineTuningConfig

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
    "bad",
    [
        {"learning_rate": 0.0},
        {"learning_rate": "1e-3"},
        {"warm_up": 1.0},
        {"warm_up": -0.1},
        {"weight_decay": -1.0},
        {"beta1": 1.0},
        {"clip": 0.0},
        {"pairs": 1},
        {"accumulate": 0},
        {"temperature": 0.0},
        {"sentence_tokens": 2},
        {"language_exponent": 1.5},
        {"precision": "float16"},
        {"probe_pairs": 1},
        {"checkpoint_seconds": 0.0},
        {"beta1": 0.9, "beta2": 0.5},
        {"leraning_rate": 1e-3},
    ],
)
def test_bad_values_of_pretraining_are_refused(bad: dict[str, Any]) -> None:
    """Out of range, of another type, or unknown."""
    with pytest.raises(ValidationError):
        TrainingConfig(**bad)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"loss": "xtreme-r", "similarity": "dot"}, "compares by cosine"),
        ({"patience": 3}, "selection is last"),
        ({"mine_from": 20, "mine_to": 10}, "mine_from is 20 and mine_to 10"),
        ({"beta1": 0.9, "beta2": 0.5}, "diverges"),
        ({"pairs": 1}, "greater than or equal to 2"),
        ({"hard_share": 1.1}, "less than or equal to 1"),
        ({"dev_share": 1.0}, "less than 1"),
        ({"loss": "hinge"}, "'dpr' or 'xtreme-r'"),
        ({"sentence_tokens": 64}, "Extra inputs"),
    ],
)
def test_bad_values_are_refused(bad: dict[str, Any], words: str) -> None:
    """Out of range, contradictory, or settings of pretraining."""
    with pytest.raises(ValidationError, match=words):
        FineTuningConfig(**bad)


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
    said = FineTuningConfig(pooling="cls", similarity="dot", query_tokens=9, passage_tokens=10, title=" [SEP] ")
    assert said.contract(OWN) == Contract(
        pooling="cls",
        layer=-1,
        normalise=False,
        similarity="dot",
        query_prompt="ask: ",
        passage_prompt="text: ",
        query_length=9,
        passage_length=10,
        title=" [SEP] ",
        question_mark=False,
    )
    assert FineTuningConfig(titles=False).contract(OWN).title is None
    assert FineTuningConfig(precision="bfloat16").contract(OWN).dtype == "bfloat16"


def test_xtreme_r_compares_by_cosine() -> None:
    """Whatever the encoder did before."""
    tuned = FineTuningConfig(loss="xtreme-r").contract(Contract(similarity="dot", normalise=False))
    assert (tuned.similarity, tuned.normalise) == ("cos", True)
