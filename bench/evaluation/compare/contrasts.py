"""Registered contrasts: differences that a file named before anybody looked, corrected together over all its suites.

Whoever looks at every pair of a table and then at those of the next suite has many chances to find something; a list
that was written first pays only for itself. Its file is TOML, a table for each contrast:

    [[contrast]]
    name = "2: crops and a queue beat the inverse cloze task"
    first = "contriever"
    second = "ict"
    suites = ["mrtydi-goldp", "beir"]

`first` and `second` are systems as `bench compare` takes them, `name` is optional. The systems that a file names for a
suite are compared on the seeds and tasks that all of them have, and their trainings' scatter is pooled. Two methods say
little of it, so a file can name more, by `pooled = ["ccp", "simcse"]` above its contrasts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from bench.config.layers import read_toml
from bench.core.errors import DataError, UsageError
from bench.core.messages import canonical, invalid
from bench.evaluation.compare.comparison import comparison_groups, lineup, without_interval
from bench.evaluation.compare.paired_tests import ContrastTable, PairedTest, contrast_tests
from bench.evaluation.results import read
from bench.types import Suite


class Contrast(BaseModel, frozen=True, extra="forbid"):
    """A difference that was named beforehand.

    Args:
        first: a system as `bench compare` takes it.
        second: the system that is subtracted.
        suites: names of those on which the two are compared.
        name: of the contrast; empty for none.
    """

    first: str = Field(min_length=1)
    second: str = Field(min_length=1)
    suites: tuple[Annotated[str, AfterValidator(canonical)], ...] = Field(min_length=1)
    name: str = ""


class Contrasts(BaseModel, frozen=True, extra="forbid"):
    """A file of contrasts.

    Args:
        contrast: in the order of the file.
        pooled: systems with which the scatter of trainings is estimated on every suite, next to those compared there.
    """

    contrast: tuple[Contrast, ...] = Field(min_length=1)
    pooled: tuple[str, ...] = ()


@dataclass(frozen=True)
class RegisteredTest:
    """A contrast on one suite, regime and kind of data, corrected with all others of its file."""

    contrast: Contrast
    test: PairedTest

    def as_json(self) -> dict[str, Any]:
        """Return what `bench compare --contrasts FILE --json` prints of it."""
        test = self.test
        runs = dict(zip(("system", "other"), test.comparison.seeds, strict=True))
        return {"name": self.contrast.name, **test.row(), "runs": runs, "same_trainings": test.same_trainings}


@dataclass(frozen=True, repr=False)
class Registered:
    """The contrasts of a file, tested.

    Args:
        tests: in the order of the file, suite by suite.
        proxies: by suite what it is a substitute for.
        warnings: why comparing the systems of a suite may be unfair or unsure.
    """

    tests: tuple[RegisteredTest, ...]
    proxies: Mapping[str, str]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return what `bench compare --contrasts FILE --json` prints."""
        return {"contrasts": [test.as_json() for test in self.tests], "warnings": list(self.warnings)}


def read_contrasts(path: Path) -> Contrasts:
    """Read a file of contrasts.

    Raises `DataError`: not TOML; a key that is not known, or is missing; no contrast; a system compared with itself;
    the same two systems twice on a suite, turned round included.
    """
    try:
        document = Contrasts.model_validate(read_toml(path))
    except ValidationError as error:
        form = "[[contrast]] tables with first, second and suites, and name if you like"
        raise DataError(path, None, invalid(error), form) from error
    seen: dict[tuple[frozenset[str], str], int] = {}
    for number, contrast in enumerate(document.contrast, 1):
        if contrast.first == contrast.second:
            found = f"{contrast.first} compared with itself in contrast {number}"
            raise DataError(path, None, found, "two systems")
        for suite in contrast.suites:
            earlier = seen.get(key := (frozenset((contrast.first, contrast.second)), suite))
            if earlier is not None:
                found = f"{contrast.first} and {contrast.second} on {suite} in contrasts {earlier} and {number}"
                raise DataError(path, None, found, "each difference once", "the correction would count it twice")
            seen[key] = number
    return document


def compare_contrasts(
    path: Path, root: Path, find_suite: Callable[[str], Suite], *, data: str | None = None, regime: str | None = None
) -> Registered:
    """Test the contrasts of a file on the results of a folder.

    Args:
        path: the file.
        root: results folder.
        find_suite: → a suite by its name; raises `UsageError` for none.
        data: kind of data; default: all.
        regime: regime of names without one; default: all.

    Raises:
        DataError: as `read_contrasts` does.
        UsageError: a suite or a system that is not there; systems that cannot be compared. Both name the file.
        StoreError: a damaged result file or bundle.
    """
    document = read_contrasts(path)
    contrasts = document.contrast
    results = read.results(root.resolve())
    lineups, tables, tested, proxies = [], [], [], {}
    data, regime = (name and canonical(name) for name in (data, regime))
    for name in dict.fromkeys(suite for contrast in contrasts for suite in contrast.suites):
        of_suite = [contrast for contrast in contrasts if name in contrast.suites]
        systems = [system for contrast in of_suite for system in (contrast.first, contrast.second)]
        systems = list(dict.fromkeys((*systems, *document.pooled)))
        try:
            suite = find_suite(name)
            groups = comparison_groups(systems, root, name, data=data, regime=regime, already_read=results)
        except UsageError as error:
            raise UsageError(
                f"{path}: {error}", where=path, found=error.found, expected=error.expected, hint=error.hint
            ) from error
        for group in groups:
            aligned = lineup(group, suite)
            pairs = [(aligned.labels[contrast.first], aligned.labels[contrast.second]) for contrast in of_suite]
            regimes = ", ".join(dict.fromkeys(aligned.regimes.values()))
            metadata = {"suite": name, "regime": regimes, "data": group.data}
            lineups.append(aligned)
            tables.append(ContrastTable(metadata, aligned.rows, aligned.measure, aligned.stratum_shares, pairs))
            tested += of_suite
            proxies[name] = suite.proxy_for
    corrected = contrast_tests(tables)
    of_tables = iter(corrected)
    warnings = [
        f"{table.metadata['suite']}: {warning}"
        for table, aligned in zip(tables, lineups, strict=True)
        for warning in (*aligned.warnings, *without_interval([*islice(of_tables, len(table.contrasts))], aligned))
    ]
    tests = [RegisteredTest(*pair) for pair in zip(tested, corrected, strict=True)]
    tests.sort(key=lambda registered: contrasts.index(registered.contrast))
    return Registered(tuple(tests), proxies, tuple(dict.fromkeys(warnings)))
