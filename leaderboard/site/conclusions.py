"""The first page in four sentences: who beats its start and by how much, where nobody does, what it is, how many seeds.

Every sentence is made from decided tests and links to what it rests on. Systems with too few trainings for a claim
about a method count in the last one, as checkpoints; in the others only where no system has enough.
"""

from collections.abc import Sequence

from markupsafe import Markup

from bench.evaluation.significance.trainings import TRAININGS
from leaderboard.site import captions, text
from leaderboard.site.boards import Board
from leaderboard.site.gains import BoardGains, Gain, Gains, noun
from leaderboard.site.render import link
from leaderboard.site.rows import Entry

_SYSTEMS, _BOARDS = 4, 4
"""Systems of a board, and boards, that a sentence names."""
_UNIT = "(points, 95 % interval)"
_TOO_FEW_SEEDS = f"fewer than {TRAININGS} seeds say nothing of a method"


def conclusions(gains: Gains) -> list[Markup]:
    """Return the sentences for some boards, with links to their pages and pairs."""
    regimes = len({board.board.regime for board in gains.boards}) > 1
    about_methods = any(board.of_methods for board in gains.boards)
    judged = [(board, board.of_methods if about_methods else board.gains) for board in gains.boards]
    judged = [(board, tested) for board, tested in judged if tested]
    won = [(board, tested) for board, tested in judged if any(gain.verdict > 0 for gain in tested)]
    lost = [pair for pair in judged if pair not in won]
    wins = [_win(board, tested, regimes, first=not place) for place, (board, tested) in enumerate(won[:_BOARDS])]
    wins += [Markup("some do on {} more").format(len(won) - _BOARDS)] if len(won) > _BOARDS else []
    first = Markup("; ").join(wins) if wins else Markup("No system beats its start on any suite")
    losses = [_loss(board, tested, regimes) for board, tested in lost[:_BOARDS]]
    losses += [Markup("nor on {} more").format(len(lost) - _BOARDS)] if len(lost) > _BOARDS else []
    second = Markup("; ").join(losses) if lost else Markup("On every suite at least one does")
    second = Markup("O{}").format(second[1:]) if lost else second
    return [
        Markup("{}.").format(sentence)
        for sentence in (first, second, _starts(gains), _seeds(gains, about_methods, regimes))
    ]


def finding(board: BoardGains) -> Markup:
    """Return the sentence of one board on its own page: which of its systems beat their start, or that none does."""
    tested = board.of_methods or board.gains
    worse = sum(gain.verdict < 0 for gain in tested)
    if any(gain.verdict > 0 for gain in tested):
        sentence = Markup("{}: {} {}.").format(_beat(tested), _best(board.board, tested), _UNIT)
    else:
        sentence = Markup("None of {} beats its start; {} of them {} worse.").format(
            text.plural(len(tested), _noun(tested)), worse or "none", "are" if worse > 1 else "is"
        )
    single, better = board.of_checkpoints
    if not board.of_methods or not better:
        return sentence
    return Markup("{} {}, but of these checkpoints {} of {} beat theirs.").format(
        sentence, _TOO_FEW_SEEDS[0].upper() + _TOO_FEW_SEEDS[1:], better, single
    )


def _noun(tested: Sequence[Gain]) -> str:
    """Return what these systems are called: checkpoints, where their trainings are too few to speak of methods."""
    return "checkpoint" if tested[0].test.checkpoints else noun([gain.row.system.method for gain in tested])


def _beat(tested: Sequence[Gain]) -> str:
    """Say how many beat their start: `4 of 8 objectives beat their start`."""
    better = sum(gain.verdict > 0 for gain in tested)
    return f"{better} of {text.plural(len(tested), _noun(tested))} {'beat their' if better > 1 else 'beats its'} start"


def _best(board: Board, tested: Sequence[Gain]) -> Markup:
    """Name the best of those that beat their start, with links to the pairs and their gains."""
    better = [gain for gain in tested if gain.verdict > 0]
    names = [
        Markup("{} {}").format(
            link(f"{board.compare_stem}.html#a={text.slug(gain.row.name)}&b={text.slug(gain.start)}", gain.row.name),
            gain.points,
        )
        for gain in better[:_SYSTEMS]
    ]
    more = [Markup("{} more").format(len(better) - _SYSTEMS)] if len(better) > _SYSTEMS else []
    return _joined([*names, *more])


def _win(board: BoardGains, tested: Sequence[Gain], regimes: bool, *, first: bool) -> Markup:
    """Say how many systems of a board beat their start, and by how much the best do; the first board in full."""
    better = sum(gain.verdict > 0 for gain in tested)
    lead = _beat(tested) if first else f"{better} of {len(tested)}"
    unit = f" {_UNIT}" if first else ""
    return Markup("{} on {}: {}{}").format(lead, _suite(board, regimes), _best(board.board, tested), unit)


def _loss(board: BoardGains, tested: Sequence[Gain], regimes: bool) -> Markup:
    """Say of a board on which none is better how many are worse."""
    worse = sum(gain.verdict < 0 for gain in tested)
    verdict = f"{worse} of {len(tested)} {'are' if worse > 1 else 'is'} worse" if worse else "none is worse"
    return Markup("on {} none does, and {}").format(_suite(board, regimes), verdict)


def _starts(gains: Gains) -> Markup:
    """Say what the starts are, and how many systems share each; links to the start's own row."""
    parts = []
    for number, arm in enumerate(gains.arms):
        board, gain = next((board.board, gain) for board in gains.boards for gain in board.gains if gain.arm == number)
        row = next(row for row in board.rows if row.name == gain.start)
        place = f"{Entry(board, row, board.systems[row.name]).stem}.html"
        shared = f"shared by {arm.size}" if len(arm.systems) > 1 else f"of {arm.size}"
        parts.append(Markup("{}, {}").format(link(place, arm.start), shared))
    lead = Markup("Training starts from {}").format(parts[0])
    further = "a second arm" if len(parts) == 2 else "other arms"
    return lead if len(parts) == 1 else Markup("{}; in {} from {}").format(lead, further, Markup("; ").join(parts[1:]))


def _seeds(gains: Gains, about_methods: bool, regimes: bool) -> Markup:
    """Say how many trainings there are, and what checkpoints show besides methods."""
    trainings = [f"{arm.trainings} from {arm.start}" for arm in gains.arms]
    trainings = trainings if len({arm.trainings for arm in gains.arms}) > 1 else [gains.arms[0].trainings]
    sentence = Markup("Every system has {}").format(", ".join(trainings))
    if not about_methods:
        return Markup("{}, so all of this is about these checkpoints, not about methods").format(sentence)
    asides = []
    for board in gains.boards:
        single, better = board.of_checkpoints
        if better:
            asides.append(Markup("{} of {} beat their start on {}").format(better, single, _suite(board, regimes)))
    if not asides:
        return sentence
    return Markup("{}; {}, but of these checkpoints {}").format(sentence, _TOO_FEW_SEEDS, _joined(asides))


def _suite(board: BoardGains, regimes: bool) -> Markup:
    """Return a link to the gains of a board."""
    return link(f"{board.board.stem}.html#gains", captions.short_name(board.board, regime=regimes))


def _joined(parts: Sequence[Markup]) -> Markup:
    """Join parts as `text.listed` does."""
    *most, last = parts
    return Markup("{} and {}").format(Markup(", ").join(most), last) if most else last
