"""Bring an official file to where its suite reads it: fetch what is missing or damaged, unpack what is packed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.data import ledger
from bench.data.fetch import Unwatched, Watch, disagreement, fetch, now, writing
from bench.data.holdings import Holding, look
from bench.data.ledger import Record
from bench.data.unpack import unpack
from bench.data.web import Client
from bench.publications import Release


def obtain(holding: Holding, client: Client | None, watch: Watch | None = None) -> Holding:
    """Do what is left to do for one file; one that is complete is left alone.

    Args:
        holding: what was found.
        client: who asks servers; None never touches the network, and what is missing stays so.
        watch: hears how it goes; counts bytes, first of the file, then of what is unpacked.

    Returns:
        What is there now.

    Raises:
        FetchError, StoreError: as `bench.data.fetch.fetch` does.
        DataError: the archive is damaged or holds what is refused.
    """
    watch, release, root = watch or Unwatched(), holding.release, holding.root
    if holding.complete:
        return holding
    usable = _usable(release, root)
    if not usable and (client is None or not release.urls):
        return holding
    with writing(release.path):
        _distrust(holding, usable)
    if client is not None and not usable:
        fetch(release, root, client, watch)
    if release.unpack:
        with writing(release.path), ledger.locked(root, release.path, watch.notice):
            if not _state(release, root).complete:
                _unpack(release, root, watch)
    return _state(release, root)


def _state(release: Release, root: Path) -> Holding:
    """Look again. What was laid out by hand was seen before: then there is nothing to obtain."""
    return look(release, root, lambda: False)


def _distrust(holding: Holding, usable: bool) -> None:
    """Forget what was remembered of a file that is not so any more."""
    root, path = holding.root, holding.release.path
    known = ledger.recall(root, path)
    if known and not usable:
        ledger.forget(root, path)
    elif known and holding.state == "damaged":
        ledger.remember(root, replace(known, folder="", files=None))


def _usable(release: Release, root: Path) -> bool:
    """Whether the file is there as it was published, or, where nothing was, as it was fetched."""
    path, record = root / release.path, ledger.recall(root, release.path)
    if not path.is_file():
        return False
    with writing(release.path):
        found = ledger.digests(path)
    published = release.sha256 or release.md5
    return not disagreement(release, found) and bool(published or not record or record.sha256 == found.sha256)


def _unpack(release: Release, root: Path, watch: Watch) -> None:
    """Unpack an archive and remember its files."""
    path, done = root / release.path, 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        watch.at(done, None)

    files = unpack(path, root / release.unpack, advance=advance)
    known = ledger.recall(root, release.path)
    if known is None or known.stamp != ledger.stamp(path):
        found = ledger.digests(path)
        known = Record(release.path, found.size, found.sha256, found.md5, "", now(), ledger.stamp(path))
    times = {name: ledger.stamp(root / release.unpack / name)[1] for name in files}
    stamped = {name: (*about, times[name]) for name, about in files.items()}
    ledger.remember(root, replace(known, folder=release.unpack, files=stamped))
