"""Where fetched official files are kept when the user names no folder of data."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "BENCH_CACHE"
_OWN = "retrieval-bench"


def cache_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Return the folder of everything that can be fetched again; it need not exist.

    That is `$BENCH_CACHE`, else the place where the platform keeps such things: `$XDG_CACHE_HOME` or `~/.cache`,
    `~/Library/Caches`, `%LOCALAPPDATA%`.

    Args:
        environ: the environment variables.
        platform: as `sys.platform`.
    """
    if environ.get(VARIABLE):
        return Path(environ[VARIABLE]).expanduser()
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
