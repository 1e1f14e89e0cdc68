"""The downloads that a data set of ir_datasets rests on: those whose files are not here, and those of the hub.

The library knows neither mirrors of the hub nor its tokens; both hold for its files as for all others of the hub.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.core.network import share_certificates
from bench.data.fetching.hub import OFFICIAL, authorization, endpoint

_PLACES = ("_path", "_cache_path", "_extract_path", "_docstore_path")
"""Attributes of the library's objects that say where a file lies once it is here."""


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
