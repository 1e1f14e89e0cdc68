"""Compare the rows that a request makes, and no others that lie in the results folder."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from bench.config.profiles import Profile
from bench.config.request import Request
from bench.core.errors import UsageError
from bench.core.network import offline
from bench.evaluation.compare.comparison import Compared, CompareOptions, compare
from bench.evaluation.results import RESULT
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.publish import heading_of
from bench.pipeline.variants import joined, resolve_each
from bench.plugins import Plugins
from bench.store.store import Store

_LISTED = 3  # rows that a message names
_Group: TypeAlias = tuple[str, str, str]
"""Suite, regime and data."""


def compare_made(request: Request, plugins: Plugins, store: Store, options: CompareOptions) -> list[Compared]:
    """Compare all systems of a request on each of its suites, regimes and kinds of data, on its seeds.

    Starts that are one system under several methods' names are one row: the first that is there.

    Args:
        request: what made the rows; it is resolved, and nothing is run or fetched.
        plugins: what is installed.
        store: remembers checksums of files.
        options: measure and the like; suite, regime, data and seeds are the request's.

    Raises:
        UsageError: as `resolve_each` and `compare` do; rows that are not there.
    """
    results = request.results
    with offline():
        experiment = joined(resolve_each(request, plugins, store))
    groups: dict[_Group, list[ExperimentCell]] = defaultdict(list)
    for cell in experiment.cells:
        groups[cell.suite.name, cell.regime, cell.data].append(cell)
    places = {group: _places(cells, results, experiment.profile) for group, cells in groups.items()}
    missing = [path for paths in places.values() for path in paths if not (results / path / RESULT).is_file()]
    if missing:
        rows = ", ".join(map(str, missing[:_LISTED])) + (", …" if len(missing) > _LISTED else "")
        raise UsageError(
            where=results,
            found=f"no results of {len(missing)} of {sum(map(len, places.values()))} rows ({rows})",
            expected="all that are compared",
            hint="run them first, with the same options or file; `bench plan` says what is left",
        )
    comparisons = []
    for group, cells in groups.items():
        suite, regime, data = group
        seeds = tuple(dict.fromkeys(cell.seed for cell in cells if not cell.system.deterministic))
        narrowed = replace(options, regime=regime, data=data, seeds=seeds)
        names = list(dict.fromkeys(path.parent.name for path in places[group]))
        comparisons += compare(names, results, plugins.suite(suite), narrowed)
    return comparisons


def _places(cells: Iterable[ExperimentCell], results: Path, size: Profile) -> list[Path]:
    """Return the folders of rows below the results folder, of equal starts the first that is there."""
    places: list[Path] = []
    starts: dict[str, list[Path]] = defaultdict(list)
    for cell in cells:
        place = heading_of(cell, size).folder
        if cell.system.untrained:
            starts[f"{cell.seed} {cell.identity.graph}"].append(place)
        else:
            places.append(place)
    return places + [
        next((place for place in equal if (results / place / RESULT).is_file()), equal[0]) for equal in starts.values()
    ]
