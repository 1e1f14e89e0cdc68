"""The tests of a board, pair by pair, on the headline and on every task; cached between builds.

The randomness is seeded, so the same per-query values always give the same numbers, and what was found once can be kept
by the digest of what it was made from: the per-query files, the weights, the measure, and the code that tests.
"""

from __future__ import annotations

import inspect
import io
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from bench.core.errors import StoreError
from bench.core.files import digest, explain, write_bytes
from bench.evaluation.results.format import place
from bench.evaluation.results.read import FloatArray
from bench.evaluation.significance import power, resampling
from bench.evaluation.significance import tests as significance
from bench.evaluation.significance.tests import Comparison, holm, intervals, pairwise
from leaderboard.site.systems import Stratum, System, values

SEED = 0
VERSION = 2
"""Of what is kept; raised where this module changes it."""
_WHOLE = {one.name for one in fields(Comparison) if one.type == "int"}
_FIELDS = [one.name for one in fields(Comparison) if one.name != "seeds"]


@dataclass(frozen=True)
class Pairs:
    """Paired tests of every two of some systems."""

    names: tuple[str, ...]
    # a row a pair in the order of `itertools.combinations(names, 2)`, a column a field of `Comparison`; NaN where a
    # field is None
    table: FloatArray
    seeds: Mapping[str, int]  # of each system, how many

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
        """Whether two systems were tested against each other."""
        return pair in self._places or pair[::-1] in self._places

    def comparison(self, first: str, second: str) -> Comparison:
        """First minus second. Raises `KeyError` for a system that is not there."""
        if (first, second) not in self._places:
            return self.comparison(second, first).turned()
        row = self.table[self._places[first, second]].tolist()
        fields_: dict[str, Any] = {
            name: None if value != value else int(value) if name in _WHOLE else value  # noqa: PLR0124 (NaN)
            for name, value in zip(_FIELDS, row, strict=True)
        }
        return Comparison(**fields_, seeds=(self.seeds[first], self.seeds[second]))

    def column(self, name: str) -> FloatArray:
        """A field of `Comparison` for every pair."""
        column: FloatArray = self.table[:, _FIELDS.index(name)]
        return column


@dataclass(frozen=True)
class Statistics:
    """Tests and intervals of a board's systems."""

    # 95 % interval of the headline by system; none where a task has one query
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    whole: Pairs = field(default_factory=lambda: Pairs((), np.empty((0, len(_FIELDS))), {}))  # the headline
    tasks: Mapping[str, Pairs] = field(default_factory=dict)  # each task, of the systems that have it

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
    """Test a board's systems against each other, or return the cached tests.

    Systems that are `ranked` have the headline, where each leg of each task has its weight (none: it is not tested);
    each task is tested by itself, too.

    Raises:
        StoreError: a damaged bundle, or other queries for the same task.
    """
    strata = sorted({*weights, *(stratum for one in systems for task in tasks for stratum in one.strata(task))})
    named = [place("per-query", *stratum) for stratum in strata]
    files = [[one.name, *([each.content.files.get(name) for name in named] for each in one.results)] for one in systems]
    decisive: dict[str, Any] = {  # everything that can change what the tests find
        "code": _code(),
        "systems": files,
        "ranked": list(ranked),
        "weights": [[*stratum, weights[stratum]] for stratum in sorted(weights)],
        "strata": [list(stratum) for stratum in strata],
        "tasks": list(tasks),
        "measure": measure,
    }
    stem = digest(decisive)
    kept: dict[str, FloatArray] | None = None
    if cache is not None:
        with (
            suppress(OSError, ValueError, EOFError, zipfile.BadZipFile),
            np.load(io.BytesIO((cache / f"{stem}.npz").read_bytes()), allow_pickle=False) as packed,
        ):
            kept = {name: packed[name] for name in packed.files}
    if kept is None:
        kept = _made(systems, strata, ranked, weights, tasks, measure)
        if cache is not None:
            written = io.BytesIO()
            np.savez(written, **kept)  # type: ignore[arg-type] # numpy's stub takes no mapping of arrays
            try:
                cache.mkdir(parents=True, exist_ok=True)
                write_bytes(cache / f"{stem}.npz", written.getvalue())
            except OSError as error:
                hint = "fix that or choose another store by --store"
                raise StoreError(
                    f"cannot cache the tests in {cache}: {explain(error)}; {hint}", where=cache, hint=hint
                ) from error
    return _read(kept, systems, ranked, tasks, measure)


@lru_cache(maxsize=1)
def _code() -> str:
    """Digest of the code that tests, and of numpy's version: another one may find other numbers."""
    return digest([VERSION, np.__version__, *(inspect.getsource(one) for one in (significance, resampling, power))])


def _made(
    systems: Sequence[System],
    strata: Sequence[Stratum],
    ranked: Sequence[str],
    weights: Mapping[Stratum, float],
    tasks: Sequence[str],
    measure: str,
) -> dict[str, FloatArray]:
    """Read the per-query values and test them; return arrays by name."""
    read = values(systems, strata, measure)
    named = {name: {"\t".join(key): read[name][key] for key in weights} for name in ranked}
    shares = {"\t".join(stratum): weight for stratum, weight in weights.items()}
    ends = np.full((len(ranked), 2), np.nan)
    # A task of one query has no spread to resample.
    if shares and ranked and min(one.shape[1] for one in named[ranked[0]].values()) > 1:
        drawn = intervals(named, SEED, shares)
        ends = np.clip([drawn[name] for name in ranked], 0, 1)
    found = {"intervals": ends, "whole": _pairs(named, shares) if shares else _pairs({}, {})}
    for at, task in enumerate(tasks):
        has = {
            one.name: {"\t".join(key): read[one.name][key] for key in one.strata(task)}
            for one in systems
            if one.has(task, measure)
        }
        found[f"task-{at}"] = _pairs(has, None)
    return found


def _pairs(named: Mapping[str, Mapping[str, FloatArray]], shares: Mapping[str, float] | None) -> FloatArray:
    found = pairwise(named, SEED, shares) if len(named) > 1 else {}
    fields_ = [[getattr(one, name) for name in _FIELDS] for one in found.values()]
    return np.array(fields_, np.float64).reshape(len(fields_), len(_FIELDS))


def _read(
    kept: Mapping[str, FloatArray], systems: Sequence[System], ranked: Sequence[str], tasks: Sequence[str], measure: str
) -> Statistics:
    ends = {name: (low, high) for name, (low, high) in zip(ranked, kept["intervals"].tolist(), strict=True)}
    names = {task: tuple(one.name for one in systems if one.has(task, measure)) for task in tasks}
    seeds = {one.name: len(one.results) for one in systems}
    return Statistics(
        intervals={name: pair for name, pair in ends.items() if np.isfinite(pair).all()},
        whole=Pairs(tuple(ranked) if len(kept["whole"]) else (), kept["whole"], seeds),
        tasks={task: Pairs(names[task], kept[f"task-{at}"], seeds) for at, task in enumerate(tasks)},
    )
