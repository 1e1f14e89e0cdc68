"""The downloads that a data set of ir_datasets rests on: those whose files are not here, and those of the hub.

Nothing is fetched: the library's own objects say what would be. It knows neither mirrors of the hub nor its tokens;
both hold for its files as for all others of the hub.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.core.network import share_certificates
from bench.data.fetching.hub import OFFICIAL, authorization, endpoint

_PLACES = ("_path", "_cache_path", "_extract_path", "_docstore_path")
"""Attributes of the library's objects that say where a file lies once it is here."""
_FETCHED_BY_LOADING = "clirmatrix/"
"""Data sets of which ir_datasets reads a list on the net before it says anything."""


@dataclass(frozen=True)
class IrdsFile:
    """One file that ir_datasets does not have yet."""

    url: str
    size: int | None  # bytes, where its catalogue says
    path: Path  # where the library keeps it, or what it takes from it


def home() -> Path:
    """Return the folder in which ir_datasets keeps what it has fetched."""
    return Path(os.environ.get("IR_DATASETS_HOME") or Path.home() / ".ir_datasets")


def missing(node: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """Yield the downloads that an object of the library rests on and whose files are not here."""
    seen = set() if seen is None else seen
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, list | tuple):
        for child in node:
            yield from missing(child, seen)
    elif isinstance(node, dict):
        yield from missing(list(node.values()), seen)
    elif type(node).__module__.startswith("ir_datasets") and hasattr(node, "__dict__"):
        if any(path.is_absolute() and path.exists() for holder in (node, *mirrors(node)) for path in _places(holder)):
            return
        if mirrors(node) or type(node).__name__ == "ExpectedFile":
            yield node
        else:
            yield from missing(list(vars(node).values()), seen)


def mirrors(node: Any) -> list[Any]:
    """Return where an object of the library is had from, the first place first; none for what is no download."""
    return list(getattr(node, "mirrors", ()))


def lacking(dataset: str, part: str) -> tuple[IrdsFile, ...] | None:
    """Return the files that reading a part of a data set would fetch; None where that cannot be known beforehand.

    Args:
        dataset: id, e.g. `beir/scifact/test`.
        part: `docs`, `queries` or `qrels`.
    """
    if dataset.startswith(_FETCHED_BY_LOADING):
        return None
    import ir_datasets

    try:
        handler = getattr(ir_datasets.load(dataset), f"{part}_handler")()
    except Exception:  # an unknown id, or whatever the library raises: who reads it says what is wrong
        return None
    files = {}
    for download in missing(handler):
        urls = [str(url) for mirror in mirrors(download) if (url := getattr(mirror, "url", None))]
        if urls:  # what only a person can get has none
            place = getattr(download, "_cache_path", None)
            files[urls[0]] = IrdsFile(urls[0], getattr(download, "_size_hint", None), Path(place or home()))
    return tuple(files.values())


def by_endpoint(*handlers: Any) -> None:
    """Let downloads from the hub ask `HF_ENDPOINT` instead, with the token for it; whatever is here stays as it is.

    Raises `UsageError` for certificates that are named and not there.
    """
    share_certificates()
    header = authorization()
    for place in (place for handler in handlers for node in missing(handler) for place in mirrors(node)):
        url = str(getattr(place, "url", ""))
        if url.startswith(f"{OFFICIAL}/"):
            place.url = endpoint() + url.removeprefix(OFFICIAL)
            place.headers = {"Authorization": header} if header else None


def _places(node: Any) -> list[Path]:
    values = (getattr(node, name, None) for name in _PLACES)
    return [Path(value) for value in values if isinstance(value, str | Path)]
