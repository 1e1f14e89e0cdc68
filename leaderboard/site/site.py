"""What a site is made from.

What a site shows of methods and suites is handed to it (`Catalogue`), so that nothing here imports plugins.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from bench.core.files import digest
from bench.core.publications import Reported
from bench.evaluation.learning_curves.figure import LearningCurves
from bench.evaluation.results.read import Result
from bench.types import Method, Suite
from leaderboard.records import Records
from leaderboard.site.boards import Board, Row

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Catalogue:
    """Methods and suites of the installed plugins, by name."""

    methods: Mapping[str, Method] = field(default_factory=dict)
    suites: Mapping[str, Suite] = field(default_factory=dict)

    @cached_property
    def reported(self) -> dict[str, tuple[Reported, ...]]:
        """The numbers that papers printed, by suite; suites without any are left out."""
        return {name: tuple(suite.reported()) for name, suite in self.suites.items() if suite.reported}


@dataclass(frozen=True)
class Site:
    """Everything that a site is built from.

    Args:
        results: checked results, dev tasks included.
        boards: tables of them, in the order of the site.
        catalogue: methods and suites of plugins.
        built: the day, ISO 8601; empty for none.
        days: of the first build that showed a row, by the row's id.
        runs: whether result files and runs are copied next to the rows' pages.
        records: which results are verified.
        omitted: why bundles that broke the build are left out, by their folder below the results folder.
        curves: of pretrainings on dev questions, as `bench curve` keeps them.
    """

    results: tuple[Result, ...]
    boards: tuple[Board, ...]
    catalogue: Catalogue = field(default_factory=Catalogue)
    built: str = ""
    days: Mapping[str, str] = field(default_factory=dict)
    runs: bool = False
    records: Records = field(default_factory=Records)
    omitted: Mapping[str, str] = field(default_factory=dict)
    curves: tuple[LearningCurves, ...] = ()

    def first_day(self, board: Board, row: Row) -> str:
        """Return the day of the first build that showed a row, ISO 8601; empty where days are not named.

        Results hold no date, so that the same store gives the same bytes. The list of a site keeps the days, and the
        next build in the same place reads them there.
        """
        day = self.days.get(row_id(board, row), self.built)
        return day if _DAY.fullmatch(day) else ""


def row_id(board: Board, row: Row) -> str:
    """Return the identity of a row: a digest of its data, suite, regime, system and seeds."""
    return digest([board.data, board.suite, board.version, board.regime, row.system.hash, list(row.seeds)])
