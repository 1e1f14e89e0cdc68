"""Some pairs of a source, drawn by lot: what is learnt from where there are only so many (few-shot).

Conventions: a pair's lot is the hash of the seed and its question's id, and the lowest lots win. So the pairs of a
smaller number are among those of a larger one with the same seed, whatever the order of the file; they come in the
order of the source.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator
from functools import partial

from bench.data.pairs.found import Found, PairSource, outcomes, pair_source, reader
from bench.errors import UsageError
from bench.types import Source, TrainingPair

CODE = "drawn-pairs/1"

_BYTES = 16


def drawn(source: Source[TrainingPair], count: int, seed: int) -> PairSource:
    """Name `count` pairs of a source, drawn by lot.

    Reading goes through the source twice and holds `count` numbers. It raises what reading the source does, and
    `UsageError` where there are fewer pairs.

    Args:
        source: the pairs.
        count: how many, at least 1.
        seed: of the lot.
    """
    code = reader(CODE, source.reader, count, seed)
    return pair_source(f"{source.name}, {count:,} of them", code, source.files, partial(_found, source, count, seed))


def _found(source: Source[TrainingPair], count: int, seed: int) -> Iterator[tuple[int, Found]]:
    """Stream (place, what was found) of the pairs drawn."""
    chosen = _lowest(source, count, seed)
    for number, (at, one) in enumerate(_whole(source)):
        if number in chosen:
            yield at, one


def _whole(source: Source[TrainingPair]) -> Iterator[tuple[int, Found]]:
    """Stream (place, what was found) where a pair came of it."""
    return ((at, one) for at, one in outcomes(source) if one.pair is not None)


def _lowest(source: Source[TrainingPair], count: int, seed: int) -> frozenset[int]:
    """Return the numbers of the pairs with the lowest lots, from 0. Raises `UsageError` where there are too few."""
    total = 0

    def lots() -> Iterator[tuple[bytes, int]]:
        nonlocal total
        for number, (_, one) in enumerate(_whole(source)):
            total += 1
            yield _lot(one.query, seed), number

    chosen = frozenset(number for _, number in heapq.nsmallest(count, lots()))
    if total < count:
        raise UsageError(
            f"{source.name}: found {total:,} training pairs, expected at least tune.shots={count}; "
            + (f"type --set tune.shots={total}, or leave it out for all of them" if total else "it holds no pair")
        )
    return chosen


def _lot(query: str, seed: int) -> bytes:
    """Draw a question's lot."""
    return hashlib.blake2b(f"{seed} {query}".encode(), digest_size=_BYTES).digest()
