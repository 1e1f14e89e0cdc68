"""What pretraining added: the gain of every contestant over its own start, on each board, and the arms of the starts.

A contestant was trained here, its start is what that training began with, contestants that began alike are an arm, and
every other system is a reference. All numbers are of the boards' tests; nothing is computed here.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench.core.publications import mark
from bench.evaluation.compare.lineage import role_of
from bench.evaluation.significance.families import Comparison
from bench.evaluation.tables import points
from leaderboard.site import text
from leaderboard.site.boards import Board, Row

_SCRATCH = "scratch:"


@dataclass(frozen=True)
class Gain:
    """What training added to a system on a board.

    Args:
        row: of the system.
        start: name of its start on the board.
        arm: number of its arm.
        test: the system minus its start; `decided` is after correction over all gains of the board.
    """

    row: Row
    start: str
    arm: int
    test: Comparison

    @property
    def verdict(self) -> int:
        """1 for a system that is significantly better than its start, −1 for a worse one, else 0."""
        return (self.test.difference > 0) - (self.test.difference < 0) if self.test.decided else 0

    @property
    def points(self) -> str:
        """The gain in points and its interval: `+10.5 [7.1, 14.0]`."""
        difference = points(text.fraction(self.test.difference), sign=True)
        return difference if self.test.low is None else f"{difference} {text.bounds(self.test.low, self.test.high)}"

    @property
    def chance(self) -> str:
        """The corrected p; empty where trainings are too few for one."""
        return "" if self.test.checkpoints else self.test.chance_text


@dataclass(frozen=True)
class Arm:
    """Contestants that began alike.

    Args:
        start: what that is: `random weights 2×128`.
        systems: the method of each, by name.
        seeds: fewest and most trainings of one.
    """

    start: str
    systems: Mapping[str, str]
    seeds: tuple[int, int]

    @property
    def size(self) -> str:
        """How many there are: `8 objectives`, or `9 systems` where some are of one method."""
        return text.plural(len(self.systems), noun(self.systems.values()))

    @property
    def trainings(self) -> str:
        """How often each system was trained: `3 seeds`, `1–3 seeds`."""
        return text.plural(self.seeds[0], "seed") if len({*self.seeds}) == 1 else f"{text.place(self.seeds)} seeds"


@dataclass(frozen=True)
class BoardGains:
    """The gains of a board.

    Args:
        board: the board.
        gains: of ranked contestants whose start is ranked too, the largest first.
        references: ranked systems that are neither contestants nor starts, best first, with their distance from the
            start of each arm.
    """

    board: Board
    gains: tuple[Gain, ...]
    references: Mapping[str, Mapping[int, float]]

    @cached_property
    def of_methods(self) -> tuple[Gain, ...]:
        """The gains that are about methods; those of too few trainings are about checkpoints."""
        return tuple(gain for gain in self.gains if not gain.test.checkpoints)

    @property
    def of_checkpoints(self) -> tuple[int, int]:
        """How many gains are about checkpoints, and how many of those are significant and positive."""
        single = [gain for gain in self.gains if gain.test.checkpoints]
        return len(single), sum(gain.verdict > 0 for gain in single)

    @property
    def marked(self) -> str:
        """What the board is a substitute for, in words; empty for a benchmark itself."""
        return mark(self.board.proxy_for)


@dataclass(frozen=True)
class Gains:
    """The gains of several boards, at least one on each, and their arms, the largest first.

    Boards on which the most systems beat their start come first.
    """

    boards: tuple[BoardGains, ...]
    arms: tuple[Arm, ...]

    @cached_property
    def lines(self) -> list[tuple[str, dict[int, str]]]:
        """Objectives, each with the name of its system in every arm.

        Where an arm has several systems of a method, each is a line of its own. Those that beat their start on the most
        boards come first.
        """
        systems: dict[str, dict[int, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
        verdicts: dict[str, list[int]] = defaultdict(list)
        for gain in (gain for board in self.boards for gain in board.gains):
            systems[gain.row.system.method][gain.arm][gain.row.name] = None
            verdicts[gain.row.name].append(gain.verdict)
        lines: dict[str, dict[int, str]] = {}
        for method, by_arm in systems.items():
            if all(len(names) == 1 for names in by_arm.values()):
                lines[method] = {arm: next(iter(names)) for arm, names in by_arm.items()}
            else:
                lines |= {name: {arm: name} for arm, names in by_arm.items() for name in names}

        def merit(line: tuple[str, Mapping[int, str]]) -> tuple[int, int, str]:
            name, by_arm = line
            first = verdicts[by_arm[min(by_arm)]]
            return -first.count(1), first.count(-1), name

        return sorted(lines.items(), key=merit)


def gains_of(boards: Sequence[Board]) -> Gains | None:
    """Collect the gains of some boards; None where no contestant was tested against its start."""
    pairs = {board.stem: list(board.tests.gains.pairs()) for board in boards}
    tested = [board for board in boards if pairs[board.stem]]
    if not tested:
        return None
    backbones = {
        (board.stem, start): board.systems[start].first.content.system.backbone or start
        for board in tested
        for _, start in pairs[board.stem]
    }
    # Starts of one backbone that one board has twice are unlike, and have their own names besides.
    places = [(stem, backbone) for (stem, _), backbone in backbones.items()]
    twice = {backbone for stem, backbone in places if places.count((stem, backbone)) > 1}
    origins = {
        (stem, start): f"{_in_words(backbone)} ({start})" if backbone in twice else _in_words(backbone)
        for (stem, start), backbone in backbones.items()
    }
    rows = {board.stem: {row.name: row for row in board.rows} for board in tested}
    members: dict[str, dict[str, Row]] = defaultdict(dict)
    for board in tested:
        for name, start in pairs[board.stem]:
            members[origins[board.stem, start]][name] = rows[board.stem][name]
    counts = {origin: [len(row.seeds) for row in by_name.values()] for origin, by_name in members.items()}
    arms = sorted(members, key=lambda origin: (-sum(counts[origin]), origin))
    collected = []
    for board in tested:
        gains = [
            Gain(
                rows[board.stem][name],
                start,
                arms.index(origins[board.stem, start]),
                board.tests.gains.comparison(name, start),
            )
            for name, start in pairs[board.stem]
        ]
        gains.sort(key=lambda gain: (-gain.test.difference, gain.row.name))
        starts = dict(sorted({gain.arm: gain.start for gain in gains}.items()))
        references = {
            row.name: {arm: board.tests.ranks.comparison(row.name, start).difference for arm, start in starts.items()}
            for row in board.rows
            if role_of(board.systems[row.name].results) == "reference"
        }
        collected.append(BoardGains(board, tuple(gains), references))
    collected.sort(key=lambda gains: -sum(gain.verdict > 0 for gain in gains.of_methods))
    return Gains(
        tuple(collected),
        tuple(
            Arm(
                arm,
                {name: row.system.method for name, row in members[arm].items()},
                (min(counts[arm]), max(counts[arm])),
            )
            for arm in arms
        ),
    )


def board_gains(board: Board) -> tuple[Gain, ...]:
    """Return the gains of a board alone, the largest first."""
    gains = gains_of([board])
    return gains.boards[0].gains if gains else ()


def noun(methods: Collection[str]) -> str:
    """Return what systems of these methods are called: an objective each, unless two are of one method."""
    return "objective" if len({*methods}) == len(methods) else "system"


def _in_words(backbone: str) -> str:
    """Return what trainings began with: `scratch:2x128` → `random weights 2×128`, of a folder the name."""
    if backbone.startswith(_SCRATCH):
        return f"random weights {backbone.removeprefix(_SCRATCH).replace('x', '×')}"
    return backbone.removeprefix("./")
