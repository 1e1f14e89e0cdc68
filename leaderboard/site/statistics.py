"""The tests of a board: `ranks`, pairs on the headline, and `cells`, pairs on every task; cached between builds.

All draws are seeded, so the same per-query values always give the same numbers, and what was found once can be kept by
the digest of what it was made from: the per-query files, the weights, the measure, and the code that tests.
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
from bench.evaluation.results.format import place
from bench.evaluation.results.read import FloatArray
from bench.evaluation.significance import estimates, families, questions
from bench.evaluation.significance.estimates import Sample, Scatter
from bench.evaluation.significance.families import FIELDS, Family, family, intervals
from leaderboard.site.systems import Stratum, System, values

VERSION = 4
"""Of what is kept; raised where this module changes it."""
HEADLINE = ""
"""The estimand of `ranks`; those of `cells` are task ids."""


@dataclass(frozen=True)
class Statistics:
    """Tests and intervals of a board's systems.

    Args:
        intervals: 95 % interval of the headline by system; none where a task has one query.
        ranks: every two ranked systems on the headline, corrected together.
        cells: every two systems on every task that both have, corrected together.
    """

    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    ranks: Family = field(default_factory=Family)
    cells: Family = field(default_factory=Family)


def statistics(
    systems: Sequence[System],
    ranked: Sequence[str],
    weights: Mapping[Stratum, float],
    tasks: Sequence[str],
    measure: str,
    cache: Path | None = None,
) -> Statistics:
    """Test a board's systems against each other, or return the cached tests; without a folder `cache` nothing is kept.

    `ranked` are the systems that have the headline, `weights` those of each leg of each task in it, empty where it is
    not tested; the columns of `tasks` are tested by themselves. Raises `StoreError` for a damaged bundle, or other
    queries for the same task.
    """
    strata = sorted({*weights, *(stratum for one in systems for task in tasks for stratum in one.strata(task))})
    named = [place("per-query", *stratum) for stratum in strata]
    files = [[one.name, *([each.content.files.get(name) for name in named] for each in one.results)] for one in systems]
    parallel = max((one.first.content.suite.parallel for one in systems), key=questions.ORDER.index)
    decisive: dict[str, Any] = {  # everything that can change what the tests find
        "code": _code(),
        "systems": files,
        "deterministic": [one.name for one in systems if one.fixed],
        "trainings": [one.trainings for one in systems],
        "parallel": parallel,
        "ranked": list(ranked),
        "weights": [[*stratum, weights[stratum]] for stratum in sorted(weights)],
        "strata": [list(stratum) for stratum in strata],
        "tasks": list(tasks),
        "measure": measure,
    }
    stem = digest(decisive)
    if cache is not None:
        with (
            suppress(OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile),
            np.load(io.BytesIO((cache / f"{stem}.npz").read_bytes()), allow_pickle=False) as packed,
        ):
            return _unpacked(packed)
    read, asked = values(systems, strata, measure)
    queries = {"\t".join(key): questions.questions(parallel, key[0], own) for key, own in asked.items()}
    known = {name: own for name, own in queries.items() if own is not None}
    samples = {
        one.name: Sample({"\t".join(key): own for key, own in read[one.name].items()}, one.fixed, one.trainings)
        for one in systems
        if read[one.name]
    }
    shares = {"\t".join(stratum): weight for stratum, weight in weights.items()}
    of_tasks = {task: {"\t".join(key): 1.0 for key in strata if key[0] == task} for task in tasks}
    found = Statistics(cells=family(samples, of_tasks, known))
    if shares:
        first = {name: samples[name] for name in ranked}
        found = Statistics(intervals(first, shares, known), family(first, {HEADLINE: shares}, known), found.cells)
    if cache is not None:
        try:
            cache.mkdir(parents=True, exist_ok=True)
            write_bytes(cache / f"{stem}.npz", _packed(found))
        except OSError as error:
            hint = "fix that or choose another store by --store"
            raise StoreError(
                f"cannot cache the tests in {cache}: {explain(error)}; {hint}", where=cache, hint=hint
            ) from error
    return found


def _code() -> str:
    """Digest of the code that tests, and of numpy's version: another one may find other numbers."""
    return digest([VERSION, np.__version__, *(inspect.getsource(one) for one in (estimates, families, questions))])


def _packed(found: Statistics) -> bytes:
    stream = io.BytesIO()
    arrays: dict[str, FloatArray] = {}
    about: dict[str, Any] = {"intervals": found.intervals}
    for name, one in (("ranks", found.ranks), ("cells", found.cells)):
        arrays |= {f"{name}-{key}": column for key, column in one.table.items()}
        scatter = {key: asdict(own) for key, own in one.scatter.items()}
        about[name] = {"members": one.members, "runs": one.runs, "scatter": scatter}
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez(stream, about=text, **arrays)  # type: ignore[arg-type] # numpy's stub takes no mapping of arrays
    return stream.getvalue()


def _unpacked(packed: Any) -> Statistics:
    about = json.loads(packed["about"].tobytes())
    made = [
        Family(
            {key: tuple(names) for key, names in about[name]["members"].items()},
            {key: packed[f"{name}-{key}"] for key in FIELDS},
            about[name]["runs"],
            {key: Scatter(**own) for key, own in about[name]["scatter"].items()},
        )
        for name in ("ranks", "cells")
    ]
    return Statistics({name: (low, high) for name, (low, high) in about["intervals"].items()}, *made)
