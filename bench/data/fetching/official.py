"""Where official files lie: the folder of data, and the download cache.

A suite's files are in one folder, `ROOT/NAME/`. ROOT is the folder of data (`--data-dir`, `$BENCH_DATA`) where that
holds NAME, else the download cache. Files of one NAME are never taken from both.
"""

from collections.abc import Sequence
from pathlib import Path

from bench.core.caches import cache_folder
from bench.core.errors import UsageError
from bench.core.files import is_unread
from bench.core.messages import unknown
from bench.types import DataRequest


def data_cache() -> Path:
    """Return the folder of official layouts in the cache, where `bench data fetch` puts files by default."""
    return cache_folder() / "data"


def roots(data_dir: Path | None) -> tuple[Path, ...]:
    """Return the folders of official layouts in the order in which they are searched."""
    return (data_cache(),) if data_dir is None else (data_dir, data_cache())


def root_of(name: str, places: Sequence[Path]) -> Path:
    """Return the first root that holds the folder `name`, the first of all where none does."""
    return next((place for place in places if (place / name).is_dir()), places[0])


def files_required() -> bool:
    """Return whether files have to be here: not for a plan, of another machine, that reads none."""
    return not is_unread()


def folder(request: DataRequest, name: str, layout: str = "") -> Path:
    """Return a suite's own folder `name`, under the folder of data or in the cache. Raises `UsageError` for neither.

    `layout` says which files lie there and in what format, for a suite of which nothing can be fetched.
    """
    root = request.data_dir
    if root is not None and files_required() and not root.is_dir():
        raise UsageError(where=root, found="no such folder", expected="the folder of data (--data-dir, BENCH_DATA)")
    suite_folder = root_of(name, roots(root)) / name
    if suite_folder.is_dir() or not files_required():
        return suite_folder
    fetch = f"`bench data fetch {name}` fetches what may be fetched"
    if layout:
        hint = f"type --data-dir FOLDER or set BENCH_DATA, with these files in FOLDER/{name}/"
        raise UsageError(where=suite_folder, found="no such folder", expected=layout, hint=hint)
    if root is None:
        raise UsageError(
            f"{name} reads its official files from a folder and none was named; type --data-dir FOLDER or set "
            f"BENCH_DATA, with the files under FOLDER/{name}/; {fetch}"
        )
    raise UsageError(
        where=suite_folder,
        found="no such folder",
        expected=f"the official files of {name}",
        hint=f"the suite's card says which, and {fetch}",
    )


def recorded_lines(root: Path, path: str) -> int | None:
    """Return how many lines that are not blank a file had when it was fetched; None where it was put there by hand."""
    from bench.data.fetching import records  # locks are slow to load, and every suite imports this module

    record = records.recall(root, path)
    return record.lines if record and (root / path).is_file() else None


def check_task(suite: str, name: str, names: Sequence[str]) -> str:
    """Return the name of a suite's task, without the prefix. Raises `UsageError` if it is not among `names`."""
    if name not in names:
        raise UsageError(unknown(f"task of {suite}", name, names))
    return name
