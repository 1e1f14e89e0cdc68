"""What is said of a board in words: its title, its first sentence, its caption, how its numbers were made."""

from __future__ import annotations

from bench.scoring.ranks import LEVEL
from bench.scoring.significance import COVERAGE, ENOUGH, FLIPS, RESAMPLES, chance_text
from bench.substitutes import mark
from leaderboard import text
from leaderboard.tables import Board


def title(board: Board) -> str:
    """How the page is called: mini data carry their name into every title."""
    return board.title if board.data == "official" else f"{board.data}/{board.suite}"


def sentence(board: Board) -> str:
    """What the table says, from tested facts only: who is best, and which differences it could not see."""
    if not board.rows:
        return f"No system has run all {len(board.columns)} tasks of this table yet, so none is ranked."
    first = board.rows[0].name
    if board.untested:
        return f"{first} has the highest {board.headline}; nothing was tested, for {board.untested}."
    if len(board.rows) == 1:
        return f"{first} is the only system here: there is nothing to compare it with."
    return " ".join(filter(None, (_best(board), unseen(board))))


def _best(board: Board) -> str:
    """Who is best, or who are tied for it."""
    first = board.rows[0].name
    if len(board.best) > 1:
        return f"{text.listed(board.best)} are tied for best: none is significantly worse than {first}."
    second = board.rows[1].name
    lead, chance = board.best_against[second]
    doubt = ""
    if lead.low < 0:  # a reader of test and interval is owed the reason why they differ
        doubt = "; the interval holds 0" + (", for it draws training runs too" if max(lead.seeds) > 1 else "")
    return (
        f"{first} is best, significantly so against each of the others; it leads {second} by "
        f"{text.number(lead.difference)} points, 95 % {text.bounds(lead.low, lead.high)}, {chance_text(chance)}{doubt}."
    )


def unseen(board: Board) -> str:
    """Which differences these queries are too few to show; empty where that cannot be told."""
    least = board.tests.detectable
    return "" if least is None else f"Differences under {text.number(least)} points can hardly be seen here."


def about(board: Board) -> str:
    """Data, measure and numbers of queries, tasks and seeds in a line."""
    seeds = sorted({len(row.seeds) for row in (*board.rows, *board.incomplete)})
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
    """Measure, unit, data, setting, numbers of queries, tasks and systems; of a substitute that it is one."""
    what = f"{title(board)} ({mark(board.stands_for)})" if board.stands_for else title(board)
    return (
        f"{board.measure}, percent; {what}, {board.data} data, {board.setting}; "
        f"{text.plural(board.queries, 'query', 'queries')} in {text.plural(len(board.columns), 'task')}, "
        f"{text.plural(len(board.rows) + len(board.incomplete), 'system')}."
    )


def method(board: Board) -> list[str]:
    """How the numbers were made, a sentence each."""
    found = [f"Score: {board.headline.removesuffix('.')}."]
    if not board.whole and len(board.columns) > 1:
        found = [f"Score: the unweighted mean of these {len(board.columns)} tasks, which is no average of the suite's."]
    if not board.untested:
        found.append(
            f"Intervals: {100 * COVERAGE:.0f} %, queries resampled {RESAMPLES:,} times within each task, and seeds "
            "where a system has several; ticks are single seeds. A hollow mark is one seed: the variation of training "
            "is not in its interval. Do not judge two systems by whether their intervals overlap: the tests are paired."
        )
        if any(1 < len(row.seeds) < ENOUGH for row in board.rows):
            found.append(f"Intervals over fewer than {ENOUGH} seeds are too short.")
    if board.pairs:
        found.append(
            f"Rank, ● and letters: paired randomisation tests over queries ({FLIPS:,} sign patterns, flipped within "
            f"each task), two-sided, corrected by Holm over {text.plural(board.pairs, 'pair')}, level {LEVEL}. "
            "● marks who is not significantly worse than the best; rows that share a letter are not told apart."
        )
    return [*found, *board.notes]
