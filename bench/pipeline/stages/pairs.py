"""pairs: training pairs as they are released → the same on disk, each looked up by its number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.core.errors import UsageError
from bench.core.workspace import Workspace
from bench.data.pairs.stored_pairs import write_pairs
from bench.store.fingerprinted import Fingerprinted
from bench.store.input_hashes import InputHashes
from bench.store.stage import NOT_IN_KEY, Cost, Stage
from bench.types import Json, Source, TrainingPair

_BYTES_A_PAIR = 1000  # of files whose records are no lines


@dataclass(frozen=True, kw_only=True)
class StorePairs(Stage):
    """Training or dev pairs → checked and stored; shared by every method."""

    name, code = "pairs", 1
    unit = "pairs"
    pairs: Fingerprinted[TrainingPair]
    counted: int | None = field(default=None, metadata=NOT_IN_KEY)  # pairs, where the store knows them

    @classmethod
    def of(cls, source: Source[TrainingPair], inputs: InputHashes) -> StorePairs:
        """Return the storing of a source. Raises `UsageError` where a file cannot be read."""
        stage = cls(pairs=inputs.take(source))
        return replace(stage, counted=inputs.metadata(stage).get("pairs"))

    title = property(lambda self: self.pairs.source.name)
    cost = property(lambda self: Cost("pairs", self.pairs.size(_BYTES_A_PAIR, self.counted, streamed=300.0), 1e4))

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write pairs in order (`StoredPairs` opens them). Raises `UsageError` for none, and what the reader raises."""
        counts: Counter[str] = Counter()
        languages: Counter[str] = Counter()
        sources: Counter[str] = Counter()

        def counted() -> Iterator[TrainingPair]:
            for pair in self.pairs.source.read():
                languages[pair.query.language] += 1
                sources[pair.source] += 1
                counts.update(
                    positives=len(pair.positives), negatives=len(pair.negatives), with_negatives=bool(pair.negatives)
                )
                space.advance(1)
                yield pair

        pairs = write_pairs(space.out, counted())
        if not pairs:
            raise UsageError(f"{self.title}: found no training pair, expected at least one")
        return {
            "pairs": pairs,
            "positives": counts["positives"],
            "negatives": counts["negatives"],
            "languages": dict(sorted(languages.items())),
            "sources": dict(sorted(sources.items())),
            "with_negatives": counts["with_negatives"],
        }
