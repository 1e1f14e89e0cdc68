"""The tests of a board, pair by pair: of the headline and of every task; made once and kept between builds.

The randomness is seeded, so the same per-query values always give the same numbers, and what was found once can be kept
by the digest of what it was made from: the per-query files, the weights, the measure, and the code that tests.
"""

from __future__ import annotations

import inspect
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from bench.errors import StoreError
from bench.fsio import digest, explain, write_bytes
from bench.scoring import power, resampling, significance
from bench.scoring.significance import Comparison, holm, intervals, pairwise
from leaderboard.read import FloatArray
from leaderboard.systems import Stratum, System, name_of, values

SEED = 0
VERSION = 2
"""Of what is kept; raised where this module changes it."""
_WHOLE = {one.name for one in fields(Comparison) if one.type == "int"}
_FIELDS = [one.name for one in fields(Comparison) if one.name != "seeds"]


@dataclass(frozen=True)
class Pairs:
    """Every two of some systems held against each other.

    Args:
        names: of the systems.
        table: a row a pair in the order of `itertools.combinations(names, 2)`, a column a field of `Comparison`; NaN
            where a field is None.
        seeds: of each system, how many.
    """

    names: tuple[str, ...]
    table: FloatArray
    seeds: Mapping[str, int]

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        return {pair: place for place, pair in enumerate(combinations(self.names, 2))}

    @cached_property
    def corrected(self) -> dict[tuple[str, str], float]:
        """Holm's p of every pair, over all of them; both orders of a pair are there."""
        chances = holm(self.table[:, _FIELDS.index("p_randomisation")].tolist())
        found = dict(zip(self._places, chances, strict=True))
        return found | {(other, one): chance for (one, other), chance in found.items()}

    def __contains__(self, pair: tuple[str, str]) -> bool:
        """Whether two systems were held against each other."""
        return pair in self._places or pair[::-1] in self._places

    def comparison(self, first: str, second: str) -> Comparison:
        """First minus second. Raises `KeyError` for a system that is not there."""
        if (first, second) not in self._places:
            return self.comparison(second, first).turned()
        row = self.table[self._places[first, second]].tolist()
        told: dict[str, Any] = {
            name: None if value != value else int(value) if name in _WHOLE else value  # noqa: PLR0124 (NaN)
            for name, value in zip(_FIELDS, row, strict=True)
        }
        return Comparison(**told, seeds=(self.seeds[first], self.seeds[second]))

    def column(self, name: str) -> FloatArray:
        """A field of `Comparison` for every pair."""
        column: FloatArray = self.table[:, _FIELDS.index(name)]
        return column


@dataclass(frozen=True)
class Statistics:
    """What the per-query values of a board's systems say.

    Args:
        intervals: 95 % interval of the headline by system; none where a task has one query.
        whole: the headline.
        tasks: each task, of the systems that have it.
    """

    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    whole: Pairs = field(default_factory=lambda: Pairs((), np.empty((0, len(_FIELDS))), {}))
    tasks: Mapping[str, Pairs] = field(default_factory=dict)

    @property
    def detectable(self) -> float | None:
        """The difference of the headline that a pair's test finds with 80 % power, median over pairs, a fraction."""
        known = self.whole.column("detectable")
        known = known[np.isfinite(known)]
        return float(np.median(known)) if len(known) else None


def statistics(
    systems: Sequence[System],
    ranked: Sequence[str],
    weights: Mapping[Stratum, float],
    tasks: Sequence[str],
    measure: str,
    cache: Path | None = None,
) -> Statistics:
    """Test a board's systems against each other, or take from the cache what was found before.

    Args:
        systems: all of them.
        ranked: names of those that have the headline.
        weights: of each leg of each task in the headline; empty where it is not tested.
        tasks: whose columns are tested by themselves.
        measure: that is tested.
        cache: folder of what is kept; None to keep nothing.

    Raises:
        StoreError: a damaged bundle, or other queries for the same task.
    """
    stem = _key(systems, ranked, weights, tasks, measure)
    kept = None if cache is None else _load(cache / f"{stem}.npz")
    if kept is None:
        kept = _made(systems, ranked, weights, tasks, measure)
        if cache is not None:
            packed = io.BytesIO()
            np.savez(packed, **kept)  # type: ignore[arg-type] # numpy's stub takes no mapping of arrays
            try:
                cache.mkdir(parents=True, exist_ok=True)
                write_bytes(cache / f"{stem}.npz", packed.getvalue())
            except OSError as error:
                raise StoreError(
                    f"cannot keep the tests in {cache}: {explain(error)}; mend that or choose another store by --store"
                ) from error
    return _read(kept, systems, ranked, tasks, measure)


@lru_cache(maxsize=1)
def _code() -> str:
    """Digest of the code that tests, and of numpy's version: another one may find other numbers."""
    return digest([VERSION, np.__version__, *(inspect.getsource(one) for one in (significance, resampling, power))])


def _key(
    systems: Sequence[System],
    ranked: Sequence[str],
    weights: Mapping[Stratum, float],
    tasks: Sequence[str],
    measure: str,
) -> str:
    """What the statistics are made from: everything that can change them."""
    strata = sorted({*weights, *(stratum for one in systems for task in tasks for stratum in one.strata(task))})
    named = [name_of(stratum) for stratum in strata]
    return digest(
        {
            "code": _code(),
            "systems": [
                [
                    one.name,
                    *([result.content.files.get(name) for name in named] for result in one.results),
                ]
                for one in systems
            ],
            "ranked": list(ranked),
            "weights": [[*stratum, weights[stratum]] for stratum in sorted(weights)],
            "strata": [list(stratum) for stratum in strata],
            "tasks": list(tasks),
            "measure": measure,
        }
    )


def _made(
    systems: Sequence[System],
    ranked: Sequence[str],
    weights: Mapping[Stratum, float],
    tasks: Sequence[str],
    measure: str,
) -> dict[str, FloatArray]:
    """Read the per-query values and test: arrays by name."""
    strata = sorted({*weights, *(stratum for one in systems for task in tasks for stratum in one.strata(task))})
    read = values(systems, strata, measure)
    named = {name: {_flat(key): read[name][key] for key in weights} for name in ranked}
    shares = {_flat(stratum): weight for stratum, weight in weights.items()}
    ends = np.full((len(ranked), 2), np.nan)
    # A task of one query has no spread to resample.
    if shares and ranked and min(one.shape[1] for one in named[ranked[0]].values()) > 1:
        drawn = intervals(named, SEED, shares)
        ends = np.clip([drawn[name] for name in ranked], 0, 1)
    found = {"intervals": ends, "whole": _pairs(named, shares) if shares else _pairs({}, {})}
    for place, task in enumerate(tasks):
        has = {
            one.name: {_flat(key): read[one.name][key] for key in one.strata(task)}
            for one in systems
            if one.has(task, measure)
        }
        found[f"task-{place}"] = _pairs(has, None)
    return found


def _pairs(named: Mapping[str, Mapping[str, FloatArray]], shares: Mapping[str, float] | None) -> FloatArray:
    """All comparisons as a table."""
    found = pairwise(named, SEED, shares) if len(named) > 1 else {}
    told = [[getattr(one, name) for name in _FIELDS] for one in found.values()]
    return np.array(told, np.float64).reshape(len(told), len(_FIELDS))


def _flat(stratum: Stratum) -> str:
    """A stratum as one word."""
    return "\t".join(stratum)


def _load(path: Path) -> dict[str, FloatArray] | None:
    """What was kept; None where nothing was, or where it cannot be read and must be made again."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as kept:
            return {name: kept[name] for name in kept.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def _read(
    kept: Mapping[str, FloatArray], systems: Sequence[System], ranked: Sequence[str], tasks: Sequence[str], measure: str
) -> Statistics:
    """Arrays as what they mean."""
    ends = {name: (low, high) for name, (low, high) in zip(ranked, kept["intervals"].tolist(), strict=True)}
    names = {task: tuple(one.name for one in systems if one.has(task, measure)) for task in tasks}
    seeds = {one.name: len(one.results) for one in systems}
    return Statistics(
        intervals={name: pair for name, pair in ends.items() if np.isfinite(pair).all()},
        whole=Pairs(tuple(ranked) if len(kept["whole"]) else (), kept["whole"], seeds),
        tasks={task: Pairs(names[task], kept[f"task-{place}"], seeds) for place, task in enumerate(tasks)},
    )
