"""Every method trained for a second on the planted corpus: it learns, resumes bit for bit and exports its encoder."""

from collections.abc import Callable, Mapping
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


def title(method: str, values: Mapping[str, Any]) -> str:
    """Name a test after a method and its settings."""
    return " ".join((method, *(f"{key}={value}" for key, value in values.items()))).replace("'", "")


SPAN: dict[str, Any] = {"variant": "span", "span": {"tokens": 12}}
CASES: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("auto-mlm", {}, ("ctl", "automlm", "active_hinges")),
    ("auto-mlm", {"loss": "labse_ams", "automlm_side": "query"}, ()),
    ("auto-mlm", {"pairing": "dialogue"}, ()),
    ("auto-mlm", {"pairing": "session", "language_pure": False}, ()),
    ("ccp", {"abn": {"order": "eval_first"}}, ("mlm_loss", "contrast_loss")),
    ("ccp", {"abn": {"order": "written"}}, ()),
    ("cmlm", {}, ()),
    ("contriever", {}, ("sharpest", "same_language_mass")),
    ("contriever", {"loss": "in-batch"}, ()),
    ("contriever", {"accumulate": 2, "queue": 48}, ()),
    ("crop", {}, ()),
    ("crop", SPAN, ("contrast", "head_mlm_loss", "late_mlm_loss")),
    ("crop", {**SPAN, "mlm": MLM, "similarity": "dot"}, ("mlm_loss",)),
    ("crop", {"variant": "span", "span": {"tokens": 12, "masked": False}}, ()),
    ("crop", {"variant": "token"}, ()),
    ("crop", {"heads": "separate", "mlm": MLM, "document_pairs": 2}, ("mlm_loss",)),
    ("ict", {"projection_dropout": 0.1}, ("masked_accuracy", "block_chance")),
    ("mlm", {}, ("hidden",)),
    ("msm", {}, ("mlm_loss", "msm_loss")),
    ("msm", {"share_doc_encoder": "sep_en_head"}, ()),
    ("msm", {"chunk_tokens": 30, "heads": "shared"}, ()),
    ("quickthought", {}, ()),
    ("simcse", {}, ()),
)
"""(method, settings over `SMALL`, names that its log has)."""


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
    assert {method for method, _, _ in CASES} == set(SMALL) == ours
    assert {name for name, method in METHODS.items() if method.trainer is not None} >= ours


@pytest.mark.parametrize(("name", "values", "logged"), [pytest.param(*case, id=title(*case[:2])) for case in CASES])
def test_a_killed_training_ends_with_the_same_bytes(
    name: str, values: dict[str, Any], logged: tuple[str, ...], run: Run, start_of: Callable[[Contract], Path]
) -> None:
    """Killed after a checkpoint and begun again, every file is equal; what is exported is the encoder alone.

    Every weight learns, all logged numbers are finite, and another seed gives other weights.
    """
    config = config_of(name, **values, checkpoint_tokens=200)
    whole = run("whole", name, config)
    with pytest.raises(KilledError):
        run("killed", name, config, advance=killer(700))
    again = run("killed", name, config)
    assert [*again.parts.glob("checkpoint-*.json")]
    assert again.files() == whole.files()
    assert again.facts["distinct_tokens"] == whole.facts["distinct_tokens"]
    start = load_file(start_of(config.contract()) / "model.safetensors")
    exported = load_file(whole.out / "encoder" / "model.safetensors")
    assert {key: one.shape for key, one in exported.items()} == {key: one.shape for key, one in start.items()}
    assert not (whole.out / "encoder" / "mlm_head.safetensors").exists()
    assert Contract.load(whole.out / "encoder") == config.contract()
    assert [one for one in whole.facts["without_gradient"] if "pooler" not in one] == []
    assert all(np.isfinite(value) for line in whole.log for value in line.values() if isinstance(value, float))
    assert set(logged) <= {key for line in whole.log for key in line}
    other = run("other", name, config, seed=2)
    assert other.files()["encoder/model.safetensors"] != whole.files()["encoder/model.safetensors"]


LEARNINGS: tuple[tuple[str, dict[str, Any], int, float, str], ...] = (
    ("auto-mlm", {}, 12_000, 0.5, "ctl"),
    ("cmlm", {}, 48_000, 0.975, "loss"),
    ("contriever", {}, 20_000, 0.9, "loss"),
    ("contriever", {"loss": "in-batch", "gather_negatives": False}, 20_000, 0.4, "loss"),
    ("contriever", {"views": "ict"}, 20_000, 0.85, "loss"),
    ("crop", {"pairs": 8}, 20_000, 0.6, "loss"),
    ("ict", {}, 20_000, 0.4, "loss"),
    ("mlm", {}, 12_000, 0.95, "loss"),
    ("msm", {"pooling": "mean", "mlm": {"probability": 0.0}}, 24_000, 0.5, "msm_loss"),
    ("quickthought", {}, 9_000, 0.8, "loss"),
    ("simcse", {}, 10_000, 0.95, "loss"),
)
"""(method, settings, budget in tokens, bound of the last five values in parts of the first five's, logged value)."""


@pytest.mark.parametrize(
    ("name", "values", "tokens", "factor", "metric"), [pytest.param(*case, id=title(*case[:2])) for case in LEARNINGS]
)
def test_it_learns(name: str, values: dict[str, Any], tokens: int, factor: float, metric: str, run: Run) -> None:
    """The loss falls on a planted corpus, and held-out pairs are found better than at the start."""
    log = run("one", name, config_of(name, **values, probe_every=50), tokens=tokens).log
    found = [line[metric] for line in log[1:] if metric in line]
    assert np.mean(found[-5:]) < factor * np.mean(found[:5])
    first, last = log[0]["probe"], log[-1]["probe"]
    if name == "msm":
        assert last["context_accuracy"] > 1.5 * last["context_chance"]
    elif METHODS[name].learns:
        assert last["accuracy"] > first["accuracy"]
