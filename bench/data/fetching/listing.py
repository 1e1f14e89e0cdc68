"""The files of a hub's data set that match a pattern: asked for once, then written down next to the files.

A pattern is an address of the hub at a commit with a `*` in its last part, such as
`hf://datasets/OWNER/NAME@COMMIT/FOLDER/train-*.parquet`. The hub says path, size and sha256 of every file, so that all
that is fetched is compared with what it published. The list lies in `.bench-data/listings/`: a folder of data that is
copied to a machine without a network has it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from bench.core.errors import UsageError
from bench.core.files import read_sealed, utc_now, write_sealed
from bench.core.publications import Release
from bench.data.fetching.hub import (
    HubError,
    HubFile,
    Repository,
    authorization,
    endpoint,
    hub_file,
    prepare_library,
    refusal,
    refusal_of,
)
from bench.data.fetching.records import FOLDER

_TIMEOUT = 30.0  # seconds for a page of the list


@dataclass(frozen=True)
class ListedFile:
    """One file of a repository of the hub."""

    path: str  # in the repository
    size: int  # bytes
    sha256: str  # empty for a small file, of which the hub publishes none


Listing = Sequence[ListedFile]
"""The files that match a pattern, by path."""


def ask(pattern: str) -> tuple[ListedFile, ...]:
    """Ask the hub for the files of a pattern. Raises `UsageError` for none, or where the hub does not say."""
    try:
        return tree(pattern)
    except HubError as error:
        raise UsageError(where=pattern, found=error.found, hint=error.hint) from error


def tree(pattern: str) -> tuple[ListedFile, ...]:
    """Ask the hub for the files of a pattern. Raises `HubError`, of the fault `file` where none matches."""
    where = _place(pattern)
    repository, (folder, _, names) = where.repository, where.path.rpartition("/")
    try:
        entries = [entry for page in _pages(repository, folder) for entry in page]
        files = [
            ListedFile(entry["path"], int(entry["size"]), (entry.get("lfs") or {}).get("oid", ""))
            for entry in entries
            if entry["type"] == "file" and _is_of(entry["path"], folder, names)
        ]
    except HubError:
        raise
    except Exception as error:  # the errors of connections belong to a library that the hub's hides
        raise refusal_of(error, repository) from error
    if not files:
        raise refusal("file", repository)
    return tuple(sorted(files, key=lambda file: file.path))


def _is_of(path: str, folder: str, names: str) -> bool:
    """Return whether a file lies in the folder itself under such a name, whatever path a host says."""
    place, _, name = path.rpartition("/")
    return place == folder and fnmatchcase(name, names)


def _pages(repository: Repository, folder: str) -> Iterator[list[dict[str, Any]]]:
    """Yield what the hub says of a folder, a page an answer; the library's own list repeats, aloud, what fails."""
    from huggingface_hub import get_session, hf_raise_for_status

    prepare_library()
    header = authorization()
    url = f"{endpoint()}/api/datasets/{repository.name}/tree/{quote(repository.revision, safe='')}/{quote(folder)}"
    while url:
        if not url.startswith(f"{endpoint()}/"):  # which alone gets the token
            raise refusal("other", repository, f"a list of files that goes on at another host, {urlsplit(url).netloc}")
        answer = get_session().get(url, headers={"authorization": header} if header else {}, timeout=_TIMEOUT)
        hf_raise_for_status(answer)
        yield answer.json()
        url = answer.links.get("next", {}).get("url", "")


def recall(root: Path, pattern: str) -> Listing | None:
    """Return what was listed of a pattern, None where nothing was or the list itself was damaged."""
    try:
        content = read_sealed(_file(root, pattern))
    except (OSError, ValueError):
        return None
    return tuple(ListedFile(**file) for file in content["files"])


def remember(root: Path, pattern: str, files: Listing) -> None:
    """Write down what was listed; raises `OSError`."""
    content = {"format": 1, "pattern": pattern, "time": utc_now(), "files": [asdict(file) for file in files]}
    write_sealed(_file(root, pattern), content)


def releases(folder: str, pattern: str, files: Listing | None, licence: str) -> tuple[Release, ...]:
    """Return the official files of a pattern under `folder`; one that never comes where they were not listed yet."""
    where = _place(pattern)
    if files is None:
        return (Release(f"{folder}/{where.path}", (pattern,), licence),)
    base = pattern.removesuffix(where.path)
    return tuple(
        Release(f"{folder}/{file.path}", (f"{base}{file.path}",), licence, file.size, file.sha256, origin="the hub")
        for file in files
    )


def _place(pattern: str) -> HubFile:
    where = hub_file(pattern)
    if where is None:
        raise UsageError(where=pattern, found="a pattern of another host", expected="hf://datasets/…@COMMIT/…")
    return where


def _file(root: Path, pattern: str) -> Path:
    return root / FOLDER / "listings" / f"{hashlib.sha256(pattern.encode()).hexdigest()[:32]}.json"
