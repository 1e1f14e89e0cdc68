"""Several sources of pairs as one: eleven languages of one data set, or the files of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from bench.data.pairs.found import Found, PairSource, dev_of, outcomes, pair_source, reader
from bench.errors import UsageError
from bench.types import Item, Source, TrainingPair

CODE = "joined-pairs/1"


def joined(sources: Mapping[str, Source[TrainingPair]], name: str) -> PairSource:
    """Name the pairs of several sources, one source after the other.

    Ids of queries and passages get the source's label before them (`sw:12`), since sources number their own. There are
    dev pairs where every source has some, so that no source chooses for the others.

    Args:
        sources: by label; a label has no white space.
        name: what messages call the whole.

    Raises:
        UsageError: there is no source, or a label that no id may begin with.
    """
    if not sources or any(label.split() != [label] for label in sources):
        raise UsageError(f"{name}: found the labels {list(sources)}, expected at least one, without white space")
    code = reader(CODE, {label: source.reader for label, source in sources.items()})
    files = tuple(path for source in sources.values() for path in source.files)
    made = pair_source(name, code, files, partial(_found, dict(sources)))
    held = {label: dev for label, source in sources.items() if (dev := dev_of(source)) is not None}
    return replace(made, dev=joined(held, f"{name} dev")) if len(held) == len(sources) else made


def _found(sources: Mapping[str, Source[TrainingPair]]) -> Iterator[tuple[int, Found]]:
    """Stream (number through all sources, what was found)."""
    number = 0
    for label, source in sources.items():
        for _, one in outcomes(source):
            number += 1
            kept = one.pair and _labelled(one.pair, label)
            yield number, Found(f"{label}:{one.query}", kept, one.left_out)


def _labelled(pair: TrainingPair, label: str) -> TrainingPair:
    """Put a label before all ids of a pair."""

    def own(item: Item) -> Item:
        return replace(item, id=f"{label}:{item.id}")

    return replace(
        pair,
        query=own(pair.query),
        positives=tuple(map(own, pair.positives)),
        negatives=tuple(map(own, pair.negatives)),
    )
