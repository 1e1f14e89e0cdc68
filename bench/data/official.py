"""Official files under the folder of data: where a suite looks, and what it says of what is not there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.errors import UsageError
from bench.types import DataRequest
from bench.wording import unknown


def folder(request: DataRequest, name: str) -> Path:
    """Return a suite's own folder under the folder of data.

    Args:
        request: says where the data lie.
        name: of the suite's folder, e.g. `mrtydi`.

    Raises:
        UsageError: if no folder of data was named, or it or the suite's folder in it does not exist.
    """
    root = request.data_dir
    if root is None:
        raise UsageError(
            f"{name} reads its official files from a folder and none was named; type --data-dir FOLDER or set "
            f"BENCH_DATA, with the files under FOLDER/{name}/"
        )
    if not root.is_dir():
        raise UsageError(f"{root}: found no such folder, expected the folder of data (--data-dir, BENCH_DATA)")
    own = root / name
    if not own.is_dir():
        raise UsageError(
            f"{own}: found no such folder, expected the official files of {name}; the suite's card says which"
        )
    return own


def known(suite: str, name: str, names: Sequence[str]) -> str:
    """Return the name of a task that exists.

    Args:
        suite: the suite's name.
        name: of the task, without the suite's prefix.
        names: of all its tasks.

    Raises:
        UsageError: if it is none of them.
    """
    if name not in names:
        raise UsageError(unknown(f"task of {suite}", name, names))
    return name
