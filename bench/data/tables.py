"""Documents from tables: parquet files (pyarrow), Hugging Face data sets saved to disk or by name (datasets)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.data.faults import Faults
from bench.data.rows import Place, from_row
from bench.data.source import Format, checked
from bench.dense import Document
from bench.errors import DataError, UsageError
from bench.types import Source

HUB = "hf:"
"""Before the name of a data set of the Hugging Face hub: `hf:NAME[:CONFIG][@REVISION]`."""

_COLUMNS = ("id", "lang", "language", "title", "text", "sentences", "parallel_group")
_ROWS = 1024  # rows read at once
_MARKS = ("dataset_info.json", "dataset_dict.json")
_HUB = re.compile(r"(?P<name>[\w.-]+(/[\w.-]+)?)(:(?P<config>[\w.-]+))?(@(?P<revision>[\w./-]+))?")
_SPLIT = "train"


def needed(library: str, what: str) -> str:
    """Return the version of an optional library.

    Raises:
        UsageError: it is not installed; says how to install it.
    """
    try:
        return version(library)
    except PackageNotFoundError:
        raise UsageError(f"{what} are read by {library}, which is not installed; type pip install {library}") from None


def parquet(path: Path, place: Place) -> Iterator[Document]:
    """Stream the documents of a parquet file.

    Raises:
        DataError: it is no parquet file, or a malformed row (with its number from 1).
        DataFaultsError: several malformed rows.
    """
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as table:
            there = [column for column in _COLUMNS if column in table.schema_arrow.names]
            batches = table.iter_batches(_ROWS, columns=there)
            yield from _rows(place, (row for batch in batches for row in batch.to_pylist()))
    except (ArrowException, OSError) as error:
        raise DataError(path, None, f"a file that cannot be read ({error})", "a sound parquet file") from None


def is_saved(folder: Path) -> bool:
    """Whether a folder is a data set that the datasets library saved."""
    return any((folder / mark).is_file() for mark in _MARKS)


def saved(folder: Path, language: str, reader: str) -> Source[Document]:
    """Name the documents of a data set saved to disk (of several splits, `train`). Raises `UsageError` (`needed`)."""
    library = needed("datasets", "data sets saved to disk")
    files = tuple(sorted(path for path in folder.rglob("*") if path.is_file()))
    read = partial(_read_saved, folder, language)
    return Source(folder.name, f"{reader}:datasets-{library}:{language}", files, read)


def hub(name: str, language: str, reader: str) -> Source[Document]:
    """Name the documents of a data set of the hub, split `train`; fetched when it is read.

    Args:
        name: `NAME[:CONFIG][@REVISION]`; a config that ends in a language (`20231101.sw`) tells it.
        language: ISO 639 code, empty where rows or the config say it.
        reader: name and version of the code that reads rows.

    Raises:
        UsageError: a name of another form, or the library is not installed.
    """
    match = _HUB.fullmatch(name)
    if not match:
        raise UsageError(
            f"corpus hf:{name}: expected hf:NAME[:CONFIG][@REVISION], e.g. hf:wikimedia/wikipedia:20231101.sw"
        )
    library = needed("datasets", "data sets of the Hugging Face hub")
    told = re.search(r"(?:^|[._-])([a-z]{2,3})$", match["config"] or "")
    spoken = told[1] if told else language
    read = partial(_read_hub, match["name"], match["config"], match["revision"], spoken)
    return Source(f"hf:{name}", f"{reader}:datasets-{library}:hf:{name}:{spoken}", (), read)


def _read_saved(folder: Path, language: str) -> Iterator[Document]:
    """Stream a data set from disk."""
    from datasets import DatasetDict, load_from_disk

    try:
        found = load_from_disk(str(folder))
    except (OSError, ValueError, KeyError) as error:
        raise DataError(folder, None, f"a data set that cannot be read ({error})", "what save_to_disk wrote") from None
    if isinstance(found, DatasetDict):
        if _SPLIT not in found:
            raise UsageError(
                f"{folder}: found the splits {', '.join(found)}, expected {_SPLIT}; type the folder of one"
            )
        found = found[_SPLIT]
    yield from _rows(Place(str(folder), folder.name, language), found)


def _read_hub(name: str, config: str | None, revision: str | None, language: str) -> Iterator[Document]:
    """Fetch a data set, or find it in the cache, and stream it."""
    from datasets import load_dataset

    called = HUB + name + (f":{config}" if config else "")
    try:
        found = load_dataset(name, config, split=_SPLIT, revision=revision)
    except (OSError, ValueError, RuntimeError) as error:
        reason = (str(error).strip() or type(error).__name__).split("\n")[0]
        raise UsageError(
            f"corpus {called}: found that it cannot be fetched ({reason}), expected a data set of the hub, or one"
            " in the cache (HF_HOME); save it with save_to_disk where there is a network, and type --corpus FOLDER"
        ) from error
    yield from _rows(Place(called, name, language), found)


def _rows(place: Place, rows: Any) -> Iterator[Document]:
    """Stream rows as documents, and tell all faults at the end."""
    with Faults() as faults:
        numbered = ((number, (number, row)) for number, row in enumerate(rows, 1))
        for _, document in checked(place.file, numbered, Format("document", partial(_row, place)), faults):
            yield document


def _row(place: Place, row: tuple[int, Mapping[str, Any]]) -> Document:
    """Read one row. Raises `RecordError`."""
    return from_row(row[1], place, f"{place.name}:{row[0]}")
