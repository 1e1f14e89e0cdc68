"""Leases: the artefacts that work in progress rests on, so that `gc` next to it spares them.

A lease is a file `leases/NAME.json` with keys, void once its holder no longer has the lock next to it. Leases are
taken, and artefacts removed, under one lock of the store (`locks/leases.lock`).
"""

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from bench.core.files import canonical, is_temporary, write_bytes
from bench.core.locks import lock_file
from bench.store.store import Store

_ALL = "leases"  # the lock under which leases are taken and artefacts removed


@contextmanager
def leased(store: Store, keys: Iterable[str]) -> Iterator[None]:
    """Keep artefacts from `gc` while the block runs; in a store that cannot be written nobody removes any."""
    name = f"{os.getpid()}-{secrets.token_hex(4)}"
    record, lock = _folder(store) / f"{name}.json", FileLock(_folder(store) / f"{name}.lock")
    try:
        with lock_file(store.lock_path(_ALL)):
            record.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
            write_bytes(record, canonical(sorted(keys)))
    except OSError:
        lock.release()
    try:
        yield
    finally:
        with suppress(OSError):
            record.unlink(missing_ok=True)
            lock.release()
            Path(lock.lock_file).unlink(missing_ok=True)


@contextmanager
def leased_keys(store: Store) -> Iterator[set[str]]:
    """Return the keys under a lease; no other is taken while the block runs.

    Void leases are cleared away, and half-written ones: they are written under the lock that is held here.
    """
    keys: set[str] = set()
    if not os.access(store.root, os.W_OK):
        yield keys
        return
    with lock_file(store.lock_path(_ALL)):
        for half_written in filter(is_temporary, _folder(store).glob(".*")):
            half_written.unlink(missing_ok=True)
        for path in sorted(_folder(store).glob("*.lock")):
            record = path.with_suffix(".json")
            try:
                with FileLock(path).acquire(timeout=0):
                    record.unlink(missing_ok=True)
                    path.unlink(missing_ok=True)
            except Timeout:
                with suppress(FileNotFoundError):  # it has just ended
                    keys |= set(json.loads(record.read_bytes()))
        yield keys


def _folder(store: Store) -> Path:
    return store.root / "leases"
