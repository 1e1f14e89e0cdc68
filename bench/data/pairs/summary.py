"""What a source of pairs holds, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from bench.data.pairs.found import outcomes
from bench.types import Json, Source, TrainingPair

UNTOLD = "unknown"
"""Stands for a language that nothing tells."""


@dataclass(frozen=True)
class Summary:
    """The numbers of a source.

    Args:
        pairs: how many there are.
        languages: pairs by the language of their query, most first.
        sources: pairs by where they come from, most first.
        positives: passages that answer, in all pairs.
        negatives: hard negatives, in all pairs.
        with_negatives: pairs that have any.
        left_out: by reason, what was read and is not among the pairs.
    """

    pairs: int
    languages: Mapping[str, int]
    sources: Mapping[str, int]
    positives: int
    negatives: int
    with_negatives: int
    left_out: Mapping[str, int]

    @property
    def share_with_negatives(self) -> float:
        """Share of the pairs that have hard negatives, 0 to 1; 0 where there is no pair."""
        return self.with_negatives / self.pairs if self.pairs else 0.0

    def facts(self) -> dict[str, Json]:
        """The numbers as JSON."""
        return {
            "pairs": self.pairs,
            "languages": dict(self.languages),
            "sources": dict(self.sources),
            "positives": self.positives,
            "negatives": self.negatives,
            "share_with_negatives": round(self.share_with_negatives, 4),
            "left_out": dict(self.left_out),
        }


def describe(source: Source[TrainingPair]) -> Summary:
    """Count a source, reading it to its end; raises as reading does."""
    languages, sources, sums, left_out = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for _, one in outcomes(source):
        left_out.update(one.left_out)
        if one.pair is not None:
            languages[one.pair.query.language or UNTOLD] += 1
            sources[one.pair.source] += 1
            sums["positives"] += len(one.pair.positives)
            sums["negatives"] += len(one.pair.negatives)
            sums["with"] += bool(one.pair.negatives)
    return Summary(
        languages.total(),
        dict(languages.most_common()),
        dict(sources.most_common()),
        sums["positives"],
        sums["negatives"],
        sums["with"],
        dict(left_out.most_common()),
    )
