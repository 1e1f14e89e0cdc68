"""Fitting and applying a post-processing as stages, on planted languages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bench.config.sections import PostConfig
from bench.core.contract import TrainingJob
from bench.core.errors import StoreError, UsageError
from bench.core.workspace import Parts, Workspace
from bench.pipeline.stages import fit, post
from bench.retrieval.vectors import Vectors, write_ids, write_matrix
from bench.types import Item

JOB = TrainingJob(0, 0, "cpu", 1)
Block = npt.NDArray[np.float32]
Space = Callable[[str], Workspace]
RNG = np.random.default_rng(0)
BASE = RNG.normal(size=(300, 24)).astype(np.float32)
OFFSETS = {"en": 0.0, "sw": 5.0, "fi": -3.0}


@pytest.fixture
def space(tmp_path: Path) -> Space:
    """Return a maker of workspaces."""

    def make(name: str) -> Workspace:
        out = tmp_path / name
        out.mkdir()
        return Workspace(out, Parts(tmp_path / f"{name}.parts"))

    return make


def stored(folder: Path, groups: dict[str, Block]) -> Path:
    """Write vectors as `encode` writes those of a sample."""
    folder.mkdir()
    write_ids(folder, (f"{language}:{row}" for language, rows in groups.items() for row in range(len(rows))))
    write_matrix(folder, [np.concatenate(list(groups.values()))])
    return folder


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A sample of three languages, an offset and a scale apart."""
    return stored(
        tmp_path / "sample", {name: np.float32(1 + abs(by)) * BASE + np.float32(by) for name, by in OFFSETS.items()}
    )


def settings(**values: Any) -> PostConfig:
    """A config of these values."""
    return PostConfig.model_validate(values)


def moved(space: Space, sample: Path, fitted: Path, language: str = "", name: str = "moved") -> Block:
    """The sample after the post-processing."""
    ids = list(Vectors(sample).ids)
    work = space(name)
    post.run(work, sample, fitted, language, lambda: (Item(one, "", language=one[:2]) for one in ids), 1)
    found = Vectors(work.out)
    assert list(found.ids) == ids
    return np.array(found.matrix)


def test_centring_takes_all_together(space: Space, sample: Path) -> None:
    """The whole has mean 0; the languages stay apart."""
    work = space("fit")
    assert fit.run(work, sample, None, settings(kind="centre"), JOB) == {"kind": "centre", "sentences": {"*": 900}}
    found = moved(space, sample, work.out)
    np.testing.assert_allclose(found.mean(0), 0, atol=1e-5)
    assert found[300:600].mean() > 1


def test_whitening_takes_all_together(space: Space, sample: Path) -> None:
    """The whole has covariance 1."""
    work = space("fit")
    fit.run(work, sample, None, settings(kind="whiten"), JOB)
    found = moved(space, sample, work.out)
    np.testing.assert_allclose(found.T @ found / 900, np.eye(24), atol=1e-4)


@pytest.mark.parametrize(("kind", "spreads"), [("shift", (1, 6, 4)), ("shift-scale", (1, 1, 1))])
def test_shift_and_scale_take_each_by_itself(space: Space, sample: Path, kind: str, spreads: tuple[float, ...]) -> None:
    """Every language has mean 0, and spread 1 where it is scaled."""
    work = space("fit")
    fit.run(work, sample, None, settings(kind=kind), JOB)
    found = moved(space, sample, work.out).reshape(3, 300, 24)
    np.testing.assert_allclose(found.mean(1), 0, atol=1e-5)
    own = BASE.std(0) if kind == "shift" else 1
    for rows, spread in zip(found, spreads, strict=True):
        np.testing.assert_allclose(rows.std(0), spread * np.ones(24) * own, rtol=1e-4)


def test_calibration_undoes_a_planted_map(space: Space, tmp_path: Path) -> None:
    """Shift, scale and a small turn: each vector lands on its partner in the pivot."""
    import torch

    free = torch.randn(24, 24, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    planted = torch.matrix_exp(0.04 * (free - free.T)).numpy()
    white = (BASE - BASE.mean(0)) / BASE.std(0)
    turned = (white @ planted).astype(np.float32)
    source = stored(tmp_path / "sw", {"sw": 2 * turned + 7})
    pivot = stored(tmp_path / "en", {"en": BASE[::-1]})
    work, plain = space("fit"), space("plain")
    facts = fit.run(work, source, pivot, settings(kind="calibrate"), JOB)
    fit.run(plain, source, None, settings(kind="shift-scale"), JOB)
    told: Any = facts["rotations"]
    assert told["sw"]["quality"] == max(told["sw"]["history"].values())
    calibrated, shifted = (moved(space, source, one.out, "sw", f"{one.out.name} moved") for one in (work, plain))
    errors = [np.abs(found - white).max() for found in (calibrated, shifted)]
    assert errors[0] < 0.2 < errors[1]


def test_same_seed_same_bytes(space: Space, sample: Path, tmp_path: Path) -> None:
    """Of an adversarial start too; no value is none."""
    pivot = stored(tmp_path / "en", {"en": BASE})
    short = {"init": "adversarial", "epochs": 1, "epoch_size": 64, "hidden": 8, "refinements": 0}
    made = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        work = space(name)
        fit.run(work, sample, pivot, settings(kind="calibrate", rotation=short), TrainingJob(0, seed, "cpu", 1))
        made.append((work.out / "post.safetensors").read_bytes())
    assert made[0] == made[1]
    from safetensors.numpy import load

    assert all(np.isfinite(values).all() for values in load(made[2]).values())


def test_a_single_sentence_has_no_spread(space: Space, tmp_path: Path) -> None:
    """Refused."""
    with pytest.raises(UsageError, match="found 1 sentence in sw, expected at least 2"):
        fit.run(space("fit"), stored(tmp_path / "s", {"sw": BASE[:1]}), None, settings(kind="shift"), JOB)


def test_two_encoders(space: Space, tmp_path: Path) -> None:
    """Refused."""
    sides = stored(tmp_path / "s", {"sw": BASE[:, :5]}), stored(tmp_path / "p", {"en": BASE})
    with pytest.raises(UsageError, match="samples of 5 and 24 dimensions"):
        fit.run(space("fit"), *sides, settings(kind="calibrate"), JOB)


def test_vectors_of_other_items(space: Space, sample: Path) -> None:
    """A vector's language is that of its own item, or nothing is written."""
    work = space("fit")
    fit.run(work, sample, None, settings(kind="shift"), JOB)
    with pytest.raises(StoreError, match="found the vector of 'en:0' where 'other' was read"):
        post.run(space("moved"), sample, work.out, "", lambda: [Item("other", "", language="en")], 1)


def test_what_a_kind_listens_to() -> None:
    """No other setting decides anything: it enters no key."""
    assert settings(kind="shift", scale_by="var", pivot="en").choices == settings(kind="shift").choices
    assert settings(kind="shift-scale", scale_by="var").choices != settings(kind="shift-scale").choices
    plain = settings(kind="calibrate")
    assert settings(kind="calibrate", rotation={"epochs": 9}).choices == plain.choices
    assert settings(kind="calibrate", rotation={"refinements": 0}).choices != plain.choices
    adversarial = {"init": "adversarial"}
    assert (
        settings(kind="calibrate", rotation={**adversarial, "epochs": 9}).choices
        != settings(kind="calibrate", rotation=adversarial).choices
    )
