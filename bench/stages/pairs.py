"""pairs: training pairs as they are released → the same on disk, each looked up by its number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from bench.data.stored_pairs import Pairs, write_pairs
from bench.errors import UsageError
from bench.types import Json, Source, TrainingPair
from bench.workspace import Workspace

__all__ = ["VERSION", "Pairs", "run"]

VERSION = 1


def run(work: Workspace, source: Source[TrainingPair]) -> Mapping[str, Json]:
    """Write pairs in the order of their source, one at a time; `Pairs` opens them.

    Args:
        work: where to; advances by pairs.
        source: the pairs.

    Returns:
        pairs, positives and negatives (passages in all), languages (pairs of each), sources (pairs of each),
        with_negatives (pairs that have hard ones).

    Raises:
        UsageError: there is no pair. And whatever the reader raises.
    """
    counts: Counter[str] = Counter()
    languages: Counter[str] = Counter()
    sources: Counter[str] = Counter()

    def counted() -> Iterator[TrainingPair]:
        """Hand on each pair, counted on the way."""
        for pair in source.read():
            languages[pair.query.language] += 1
            sources[pair.source] += 1
            counts.update(
                positives=len(pair.positives), negatives=len(pair.negatives), with_negatives=bool(pair.negatives)
            )
            work.advance(1)
            yield pair

    pairs = write_pairs(work.out, counted())
    if not pairs:
        raise UsageError(f"{source.name}: found no training pair, expected at least one")
    return {
        "pairs": pairs,
        "positives": counts["positives"],
        "negatives": counts["negatives"],
        "languages": dict(sorted(languages.items())),
        "sources": dict(sorted(sources.items())),
        "with_negatives": counts["with_negatives"],
    }
