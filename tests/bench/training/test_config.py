"""The settings of trainings: promises of every config, contradictions, and how a tuned encoder reads."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from bench.config.base import Config
from bench.config.layers import check_config, resolve
from bench.config.profiles import PROFILES
from bench.core.encoder_config import EncoderConfig
from bench.pipeline.settings import RunConfig
from bench.training.config import TrainingConfig
from bench.training.cross_encoder_config import CrossConfig
from bench.training.fine_tuning_config import FineTuningConfig
from methods.bm25 import BM25
from methods.crop import CROP
from tests.conftest import cases

ROLES: dict[str, Any] = {"query_prompt": "ask: ", "passage_prompt": "text: ", "query_length": 20, "passage_length": 30}
ENCODER_CONFIG = EncoderConfig(pooling="mean", layer=7, normalise=True, similarity="cos", title=": ", **ROLES)


@pytest.mark.parametrize("config", [TrainingConfig, FineTuningConfig, CrossConfig])
def test_they_keep_the_promises_of_every_config(config: type[Config]) -> None:
    """Frozen, strict, closed; each default with source and help."""
    assert check_config(config) == []


@pytest.mark.parametrize(("name", "kind", "bad"), cases("settings-of-trainings-refused"))
def test_bad_values_are_refused(name: str, kind: str, bad: dict[str, Any]) -> None:
    """Out of range, of another type, contradictory, or unknown: one error, of that kind."""
    configs: dict[str, type[Config]] = {"TrainingConfig": TrainingConfig, "FineTuningConfig": FineTuningConfig}
    with pytest.raises(ValidationError) as caught:
        configs[name](**bad)
    assert [error["type"] for error in caught.value.errors()] == [kind]


def test_large_models_are_saved_less_often() -> None:
    """The profiles of real backbones, for pretraining, fine-tuning and re-rankers; a method without the setting too."""
    methods = [CROP, BM25]
    for profile, seconds in (("mini", 60.0), ("small", 900.0), ("paper", 900.0)):
        resolved = resolve(methods, RunConfig, profile=PROFILES[profile])
        method: Any = resolved["crop"].method
        run: Any = resolved["crop"].run
        assert (
            method.checkpoint_seconds == run.tune.checkpoint_seconds == run.rerank.train.checkpoint_seconds == seconds
        )


def test_how_a_tuned_encoder_reads() -> None:
    """As its settings say, else as before; a question mark goes unless kept; XTREME-R compares by cosine."""
    assert FineTuningConfig(question_mark=False).encoder_config(ENCODER_CONFIG) == ENCODER_CONFIG
    dropped = FineTuningConfig().encoder_config(ENCODER_CONFIG)
    assert dropped == replace(ENCODER_CONFIG, question_mark=False)
    assert FineTuningConfig(question_mark=False).encoder_config(dropped).question_mark
    reading: dict[str, Any] = {"pooling": "cls", "similarity": "dot", "title": " [SEP] "}
    encoder_config = FineTuningConfig(**reading, query_tokens=9, passage_tokens=10).encoder_config(ENCODER_CONFIG)
    last = replace(ENCODER_CONFIG, **reading, layer=-1, normalise=False)  # a pooling is of the last layer
    assert encoder_config == replace(last, query_length=9, passage_length=10, question_mark=False)
    assert FineTuningConfig(titles=False).encoder_config(ENCODER_CONFIG).title is None
    assert FineTuningConfig(precision="bfloat16").encoder_config(ENCODER_CONFIG).dtype == "bfloat16"
    tuned = FineTuningConfig(loss="xtreme-r").encoder_config(EncoderConfig(similarity="dot", normalise=False))
    assert (tuned.similarity, tuned.normalise) == ("cos", True)
