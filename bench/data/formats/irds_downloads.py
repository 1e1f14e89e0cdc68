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


def missing(thing: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """Yield the downloads that an object of the library rests on and whose files are not here."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, list | tuple):
        for part in thing:
            yield from missing(part, seen)
    elif isinstance(thing, dict):
        yield from missing(list(thing.values()), seen)
    elif type(thing).__module__.startswith("ir_datasets") and hasattr(thing, "__dict__"):
        if any(path.is_absolute() and path.exists() for holder in (thing, *mirrors(thing)) for path in _places(holder)):
            return
        if mirrors(thing) or type(thing).__name__ == "ExpectedFile":
            yield thing
        else:
            yield from missing(list(vars(thing).values()), seen)


def mirrors(thing: Any) -> list[Any]:
    """Return where an object of the library is had from, the first place first; none for what is no download."""
    return list(getattr(thing, "mirrors", ()))


def by_endpoint(*handlers: Any) -> None:
    """Let downloads from the hub ask `HF_ENDPOINT` instead, with the token for it; whatever is here stays as it is.

    Raises `UsageError` for certificates that are named and not there.
    """
    share_certificates()
    header = authorization()
    for place in (place for handler in handlers for thing in missing(handler) for place in mirrors(thing)):
        url = str(getattr(place, "url", ""))
        if url.startswith(f"{OFFICIAL}/"):
            place.url = endpoint() + url.removeprefix(OFFICIAL)
            place.headers = {"Authorization": header} if header else None


def _places(thing: Any) -> list[Path]:
    values = (getattr(thing, name, None) for name in _PLACES)
    return [Path(value) for value in values if isinstance(value, str | Path)]
