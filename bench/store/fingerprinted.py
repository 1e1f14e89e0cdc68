"""A source of the user's with the checksums that decide its records: what a stage declares to have read."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from bench.types import Json, Source

T = TypeVar("T")


@dataclass(frozen=True)
class Fingerprinted(Generic[T]):
    """A source and what decides its records."""

    source: Source[T]
    hashes: tuple[str, ...]  # sha256 of its files, in their order

    def identity(self) -> dict[str, Json]:
        """Return who reads, and the bytes that are read."""
        return {"reader": self.source.reader, "files": list(self.hashes)}

    @property
    def files(self) -> dict[Path, str]:
        """Its files with the sha256 of each, as they were when the work was planned."""
        return dict(zip(self.source.files, self.hashes, strict=True))

    @property
    def sizes(self) -> Sequence[tuple[str, int]]:
        """Ending and size of each file that is here."""
        return [(path.suffix, path.stat().st_size) for path in self.source.files if path.is_file()]

    @property
    def bytes(self) -> int:
        """How large the files are that are here."""
        return sum(size for _, size in self.sizes)

    def size(self, bytes_each: int, known: int | None, streamed: float = 400.0) -> float:
        """Return how many records there are, estimated from the size of the files where nobody says; 0: unknown.

        A source without files that says nothing counts as `streamed`: about what the embedded world has.
        """
        count = known or self.source.records or (0 if self.source.files else streamed)
        if count or not all(path.exists() for path in self.source.files):
            return float(count)
        if len(self.source.files) == 1 and self.source.files[0].suffix in (".jsonl", ".tsv"):  # records are lines
            return max(1.0, self.bytes / (_bytes_a_line(self.source.files[0], self.bytes) or bytes_each))
        return max(1.0, self.bytes / bytes_each)


def files_of(source: Source[Any], identity: Json) -> dict[Path, str]:
    """Return the files of a source with the checksums that its identity has of them.

    There are none where the identity is that of a published corpus, which is known by its revision.
    """
    checksums = identity.get("files", []) if isinstance(identity, dict) else []
    return dict(zip(source.files, checksums, strict=True)) if checksums else {}


@cache
def _bytes_a_line(path: Path, _: int) -> float:
    """Return the average over the lines that a file of a size begins with; 0 where they are too long to say."""
    with path.open("rb") as stream:
        sample = stream.read(1 << 18)
    return (sample.rfind(b"\n") + 1) / max(1, sample.count(b"\n"))
