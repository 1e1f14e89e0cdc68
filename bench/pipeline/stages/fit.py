"""fit: vectors of a sample of the pretraining corpus → a post-processing, one map a language or one for all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.core.encoder_config import TrainingJob
from bench.core.errors import UsageError
from bench.core.workspace import Workspace
from bench.data.corpora.sampling import language_of
from bench.pipeline.compute import Compute
from bench.pipeline.stages.encode import EncodeSample
from bench.retrieval.post_processing import ANY, Affine, mean, spread, whitening, write
from bench.retrieval.settings import PostConfig
from bench.retrieval.vectors import Vectors
from bench.store.stage import ENVIRONMENT, NOT_IN_KEY, OPTIONAL, Cost, Stage
from bench.types import Json

_FEWEST = 2  # sentences that have a spread

Sample = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Fit(Stage):
    """Sample → post-processing of a language, or of all."""

    name, code, libraries = "fit", 1, ("numpy", "torch")
    unit = "vectors"
    sample: EncodeSample
    pivot: EncodeSample | None = field(default=None, metadata=OPTIONAL)  # of the language that others are turned into
    seed: int | None  # of what is drawn; None where nothing is
    compute: Compute = field(metadata=ENVIRONMENT)
    settings: PostConfig = field(metadata=NOT_IN_KEY)  # kind, scale and rotation
    system_label: str = field(metadata=NOT_IN_KEY)

    @property
    def title(self) -> str:
        into = f" into {self.pivot.language}" if self.pivot else ""
        return f"{self.system_label} {self.sample.language or 'all languages'}{into}"

    @property
    def cost(self) -> Cost:
        return Cost(f"fit {self.settings.kind}", self.sample.cost.units, 400.0 if self.pivot else 1e6)

    def choices(self) -> dict[str, Json]:
        choices = self.settings.choices
        decided: dict[str, Json] = {name: choices[name] for name in ("kind", "scale_by", "rotation") if name in choices}
        return {**super().choices(), **decided}

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write the maps of all languages of a sample (`bench.data.corpora.sampling`); return what is known of each.

        Raises:
            UsageError: a language with fewer than two sentences, or samples of two encoders.
            BenchError: a rotation that diverged.
        """
        from bench.training.determinism import reproducible

        settings, job, vectors = self.settings, self.compute.job(self.seed or 0), Vectors(folders["sample"])
        groups = {ANY: vectors.matrix} if settings.kind in ("centre", "whiten") else _by_language(vectors)
        with reproducible(job):
            target = None
            if self.pivot is not None:
                rows = Vectors(folders["pivot"]).matrix
                target = _standardised(rows, settings)(rows)
            maps, metadata = {}, dict[str, Json]()
            for language, rows in groups.items():
                if len(rows) < _FEWEST:
                    raise UsageError(
                        f"found {len(rows)} sentence in {language}, expected at least {_FEWEST} to fit it on"
                    )
                maps[language], rotation_metadata = _fitted(rows, target, settings, job)
                metadata |= {language: rotation_metadata} if rotation_metadata else {}
                space.advance(len(rows))
        sentences = {language: len(rows) for language, rows in groups.items()}
        write(space.out, settings.kind, maps, sentences)
        return {"kind": settings.kind, "sentences": sentences, **({"rotations": metadata} if metadata else {})}


def _by_language(vectors: Vectors) -> dict[str, Sample]:
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
    standardised = _standardised(rows, settings)
    if target is None:
        return standardised, {}
    if target.shape[1] != rows.shape[1]:
        raise UsageError(f"found samples of {rows.shape[1]} and {target.shape[1]} dimensions, expected one encoder's")
    import torch

    from bench.retrieval.rotation import rotation

    device = torch.device("cpu" if job.device == "mps" else job.device)  # which has no float64
    ours, theirs = (torch.from_numpy(side).to(device) for side in (standardised(rows), target))
    turned = rotation(ours, theirs, settings.rotation, job.seed)
    metadata: dict[str, Json] = {"chosen": turned.chosen, "quality": turned.quality, "history": turned.history}
    return Affine(standardised.mean, standardised.scale, turned.matrix.numpy()), metadata


def _standardised(rows: Sample, settings: PostConfig) -> Affine:
    """Shift, and scale where the kind scales."""
    scales = settings.kind in ("shift-scale", "calibrate")
    return Affine(mean(rows), spread(rows, settings.scale_by) if scales else None)
