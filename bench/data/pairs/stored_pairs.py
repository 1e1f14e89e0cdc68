"""Training pairs on disk, each looked up by its number: one canonical JSON a pair, and a table of counts.

Files: `pairs.*` (see `bench.data.formats.string_array`); `table.npy`, int32 `[pairs, 3]`: positives, negatives, place
of the query's language in `languages.json`.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.core.errors import UsageError
from bench.core.files import canonical, write_bytes
from bench.data.formats.string_array import StoredSequence, StringArray, write_strings
from bench.types import Item, Json, TrainingPair

_PAIRS, _TABLE, _NAMES = "pairs", "table.npy", "languages.json"


def write_pairs(folder: Path, pairs: Iterable[TrainingPair]) -> int:
    """Write pairs in their order, one at a time; return how many. Raises whatever the pairs raise."""
    rows: list[tuple[int, int, int]] = []
    places: dict[str, int] = {}

    def records() -> Iterator[str]:
        for pair in pairs:
            at = places.setdefault(pair.query.language, len(places))
            rows.append((len(pair.positives), len(pair.negatives), at))
            yield dump(pair)

    write_strings(folder, _PAIRS, records())
    np.save(folder / _TABLE, np.asarray(rows, np.int32).reshape(len(rows), 3), allow_pickle=False)
    write_bytes(folder / _NAMES, canonical(list(places)))
    return len(rows)


class StoredPairs(StoredSequence[TrainingPair]):
    """The pairs that `write_pairs` wrote, memory-mapped. Raises `UsageError` for a folder that holds none."""

    def __init__(self, folder: Path) -> None:
        try:
            self._strings = StringArray(folder, _PAIRS)
            self._table: npt.NDArray[np.int32] = np.load(folder / _TABLE, mmap_mode="r", allow_pickle=False)
            self._names: list[str] = json.loads((folder / _NAMES).read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(where=folder, found=str(error), expected="training pairs on disk") from error
        self.folder = folder

    @property
    def positives(self) -> npt.NDArray[np.int32]:
        """Positives of each pair, `[pairs]`."""
        return self._table[:, 0]

    @property
    def negatives(self) -> npt.NDArray[np.int32]:
        """Hard negatives of each pair, `[pairs]`."""
        return self._table[:, 1]

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the queries, in the order in which they come."""
        return tuple(self._names)

    def rows_in(self, language: str) -> npt.NDArray[np.int64]:
        """Return the numbers of the pairs whose query is in a language, ascending."""
        return np.flatnonzero(self._table[:, 2] == self._names.index(language))

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self._strings)

    def read(self, at: int) -> TrainingPair:
        """Read one pair."""
        return load(self._strings[at])


def dump(pair: TrainingPair) -> str:
    """Return a pair as canonical JSON; what is empty is left out."""
    record: dict[str, Json] = {"query": _plain(pair.query), "positives": [_plain(item) for item in pair.positives]}
    if pair.negatives:
        record["negatives"] = [_plain(item) for item in pair.negatives]
    if pair.source:
        record["source"] = pair.source
    return canonical(record).decode()


def load(text: str) -> TrainingPair:
    """Return the pair that `dump` wrote."""
    record: dict[str, Any] = json.loads(text)
    positives, negatives = (tuple(Item(**item) for item in record.get(key, ())) for key in ("positives", "negatives"))
    return TrainingPair(Item(**record["query"]), positives, negatives, record.get("source", ""))


def _plain(item: Item) -> dict[str, Json]:
    values = {"id": item.id, "text": item.text, "title": item.title, "language": item.language}
    return {name: value for name, value in values.items() if value or name in ("id", "text")}
