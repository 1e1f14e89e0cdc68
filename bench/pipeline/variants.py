"""The variants of a request, resolved side by side: what several have in common is run once, equal ones are refused."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from bench.config.request import Request
from bench.core.errors import UsageError
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.experiment import Experiment, largest_quotas
from bench.plugins import Plugins
from bench.store.store import Store

_Row: TypeAlias = tuple[str, str, str, str, int, str]
"""What a number is of: hash of the system, suite, regime, data, seed, task."""
_Owner: TypeAlias = tuple[str, str]
"""Which variant has a number, and what it calls the system."""


def resolve_each(request: Request, plugins: Plugins, store: Store) -> list[Experiment]:
    """Resolve a request, or each of its variants; cells that a later one has, too, are left to that one.

    So a result file is the one that the last of them would have left, typed one after the other.

    Raises:
        UsageError: as `Experiment.resolve` does, with the variant's name; a variant that makes no system of its own, or
            makes one of another variant under a second label; variants of several profiles.
    """
    experiments: list[Experiment] = []
    first: dict[_Row, _Owner] = {}
    quotas: dict[str, float] = {}
    for variant, part in request.each().items():
        with _named_in_errors(variant):
            for name, tokens in largest_quotas([part], plugins).items():
                quotas[name] = max(tokens, quotas.get(name, 0.0))
    for variant, part in request.each().items():
        with _named_in_errors(variant):
            experiment = Experiment.resolve(part, plugins, store, quotas)
        if experiments and experiment.profile.name != experiments[0].profile.name:
            raise UsageError(
                where=variant,
                found=f"profile {experiment.profile.name} next to {experiments[0].profile.name}",
                expected="one profile for all variants",
                hint="write a file for each profile",
            )
        _refuse_equal(variant, experiment.cells, first)
        first = _labels(variant, experiment) | first
        experiments.append(experiment)
    later: dict[_Row, _Owner] = {}
    for place, experiment in reversed([*enumerate(experiments)]):
        cells = tuple(cell for cell in experiment.cells if not _is_known(cell, later))
        later |= _labels("", experiment)
        experiments[place] = replace(experiment, cells=cells)
    return experiments


def joined(experiments: Sequence[Experiment]) -> Experiment:
    """Return experiments of one profile as one: their cells, what does not apply and warnings, in their order."""
    return replace(
        experiments[0],
        cells=tuple(cell for experiment in experiments for cell in experiment.cells),
        refused=tuple(dict.fromkeys(refusal for experiment in experiments for refusal in experiment.refused)),
        warnings=tuple(dict.fromkeys(warning for experiment in experiments for warning in experiment.warnings)),
    )


@contextmanager
def _named_in_errors(variant: str) -> Iterator[None]:
    """Say of an error in which variant it is."""
    try:
        yield
    except UsageError as error:
        if not variant:
            raise
        fields = {name: getattr(error, name) for name in ("found", "expected", "hint")}
        raise type(error)(f"{variant}: {error}", where=variant, **fields) from error


def _rows(cell: ExperimentCell) -> list[_Row]:
    address = cell.identity.hash, cell.suite.name, cell.regime, cell.data, cell.seed
    return [(*address, task.id) for task in cell.tasks]


def _labels(variant: str, experiment: Experiment) -> dict[_Row, _Owner]:
    return {row: (variant, cell.system.label) for cell in experiment.cells for row in _rows(cell)}


def _is_known(cell: ExperimentCell, owners: Mapping[_Row, _Owner]) -> bool:
    """Whether other variants have all numbers of a cell, under the same label."""
    return all(owners.get(row, ("", ""))[1] == cell.system.label for row in _rows(cell))


def _refuse_equal(variant: str, cells: Sequence[ExperimentCell], first: Mapping[_Row, _Owner]) -> None:
    """Refuse a variant that makes nothing new, or a system under a second label; starts may be those of another one."""
    trained = [cell for cell in cells if not cell.system.untrained]
    for cell in trained:
        first_variant, label = next((first[row] for row in _rows(cell) if row in first), ("", cell.system.label))
        if label != cell.system.label:
            raise UsageError(
                where=variant,
                found=f"{cell.system.label}, which is {label} of {first_variant}",
                expected="systems that differ in more than their label",
                hint="leave it out of one of the two by a method key in the variant",
            )
    if trained and all(_is_known(cell, first) for cell in trained):
        raise UsageError(
            where=variant,
            found=f"no system that is not one of {first[_rows(trained[0])[0]][0]}",
            expected="settings that make another system",
            hint="leave the variant out",
        )
