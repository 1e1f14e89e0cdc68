"""Every method trained for a second on the planted corpus: it learns, resumes bit for bit and exports its encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from bench.core.contract import Contract
from bench.plugins import load

METHODS = {name: owned.value for name, owned in load().methods.items()}
BASE: dict[str, Any] = {"learning_rate": 5e-3, "log_every": 3, "probe_every": 5, "probe_pairs": 4}
MLM: dict[str, Any] = {"probability": 0.5, "tokens": 20, "sequences": 4}
SMALL: dict[str, dict[str, Any]] = {
    "auto-mlm": {"pairs": 6, "pooling": "mean"},
    "ccp": {"pairs": 6, "bank": {"capacity": 40}, "mlm": MLM},
    "cmlm": {"pairs": 6, "projections": 3, "masking": {"mask": 0.3}, "learning_rate": 1e-2},
    "contriever": {"pairs": 8, "queue": 32, "chunk_length": 24, "ratio_min": 0.2, "momentum": 0.9},
    "crop": {"pairs": 6},
    "ict": {"pairs": 8, "block_tokens": 24, "projection_dropout": 0.0, "pooling": "mean"},
    "mlm": {"learning_rate": 1e-2, "mlm": {"tokens": 24, "sequences": 6}},
    "msm": {"documents": 6, "pack": False, "mlm": MLM},
    "quickthought": {"pairs": 5},
    "simcse": {"pairs": 8, "learning_rate": 2e-3},
}
"""Settings of every method for trainings of a second, over `BASE`."""


@dataclass(frozen=True)
class Case:
    """A training.

    Args:
        method: its name.
        values: settings, over `SMALL`.
        logged: names that its log has.
    """

    method: str
    values: Mapping[str, Any] = field(default_factory=dict)
    logged: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Name of the test."""
        return " ".join((self.method, *(f"{key}={value}" for key, value in self.values.items()))).replace("'", "")


SPAN: dict[str, Any] = {"variant": "span", "span": {"tokens": 12}}
CASES = (
    Case("auto-mlm", {}, ("ctl", "automlm", "active_hinges")),
    Case("auto-mlm", {"loss": "labse_ams", "automlm_side": "query"}),
    Case("auto-mlm", {"pairing": "dialogue"}),
    Case("ccp", {"abn": {"order": "eval_first"}}, ("mlm_loss", "contrast_loss")),
    Case("ccp", {"abn": {"order": "written"}}),
    Case("cmlm"),
    Case("contriever", {}, ("sharpest", "same_language_mass")),
    Case("contriever", {"loss": "in-batch"}),
    Case("contriever", {"accumulate": 2, "queue": 48}),
    Case("crop"),
    Case("crop", SPAN, ("contrast", "head_mlm_loss", "late_mlm_loss")),
    Case("crop", {**SPAN, "mlm": MLM, "similarity": "dot"}, ("mlm_loss",)),
    Case("crop", {"variant": "span", "span": {"tokens": 12, "masked": False}}),
    Case("crop", {"variant": "token"}),
    Case("crop", {"heads": "separate", "mlm": MLM, "document_pairs": 2}, ("mlm_loss",)),
    Case("ict", {"projection_dropout": 0.1}, ("masked_accuracy", "block_chance")),
    Case("mlm", {}, ("hidden",)),
    Case("msm", {}, ("mlm_loss", "msm_loss")),
    Case("msm", {"share_doc_encoder": "sep_en_head"}),
    Case("msm", {"chunk_tokens": 30, "heads": "shared"}),
    Case("quickthought"),
    Case("simcse"),
)


class KilledError(RuntimeError):
    """Stands for a kill."""


def killer(tokens: int) -> Callable[[float], None]:
    """Return a progress hook that raises after so many tokens."""
    left = [float(tokens)]

    def advance(count: float) -> None:
        left[0] -= count
        if left[0] <= 0:
            raise KilledError

    return advance


def config_of(name: str, **values: Any) -> Any:
    """Build a method's config for trainings of a second."""
    return METHODS[name].config.model_validate({**BASE, **SMALL[name], **values})


Run = Callable[..., Any]


@pytest.fixture
def run(train_method: Run) -> Run:
    """Train a method with a config; `folder` names the training."""

    def make(folder: str, name: str, config: Any, **given: Any) -> Any:
        return train_method(folder, METHODS[name].build_trainer(config), config.contract(), **given)

    return make


def test_every_method_is_trained_here() -> None:
    """Whoever adds a method adds it to the cases."""
    ours = {name for name, method in METHODS.items() if method.trains and name in SMALL}
    assert {case.method for case in CASES} == set(SMALL) == ours
    assert {name for name, method in METHODS.items() if method.trainer is not None} >= ours


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_killed_training_ends_with_the_same_bytes(case: Case, run: Run, start_of: Callable[[Contract], Path]) -> None:
    """Killed after a checkpoint and begun again, every file is equal; what is exported is the encoder alone.

    Every weight learns, all logged numbers are finite, and another seed gives other weights.
    """
    config = config_of(case.method, **case.values, checkpoint_tokens=200)
    whole = run("whole", case.method, config)
    with pytest.raises(KilledError):
        run("killed", case.method, config, advance=killer(700))
    again = run("killed", case.method, config)
    assert [*again.parts.glob("checkpoint-*.json")]
    assert again.files() == whole.files()
    assert again.facts["distinct_tokens"] == whole.facts["distinct_tokens"]
    start = load_file(start_of(config.contract()) / "model.safetensors")
    exported = load_file(whole.out / "encoder" / "model.safetensors")
    assert {name: one.shape for name, one in exported.items()} == {name: one.shape for name, one in start.items()}
    assert not (whole.out / "encoder" / "mlm_head.safetensors").exists()
    assert Contract.load(whole.out / "encoder") == config.contract()
    assert [name for name in whole.facts["without_gradient"] if "pooler" not in name] == []
    assert all(np.isfinite(value) for line in whole.log for value in line.values() if isinstance(value, float))
    assert set(case.logged) <= {name for line in whole.log for name in line}
    other = run("other", case.method, config, seed=2)
    assert other.files()["encoder/model.safetensors"] != whole.files()["encoder/model.safetensors"]


@dataclass(frozen=True)
class Learning:
    """What a training must reach.

    Args:
        method: its name.
        tokens: budget.
        factor: bound of the mean of the last five values, in parts of the first five's.
        values: settings, over `SMALL`.
        metric: the logged value that falls.
        probed: held-out pairs are found better at the end than at the start.
    """

    method: str
    tokens: int
    factor: float
    values: Mapping[str, Any] = field(default_factory=dict)
    metric: str = "loss"
    probed: bool = True

    def __str__(self) -> str:
        """Name of the test."""
        return " ".join((self.method, *(f"{key}={value}" for key, value in self.values.items())))


LEARNINGS = (
    Learning("auto-mlm", 12_000, 0.5, metric="ctl"),
    Learning("cmlm", 24_000, 0.94, probed=False),
    Learning("contriever", 20_000, 0.9),
    Learning("contriever", 20_000, 0.4, {"loss": "in-batch", "gather_negatives": False}),
    Learning("contriever", 20_000, 0.85, {"views": "ict"}),
    Learning("crop", 20_000, 0.6, {"pairs": 8}),
    Learning("ict", 20_000, 0.4),
    Learning("mlm", 12_000, 0.95, probed=False),
    Learning("msm", 24_000, 0.5, {"pooling": "mean", "mlm": {"probability": 0.0}}, "msm_loss", probed=False),
    Learning("quickthought", 9_000, 0.8),
    Learning("simcse", 10_000, 0.95, probed=False),
)


@pytest.mark.parametrize("case", LEARNINGS, ids=str)
def test_it_learns(case: Learning, run: Run) -> None:
    """The loss falls on a planted corpus, and held-out pairs are found better than at the start."""
    config = config_of(case.method, **case.values, probe_every=50)
    log = run("one", case.method, config, tokens=case.tokens).log
    values = [line[case.metric] for line in log[1:] if case.metric in line]
    assert np.mean(values[-5:]) < case.factor * np.mean(values[:5])
    if case.probed:
        assert log[-1]["probe"]["accuracy"] > log[0]["probe"]["accuracy"]
    if case.method == "msm":
        assert log[-1]["probe"]["context_accuracy"] > 1.5 * log[-1]["probe"]["context_chance"]
