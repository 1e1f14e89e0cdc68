"""Files inside tar archives, read as a stream: nothing is unpacked to disk, so no name in an archive can do harm.

Conventions: readers take a `Member` wherever they take a `Path`. Finding it means reading the archive up to it, which
is slow behind a large neighbour; whoever reads often unpacks the archive instead.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bench.core.errors import DataError
from bench.data.formats.faults import RecordError

_LISTED = 5


@dataclass(frozen=True)
class Member:
    """A regular file in a tar archive (plain, .gz, .bz2 or .xz), itself plain or ending in .gz."""

    archive: Path
    path: str  # in the archive, without a leading `./`

    def __str__(self) -> str:
        """Return archive and name, as messages show them."""
        return f"{self.archive}:{self.path}"

    @property
    def name(self) -> str:
        """The last part of the name."""
        return PurePosixPath(self.path).name

    @property
    def suffix(self) -> str:
        """The ending of the name, e.g. `.gz`."""
        return PurePosixPath(self.path).suffix

    @contextmanager
    def open(self) -> Iterator[io.BufferedIOBase]:
        """Open the file for reading bytes, decompressed where its name ends in .gz.

        Raises `DataError` (no archive, or no such file in it), `RecordError` (a broken archive), and what reading the
        compressed file inside raises: `OSError`, `EOFError`, `zlib.error`.
        """
        import tarfile

        seen: list[str] = []
        try:
            with tarfile.open(self.archive, "r|*") as archive:
                for entry in archive:
                    name = entry.name.removeprefix("./")
                    stream = archive.extractfile(entry) if entry.isreg() and name == self.path else None
                    if isinstance(stream, io.BufferedReader):
                        yield gzip.GzipFile(fileobj=stream) if self.suffix == ".gz" else stream
                        return
                    seen.append(name)
        except tarfile.TarError as error:
            raise RecordError(f"a broken tar archive ({error})", "a whole one", "fetch it again") from None
        except FileNotFoundError:
            raise DataError(self.archive, None, "no such file", "a tar archive") from None
        names = ", ".join(seen[:_LISTED]) + (f" and {len(seen) - _LISTED} more" if len(seen) > _LISTED else "")
        raise DataError(str(self), None, f"no such file in the archive (it holds {names or 'nothing'})", "one")


File = Path | Member
"""What line readers take."""
