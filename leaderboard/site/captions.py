"""Boards in words: title, first sentence, caption, methods, and the notes on data that are not official."""

from __future__ import annotations

from bench.core.publications import mark
from bench.evaluation.significance.ranks import LEVEL
from bench.evaluation.significance.resampling import COVERAGE, FLIPS, RESAMPLES
from bench.evaluation.significance.tests import ENOUGH
from bench.evaluation.tables import chance_text
from leaderboard.site import text
from leaderboard.site.boards import Board
from leaderboard.site.site import FIRST


def title(board: Board) -> str:
    """Return the title of a page; mini data are part of every title."""
    return board.title if board.data == "official" else f"{board.data}/{board.suite}"


def of_data(name: str, data: str) -> str:
    """Return the title of a page on one kind of data, which all but official data name."""
    return name if data == FIRST else f"{name} · {data} data"


def sentence(board: Board) -> str:
    """Return the finding of a table, from tested facts only: who is best, and how small a difference it can detect."""
    if not board.rows:
        return f"No system has run all {len(board.columns)} tasks of this table yet, so none is ranked."
    first = board.rows[0].name
    if board.untested:
        return f"{first} has the highest {board.headline}; nothing was tested, for {board.untested}."
    if len(board.rows) == 1:
        return f"{first} is the only system here: there is nothing to compare it with."
    return " ".join(filter(None, (_best(board), unseen(board))))


def _best(board: Board) -> str:
    """Return who is best, or who are tied for it."""
    first = board.rows[0].name
    if len(board.best) > 1:
        return f"{text.listed(board.best)} are tied for best: none is significantly worse than {first}."
    second = board.rows[1].name
    lead, chance = board.best_against[second]
    doubt = ""
    if lead.low < 0:  # explain why test and interval differ
        doubt = "; the interval contains 0" + (" because it resamples training runs too" if max(lead.seeds) > 1 else "")
    return (
        f"{first} is best, significantly so against each of the others; it leads {second} by "
        f"{text.number(lead.difference)} points, 95 % {text.bounds(lead.low, lead.high)}, {chance_text(chance)}{doubt}."
    )


def unseen(board: Board) -> str:
    """Return the smallest difference that these queries can show; empty if it is unknown."""
    least = board.tests.detectable
    return "" if least is None else f"Differences under {text.number(least)} points can hardly be detected here."


def about(board: Board) -> str:
    """Return data, measure and numbers of queries, tasks and seeds in a line."""
    seeds = sorted({len(row.seeds) for row in board.every})
    several = f"{seeds[0]}–{seeds[-1]} seeds" if len(seeds) > 1 else text.plural(seeds[0], "seed")
    return " · ".join(
        (
            f"{board.data} data",
            board.measure,
            text.plural(board.queries, "query", "queries"),
            text.plural(len(board.columns), "task"),
            several,
        )
    )


def caption(board: Board) -> str:
    """Return measure, unit, data, setting, numbers of queries, tasks and systems; substitutes are marked."""
    what = f"{title(board)} ({mark(board.stands_for)})" if board.stands_for else title(board)
    return (
        f"{board.measure}, percent; {what}, {board.data} data, {board.setting}; "
        f"{text.plural(board.queries, 'query', 'queries')} in {text.plural(len(board.columns), 'task')}, "
        f"{text.plural(len(board.rows) + len(board.incomplete), 'system')}."
    )


def method(board: Board) -> list[str]:
    """Return how the numbers were computed, a sentence each."""
    found = [f"Score: {board.headline.removesuffix('.')}."]
    if not board.whole and len(board.columns) > 1:
        found = [f"Score: the unweighted mean of these {len(board.columns)} tasks, not an average of the suite's own."]
    if not board.untested:
        found.append(
            f"Intervals: {100 * COVERAGE:.0f} %, queries resampled {RESAMPLES:,} times within each task, and seeds "
            "where a system has several; ticks are seeds. A hollow mark is one seed: its interval "
            "excludes training variation. Overlapping intervals do not mean a tie: the tests are paired."
        )
        if any(1 < len(row.seeds) < ENOUGH for row in board.rows):
            found.append(f"Intervals over fewer than {ENOUGH} seeds are too short.")
    if board.pairs:
        found.append(
            f"Rank, ● and letters: paired randomisation tests over queries ({FLIPS:,} sign patterns, flipped within "
            f"each task), two-sided, corrected by Holm over {text.plural(board.pairs, 'pair')}, level {LEVEL}. "
            "● marks systems not significantly worse than the best; rows with a letter in common do not differ "
            "significantly."
        )
    return [*found, *board.notes]


WORDS = {
    "mini": "Mini data: generated by the embedded world. These numbers show that the code works; they say nothing "
    "about real languages and are not comparable with official numbers.",
    "local": "Local data: folders of a user. Nobody vouches for them, and these numbers are not comparable with "
    "official numbers.",
}
"""The banner of data that is not official."""


def banner(data: str, stands_for: str = "") -> str:
    """Return the banner of unofficial data and of substitutes; empty for official data of a benchmark itself."""
    said = mark(stands_for)
    return " ".join(filter(None, (WORDS.get(data.partition("-")[0], ""), said and f"{said[0].upper()}{said[1:]}.")))


def notes(data: str, stands_for: str) -> tuple[str, ...]:
    """Return the notes that go with rows of a kind of data; none for official data of a benchmark itself."""
    said = [] if data == FIRST else [f"{data} data: not comparable with official numbers"]
    return (*said, *([mark(stands_for)] if stands_for else []))
