"""Official files fetched and unpacked up to four at a time, by a client each; one's failure stops no other."""

import contextvars
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from queue import Empty, SimpleQueue

from bench.core.errors import BenchError, StoreError
from bench.data.fetching.client import Client, Hosts, RetryPolicy
from bench.data.fetching.fetch import ProgressCallback, ensure
from bench.data.fetching.local_files import LocalFile

AT_ONCE = 4
"""Files at a time: one connection seldom fills a line, and a host is asked by no more than this."""


class _StopError(Exception):
    """The command ends: nobody wants the rest of a file now."""


class _Interruptible:
    """Follows a file, and leaves it between two blocks where the command ends; what came is kept."""

    def __init__(self, watch: ProgressCallback, stop: threading.Event) -> None:
        self._watch, self._stop = watch, stop

    def at(self, count: int, total: int | None) -> None:
        """Pass it on."""
        if self._stop.is_set():
            raise _StopError
        self._watch.at(count, total)

    def notice(self, sentence: str) -> None:
        """Pass it on."""
        self._watch.notice(sentence)


def _wait(stop: threading.Event, seconds: float) -> None:
    """Wait, but no longer than the command."""
    if stop.wait(seconds):
        raise _StopError


def ensure_all(
    files: Sequence[LocalFile],
    watch: Callable[[int, LocalFile], AbstractContextManager[ProgressCallback]],
    ended: Callable[[LocalFile, str], object] = lambda *_: None,
    *,
    offline: bool = False,
    policy: RetryPolicy | None = None,
) -> tuple[dict[str, LocalFile], dict[str, str]]:
    """Fetch and unpack files as far as needed, begun in their order.

    Args:
        files: as they are now.
        watch: number (from 1) and file → what follows that file as long as it is at work; called from several threads.
        ended: gets each file as it is afterwards, and why it failed, else nothing; called from several threads.
        offline: nothing is fetched; what is here is unpacked.
        policy: how long is waited for hosts; default: `RetryPolicy`'s.

    Returns:
        The files as they are afterwards, and why others failed, both by path and in the order of `files`.

    Raises:
        StoreError: if the folder cannot be written or the disk is too full; the others stop too.
    """
    stop, hosts = threading.Event(), Hosts()
    policy = policy or RetryPolicy(sleep=partial(_wait, stop))
    work: SimpleQueue[tuple[int, LocalFile]] = SimpleQueue()
    for entry in enumerate(files, 1):
        work.put(entry)
    fetched: dict[str, LocalFile] = {}
    failed: dict[str, str] = {}
    fatal: list[BaseException] = []

    def drain() -> None:
        try:
            with Client(policy, hosts) as client:
                while not stop.is_set():
                    fetch_next(None if offline else client)
        except Empty:
            pass
        except BaseException as error:  # raised again where the files were asked for
            if not isinstance(error, _StopError):
                fatal.append(error)
            stop.set()

    def fetch_next(client: Client | None) -> None:
        number, file = work.get_nowait()
        path = file.release.path
        with watch(number, file) as follower:
            try:
                fetched[path] = ensure(file, client, _Interruptible(follower, stop))
            except StoreError:
                raise
            except BenchError as error:
                failed[path] = str(error)
        ended(fetched.get(path, file), failed.get(path, ""))

    # Daemons: a process that is interrupted does not wait for a host that says nothing.
    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(drain,), daemon=True)
        for _ in range(min(AT_ONCE, len(files)))
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        stop.set()
    if fatal:
        raise fatal[0]
    order = [file.release.path for file in files]
    return (
        {path: fetched[path] for path in order if path in fetched},
        {path: failed[path] for path in order if path in failed},
    )
