"""What is handed in: a result file, its folder, a folder of many, or an archive of any of these."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.data.unpack import Limits, unpack
from bench.errors import UsageError
from bench.results import RESULT, result_files

_LIMITS = Limits(ratio=100, least=256 << 20, files=100_000)
"""Bundles are compressed already, so an archive of them hardly grows."""
_LARGEST_ARCHIVE = 2 << 30


@dataclass(frozen=True)
class Submission:
    """A bundle to look at.

    Args:
        folder: of its result file.
        title: what messages call it.
    """

    folder: Path
    title: str


@contextmanager
def submissions(paths: Sequence[Path]) -> Iterator[list[Submission]]:
    """Open what is handed in; archives are unpacked into a folder that is gone afterwards.

    Args:
        paths: result files, files of bundles, folders, archives (zip, tar, tar.gz …).

    Raises:
        UsageError: nothing is there, or no result is in it.
        DataError: an archive that is damaged or holds what is refused.
    """
    with ExitStack() as stack:
        found: dict[Path, Submission] = {}
        for path in paths:
            if not path.exists() and not path.is_symlink():
                raise UsageError(f"found no {path}; expected a {RESULT}, its folder, or an archive of one")
            if path.is_symlink():
                raise UsageError(f"{path} is a link, expected a file or folder; name what it leads to")
            for one in _bundles(path, stack):
                found.setdefault(one.folder.resolve(), one)
        yield list(found.values())


def _bundles(path: Path, stack: ExitStack) -> list[Submission]:
    """The bundles that a path stands for."""
    if path.is_dir():
        return _below(path, str(path))
    around = _around(path)
    if around is not None:
        return [Submission(around, str(around))]
    if path.stat().st_size > _LARGEST_ARCHIVE:
        raise UsageError(f"{path} has {path.stat().st_size:,} bytes, expected at most {_LARGEST_ARCHIVE:,}")
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
    unpack(path, folder, _LIMITS)
    return _below(folder, str(path))


def _around(path: Path) -> Path | None:
    """The bundle that a file belongs to: the nearest folder above it with a result file."""
    if path.name == RESULT:
        return path.parent
    return next((folder for folder in path.resolve().parents if (folder / RESULT).is_file()), None)


def _below(folder: Path, title: str) -> list[Submission]:
    """The bundles of a folder, at least one."""
    found = [path.parent for path in result_files(folder)]
    if not found:
        raise UsageError(
            f"found no {RESULT} in {title}; expected the folder of a result, as `bench run` writes it: "
            "results/DATA/SUITE/SETTING/SYSTEM/seed-N"
        )
    return [Submission(one, "/".join(filter(None, (title, _inner(folder, one))))) for one in found]


def _inner(folder: Path, bundle: Path) -> str:
    """A bundle's place below a folder, empty for the folder itself."""
    inner = bundle.relative_to(folder).as_posix()
    return "" if inner == "." else inner
