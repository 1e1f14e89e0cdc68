"""Released training pairs as plain texts, for whoever asks what a training has seen; each stands alone.

What is read: a file of DPR's, of SQuAD's or of Mewsli-X's pairs, told by its ending and its beginning. Other forms of
pairs are read by `bench.data.pair_texts`, also where a record makes no pair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.data.overlap import Text
from bench.data.pairs import mewslix
from bench.data.pairs.arrays import head
from bench.data.pairs.choose import of
from bench.data.pairs.found import PairSource, outcomes
from bench.data.text import COMPRESSED
from bench.types import Source

_READER = "released-pair-texts/1"
_SQUAD = re.compile(r'\{\s*"(data|version)"\s*:')
_MEWSLIX = '"contextual_mention"'


def released_texts(where: str) -> Source[Text] | None:
    """Name the texts of a released file of pairs; None where there is something else.

    Reading raises what reading the pairs does.

    Args:
        where: a file.

    Raises:
        DataError: the file cannot be read.
    """
    path = Path(where).expanduser()
    source = _released(path) if path.is_file() else None
    if source is None:
        return None
    return Source(source.name, f"{_READER}:{source.reader}", source.files, partial(_texts, source))


def _released(path: Path) -> PairSource | None:
    """Tell a released form by the file's ending and beginning."""
    name = path.name
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    if name.endswith(".json"):
        begins = head(path)
        return of(str(path)) if begins.startswith("[") or _SQUAD.match(begins) else None
    if name.endswith(".jsonl") and _MEWSLIX in head(path).partition("\n")[0]:
        return mewslix.pairs(path)
    return None


def _texts(source: PairSource) -> Iterator[Text]:
    """Stream question, positives and negatives of every pair, by the place of its record."""
    for at, one in outcomes(source):
        if one.pair is not None:
            for item in (one.pair.query, *one.pair.positives, *one.pair.negatives):
                yield Text(f"{source.name}:{at}", tuple(part for part in (item.title, item.text) if part))
