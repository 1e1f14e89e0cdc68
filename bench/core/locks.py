"""Locks between processes, each a file; that of a killed holder is let go by the system."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


def lock_file(path: Path) -> FileLock:
    """Return the lock of a path, not held yet; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(path)


@contextmanager
def locked(path: Path, notice: Callable[[str], None], waiting: str) -> Iterator[None]:
    """Hold the lock of a path; give notice, in the words of `waiting`, while another process has it."""
    lock = lock_file(path)
    try:
        lock.acquire(timeout=0.1)
    except Timeout:
        notice(waiting)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
