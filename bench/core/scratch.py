"""Temporary folders of ours: named by what they are for, the machine and the process, so that no killed run's stays."""

import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.core.files import digest, is_running

_NAME = re.compile(r"bench-[a-z]+-([0-9a-f]{4})-([0-9a-f]+)-[^/]+")
_DAY = 86_400.0


@contextmanager
def scratch_folder(kind: str) -> Iterator[Path]:
    """Make a temporary folder that goes at the end; what cannot be removed then is left to `sweep`.

    Args:
        kind: what it is for, in small letters; part of its name.
    """
    prefix = f"bench-{kind}-{_machine()}-{os.getpid():x}-"  # short, as paths of sockets must be
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def sweep(older_than: float = _DAY) -> None:
    """Remove temporary folders of this user's runs that were killed on this machine. Never raises.

    Args:
        older_than: seconds since the folder was last written to.
    """
    with suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob("bench-*"):
            with suppress(OSError):
                if _is_abandoned(folder, older_than):
                    shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path, older_than: float) -> bool:
    name, status = _NAME.fullmatch(folder.name), folder.lstat()
    if name is None or name[1] != _machine() or folder.is_symlink() or not folder.is_dir():
        return False
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        return False
    # Another process may have that id by now, and then the folder waits.
    return time.time() - status.st_mtime > older_than and not is_running(int(name[2], 16))


def _machine() -> str:
    """Return what identifies this machine among others that share its temporary folder."""
    return digest(socket.gethostname())[:4]
