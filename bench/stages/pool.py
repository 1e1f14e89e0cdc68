"""pool: training pairs → their distinct passages and their queries, in the forms in which they are searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from bench.data.pool import Pool, write_pool
from bench.data.stored_pairs import Pairs
from bench.fsio import atomic, canonical
from bench.stages.read import QUERIES
from bench.types import Corpus, Item, Json, Source, TrainingPair
from bench.workspace import Workspace

VERSION = 1


def run(work: Workspace, pairs: Path) -> Mapping[str, Json]:
    """Write the pool (`bench.data.pool.Pool` opens it) and `queries.jsonl`, as `bench.stages.read` writes a leg's.

    So any search takes the artefact for a leg. The id of a query is the number of its pair.

    Args:
        work: where to; advances by pairs.
        pairs: the artefact of `pairs`.

    Returns:
        What `bench.data.pool.write_pool` returns, and `queries`.
    """
    given = Pairs(pairs)
    with atomic(work.out / QUERIES) as stream:

        def passed() -> Iterator[TrainingPair]:
            """Hand on each pair; its query is written on the way."""
            for number, pair in enumerate(given):
                asked = question(number, pair)
                stream.write(canonical({"id": asked.id, "text": asked.text, "language": asked.language}) + b"\n")
                work.advance(1)
                yield pair

        facts = write_pool(work.out, passed())
    return {**facts, "queries": len(given)}


def question(number: int, pair: TrainingPair) -> Item:
    """Return the query of a pair as it is searched."""
    return Item(str(number), pair.query.text, language=pair.query.language)


def corpus(folder: Path, name: str) -> Corpus:
    """Return a pool as a corpus; all that is read later lies in the artefact.

    Args:
        folder: the artefact.
        name: of the corpus, for messages.
    """
    opened = Pool(folder)
    return Corpus(name, Source(name, f"pool/{VERSION}", (), partial(iter, opened)), opened.language)
