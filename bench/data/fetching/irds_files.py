"""What ir_datasets fetches for a part of a data set, as its own objects say; nothing is fetched or opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.data.formats.irds import home

_FETCHED_BY_LOADING = "clirmatrix/"
"""Data sets of which ir_datasets reads a list on the net before it says anything."""


@dataclass(frozen=True)
class IrdsFile:
    """One file that ir_datasets does not have yet."""

    url: str
    size: int | None  # bytes, where its catalogue says
    path: Path  # where the library keeps it, or what it takes from it


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
        loaded = ir_datasets.load(dataset)
        handler = getattr(loaded, f"{part}_handler")()
    except Exception:  # an unknown id, or whatever the library raises: who reads it says what is wrong
        return None
    return tuple({file.url: file for file in _lacking(handler, set())}.values())


def _lacking(part: Any, seen: set[int]) -> Iterator[IrdsFile]:
    """Yield the downloads below an object of the library, but for those whose file, or what was made of it, is here."""
    if id(part) in seen:
        return
    seen.add(id(part))
    if isinstance(part, dict | list | tuple | set):
        for value in part.values() if isinstance(part, dict) else part:
            yield from _lacking(value, seen)
        return
    if not type(part).__module__.startswith("ir_datasets.") or isinstance(part, type):
        return
    kind, values = type(part).__name__, getattr(part, "__dict__", {})
    if kind == "Cache" and Path(values["_path"]).exists():
        return
    if kind != "Download":
        yield from _lacking(list(values.values()), seen)
        return
    mirrors = [vars(mirror) for mirror in values["mirrors"]]
    kept = [Path(path) for path in (values["_cache_path"], *(mirror.get("_path") for mirror in mirrors)) if path]
    if not any(path.exists() for path in kept):
        url = next((str(mirror["url"]) for mirror in mirrors if mirror.get("url")), "")
        yield IrdsFile(url, values["_size_hint"], kept[0] if kept else home())
