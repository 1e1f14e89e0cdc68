"""Checksums of what the user brings, and what is known of finished stages, asked of the store once a plan."""

from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from bench.core.files import is_unread
from bench.store.fingerprinted import Fingerprinted
from bench.store.stage import Stage
from bench.store.store import Store
from bench.types import Source

T = TypeVar("T")


class InputHashes:
    """Takes checksums through a store, which remembers them between runs; each file once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._hashes: dict[Path, str] = {}
        self._known: dict[str, Mapping[str, Any]] = {}
        self._sources: dict[Hashable, Source[Any]] = {}

    def source(self, name: Hashable, find: Callable[[], Source[T]]) -> Source[T]:
        """Return a source by its name, looked for once a plan: of a data set of the hub, its host is asked."""
        if name not in self._sources:
            self._sources[name] = find()
        return self._sources[name]

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
        if stage.key not in self._known:
            artefact = self.store.open(stage)
            self._known[stage.key] = artefact.metadata if artefact else {}
        return self._known[stage.key]
