"""Boards in words: title, first sentence, caption, methods, and the notes on data that are not official."""

import math

from bench.core.publications import mark
from bench.evaluation.results.marks import COLLAPSED
from bench.evaluation.significance.families import COVERAGE, LEVEL
from bench.evaluation.significance.trainings import ALIKE, TRAININGS
from bench.evaluation.tables import chance_text
from leaderboard.records import ONLY_RECOMPUTED, UNVERIFIED, Basis
from leaderboard.site import text
from leaderboard.site.boards import FIRST, Board
from leaderboard.site.statistics import HEADLINE

_LISTED_BEST, _LISTED_AHEAD = 6, 3
"""Systems that a verdict names as best, and as ahead on some task."""


def heading(board: Board) -> str:
    """Return the heading of a board: its suite, or the tasks of it, and its regime."""
    return f"{board.title} · {board.regime}"


def short_name(board: Board, *, regime: bool = False) -> str:
    """Return what a sentence on a page of several boards calls one; a substitute is marked."""
    return f"{heading(board) if regime else board.title}{' (substitute)' if board.proxy_for else ''}"


def verdict(board: Board) -> list[str]:
    """Return the finding of a table in sentences, from tested facts only: the best, and how sure that is."""
    if not board.rows and any(row.score is not None and row.verified for row in board.unranked):
        if all(row.collapsed for row in board.unranked if row.score is not None and row.verified):
            return ["Every verified system that ran all tasks of this table is collapsed, so none is ranked."]
        return ["No whole training that ran all tasks of this table is verified and not collapsed, so none is ranked."]
    if not board.rows and any(row.score is not None for row in board.unranked):
        return ["No system in this table has been verified yet, so none is ranked."]
    if not board.rows:
        return [f"No system has run all {len(board.columns)} tasks of this table yet, so none is ranked."]
    first = board.rows[0].name
    if board.untested:
        return [f"{first} has the highest {board.headline}; nothing was tested, because {board.untested}."]
    if len(board.rows) == 1:
        return [f"{first} is the only ranked system, so there is nothing to compare it with."]
    second = board.rows[1].name
    if len(board.best) > 1:
        best = text.listed(board.best, _LISTED_BEST)
        sentences = [f"{best} share first place: none is significantly worse than {first}."]
    else:
        lead = board.best_against[second]
        bounds = "" if lead.low is None or lead.high is None else f"95 % {text.bounds(lead.low, lead.high)}, "
        gap = f"{text.number(lead.difference)} points ({bounds}{lead.chance_text})"
        sentences = [f"{first} is significantly better than every other system; it leads {second} by {gap}."]
    if len(board.columns) > 1:  # who has the highest score on how many tasks, which tests nothing
        highest = {column.task: max(row.tasks.get(column.task, 0.0) for row in board.rows) for column in board.columns}
        counts = {row.name: sum(row.tasks.get(task) == most for task, most in highest.items()) for row in board.rows}
        ahead = sorted((name for name in counts if counts[name]), key=lambda name: -counts[name])[:_LISTED_AHEAD]
        shares = [f"{name} on {counts[name]}" for name in ahead]
        sentences.append(f"Highest score by task: {text.listed([f'{shares[0]} of {len(highest)}', *shares[1:]])}.")
    seeds = sorted({len(row.seeds) for row in board.all_rows})
    seeds_text = f"{seeds[0]}–{seeds[-1]} seeds" if len(seeds) > 1 else text.plural(seeds[0], "seed")
    return [*sentences, f"{seeds_text} per system.", *filter(None, [detectable(board)])]


def detectable(board: Board) -> str:
    """Return how large a difference the tests detect, and whether they are about methods or these checkpoints."""
    unrepeated = [row.name for row in board.rows if len(row.seeds) < TRAININGS]
    checkpoints = [name for name in unrepeated if not board.systems[name].fixed]
    reaches = [pair.detectable for pair in board.best_against.values() if pair.detectable is not None]
    shown = list(dict.fromkeys(text.number(reach) for reach in (min(reaches), max(reaches)))) if reaches else []
    power = f"A true difference from {board.rows[0].name} of {' to '.join(shown)} points is detected with 80 % power"
    power += ", depending on the system." if len(shown) > 1 else "."
    names = text.listed(checkpoints)
    if len(checkpoints) > _LISTED_BEST:
        names = f"{len(checkpoints)} of {text.plural(len(board.rows), 'system')}"
    scope_note = (
        f"With fewer than {TRAININGS} training runs, results for {names} are about these checkpoints, not methods."
    )
    return " ".join([*([power] if shown else []), *([scope_note] if checkpoints else [])])


def caption(board: Board) -> str:
    """Return measure, unit, data, regime, numbers of queries, tasks and systems; proxies are marked."""
    return f"{board.measure}, percent; {scope(board)}"


def scope(board: Board) -> str:
    """Return the caption without measure and unit."""
    name = f"{board.title} ({mark(board.proxy_for)})" if board.proxy_for else board.title
    kind = "" if board.proxy_for and board.data == FIRST else f" {board.data} data,"
    return (
        f"{name},{kind} {board.regime}; "
        f"{text.plural(board.queries, 'query', 'queries')} in {text.plural(len(board.columns), 'task')}, "
        f"{text.plural(len(board.all_rows), 'system')}."
    )


def methodology(board: Board) -> list[str]:
    """Return how the numbers were computed, a sentence each."""
    sentences = [f"Score: {board.headline.removesuffix('.')}."]
    if not board.whole_suite and len(board.columns) > 1:
        sentences = [
            f"Score: the unweighted mean of these {len(board.columns)} tasks, not an average the suite defines."
        ]
    if not board.untested:
        sentences.append(
            f"Interval: {100 * COVERAGE:.0f} %, Student's t corrected for skewness, over the questions of each task "
            f"and, for systems with {TRAININGS} or more seeds, over training runs. Small dots are seeds. A hollow mark "
            "is a single seed, whose interval excludes variation between training runs. With fewer than 100 queries, "
            "intervals can be too short. Overlapping intervals do not imply a tie, because the tests are paired."
        )
    if any(pair.detectable is not None for pair in board.best_against.values()):
        sentences.append(
            "Grey band: where the best system would have to be for its difference from the row to be detected with "
            "less than 80 % power."
        )
    if board.pairs:
        lettered = any(row.letters for row in board.rows)
        sentences.append(
            f"{'Rank, ● and letters' if lettered else 'Rank and ●'}: two-sided paired tests over questions and "
            f"training runs, corrected jointly over {text.plural(board.pairs, 'pair')} (Westfall and Young's step-down "
            f"procedure) at level {LEVEL}; draws go on until no decision hangs on them. Systems that began at the same "
            "artefact with the same seed are compared seed by seed. Tests of single tasks are corrected over all pairs "
            "and tasks, gains over the own start over all gains. ● marks "
            "systems that are not significantly worse than the best."
            + (" Systems that share a letter do not differ significantly." if lettered else "")
        )
        sentences += _scatter(board)
    if any(not row.verified for row in board.all_rows):
        sentences.append(
            f"Rows marked {UNVERIFIED} are shown as submitted: some of their numbers could not be recomputed, so they "
            "are neither ranked nor tested."
        )
    if any(row.collapsed for row in board.all_rows):
        sentences.append(
            f"Rows marked {COLLAPSED} have one vector for different texts: their order is that of ids, so they are "
            "neither ranked nor tested."
        )
    if any(row.point for row in board.all_rows):
        sentences.append(
            "Rows with a part of a budget behind the name are points on the way of a training: they are not ranked "
            "among whole ones."
        )
    if any(row.verification.basis is Basis.RECOMPUTED for row in board.rows):
        sentences.append(f"{ONLY_RECOMPUTED}.")
    return [*sentences, *board.notes]


def _scatter(board: Board) -> list[str]:
    """Say how training runs scatter, and whether all systems do alike, as the tests assume."""
    scatter = board.tests.ranks.scatter[HEADLINE]
    if not scatter.freedom:
        return []
    deviation = (
        f"Training runs of one system have a standard deviation of {text.number(scatter.deviation)} points (pooled "
        f"over systems, {scatter.freedom:.3g} degrees of freedom)"
    )
    if not math.isnan(scatter.shared):
        deviation += f", of whose variance systems of the same seed share {scatter.shared:.0%}"
    if math.isnan(scatter.equal):
        return [f"{deviation}; whether it is the same for all systems cannot be tested."]
    if scatter.equal < ALIKE:
        outcome = "scatter unequal: a system that scatters more counts with its own value"
    elif scatter.pooled:
        outcome = "so alike that one value serves all, which with few seeds is little evidence"
    else:
        outcome = "too few seeds to tell, so a system that scatters more counts with its own value"
    return [f"{deviation}; {outcome} (Bartlett's test, {chance_text(scatter.equal)})."]


BANNERS = {
    "mini": "Mini data: generated by the embedded world. These numbers show that the code works; they say nothing "
    "about real languages and are not comparable with official numbers.",
    "local": "Local data: a user's own folders. Nobody has checked them, and these numbers are not comparable with "
    "official numbers.",
}
"""The banner of data that is not official."""


def banner(data: str, proxy_for: str = "") -> str:
    """Return the banner of unofficial data and of proxies; empty for official data of a benchmark itself."""
    note = mark(proxy_for)
    return " ".join(filter(None, (BANNERS.get(data.partition("-")[0], ""), note and f"{note[0].upper()}{note[1:]}.")))


def notes(data: str, proxy_for: str) -> tuple[str, ...]:
    """Return the notes that go with rows of a kind of data; none for official data of a benchmark itself."""
    unofficial = () if data == FIRST else (f"{data} data: not comparable with official numbers",)
    return (*unofficial, *([mark(proxy_for)] if proxy_for else []))
