"""What a board says of itself in words, on boards that are made of a few facts."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from bench.evaluation.significance.luck import Scatter
from leaderboard.records import Basis
from leaderboard.site import captions

CLAIM = "A true difference from x of 2.0 points is detected with 80 % power."


def row(name: str, score: float | None = 0.5, seeds: int = 1, **more: Any) -> Any:
    verification = SimpleNamespace(basis=more.pop("basis", Basis.RUN_HERE))
    values = {
        "tasks": {},
        "tied": False,
        "letters": "",
        "verified": True,
        "collapsed": False,
        "point": "",
        "verification": verification,
    }
    return SimpleNamespace(name=name, score=score, seeds=tuple(range(seeds)), **{**values, **more})


def board(*rows: Any, unranked: tuple[Any, ...] = (), tasks: str = "a", **more: Any) -> Any:
    """A board of some rows, its tests and the rest as a board of official data has them."""
    scatter = SimpleNamespace(freedom=0, deviation=0.0, equal=math.nan, shared=math.nan)
    ranks = SimpleNamespace(scatter={"": more.pop("scatter", scatter)})
    reach = more.pop("detectable", None)
    systems = {each.name: SimpleNamespace(fixed=each.name in more.get("fixed", ())) for each in rows}
    values: dict[str, Any] = {
        "columns": [SimpleNamespace(task=task, queries=1000) for task in tasks],
        "headline": "Mean",
        "untested": "",
        "best": [each.name for each in rows if each.tied],
        "best_against": {"y": SimpleNamespace(detectable=reach)} if reach else {},
        "pairs": 0,
        "whole_suite": True,
        "notes": ("A note.",),
        "data": "official",
        "suite": "made",
        "title": "Made",
        "regime": "unsupervised",
        "measure": "RR@100",
        "proxy_for": "",
        "queries": 1000 * len(tasks),
    }
    tests = SimpleNamespace(ranks=ranks)
    shown = {"rows": rows, "unranked": unranked, "all_rows": rows + unranked, "tests": tests, "systems": systems}
    return SimpleNamespace(**{**values, **shown, **more})


def test_a_board_without_ranked_rows() -> None:
    """Nobody checked the one that is whole, or nobody ran everything."""
    unverified, partial = row("x", verified=False), row("y", None)
    (sentence,) = captions.verdict(board(unranked=(partial, unverified), tasks="abc"))
    assert sentence == "No system in this table has been verified yet, so none is ranked."
    (sentence,) = captions.verdict(board(unranked=(partial,), tasks="abc"))
    assert sentence == "No system has run all 3 tasks of this table yet, so none is ranked."


def test_the_finding_of_a_board() -> None:
    """Untested, alone, shared first place, and a lead with its interval, each with what its tasks and seeds are."""
    untested = captions.verdict(board(row("x"), row("y"), untested="nothing adds up"))
    assert untested == ["x has the highest Mean; nothing was tested, because nothing adds up."]
    alone = captions.verdict(board(row("x")))
    assert alone == ["x is the only ranked system, so there is nothing to compare it with."]
    first, second = row("x", tied=True, tasks={"a": 0.5}), row("y", tied=True, seeds=2, tasks={"a": 0.4})
    shared = captions.verdict(board(first, second, detectable=0.02, fixed=("x",)))
    sentence = "x and y share first place: none is significantly worse than x."
    assert shared == [sentence, "1–2 seeds per system.", f"{CLAIM} {note('y')}"]
    lead: Any = SimpleNamespace(difference=0.1, low=0.05, high=0.15, chance_text="p = 0.004", detectable=None)
    rows = row("x", tied=True, tasks={"a": 0.5, "b": 0.2, "c": 0.5}), row("y", tasks={"a": 0.4, "b": 0.3, "c": 0.5})
    sentences = captions.verdict(board(*rows, tasks="abc", best_against={"y": lead}, fixed=("x", "y")))
    assert sentences == [
        "x is significantly better than every other system; it leads y by 10.0 points (95 % [5.0, 15.0], p = 0.004).",
        "Highest score by task: x on 2 of 3 and y on 2.",
        "1 seed per system.",
    ]
    lead.low = None
    (sentence, *_) = captions.verdict(board(*rows, best_against={"y": lead}, fixed=("x", "y")))
    assert sentence.endswith("it leads y by 10.0 points (p = 0.004).")


def note(names: str) -> str:
    return f"With fewer than 3 training runs, results for {names} are about these checkpoints, not methods."


def test_many_names_are_cut_short() -> None:
    """Six that share first place and three that are ahead on a task; checkpoints beyond six are counted."""
    tasks = {name: {name: 1.0} for name in "abcde"}
    rows = tuple(row(name, tied=True, tasks=tasks.get(name, {})) for name in "abcdefgh")
    sentences = captions.verdict(board(*rows, tasks="abcde"))
    assert sentences[0].startswith("a, b, c, d, e, f and 2 more share first place")
    assert sentences[1] == "Highest score by task: a on 1 of 5, b on 1 and c on 1."
    assert captions.detectable(board(*rows)) == note("8 of 8 systems")
    assert captions.detectable(board(*rows[:6])) == note("a, b, c, d, e and f")
    assert captions.detectable(board(row("x", seeds=3), row("y", seeds=2))) == note("y")
    assert captions.detectable(board(row("x", seeds=3), detectable=0.02)) == CLAIM


@pytest.mark.parametrize(
    ("data", "proxy", "expected"),
    [
        ("official", "", "Made, official data, unsupervised; 2,000 queries in 2 tasks, 1 system."),
        (
            "official",
            "Real",
            (
                "Made (substitute for Real: not comparable with published numbers), unsupervised; "
                "2,000 queries in 2 tasks, 1 system."
            ),
        ),
        ("mini", "", "Made, mini data, unsupervised; 2,000 queries in 2 tasks, 1 system."),
    ],
)
def test_captions(data: str, proxy: str, expected: str) -> None:
    """Captions name the kind of data; a substitute is no official data."""
    shown = board(row("x"), tasks="ab", data=data, proxy_for=proxy)
    assert captions.caption(shown) == f"RR@100, percent; {expected}"
    assert captions.heading(shown) == f"{expected.partition(',')[0].partition(' (')[0]} · unsupervised"


def test_how_numbers_were_computed() -> None:
    """Each sentence where the board has what it is about, the board's own notes last."""
    lettered = board(row("x", letters="a"), pairs=1, detectable=0.01)
    starts = [sentence.partition(":")[0] for sentence in captions.methodology(lettered)]
    assert starts == ["Score", "Interval", "Grey band", "Rank, ● and letters", "A note."]
    bare = captions.methodology(board(row("x"), tasks="ab", whole_suite=False, untested="why"))
    own = "Score: the unweighted mean of these 2 tasks, not an average the suite defines."
    assert bare == [own, "A note."]
    assert captions.methodology(board(row("x"), whole_suite=False, untested="why"))[0] == "Score: Mean."
    rows = row("x", basis=Basis.RECOMPUTED), row("y")
    sentences = captions.methodology(board(*rows, unranked=(row("z", verified=False),), untested="why", pairs=1))
    assert [sentence.split()[0] for sentence in sentences] == ["Score:", "Rank", "Rows", "Recomputed", "A"]
    assert "letter" not in sentences[1]


@pytest.mark.parametrize(
    ("equal", "shared", "outcome"),
    [
        (math.nan, math.nan, "; whether it is the same for all systems cannot be tested."),
        (
            0.24,
            0.4,
            (
                ", of whose variance systems of the same seed share 40%; scatter unequal: a system that scatters more "
                "counts with its own value (Bartlett's test, p = 0.24)."
            ),
        ),
        (
            0.25,
            math.nan,
            (
                "; so alike that one value serves all, which with few seeds is little evidence (Bartlett's test, "
                "p = 0.25)."
            ),
        ),
        (
            0.7,
            0.0,
            (
                ", of whose variance systems of the same seed share 0%; too few seeds to tell, so a system that "
                "scatters more counts with its own value (Bartlett's test, p = 0.7)."
            ),
        ),
    ],
)
def test_the_scatter_of_training_runs(equal: float, shared: float, outcome: str) -> None:
    """What Bartlett's test says at the level of pooling, what is done then, and what seeds have in common."""
    pooled = math.isnan(equal) or equal == 0.25
    scatter = Scatter(freedom=8, deviation=0.012, equal=equal, shared=shared, pooled=pooled)
    sentences = captions.methodology(board(row("x"), pairs=1, scatter=scatter))
    start = "Training runs of one system have a standard deviation of 1.2 points (pooled over systems, 8 degrees of "
    assert sentences[-2] == f"{start}freedom){outcome}"


def test_banners() -> None:
    """Of mini and local data, and of substitutes; the kind is what stands before a hyphen."""
    assert captions.banner("official") == ""
    assert captions.banner("mini-few-names") == captions.BANNERS["mini"]
    note_of_substitute = "Substitute for Real: not comparable with published numbers."
    assert captions.banner("local", "Real") == f"{captions.BANNERS['local']} {note_of_substitute}"
    assert captions.notes("official", "") == ()
    substitute = "substitute for Real: not comparable with published numbers"
    assert captions.notes("mini", "Real") == ("mini data: not comparable with official numbers", substitute)
