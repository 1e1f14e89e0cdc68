"""What the user brings: sources with the checksums that decide their records, asked of the store once a plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from bench.core.files import is_unread
from bench.store.stage import Stage
from bench.store.store import Store
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


@cache
def _bytes_a_line(path: Path, _: int) -> float:
    """Return the average over the lines that a file of a size begins with; 0 where they are too long to say."""
    with path.open("rb") as stream:
        sample = stream.read(1 << 18)
    return (sample.rfind(b"\n") + 1) / max(1, sample.count(b"\n"))


class InputHashes:
    """Takes checksums through a store, which remembers them between runs; each file once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._hashes: dict[Path, str] = {}

    def take(self, source: Source[T]) -> Fingerprinted[T]:
        """Return a source with its checksums. Raises `UsageError` if a file cannot be read."""
        if not (is_unread() or all(path.exists() for path in source.files)):
            next(iter(source.read()), None)  # its reader says best what is missing, and what to do about it
        return Fingerprinted(source, tuple(map(self.hash, source.files)))

    def take_if(self, source: Source[T] | None) -> Fingerprinted[T] | None:
        """Return a source that may be lacking with its checksums."""
        return None if source is None else self.take(source)

    def hash(self, path: Path) -> str:
        """Return the sha256 of a file. Raises `UsageError` where it cannot be read."""
        if path not in self._hashes:
            self._hashes[path] = str(path) if is_unread() else self.store.hash_input(path)
        return self._hashes[path]

    def metadata(self, stage: Stage) -> Mapping[str, Any]:
        """Return what the store knows of a finished stage; nothing where it is not finished."""
        artefact = self.store.open(stage)
        return artefact.metadata if artefact else {}
