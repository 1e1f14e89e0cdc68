"""What a site is made from.

What a site shows of methods and suites comes as plain data (`Catalogue`), so that nothing here imports plugins.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.core.files import digest
from bench.core.publications import Reported
from bench.evaluation.results.read import Result
from bench.types import Preset
from leaderboard.records import Records
from leaderboard.site.boards import Board, Row

SETTINGS = ("unsupervised", "english", "multilingual", "few-shot")
"""In the order of the site."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class MethodCard:
    """A method as the site shows it.

    Args:
        name: its canonical name.
        version: its version.
        summary: one sentence.
        citation: of the paper, empty where there is none.
        card: Markdown.
        presets: by name; those with cells are grids, with the paper's numbers.
        licence: of the code that runs here, empty where nobody says.
        code: address of the authors' code, empty where there is none.
    """

    name: str
    version: str
    summary: str
    citation: str
    card: str
    presets: Mapping[str, Preset] = field(default_factory=dict)
    licence: str = ""
    code: str = ""


@dataclass(frozen=True)
class SuiteCard:
    """A suite as the site shows it.

    Args:
        name: its canonical name.
        title: as people write it.
        primary: its headline measure.
        card: protocol card, Markdown.
        citation: how to cite it.
        licences: of its files, each once.
        proxy_for: the benchmark that it is a proxy for, empty for a benchmark itself.
        reported: numbers that papers printed.
    """

    name: str
    title: str
    primary: str
    card: str
    citation: str
    licences: tuple[str, ...] = ()
    proxy_for: str = ""
    reported: tuple[Reported, ...] = ()


@dataclass(frozen=True)
class Catalogue:
    """Methods and suites of the installed plugins, by name."""

    methods: Mapping[str, MethodCard] = field(default_factory=dict)
    suites: Mapping[str, SuiteCard] = field(default_factory=dict)


@dataclass(frozen=True)
class OmittedBundle:
    """A bundle that a site leaves out because it broke the build.

    Args:
        folder: below the results folder.
        reason: a sentence.
    """

    folder: str
    reason: str


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
        omitted: bundles that broke the build.
    """

    results: tuple[Result, ...]
    boards: tuple[Board, ...]
    catalogue: Catalogue = field(default_factory=Catalogue)
    built: str = ""
    days: Mapping[str, str] = field(default_factory=dict)
    runs: bool = False
    records: Records = field(default_factory=Records)
    omitted: tuple[OmittedBundle, ...] = ()

    def first_day(self, board: Board, row: Row) -> str:
        """Return the day of the first build that showed a row, ISO 8601; empty where days are not named.

        Results hold no date, so that the same store gives the same bytes. The list of a site keeps the days, and the
        next build in the same place reads them there.
        """
        day = self.days.get(row_id(board, row), self.built)
        return day if _DAY.fullmatch(day) else ""


def row_id(board: Board, row: Row) -> str:
    """Return the identity of a row: a digest of its data, suite, setting, system and seeds."""
    return digest([board.data, board.suite, board.version, board.setting, row.system.hash, list(row.seeds)])
