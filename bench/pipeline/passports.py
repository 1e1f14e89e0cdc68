"""The passport of a scored subset: digests of what its stages read, where weights came from, and versions of code.

It is computed from what stages declare, so it is known before anything runs, but for the commit of a model of the hub
that has yet to be fetched.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from bench.core.files import digest
from bench.pipeline.stages.init import Init
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.rerank import Rerank
from bench.pipeline.stages.score import Score
from bench.pipeline.stages.train_cross import TrainCross
from bench.retrieval.backbones import SCRATCH
from bench.store.fingerprinted import Fingerprinted
from bench.store.stage import Stage
from bench.store.store import Store
from bench.types import Json, Suite

DIGITS = 16


def passport(score: Score, store: Store, release: AbstractSet[tuple[str, str]] = frozenset()) -> dict[str, Any]:
    """Return the passport of a subset (`bench.evaluation.results.format.Passport`).

    Args:
        score: the last of its stages.
        store: knows which commit a finished stage has taken of a model.
        release: name and sha256 of the files that the suite's release consists of.
    """
    sources = list(_weights(score, store))
    return {
        **data_digests(score.subset),
        "weights": digest(sources)[:DIGITS] if sources else None,
        "code": {
            **{
                stage.name: list(stage.code) if isinstance(stage.code, tuple) else stage.code for stage in score.chain()
            },
            **{
                f"measure {name}": version for name, version in score.protocol.brought(*score.protocol.measures).items()
            },
        },
        "published": [
            name for name, parts in _parts(score.subset).items() if _files(parts) and _files(parts) <= release
        ],
    }


def published_files(suite: Suite) -> frozenset[tuple[str, str]]:
    """Return name and sha256 of the files that a suite's release consists of, as far as they are published."""
    releases = suite.releases() if suite.releases else ()
    return frozenset((PurePosixPath(release.path).name, release.sha256) for release in releases if release.sha256)


def data_digests(reading: Read) -> dict[str, str]:
    """Return the digests of queries, judgements and corpus: who reads them, and the bytes of their files."""
    return {name: digest([part.identity() for part in parts])[:DIGITS] for name, parts in _parts(reading).items()}


@dataclass(frozen=True)
class ModelSource:
    """A model that a stage reads and that was not made here."""

    place: str  # as it was typed: a folder or a Hugging Face id
    weights: Json  # what decides them: the id, or the sha256 of each file
    revision: str | None  # commit of an id; None where unknown


def source_of(stage: Stage) -> ModelSource | None:
    """Return the model that a stage reads; None where it reads none, or one that another stage makes."""
    if isinstance(stage, Init):
        return ModelSource(stage.place, stage.backbone, stage.revision)
    if isinstance(stage, Rerank) and stage.model is not None:
        return ModelSource(stage.place, stage.model, stage.revision)
    if isinstance(stage, TrainCross) and stage.start is not None:
        return ModelSource(stage.backbone, stage.start, stage.revision)
    return None


def has_known_weights(score: Score, store: Store) -> bool:
    """Return whether it is known which commit of each model takes part; one that is not here may be fetched later."""
    return all(
        not isinstance(weights, str) or weights.startswith(SCRATCH) or revision is not None
        for weights, revision in _weights(score, store)
    )


def _weights(score: Score, store: Store) -> Iterator[tuple[Json, Json]]:
    """Yield what decides each model that takes part, and its commit: that which a finished stage has taken, at last."""
    for stage in score.chain():
        if (source := source_of(stage)) is not None:
            artefact = None if source.revision else store.open(stage)
            yield source.weights, artefact.metadata.get("revision") if artefact else source.revision


def _parts(reading: Read) -> Mapping[str, list[Fingerprinted[Any]]]:
    return {
        "queries": [part for part in (reading.queries, reading.candidates) if part],
        "judgements": [part for part in (reading.qrels, reading.answers) if part],
        "corpus": [reading.corpus.corpus],
    }


def _files(parts: list[Fingerprinted[Any]]) -> set[tuple[str, str]]:
    """Return name and sha256 of each file."""
    return {(path.name, checksum) for part in parts for path, checksum in part.files.items()}
