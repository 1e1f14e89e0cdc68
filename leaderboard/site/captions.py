"""Boards in words: title, first sentence, caption, methods, and the notes on data that are not official."""

import math

from bench.core.publications import mark
from bench.evaluation.significance.estimates import TRAININGS
from bench.evaluation.significance.families import COVERAGE, LEVEL
from bench.evaluation.tables import chance_text
from leaderboard.records import ONLY_RECOMPUTED, UNVERIFIED, State
from leaderboard.site import text
from leaderboard.site.boards import Board
from leaderboard.site.site import FIRST
from leaderboard.site.statistics import HEADLINE


def title(board: Board) -> str:
    """Return the title of a page; mini data are part of every title."""
    return board.title if board.data == "official" else f"{board.data}/{board.suite}"


def of_data(name: str, data: str) -> str:
    """Return the title of a page on one kind of data, which all but official data name."""
    return name if data == FIRST else f"{name} · {data} data"


def sentence(board: Board) -> str:
    """Return the finding of a table, from tested facts only: who is best, and how small a difference it can detect."""
    if not board.rows and any(row.score is not None for row in board.unranked):
        return "No system of this table was verified yet, so none is ranked."
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
    lead = board.best_against[second]
    bounds = "" if lead.low is None or lead.high is None else f", 95 % {text.bounds(lead.low, lead.high)}"
    return (
        f"{first} is best, significantly so against each of the others; it leads {second} by "
        f"{text.number(lead.difference)} points{bounds}, {chance_text(lead.adjusted)}."
    )


def unseen(board: Board) -> str:
    """Return what the tests can show, and of what: methods, or these checkpoints."""
    least, few = board.tests.ranks.detectable, few_trainings(board)
    power = f"A true difference must be about {text.number(least or 0)} points to be found here four times out of five."
    scope = (
        f"With fewer than {TRAININGS} trainings, what is found of {text.listed(few)} holds for these checkpoints, not "
        "for their methods."
    )
    return " ".join([*([power] if least is not None else []), *([scope] if few else [])])


def few_trainings(board: Board) -> list[str]:
    """Return the ranked rows of which nothing is said beyond these checkpoints."""
    few = [row.name for row in board.rows if len(row.seeds) < TRAININGS]
    return [name for name in few if not board.systems[name].first.deterministic]


def about(board: Board) -> str:
    """Return data, measure and numbers of queries, tasks and seeds in a line."""
    seeds = sorted({len(row.seeds) for row in board.every})
    several = f"{seeds[0]}–{seeds[-1]} seeds" if len(seeds) > 1 else text.plural(seeds[0], "seed")
    return " · ".join(
        (
            *([] if board.stands_for and board.data == FIRST else [f"{board.data} data"]),
            board.measure,
            text.plural(board.queries, "query", "queries"),
            text.plural(len(board.columns), "task"),
            several,
        )
    )


def caption(board: Board) -> str:
    """Return measure, unit, data, setting, numbers of queries, tasks and systems; substitutes are marked."""
    what = f"{title(board)} ({mark(board.stands_for)})" if board.stands_for else title(board)
    kind = "" if board.stands_for and board.data == FIRST else f" {board.data} data,"
    return (
        f"{board.measure}, percent; {what},{kind} {board.setting}; "
        f"{text.plural(board.queries, 'query', 'queries')} in {text.plural(len(board.columns), 'task')}, "
        f"{text.plural(len(board.rows) + len(board.unranked), 'system')}."
    )


def method(board: Board) -> list[str]:
    """Return how the numbers were computed, a sentence each."""
    found = [f"Score: {board.headline.removesuffix('.')}."]
    if not board.whole and len(board.columns) > 1:
        found = [f"Score: the unweighted mean of these {len(board.columns)} tasks, not an average of the suite's own."]
    if not board.untested:
        found.append(
            f"Intervals: {100 * COVERAGE:.0f} %, Student's with a correction for skewness, over questions within each "
            f"task, and over trainings where a system has {TRAININGS} or more; ticks are seeds. A hollow mark is one "
            "seed: its interval excludes training variation. Of fewer than 100 queries they can be too short. "
            "Overlapping intervals do not mean a tie: the tests are paired."
        )
    if board.pairs:
        found.append(
            f"Rank, ● and letters: paired tests over questions and trainings, two-sided, corrected over "
            f"{text.plural(board.pairs, 'pair')} together (step-down, Westfall and Young), level {LEVEL}; the map and "
            "the tests of single tasks are corrected over all pairs and tasks. ● marks systems not significantly worse "
            "than the best; rows with a letter in common do not differ significantly."
        )
        found += _scatter(board)
    if any(not row.state.verified for row in board.every):
        found.append(
            f"Rows marked {UNVERIFIED} are as they were handed in: not all of their numbers could be recomputed, so "
            "they have no rank and take part in no test."
        )
    if any(row.state is State.RECOMPUTED for row in board.rows):
        found.append(f"{ONLY_RECOMPUTED}.")
    return [*found, *board.notes]


def _scatter(board: Board) -> list[str]:
    """Say how trainings scatter, and whether all systems do alike, as the tests assume."""
    scatter = board.tests.ranks.scatter[HEADLINE]
    if not scatter.freedom:
        return []
    said = (
        f"One training scatters by {text.number(scatter.deviation)} points (standard deviation pooled over systems, "
        f"{scatter.freedom} degrees of freedom)"
    )
    if math.isnan(scatter.equal):
        return [f"{said}; whether all systems scatter alike cannot be tested."]
    verdict = "some more than others, so the larger deviation counts" if scatter.equal < LEVEL else "no sign of unequal"
    return [f"{said}; {verdict} (Bartlett, {chance_text(scatter.equal)})."]


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
