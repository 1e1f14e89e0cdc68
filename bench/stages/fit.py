"""fit: vectors of a sample of the pretraining corpus → a post-processing, one map a language or one for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.data.samples import language_of
from bench.dense import TrainingJob
from bench.encoding.calibration import Affine, mean, spread, whitening
from bench.encoding.post import ANY, write
from bench.encoding.vectors import Vectors
from bench.errors import UsageError
from bench.sections import PostConfig
from bench.types import Json
from bench.workspace import Workspace

VERSION = 1
_FEWEST = 2  # sentences that have a spread

Sample = npt.NDArray[np.float32]


def run(
    work: Workspace, sample: Path, pivot: Path | None, settings: PostConfig, job: TrainingJob
) -> Mapping[str, Json]:
    """Write the maps of all languages of a sample.

    Args:
        work: where to; advances by sentences.
        sample: the artefact of `encode` for sentences of `bench.data.samples`.
        pivot: likewise, of the language that the others are turned into; None turns nothing.
        settings: kind, scale and rotation.
        job: seed, device and threads of a rotation; its tokens are not read.

    Returns:
        kind, sentences by language, and what is known of each rotation.

    Raises:
        UsageError: a language with fewer than two sentences, or samples of two encoders.
        BenchError: a rotation that diverged.
    """
    from bench.training.determinism import reproducible

    groups = {ANY: Vectors(sample).matrix} if settings.kind in ("centre", "whiten") else _by_language(Vectors(sample))
    with reproducible(job):
        target = None if pivot is None else _standard(Vectors(pivot).matrix, settings)
        maps, facts = {}, dict[str, Json]()
        for language, rows in groups.items():
            if len(rows) < _FEWEST:
                raise UsageError(f"found {len(rows)} sentence in {language}, expected at least {_FEWEST} to fit it on")
            maps[language], told = _fitted(rows, target, settings, job)
            facts |= {language: told} if told else {}
            work.advance(len(rows))
    sentences = {language: len(rows) for language, rows in groups.items()}
    write(work.out, settings.kind, maps, sentences)
    return {"kind": settings.kind, "sentences": sentences, **({"rotations": facts} if facts else {})}


def _by_language(vectors: Vectors) -> dict[str, Sample]:
    """The rows of each language; a language's rows stand together."""
    names = [language_of(name) for name in vectors.ids]
    starts = [at for at, name in enumerate(names) if at == 0 or name != names[at - 1]]
    ends: Sequence[int] = [*starts[1:], len(names)]
    return {names[start]: vectors.matrix[start:end] for start, end in zip(starts, ends, strict=True)}


def _fitted(
    rows: Sample, target: npt.NDArray[np.float64] | None, settings: PostConfig, job: TrainingJob
) -> tuple[Affine, Mapping[str, Json]]:
    """One language's map, and what is known of its rotation."""
    if settings.kind == "whiten":
        return whitening(rows), {}
    found = _standardised(rows, settings)
    if target is None:
        return found, {}
    if target.shape[1] != rows.shape[1]:
        raise UsageError(f"found samples of {rows.shape[1]} and {target.shape[1]} dimensions, expected one encoder's")
    import torch

    from bench.encoding.rotation import rotation

    device = torch.device("cpu" if job.device == "mps" else job.device)  # which has no float64
    ours, theirs = (torch.from_numpy(side).to(device) for side in (found(rows), target))
    turned = rotation(ours, theirs, settings.rotation, job.seed)
    told: dict[str, Json] = {"chosen": turned.chosen, "quality": turned.quality, "history": turned.history}
    return Affine(found.mean, found.scale, turned.matrix.numpy()), told


def _standardised(rows: Sample, settings: PostConfig) -> Affine:
    """Shift, and scale where the kind scales."""
    scales = settings.kind in ("shift-scale", "calibrate")
    return Affine(mean(rows), spread(rows, settings.scale_by) if scales else None)


def _standard(rows: Sample, settings: PostConfig) -> npt.NDArray[np.float64]:
    """The pivot's vectors, shifted and scaled."""
    return _standardised(rows, settings)(rows)
