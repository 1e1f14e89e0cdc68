"""The tests of a board: `ranks`, pairs on the headline, and `cells`, pairs on every task; cached between builds.

All draws are seeded, so the same per-query values always give the same numbers. The cache's keys are digests of
everything that the numbers depend on: the per-query files, the weights, the measure, and the code that tests.
"""

import inspect
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.core.errors import StoreError
from bench.core.files import digest, explain, write_bytes
from bench.evaluation.compare import lineage
from bench.evaluation.compare.lineage import Lineage
from bench.evaluation.results.format import place
from bench.evaluation.results.read import FloatArray
from bench.evaluation.significance import estimates, families, luck, questions, simulation, trainings
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.families import FIELDS, Family, family
from bench.evaluation.significance.luck import Scatter
from bench.types import Parallel
from leaderboard.site.systems import Stratum, System, query_values

VERSION = 6
"""Of the cached files; raised where this module changes them."""
_FAMILIES = ("ranks", "cells", "gains")
HEADLINE = ""
"""The estimand of `ranks`; those of `cells` are task ids."""


@dataclass(frozen=True)
class Statistics:
    """Tests and intervals of a board's systems.

    Args:
        intervals: 95 % interval of the headline by system; none where a task has one query.
        ranks: every two ranked systems on the headline, corrected together.
        cells: every two systems on every task that both have, corrected together.
        gains: every ranked system over its own start on the headline, where that is ranked, corrected together.
    """

    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    ranks: Family = field(default_factory=Family)
    cells: Family = field(default_factory=Family)
    gains: Family = field(default_factory=Family)


def statistics(
    systems: Sequence[System],
    ranked: Sequence[str],
    weights: Mapping[Stratum, float],
    tasks: Sequence[str],
    measure: str,
    cache: Path | None = None,
    *,
    by_task: bool = True,
) -> Statistics:
    """Test a board's systems against each other, or return the cached tests.

    Args:
        systems: of the board.
        ranked: names of those that have the headline.
        weights: of each subset of each task in the headline, empty where it is not tested.
        tasks: ids of the columns.
        measure: of the values.
        cache: folder that keeps the tests; by default nothing is kept.
        by_task: test `cells`, too.

    Raises:
        StoreError: a bundle is damaged, two hold other queries for the same task, or the cache cannot be written.
    """
    strata = sorted({*weights, *(stratum for system in systems for task in tasks for stratum in system.strata(task))})
    lineages = lineage.lineages({system.name: system.results for system in systems})
    parallel = max((system.first.content.suite.parallel for system in systems), key=questions.ORDER.index)
    path = None
    if cache is not None:
        names = [place("per-query", *stratum) for stratum in strata]
        decisive: dict[str, Any] = {  # everything that can change the numbers
            "code": [
                VERSION,
                np.__version__,
                *map(inspect.getsource, (estimates, families, luck, questions, simulation, trainings)),
            ],
            "systems": [
                [system.name, *([result.content.files.get(name) for name in names] for result in system.results)]
                for system in systems
            ],
            "deterministic": [system.name for system in systems if system.fixed],
            "lineages": [asdict(line) for line in lineages.values()],
            "parallel": parallel,
            "ranked": list(ranked),
            "weights": [[*stratum, weights[stratum]] for stratum in sorted(weights)],
            "strata": [list(stratum) for stratum in strata],
            "tasks": list(tasks),
            "measure": measure,
            "by_task": by_task,
        }
        path = cache / f"{digest(decisive)}.npz"
        with (
            suppress(OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile),
            np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as packed,
        ):
            header = json.loads(packed["about"].tobytes())
            ranks, cells, gains = (_unpacked(header[name], packed, name) for name in _FAMILIES)
            intervals = {name: (low, high) for name, (low, high) in header["intervals"].items()}
            return Statistics(intervals, ranks, cells, gains)
    tested = _test(systems, lineages, ranked, weights, tasks, strata, measure, parallel, by_task=by_task)
    if path is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, _packed(tested))
        except OSError as error:
            hint = "fix that or choose another store by --store"
            message = f"cannot cache the tests in {path.parent}: {explain(error)}; {hint}"
            raise StoreError(message, where=path.parent, hint=hint) from error
    return tested


def _test(
    systems: Sequence[System],
    lineages: Mapping[str, Lineage],
    ranked: Sequence[str],
    weights: Mapping[Stratum, float],
    tasks: Sequence[str],
    strata: Sequence[Stratum],
    measure: str,
    parallel: Parallel,
    *,
    by_task: bool,
) -> Statistics:
    """Read the per-query values of the strata and run the tests; other arguments are as for `statistics`."""
    values, ids = query_values(systems, strata, measure)
    question_ids = {"\t".join(key): questions.questions(parallel, key[0], queries) for key, queries in ids.items()}
    shared = {name: question for name, question in question_ids.items() if question is not None}
    samples = {
        system.name: Sample(
            {"\t".join(key): column for key, column in values[system.name].items()},
            system.fixed,
            lineages[system.name].trainings,
            lineages[system.name].seeds,
            lineages[system.name].start,
        )
        for system in systems
        if values[system.name]
    }
    task_weights = {task: {"\t".join(key): 1.0 for key in strata if key[0] == task} for task in tasks}
    cells = family(samples, task_weights, shared) if by_task else Family()
    if not weights:
        return Statistics(cells=cells)
    headline = {"\t".join(stratum): weight for stratum, weight in weights.items()}
    candidates = {name: samples[name] for name in ranked}
    ranks = family(candidates, {HEADLINE: headline}, shared)
    began = [(name, lineages[name].start) for name in ranked if lineages[name].start in candidates]
    gains = family(candidates, {HEADLINE: headline}, shared, began)
    return Statistics(families.intervals(candidates, headline, shared), ranks, cells, gains)


def _unpacked(header: Mapping[str, Any], packed: Mapping[str, FloatArray], name: str) -> Family:
    """Read a family as `_packed` wrote it."""
    listed = header["listed"]
    return Family(
        {key: tuple(names) for key, names in header["members"].items()},
        {key: packed[f"{name}-{key}"] for key in FIELDS},
        header["runs"],
        {key: Scatter(**value) for key, value in header["scatter"].items()},
        None if listed is None else {key: tuple(map(tuple, pairs)) for key, pairs in listed.items()},
    )


def _packed(tested: Statistics) -> bytes:
    """Return tests as an `npz` file: the columns as arrays, the rest as JSON."""
    arrays: dict[str, FloatArray] = {}
    header: dict[str, Any] = {"intervals": tested.intervals}
    for name, tests in zip(_FAMILIES, (tested.ranks, tested.cells, tested.gains), strict=True):
        arrays |= {f"{name}-{key}": column for key, column in tests.table.items()}
        scatter = {key: asdict(value) for key, value in tests.scatter.items()}
        header[name] = {"members": tests.members, "runs": tests.runs, "scatter": scatter, "listed": tests.listed}
    stream = io.BytesIO()
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(stream, about=text, **arrays)  # type: ignore[arg-type] # numpy's stub takes no mapping of arrays
    return stream.getvalue()
