"""Units: consecutive sentences of a document packed together while they fit, so that short ones make a text of use."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bench.data.shards import Shards
from bench.training.views import framed

Bounds = tuple[int, int]
"""First sentence of a unit, and the one after its last."""

_FRAME = 2  # first and last token of a sequence


def pack_sentences(lengths: npt.NDArray[np.int64], room: int) -> list[Bounds]:
    """Pack the sentences of a document, first to last, while they fit; a longer one is a unit by itself (cut later).

    Args:
        lengths: tokens of each sentence, `[n]`.
        room: tokens of a unit at most.

    Returns:
        Bounds of the units; every sentence is in exactly one.

    Raises:
        ValueError: no room.

    Source: MSM's code (shunyuzh/MSM), how documents are read.
    """
    if room < 1:
        raise ValueError(f"found room for {room} tokens, expected at least 1")
    units: list[Bounds] = []
    start, filled = 0, 0
    for at, length in enumerate(lengths.tolist()):
        if at > start and filled + length > room:
            units.append((start, at))
            start, filled = at, 0
        filled += length
    return [*units, (start, len(lengths))] if len(lengths) else units


def unit_counts(shards: Shards, language: str, room: int) -> npt.NDArray[np.int64]:
    """Return how many units `pack_sentences` makes of each document of a language, `[documents]`.

    All documents are walked at once, a unit a round.
    """
    documents = shards.documents(language)
    ends = np.cumsum(shards.sentence_counts(documents))
    cuts = np.concatenate([[0], np.cumsum(shards.sentence_lengths(documents))])  # tokens before each sentence
    counts = np.zeros(len(documents), np.int64)
    at = ends - shards.sentence_counts(documents)
    while (open_ := np.flatnonzero(at < ends)).size:
        fitting = np.searchsorted(cuts, cuts[at[open_]] + room, side="right") - 1
        at[open_] = np.clip(fitting, at[open_] + 1, ends[open_])
        counts[open_] += 1
    return counts


def units_of(shards: Shards, document: int, most: int, pack: bool = True) -> list[Bounds]:
    """Return the units of a document.

    Args:
        shards: the prepared corpus.
        document: its number.
        most: tokens of a unit, special ones included.
        pack: pack sentences; false: every sentence is a unit.
    """
    lengths = shards.sentence_lengths(range(document, document + 1))
    return pack_sentences(lengths, most - _FRAME) if pack else [(at, at + 1) for at in range(len(lengths))]


def serving(shards: Shards, language: str, most: int, least: int, pack: bool = True) -> npt.NDArray[np.bool_]:
    """Tell which documents of a language have at least `least` units, bool `[documents]`; the others as `units_of`."""
    counts = (
        unit_counts(shards, language, most - _FRAME) if pack else shards.sentence_counts(shards.documents(language))
    )
    enough: npt.NDArray[np.bool_] = counts >= least
    return enough


def read_unit(shards: Shards, document: int, bounds: Bounds, most: int, *, seen: bool = True) -> npt.NDArray[np.int64]:
    """Return a unit's ids, framed and cut to `most`; its sentences count as seen unless told otherwise."""
    read = shards.take if seen else shards.sentence
    return framed(np.concatenate([read(document, at) for at in range(*bounds)]), shards.special, most)
