"""Every method trained for a second on the planted corpus: it learns, resumes bit for bit and exports its encoder."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bench.core.encoder_config import EncoderConfig
from bench.core.workspace import Parts
from bench.plugins import load
from bench.training import checkpoint
from tests.conftest import Start

METHODS = {name: owned.value for name, owned in load().methods.items()}
TABLES = json.loads((Path(__file__).parents[1] / "fixtures" / "methods" / "trainings.json").read_text(encoding="utf-8"))
"""Settings of every method for trainings of a second; cases (method, settings over those, names that its log has); and
learnings (method, settings, budget in tokens, bound of the last five values in parts of the first five's, value)."""

TOKENS = 900
"""The budget of a training, where a test has no other; checkpoints are 200 apart."""


def title(method: str, values: Mapping[str, Any]) -> str:
    """Name a test after a method and its settings."""
    return " ".join((method, *(f"{key}={value}" for key, value in values.items()))).replace("'", "")


class KilledError(RuntimeError):
    """In place of a kill."""


def killer(tokens: int) -> Callable[[float], None]:
    """Return a progress hook that raises after so many tokens."""
    remaining = [float(tokens)]

    def advance(count: float) -> None:
        remaining[0] -= count
        if remaining[0] <= 0:
            raise KilledError

    return advance


def config_of(name: str, **values: Any) -> Any:
    """Build a method's config for trainings of a second."""
    return METHODS[name].config.model_validate(
        {**TABLES["base"], **TABLES["small"][name], "checkpoint_tokens": 200, **values}
    )


Run = Callable[..., Any]


@pytest.fixture
def run(train_method: Run) -> Run:
    """Train a method with a config; `folder` names the training."""

    def make(folder: str, name: str, config: Any, **options: Any) -> Any:
        trainer = METHODS[name].build_trainer(config)
        return train_method(folder, trainer, config.encoder_config(), **{"tokens": TOKENS, **options})

    return make


@pytest.fixture(scope="module")
def whole(train_in: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Train a method to its end, once for all tests that compare with it."""
    trainings: dict[str, Any] = {}

    def make(name: str, **values: Any) -> Any:
        key = title(name, values)
        if key not in trainings:
            config = config_of(name, **values)
            trainer = METHODS[name].build_trainer(config)
            trainings[key] = train_in(tmp_path_factory.mktemp("whole"), trainer, config.encoder_config(), TOKENS)
        return trainings[key]

    return make


OWN_STATE = ("ccp", "contriever", "msm")
"""Methods whose checkpoints have more than an encoder and its optimiser: a bank, a queue, heads."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in OWN_STATE else pytest.mark.slow) for name in TABLES["small"]]
)
def test_points_on_the_way_leave_the_end_as_it_is(name: str, run: Run, whole: Run) -> None:
    """Looked at twice, and branched off from, a training has the bytes of one that never stopped."""
    config, expected = config_of(name), whole(name)
    points = [run("stops", name, config, until=share) for share in (0.25, 0.5)]
    assert [point.metadata["spent"] >= share for point, share in zip(points, (0.25, 0.5), strict=True)] == [True, True]
    branch = Parts(points[1].parts.parent.with_name("branch") / "parts")
    checkpoint.copy(Parts(points[1].parts), branch)
    branched = run("branch", name, config, until=0.5, cool=0.2)
    assert branched.metadata["steps"] > points[1].metadata["steps"]
    assert branched.metadata["spent"] >= 0.6
    assert run("stops", name, config).files() == expected.files()


def test_every_method_is_trained_here() -> None:
    """Whoever adds a method adds it to the cases."""
    ours = {name for name, method in METHODS.items() if method.trains and name in TABLES["small"]}
    assert {method for method, _, _ in TABLES["cases"]} == set(TABLES["small"]) == ours
    assert {name for name, method in METHODS.items() if method.trainer is not None} >= ours


FIRST = {name: title(name, values) for name, values, _ in reversed(TABLES["cases"])}
"""The first case of each method; a slow test has the others."""


@pytest.mark.parametrize(
    ("name", "values", "logged"),
    [
        pytest.param(*case, id=label, marks=() if label in FIRST.values() else pytest.mark.slow)
        for case in TABLES["cases"]
        for label in [title(*case[:2])]
    ],
)
def test_a_killed_training_ends_with_the_same_bytes(
    name: str, values: dict[str, Any], logged: tuple[str, ...], run: Run, whole: Run, start_of: Start
) -> None:
    """Killed after a checkpoint and begun again, every file is equal; what is exported is the encoder alone.

    Every weight learns, and all logged numbers are finite.
    """
    config, expected = config_of(name, **values), whole(name, **values)
    with pytest.raises(KilledError):
        run("killed", name, config, advance=killer(500))
    resumed = run("killed", name, config)
    assert [*resumed.parts.glob("checkpoint-*.json")]
    assert resumed.files() == expected.files()
    assert resumed.metadata["distinct_tokens"] == expected.metadata["distinct_tokens"]
    start = load_file(start_of(config.encoder_config()) / "model.safetensors")
    exported = load_file(expected.out / "encoder" / "model.safetensors")
    assert {key: tensor.shape for key, tensor in exported.items()} == {
        key: tensor.shape for key, tensor in start.items()
    }
    assert not (expected.out / "encoder" / "mlm_head.safetensors").exists()
    assert EncoderConfig.load(expected.out / "encoder") == config.encoder_config()
    assert [tensor for tensor in expected.metadata["without_gradient"] if "pooler" not in tensor] == []
    assert all(np.isfinite(value) for line in expected.log for value in line.values() if isinstance(value, float))
    assert set(logged) <= {key for line in expected.log for key in line}


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", TABLES["small"])
def test_killed_twice(name: str, precision: str, run: Run, whole: Run) -> None:
    """Killed, begun again, killed and begun again, in both precisions: the same bytes."""
    config, expected = config_of(name, precision=precision), whole(name, precision=precision)
    for tokens in (400, 300):
        with pytest.raises(KilledError):
            run("killed", name, config, advance=killer(tokens))
    assert run("killed", name, config).files() == expected.files()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "crop" else pytest.mark.slow) for name in TABLES["small"]]
)
def test_one_whose_passes_are_filled_is_resumed_exactly(name: str, run: Run, whole: Run) -> None:
    """Killed and begun again: the same bytes, of as many tokens and steps; other ones than without, by dropout."""
    config, expected = config_of(name, token_bucket=128), whole(name, token_bucket=128)
    with pytest.raises(KilledError):
        run("killed", name, config, advance=killer(500))
    assert run("killed", name, config).files() == expected.files()
    unfilled = whole(name)
    assert unfilled.files() != expected.files()
    assert [unfilled.metadata[value] for value in ("tokens", "steps", "flops")] == [
        expected.metadata[value] for value in ("tokens", "steps", "flops")
    ]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["contriever", "crop", "mlm", "simcse"])
def test_one_whose_passes_are_compiled_is_resumed_exactly(name: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a slow copy of the encoder, inner layers, and words that are predicted: the same bytes, killed or not."""
    monkeypatch.setattr("bench.retrieval.buckets.BACKEND", "aot_eager")
    values: dict[str, Any] = {"variant": "span", "span": {"tokens": 12}} if name == "crop" else {}
    config = config_of(name, token_bucket=512, compile=True, **values)
    expected = run("whole", name, config, tokens=800)
    with pytest.raises(KilledError):
        run("killed", name, config, tokens=800, advance=killer(400))
    torch._dynamo.reset()  # as another process would
    assert run("killed", name, config, tokens=800).files() == expected.files()
    assert all(np.isfinite(value) for line in expected.log for value in line.values() if isinstance(value, float))


@pytest.mark.parametrize("name", TABLES["small"])
def test_one_in_bfloat16_begins_as_in_float32(name: str, run: Run, whole: Run) -> None:
    """The first loss is nearly the same, whatever a method computes of its vectors; the encoder is read in bfloat16."""
    exact, rough = whole(name), run("rough", name, config_of(name, precision="bfloat16"))
    losses = [next(line["loss"] for line in training.log if "loss" in line) for training in (exact, rough)]
    assert losses[1] == pytest.approx(losses[0], rel=2e-4)
    assert [EncoderConfig.load(made.out / "encoder").dtype for made in (exact, rough)] == ["float32", "bfloat16"]


@pytest.mark.parametrize("name", TABLES["small"])
def test_another_seed_gives_other_weights(name: str, run: Run, whole: Run) -> None:
    """Of all else alike."""
    first, second = whole(name), run("other seed", name, config_of(name), seed=2)
    assert first.files()["encoder/model.safetensors"] != second.files()["encoder/model.safetensors"]


@pytest.mark.parametrize(
    ("name", "values", "tokens", "factor", "metric"),
    [
        pytest.param(*case, id=title(*case[:2]), marks=() if case[2] <= 12_000 else pytest.mark.slow)
        for case in TABLES["learnings"]
    ],
)
def test_it_learns(name: str, values: dict[str, Any], tokens: int, factor: float, metric: str, run: Run) -> None:
    """The loss falls on a planted corpus, and held-out pairs are found better than at the start."""
    log = run("one", name, config_of(name, **values, probe_every=50, checkpoint_tokens=None), tokens=tokens).log
    curve = [line[metric] for line in log[1:] if metric in line]
    assert np.mean(curve[-5:]) < factor * np.mean(curve[:5])
    first, last = log[0]["probe"], log[-1]["probe"]
    if name == "msm":
        assert last["context_accuracy"] > 1.5 * last["context_chance"]
    elif METHODS[name].learns:
        assert last["accuracy"] > first["accuracy"]
