"""Where official files lie: the folder of data, and the download cache.

A suite's files are in one folder, `ROOT/NAME/`. ROOT is the folder of data (`--data-dir`, `$BENCH_DATA`) where that
holds NAME, else the download cache. Files of one NAME are never taken from both.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.core.errors import UsageError
from bench.core.messages import unknown
from bench.types import DataRequest

_OWN = "retrieval-bench"


def cache_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Return the folder of everything that can be fetched again; it need not exist.

    That is `$BENCH_CACHE`, else where the platform (as `sys.platform`) keeps such things: `$XDG_CACHE_HOME` or
    `~/.cache`, `~/Library/Caches`, `%LOCALAPPDATA%`.
    """
    if environ.get("BENCH_CACHE"):
        return Path(environ["BENCH_CACHE"]).expanduser()
    if platform == "darwin":
        return Path.home() / "Library" / "Caches" / _OWN
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / _OWN / "cache"
    # The XDG specification has relative paths ignored.
    own = Path(environ.get("XDG_CACHE_HOME") or "")
    return (own if own.is_absolute() else Path.home() / ".cache") / _OWN


def data_cache() -> Path:
    """Return the folder of official layouts in the cache, where `bench data fetch` puts files by default."""
    return cache_folder() / "data"


def roots(data_dir: Path | None) -> tuple[Path, ...]:
    """Return the folders of official layouts in the order in which they are searched."""
    return (data_cache(),) if data_dir is None else (data_dir, data_cache())


def root_of(name: str, places: Sequence[Path]) -> Path:
    """Return the first root that holds the folder `name`, the first of all where none does."""
    return next((place for place in places if (place / name).is_dir()), places[0])


def folder(request: DataRequest, name: str) -> Path:
    """Return a suite's own folder `name`: under the folder of data, else in the download cache.

    Raises `UsageError` where the folder of data does not exist, or the suite's folder is in neither place.
    """
    root = request.data_dir
    if root is not None and not root.is_dir():
        raise UsageError(where=root, found="no such folder", expected="the folder of data (--data-dir, BENCH_DATA)")
    own = root_of(name, roots(root)) / name
    if own.is_dir():
        return own
    fetch = f"`bench data fetch {name}` fetches what may be fetched"
    if root is None:
        raise UsageError(
            f"{name} reads its official files from a folder and none was named; type --data-dir FOLDER or set "
            f"BENCH_DATA, with the files under FOLDER/{name}/; {fetch}"
        )
    raise UsageError(
        where=own,
        found="no such folder",
        expected=f"the official files of {name}",
        hint=f"the suite's card says which, and {fetch}",
    )


def known(suite: str, name: str, names: Sequence[str]) -> str:
    """Return the name of a suite's task, without the prefix. Raises `UsageError` if it is not among `names`."""
    if name not in names:
        raise UsageError(unknown(f"task of {suite}", name, names))
    return name
