"""What ir_datasets fetches for a part of a data set, as its own objects say; nothing is fetched or opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.data.formats.irds import home
from bench.data.formats.irds_downloads import mirrors, missing

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
