"""Where this user keeps what can be had again: downloads, and code compiled for this machine."""

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

_NAME = "retrieval-bench"


def cache_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Return the folder of what can be fetched again: `$BENCH_CACHE`, else where the platform keeps caches."""
    if environ.get("BENCH_CACHE"):
        return Path(environ["BENCH_CACHE"]).expanduser()
    if platform == "darwin":
        return Path.home() / "Library" / "Caches" / _NAME
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / _NAME / "cache"
    # The XDG specification has relative paths ignored.
    home = Path(environ.get("XDG_CACHE_HOME") or "")
    return (home if home.is_absolute() else Path.home() / ".cache") / _NAME


def private_cache_folder(name: str) -> Path | None:
    """Return a cache folder (mode 0700) for compiled code, made if need be; None where others could write to it."""
    folder = cache_folder() / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    private = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
    return folder if private and stat.S_ISDIR(status.st_mode) and os.access(folder, os.W_OK) else None
