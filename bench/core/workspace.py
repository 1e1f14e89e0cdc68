"""What a stage is given to work with: a folder to fill, parts that outlive a kill, and a progress line."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.core.files import atomic, sha256_file, write_bytes


@dataclass(frozen=True)
class Parts:
    """Finished pieces of a long stage, each a file with a checksum next to it; they survive a kill but not the stage.

    Their bounds depend on the input alone, so that the final bytes do not depend on interruptions.
    """

    folder: Path

    def done(self, name: str) -> Path | None:
        """Return the path of a finished piece, or None if it was not finished or its bytes no longer match."""
        path, seal = self.folder / name, self.folder / f"{name}.sha256"
        if not (path.is_file() and seal.is_file()):
            return None
        return path if seal.read_bytes().strip() == sha256_file(path).encode() else None

    def write(self, name: str, data: bytes) -> Path:
        """Write a piece, then its checksum, both atomically; return its path."""
        with atomic(self.folder / name) as stream:
            stream.write(data)
        write_bytes(self.folder / f"{name}.sha256", hashlib.sha256(data).hexdigest().encode())
        return self.folder / name

    def get(self, name: str, make: Callable[[], bytes]) -> Path:
        """Return the finished piece, made first if need be."""
        return self.done(name) or self.write(name, make())

    def drop(self, name: str) -> None:
        """Remove a piece that nobody needs any more."""
        for path in (self.folder / f"{name}.sha256", self.folder / name):
            path.unlink(missing_ok=True)


Advance = Callable[[float], None]
"""Called with the number of units done since the last call."""


Log = Callable[[Mapping[str, Any]], None]
"""Called with a line of a training's log when it is written: `step`, `tokens`, `loss` and the like."""


def noop(value: object) -> None:
    """Ignore a report: what `Workspace` calls where nobody listens to progress, logs or notices."""


@dataclass(frozen=True)
class Workspace:
    """What `Stage.run` gets: where to write, and whom to report to."""

    out: Path  # an empty folder; its content when the stage returns becomes the artefact
    parts: Parts  # finished pieces of an earlier, interrupted attempt at the same work, and of this one
    advance: Advance = field(default=noop)  # progress, in the units of the stage (documents, queries, tokens)
    log: Log = field(default=noop)  # what a training logs, as it is written
    notice: Callable[[str], None] = field(default=noop)  # sentences for people
