"""What a site is made from, and where its pages lie: a tree for each kind of data, one name for each thing.

What a site shows of methods and suites is handed to it as plain data (`Shown`), so that nothing here imports plugins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.core.publications import Reported
from bench.evaluation.results.read import Result
from bench.types import Preset
from leaderboard.records import Records
from leaderboard.site.boards import Board
from leaderboard.site.text import slug

FIRST = "official"
"""The kind of data whose pages are at the root of the site."""
SETTINGS = ("unsupervised", "english", "multilingual", "few-shot")
"""In the order of the site."""
SUBSTITUTES = "substitutes/"
"""The folder, within a tree, of the pages of substitutes."""


@dataclass(frozen=True)
class MethodShown:
    """A method as the site shows it."""

    name: str
    version: str
    summary: str
    citation: str  # of the paper, empty where there is none
    card: str
    # by name; those with cells are grids, with the paper's numbers
    presets: Mapping[str, Preset] = field(default_factory=dict)
    licence: str = ""  # of the code that runs here, empty where nobody says
    code: str = ""  # address of the authors' code, empty where there is none


@dataclass(frozen=True)
class SuiteShown:
    """A suite as the site shows it."""

    name: str
    title: str  # as people write it
    primary: str
    card: str  # protocol card, Markdown
    citation: str
    licences: tuple[str, ...] = ()  # of its files, each once
    stands_for: str = ""  # the benchmark that it is a substitute for, empty for a benchmark itself
    reported: tuple[Reported, ...] = ()


@dataclass(frozen=True)
class Shown:
    """Methods and suites of the installed plugins, by name."""

    methods: Mapping[str, MethodShown] = field(default_factory=dict)
    suites: Mapping[str, SuiteShown] = field(default_factory=dict)


@dataclass(frozen=True)
class LeftOut:
    """A bundle that a site leaves out because it broke the build."""

    place: str  # its folder, below the results folder
    why: str


@dataclass(frozen=True)
class Site:
    """Everything that a site is built from."""

    results: tuple[Result, ...]  # checked results, dev tasks included
    boards: tuple[Board, ...]  # tables of them, in the order of the site
    shown: Shown = field(default_factory=Shown)  # methods and suites of plugins
    built: str = ""  # the day, ISO 8601; empty for none
    # of the first build that showed a row, by the row's id (`leaderboard.feed`)
    days: Mapping[str, str] = field(default_factory=dict)
    runs: bool = False  # result files and runs are copied next to the rows' pages
    records: Records = field(default_factory=Records)
    left: tuple[LeftOut, ...] = ()

    @property
    def verified(self) -> list[Result]:
        """The results whose systems may have ranks."""
        return [result for result in self.results if self.records.state(result).verified]


@dataclass(frozen=True)
class Page:
    """A board and the place of its files."""

    board: Board
    stem: str  # path of its files in the site, without the ending

    @property
    def name(self) -> str:
        """File name without folder and ending."""
        return self.stem.rpartition("/")[2]

    def about(self) -> dict[str, Any]:
        """Return its entry in the list of pages."""
        board = self.board
        return {
            "page": f"{self.stem}.html",
            "suite": board.suite,
            "stands_for": board.stands_for or None,
            "setting": board.setting,
            "data": board.data,
            "measure": board.measure,
            "systems": len(board.every),
            "best": board.best,
        }


def folder(data: str, stands_for: str = "") -> str:
    """Return the folder of a kind of data and, within it, of substitutes, so that pages of the kinds never mix.

    It is empty for official data, or `mini/`, `mini-few-names/`, `local/`.
    """
    return f"{'' if data == FIRST else f'{data}/'}{SUBSTITUTES if stands_for else ''}"


def board_stem(board: Board) -> str:
    """Return the path of a board's page, without the ending."""
    return f"{folder(board.data, board.stands_for)}suites/{slug(board.suite)}/{slug(board.setting)}"


def pages(boards: Sequence[Board]) -> list[Page]:
    """Return the page of each board."""
    return [Page(board, board_stem(board)) for board in boards]


def trees(boards: Sequence[Board]) -> list[tuple[str, bool]]:
    """Return the trees that have pages: kind of data, and whether of substitutes; always official data first."""
    return list(dict.fromkeys([(FIRST, False), *((board.data, bool(board.stands_for)) for board in boards)]))
