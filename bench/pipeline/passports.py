"""The passport of a scored subset: digests of what its stages read, where weights came from, and versions of code.

It is computed from what stages declare, so it is known before anything runs, but for the commit of a model of the hub
that has yet to be fetched.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from bench.core.files import digest
from bench.pipeline.stages.init import Init
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.rerank import Rerank
from bench.pipeline.stages.score import Score
from bench.pipeline.stages.train_cross import TrainCross
from bench.retrieval.backbones import SCRATCH, cached_commit
from bench.store.fingerprinted import Fingerprinted
from bench.store.store import Store
from bench.types import Json, Suite

DIGITS = 16


def passport(score: Score, store: Store, release: AbstractSet[str] = frozenset()) -> dict[str, Any]:
    """Return the passport of a subset (`bench.evaluation.results.format.Passport`).

    Args:
        score: the last of its stages.
        store: knows which commit a finished stage has taken of a model.
        release: sha256 of the files that the suite's release consists of.
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
            name for name, parts in _parts(score.subset).items() if _hashes(parts) and _hashes(parts) <= release
        ],
    }


def published_files(suite: Suite) -> frozenset[str]:
    """Return the sha256 of the files that a suite's release consists of, as far as they are published."""
    releases = suite.releases() if suite.releases else ()
    return frozenset(release.sha256 for release in releases if release.sha256)


def data_digests(reading: Read) -> dict[str, str]:
    """Return the digests of queries, judgements and corpus: who reads them, and the bytes of their files."""
    return {name: digest([part.identity() for part in parts])[:DIGITS] for name, parts in _parts(reading).items()}


def has_known_weights(score: Score, store: Store) -> bool:
    """Return whether it is known which commit of each model takes part; one that is not here may be fetched later."""
    return all(
        not isinstance(source, str) or source.startswith(SCRATCH) or revision is not None
        for source, revision in _weights(score, store)
    )


def _weights(score: Score, store: Store) -> Iterator[tuple[Json, Json]]:
    """Yield the source of each model that takes part (name, or files with their sha256) and its commit, if any."""
    for stage in score.chain():
        if isinstance(stage, Init):
            artefact = None if stage.revision else store.open(stage)
            yield stage.backbone, artefact.metadata.get("revision") if artefact else stage.revision
        elif isinstance(stage, Rerank) and stage.model is not None:
            yield stage.model, cached_commit(stage.place)
        elif isinstance(stage, TrainCross) and stage.start is not None:
            yield stage.start, cached_commit(stage.backbone)


def _parts(reading: Read) -> Mapping[str, list[Fingerprinted[Any]]]:
    return {
        "queries": [part for part in (reading.queries, reading.candidates) if part],
        "judgements": [part for part in (reading.qrels, reading.answers) if part],
        "corpus": [reading.corpus.corpus],
    }


def _hashes(parts: list[Fingerprinted[Any]]) -> set[str]:
    return {checksum for part in parts for checksum in part.hashes}
