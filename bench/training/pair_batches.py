"""From training pairs to batches: which questions share a batch, and which passages come with each.

An epoch has every question once, in batches of one size: where the last one is not full, the first questions of the
epoch fill it up (as DPR's does). Seed, epoch and the number of a pair decide all chance, so that it matters neither
where a training was interrupted nor on how many processes it runs: process r of w takes the r-th part of each batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.core.errors import UsageError
from bench.data.formats.ids import hashed
from bench.data.pairs.stored_pairs import StoredPairs
from bench.retrieval.encoder import Reader
from bench.retrieval.packed import Ids
from bench.training.batches import PairBatch
from bench.training.distributed import rank, world_size
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Json

Numbers = npt.NDArray[np.int64]

_ORDER, _DRAW, _SPLIT = 1, 2, 3  # streams of chance of one seed
_LONGEST = np.iinfo(np.uint16).max


@dataclass(frozen=True)
class Questions:
    """n questions as token ids, and the m passages among which each finds its own."""

    queries: Sequence[Ids]
    passages: Sequence[Ids]  # each question's positive and then its negatives, question by question
    positives: Numbers  # place of each question's positive among the passages, int64 `[n]`
    texts: Numbers  # a number for each passage's text, int64 `[m]`; equal numbers, equal texts
    languages: tuple[str, ...]

    def __len__(self) -> int:
        """Number of questions."""
        return len(self.queries)

    def part(self, start: int, end: int) -> Questions:
        """Return some of the questions, with their passages."""
        first = int(self.positives[start])
        last = int(self.positives[end]) if end < len(self) else len(self.passages)
        return Questions(
            self.queries[start:end],
            self.passages[first:last],
            self.positives[start:end] - first,
            self.texts[first:last],
            self.languages[start:end],
        )


class SeenTexts:
    """Which texts of pairs (numbered by query, positives, negatives) a training has seen, and their lengths."""

    def __init__(self, pairs: StoredPairs) -> None:
        counts = 1 + pairs.positives.astype(np.int64) + pairs.negatives
        self._first = np.concatenate([[0], np.cumsum(counts)])
        self._lengths = np.zeros(int(self._first[-1]), np.uint16)  # 0: not seen

    @property
    def distinct_tokens(self) -> int:
        """Tokens of all texts that were seen, each counted once."""
        return int(self._lengths.sum(dtype=np.int64))

    def add(self, pair: int, place: int, length: int) -> None:
        """Remember that text `place` of a pair was seen, and its tokens."""
        self._lengths[self._first[pair] + place] = min(length, _LONGEST)

    def seen(self) -> npt.NDArray[np.uint8]:
        """Return the lengths as bytes."""
        return self._lengths.view(np.uint8).copy()

    def see(self, bits: npt.NDArray[np.uint8]) -> None:
        """Take what `seen` returned. Raises `ValueError` for bytes of other pairs."""
        if len(bits) != self._lengths.nbytes:
            raise ValueError(f"found {len(bits)} bytes of seen texts, expected {self._lengths.nbytes}")
        self._lengths = bits.view(np.uint16).copy()


class PairReader:
    """Reads pairs as token ids, as the encoder's config has it, but for question marks, which the config decides."""

    def __init__(self, pairs: StoredPairs, reader: Reader, config: FineTuningConfig) -> None:
        encoder_config = replace(reader.encoder_config, question_mark=not config.question_mark)
        self.pairs, self.reader, self.config = pairs, replace(reader, encoder_config=encoder_config), config
        self.coverage = SeenTexts(pairs)

    def read(
        self, numbers: Sequence[int], passages_of: Sequence[Sequence[tuple[int, int]]], *, seen: bool
    ) -> Questions:
        """Return the questions of some pairs; with `seen`, a training reads them.

        `passages_of` are each one's passages, the positive first: a pair and the place among its positives, then
        negatives.
        """
        needed_numbers = dict.fromkeys([*numbers, *(pair for row in passages_of for pair, _ in row)])
        opened = {number: self.pairs[number] for number in needed_numbers}
        questions = [self.reader.text(opened[number].query, "query") for number in numbers]
        places = [place for row in passages_of for place in row]
        texts = [
            self.reader.text((*opened[pair].positives, *opened[pair].negatives)[at], "passage") for pair, at in places
        ]
        queries, passages = self.reader.tokens(questions, "query"), self.reader.tokens(texts, "passage")
        if seen:
            for number, query in zip(numbers, queries, strict=True):
                self.coverage.add(number, 0, len(query))
            for (pair, at), passage in zip(places, passages, strict=True):
                self.coverage.add(pair, at + 1, len(passage))
        ends = np.cumsum([0, *map(len, passages_of)], dtype=np.int64)
        languages = tuple(opened[number].query.language for number in numbers)
        return Questions(queries, passages, ends[:-1], hashed(texts).astype(np.int64), languages)

    def fixed(self, numbers: Sequence[int]) -> Questions:
        """Return the questions of some pairs, each with its first positive and its first hard negatives."""
        count = self.config.hard_negatives
        passages_of = []
        for number in numbers:
            first, count_hard = int(self.pairs.positives[number]), int(self.pairs.negatives[number])
            passages_of.append([(number, 0), *((number, first + at) for at in range(min(count, count_hard)))])
        return self.read(numbers, passages_of, seen=False)


class PairBatches:
    """Batches of questions, in epochs. Raises `UsageError` where there are too few for one to have a negative."""

    def __init__(self, reader: PairReader, numbers: Numbers, seed: int) -> None:
        self._reader, self._numbers, self._seed, self._config = reader, numbers, seed, reader.config
        least = 2 * world_size()
        if len(numbers) < least:
            raise UsageError(
                f"found {len(numbers)} training pairs, expected at least {least}: a question's negatives are the "
                "passages of others; give more pairs"
            )
        # questions in a batch of all processes: as many for each, and none twice
        self._size = min(self._config.pairs, len(numbers) // world_size()) * world_size()
        self._epoch, self._at = 0, 0
        self._order: tuple[int, list[Numbers]] = (-1, [])

    @property
    def shards(self) -> SeenTexts:
        """What was read so far."""
        return self._reader.coverage

    @property
    def per_epoch(self) -> int:
        """Number of batches in an epoch."""
        return math.ceil(len(self._numbers) / self._size)

    @property
    def pair_count(self) -> int:
        """Number of pairs in an epoch."""
        return len(self._numbers)

    def batch(self, rng: np.random.Generator) -> Questions:
        """Return this process's part of the next batch; chance is the epoch's, not `rng`."""
        if self._at == self.per_epoch:
            self._epoch, self._at = self._epoch + 1, 0
        batch = self._batches_of(self._epoch)[self._at]
        self._at += 1
        per_rank = len(batch) // world_size()
        numbers = batch[rank() * per_rank : (rank() + 1) * per_rank].tolist()
        return self._reader.read(numbers, [self._passages_of(number) for number in numbers], seen=True)

    def held_out(self) -> Sequence[PairBatch]:
        """Return none: held-out questions are probed with both encoders (`bench.training.fine_tuning`)."""
        return []

    def state(self) -> Mapping[str, Json]:
        """Return the epoch, and how many of its batches were taken."""
        return {"epoch": self._epoch, "at": self._at}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._epoch, self._at = int(state["epoch"]), int(state["at"])

    def _batches_of(self, epoch: int) -> list[Numbers]:
        """Return the numbers of each batch of an epoch; the last one begins from the front again where it lacks."""
        if self._order[0] != epoch:
            chance = np.random.default_rng([self._seed, _ORDER, epoch])
            shuffled = chance.permutation(self._numbers)
            self._order = (epoch, [*np.resize(shuffled, (self.per_epoch, self._size))])
        return self._order[1]

    def _passages_of(self, number: int) -> list[tuple[int, int]]:
        """Draw the passages of a question for this epoch, its positive first."""
        config, chance = self._config, np.random.default_rng([self._seed, _DRAW, self._epoch, number])
        first, available = int(self._reader.pairs.positives[number]), int(self._reader.pairs.negatives[number])
        positive = int(chance.integers(first)) if config.positives == "drawn" else 0
        slots = config.hard_negatives
        hard_slots = int((chance.random(slots) < config.hard_share).sum())
        count = min(hard_slots, available)
        hard = chance.choice(available, count, replace=False).tolist() if config.negatives == "drawn" else range(count)
        passages = [(number, positive), *((number, first + int(at)) for at in hard)]
        if config.hard_share < 1:
            passages += [self._random_negative(number, chance) for _ in range(slots - count)]
        return passages

    def _random_negative(self, number: int, chance: np.random.Generator) -> tuple[int, int]:
        """Draw a positive of another pair of the training: a negative that was not mined."""
        at = int(chance.integers(len(self._numbers) - 1))
        pair = int(self._numbers[at + (at >= int(np.searchsorted(self._numbers, number)))])
        return pair, int(chance.integers(int(self._reader.pairs.positives[pair])))


def split(count: int, share: float, most: int, seed: int) -> tuple[Numbers, Numbers]:
    """Draw a share of `count` pairs, rounded, `most` at most; return all others and those drawn, both ascending."""
    count_held = min(round(share * count), most)
    order = np.random.default_rng([seed, _SPLIT]).permutation(count)
    return np.sort(order[count_held:]), np.sort(order[:count_held])
