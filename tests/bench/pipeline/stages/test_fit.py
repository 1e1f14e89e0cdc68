"""Fitting and applying a post-processing as stages, on planted languages."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from safetensors.numpy import load

from bench.core.encoder_config import EncoderConfig
from bench.core.errors import StoreError, UsageError
from bench.core.workspace import Workspace
from bench.pipeline.compute import Compute
from bench.pipeline.stages import fit, post
from bench.pipeline.stages.encode import EncodePassages, EncodeSample
from bench.retrieval.settings import PostConfig
from bench.retrieval.vectors import Vectors, write_ids, write_matrix
from bench.store.fingerprinted import Fingerprinted
from bench.types import Item, Json, Source
from tests.bench.pipeline.stages.conftest import INPUT

MACHINE = Compute("cpu", 1)
ENCODED: Any = {
    "encoder": INPUT,
    "role": "passage",
    "encoder_config": EncoderConfig(),
    "compute": MACHINE,
    "system_label": "",
}
SAMPLE = EncodeSample(**ENCODED, shards=INPUT, language="en", sentences=9, kind="")
Block = npt.NDArray[np.float32]
Space = Callable[..., Workspace]
RNG = np.random.default_rng(0)
BASE = RNG.normal(size=(300, 24)).astype(np.float32)
OFFSETS = {"en": 0.0, "sw": 5.0, "fi": -3.0}


def stored(folder: Path, groups: dict[str, Block]) -> Path:
    folder.mkdir()
    write_ids(folder, (f"{language}:{row}" for language, rows in groups.items() for row in range(len(rows))))
    write_matrix(folder, [np.concatenate(list(groups.values()))])
    return folder


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A sample of three languages, an offset and a scale apart."""
    groups = {name: np.float32(1 + abs(by)) * BASE + np.float32(by) for name, by in OFFSETS.items()}
    return stored(tmp_path / "sample", groups)


def settings(**values: Any) -> PostConfig:
    return PostConfig.model_validate(values)


def fitted(
    work: Workspace, sample: Path, config: PostConfig, pivot: Path | None = None, seed: int = 0
) -> Mapping[str, Json]:
    into = INPUT if pivot is None else SAMPLE
    stage = fit.Fit(sample=SAMPLE, pivot=into, seed=seed, compute=MACHINE, settings=config, system_label="")
    return stage.run(work, {"sample": sample} | ({"pivot": pivot} if pivot else {}))


def processed(work: Workspace, sample: Path, fit: Path, language: str, items: Iterable[Item]) -> None:
    source = Source("sample", "test/1", (), lambda: iter(items))
    vectors = EncodePassages(**ENCODED, checked=INPUT, corpus=Fingerprinted(source, ()))
    stage = post.PostProcess(
        vectors=vectors,
        fit=INPUT,
        language=language,
        machine={"threads": MACHINE.threads},
        vector_language=language,
        system_label="x",
    )
    stage.run(work, {"vectors": sample, "fit": fit})


def moved(make_work: Space, sample: Path, fit: Path, language: str = "") -> Block:
    ids = list(Vectors(sample).ids)
    work = make_work()
    processed(work, sample, fit, language, [Item(name, "", language=name[:2]) for name in ids])
    vectors = Vectors(work.out)
    assert list(vectors.ids) == ids
    return np.array(vectors.matrix)


def test_centring_and_whitening_take_all_together(make_work: Space, sample: Path) -> None:
    """The whole has mean 0 while the languages stay apart, or covariance 1."""
    work = make_work()
    assert fitted(work, sample, settings(kind="centre")) == {"kind": "centre", "sentences": {"*": 900}}
    centred = moved(make_work, sample, work.out)
    np.testing.assert_allclose(centred.mean(0), 0, atol=1e-5)
    assert centred[300:600].mean() > 1
    work = make_work()
    fitted(work, sample, settings(kind="whiten"))
    centred = moved(make_work, sample, work.out)
    np.testing.assert_allclose(centred.T @ centred / 900, np.eye(24), atol=1e-4)


@pytest.mark.parametrize(("kind", "spreads"), [("shift", (1, 6, 4)), ("shift-scale", (1, 1, 1))])
def test_shift_and_scale_take_each_by_itself(
    make_work: Space, sample: Path, kind: str, spreads: tuple[float, ...]
) -> None:
    """Every language has mean 0, and spread 1 where it is scaled."""
    work = make_work()
    fitted(work, sample, settings(kind=kind))
    vectors = moved(make_work, sample, work.out).reshape(3, 300, 24)
    np.testing.assert_allclose(vectors.mean(1), 0, atol=1e-5)
    deviation = BASE.std(0) if kind == "shift" else 1
    for rows, spread in zip(vectors, spreads, strict=True):
        np.testing.assert_allclose(rows.std(0), spread * np.ones(24) * deviation, rtol=1e-4)


def test_calibration_undoes_a_planted_map(make_work: Space, tmp_path: Path) -> None:
    """Shift, scale and a small turn: each vector lands on its partner in the pivot."""
    free = torch.randn(24, 24, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    planted = torch.matrix_exp(0.04 * (free - free.T)).numpy()
    white = (BASE - BASE.mean(0)) / BASE.std(0)
    turned = (white @ planted).astype(np.float32)
    source = stored(tmp_path / "sw", {"sw": 2 * turned + 7})
    pivot = stored(tmp_path / "en", {"en": BASE[::-1]})
    work, plain = make_work(), make_work()
    metadata = fitted(work, source, settings(kind="calibrate"), pivot)
    fitted(plain, source, settings(kind="shift-scale"))
    rotations: Any = metadata["rotations"]
    assert rotations["sw"]["quality"] == max(rotations["sw"]["history"].values())
    calibrated, shifted = (moved(make_work, source, space.out, "sw") for space in (work, plain))
    errors = [np.abs(vectors - white).max() for vectors in (calibrated, shifted)]
    assert errors[0] < 0.2 < errors[1]


def test_same_seed_same_bytes(make_work: Space, sample: Path, tmp_path: Path) -> None:
    """Of an adversarial start too; no value is none."""
    pivot = stored(tmp_path / "en", {"en": BASE})
    short = {"init": "adversarial", "epochs": 1, "epoch_size": 64, "hidden": 8, "refinements": 0}
    maps = []
    for seed in (1, 1, 2):
        work = make_work()
        fitted(work, sample, settings(kind="calibrate", rotation=short), pivot, seed)
        maps.append((work.out / "post.safetensors").read_bytes())
    assert maps[0] == maps[1]
    assert all(np.isfinite(values).all() for values in load(maps[2]).values())


def test_what_cannot_be_fitted_is_refused(make_work: Space, tmp_path: Path, sample: Path) -> None:
    """A single sentence has no spread; samples of two encoders; vectors of other items than those that were read."""
    with pytest.raises(UsageError, match="found 1 sentence in sw, expected at least 2"):
        fitted(make_work(), stored(tmp_path / "s", {"sw": BASE[:1]}), settings(kind="shift"))
    narrow, pivot = stored(tmp_path / "narrow", {"sw": BASE[:, :5]}), stored(tmp_path / "p", {"en": BASE})
    with pytest.raises(UsageError, match="samples of 5 and 24 dimensions"):
        fitted(make_work(), narrow, settings(kind="calibrate"), pivot)
    work = make_work()
    fitted(work, sample, settings(kind="shift"))
    with pytest.raises(StoreError, match="found the vector of 'en:0' where 'other' was read"):
        processed(make_work(), sample, work.out, "", [Item("other", "", language="en")])


def test_what_a_kind_listens_to() -> None:
    """No other setting decides anything: it enters no key."""
    assert settings(kind="shift", scale_by="var", pivot="en").choices == settings(kind="shift").choices
    assert settings(kind="shift-scale", scale_by="var").choices != settings(kind="shift-scale").choices
    plain = settings(kind="calibrate")
    assert settings(kind="calibrate", rotation={"init": "adversarial"}).choices != plain.choices
    assert plain.choices["rotation"] == {"init": "identity"}  # all else of a rotation is constant
