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

ROLES: dict[str, Any] = {"query_prompt": "ask: ", "passage_prompt": "text: ", "query_length": 20, "passage_length": 30}
OWN = Contract(pooling="mean", layer=7, normalise=True, similarity="cos", title=": ", **ROLES)


@pytest.mark.parametrize("config", [TrainingConfig, FineTuningConfig, CrossConfig])
def test_they_keep_the_promises_of_every_config(config: type[Config]) -> None:
    """Frozen, strict, closed; each default with source and help."""
    assert check_config(config) == []


BETAS: list[dict[str, Any]] = [{"beta1": 0.9, "beta2": 0.5}]
SINGLE: list[dict[str, Any]] = [{"pairs": 1}, {"accumulate": 0}, {"probe_pairs": 1}]
BAD: dict[type[Config], dict[str, list[dict[str, Any]]]] = {
    TrainingConfig: {
        "greater_than": [{"learning_rate": 0.0}, {"clip": 0.0}, {"temperature": 0.0}, {"checkpoint_seconds": 0.0}],
        "greater_than_equal": [{"warm_up": -0.1}, {"weight_decay": -1.0}, {"sentence_tokens": 2}, *SINGLE],
        "less_than": [{"warm_up": 1.0}, {"beta1": 1.0}],
        "less_than_equal": [{"language_exponent": 1.5}],
        "float_type": [{"learning_rate": "1e-3"}],
        "literal_error": [{"precision": "float16"}],
        "value_error": BETAS,
        "extra_forbidden": [{"leraning_rate": 1e-3}],
    },
    FineTuningConfig: {
        "value_error": [
            {"loss": "xtreme-r", "similarity": "dot"},
            {"patience": 3},
            {"mine_from": 20, "mine_to": 10},
            *BETAS,
        ],
        "greater_than_equal": [{"pairs": 1}],
        "less_than_equal": [{"hard_share": 1.1}],
        "less_than": [{"dev_share": 1.0}],
        "literal_error": [{"loss": "hinge"}],
        "extra_forbidden": [{"sentence_tokens": 64}],
    },
}
"""Config → kind of the error → values that give it."""


@pytest.mark.parametrize(
    ("config", "bad", "kind"),
    [(one, bad, kind) for one, kinds in BAD.items() for kind, values in kinds.items() for bad in values],
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


def test_how_a_tuned_encoder_reads() -> None:
    """As its settings say, else as before; a question mark goes unless kept; XTREME-R compares by cosine."""
    assert FineTuningConfig(question_mark=False).contract(OWN) == OWN
    dropped = FineTuningConfig().contract(OWN)
    assert dropped == replace(OWN, question_mark=False)
    assert FineTuningConfig(question_mark=False).contract(dropped).question_mark
    said: dict[str, Any] = {"pooling": "cls", "similarity": "dot", "title": " [SEP] "}
    found = FineTuningConfig(**said, query_tokens=9, passage_tokens=10).contract(OWN)
    last = replace(OWN, **said, layer=-1, normalise=False)  # a pooling is of the last layer
    assert found == replace(last, query_length=9, passage_length=10, question_mark=False)
    assert FineTuningConfig(titles=False).contract(OWN).title is None
    assert FineTuningConfig(precision="bfloat16").contract(OWN).dtype == "bfloat16"
    tuned = FineTuningConfig(loss="xtreme-r").contract(Contract(similarity="dot", normalise=False))
    assert (tuned.similarity, tuned.normalise) == ("cos", True)
