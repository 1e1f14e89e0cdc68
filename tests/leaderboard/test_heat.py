"""The map by task, and the languages of tasks."""

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.evaluation.results import results as read_results
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.families import family
from bench.types import Macro
from leaderboard.site import heat
from leaderboard.site.boards import Board, boards
from leaderboard.site.curves import COLOURS, MARKED
from leaderboard.site.languages import average, groups, split_by_pretraining
from tests.leaderboard.conftest import Build, Publisher, values

STYLES = Path(heat.__file__).parents[1] / "static" / "css"
NOISE = {"crop": 11, "bm25": 12, "msm": 13}


@pytest.fixture
def board(publish_result: Publisher, results: Path) -> Board:
    """Three systems on two tasks: far better on one, about the same on the other; a fourth without the second task."""
    for label, a, b in (("crop", 0.8, 0.51), ("bm25", 0.4, 0.5), ("msm", 0.5, 0.3)):
        publish_result(label, {"made/a": {"": values(a, len(label))}, "made/b": {"": values(b, NOISE[label])}})
    publish_result("part", {"made/a": {"": values(0.7, 5)}})
    (board,) = boards(read_results(results))
    return board


def test_bins() -> None:
    """Seven of one width; the ends take what lies outside; symmetric."""
    scale = heat.Scale(0.35, 0.2, 0.9)
    assert [scale.difference(gap) for gap in (-1.0, -0.3, -0.2, -0.04, 0.0, 0.04, 0.2, 0.3, 1.0)] == [
        0, 0, 1, 3, 3, 3, 5, 6, 6,
    ]  # fmt: skip
    assert [scale.value(value) for value in (0.0, 0.2, 0.55, 0.9)] == [0, 0, 3, 6]


def made(*rows: tuple[str, bool, list[float]]) -> Any:
    """A board of rows by name, whether they are verified, and their values on tasks `a`, `b` and so on."""
    made_rows = [
        SimpleNamespace(
            name=name,
            verified=verified,
            tasks=dict(zip("abcdefghij", numbers, strict=False)),
            system=SimpleNamespace(method=name),
        )
        for name, verified, numbers in rows
    ]
    ranked = [row for row in made_rows if row.verified]
    return SimpleNamespace(
        rows=ranked, all_rows=made_rows, columns=[SimpleNamespace(task=task) for task in "abcdefghij"]
    )


@pytest.mark.parametrize(
    ("gaps", "limit"),
    [
        ([0.05] * 9 + [0.9], 0.05),  # with ten zeros of the baseline itself, 18 of 20 lie within the limit
        ([0.06] * 9 + [0.9], 0.1),
        ([0.11] * 10, 0.2),
        ([0.21] * 10, 0.4),
        ([0.41] * 10, 1.0),
    ],
)
def test_the_limit_of_colours(gaps: list[float], limit: float) -> None:
    """The smallest step that nine of ten differences stay within; values run from tenth to tenth."""
    shown = made(("crop", True, gaps), ("bm25", True, [0.0] * 10))
    highest = 1.0 if 0.9 in gaps else math.ceil(10 * max(gaps)) / 10
    assert heat.scale([shown]) == heat.Scale(limit, 0.0, 0.9 if 0.9 in gaps else highest)


def test_what_decides_colours() -> None:
    """Verified rows alone, unless there are none; of one value the strongest colour lies a tenth above the palest."""
    verified, unverified = ("x", True, [0.25, 0.45]), ("y", False, [0.05, 0.95])
    assert heat.scale([made(verified, unverified)]) == heat.Scale(0.05, 0.2, 0.5)
    assert heat.scale([made(unverified)]) == heat.Scale(0.05, 0.0, 1.0)
    assert heat.scale([made(("x", True, [0.5]))]) == heat.Scale(0.05, 0.5, 0.6)
    assert heat.baseline(made(verified)) is None
    assert heat.baseline(made(unverified, ("z", False, [0.1]))) is None
    last = heat.baseline(made(verified, ("y", True, [0.1])))
    assert last is not None
    assert last.name == "y", "the last in rank where there is no BM25"


def test_cells() -> None:
    """By hand: bins of difference and value, whether the difference is clear, and nothing where a task is missing."""
    shown = made(("crop", True, [0.9, 0.5]), ("bm25", True, [0.5]))
    crop, base = shown.rows
    colours = heat.Scale(0.7, 0.0, 1.0)
    cells = heat.cells(shown, crop, base, frozenset({("crop", "a")}), colours)
    assert cells[:3] == (heat.HeatCell(0.9, 0.4, "d5 s a6"), heat.HeatCell(0.5, None, "a3"), None)
    assert heat.cells(shown, crop, base, frozenset(), colours)[0] == heat.HeatCell(0.9, 0.4, "d5 u a6")
    assert heat.cells(shown, base, base, frozenset(), colours)[0] == heat.HeatCell(0.5, 0.0, "a3")
    assert heat.cells(shown, crop, None, frozenset(), colours)[0] == heat.HeatCell(0.9, None, "a6")


def test_the_style_has_a_colour_for_each_bin() -> None:
    """Of differences and of values; and for each line of a panel, of whom the first half are thick."""
    style = "".join(path.read_text() for path in sorted(STYLES.glob("*.css")))
    for kind, count in (("d", heat.BINS), ("a", heat.BINS), ("l", MARKED)):
        declared = re.findall(rf"(?:^| )\.{kind}(\d+) {{ (?:color|--)", style, re.MULTILINE)
        assert sorted(map(int, declared)) == list(range(count)), kind
    (thin,) = {tuple(group.split(", ")) for group in re.findall(r"\.curve :is\((.+?)\) path", style)}
    assert thin == tuple(f".l{number}" for number in range(COLOURS, MARKED))


def test_the_baseline(board: Board, publish_result: Publisher, results: Path) -> None:
    """BM25 where it is there; one limit for all settings, the smallest step that holds nine differences of ten.

    One system has no baseline: there is nothing to compare it with.
    """
    publish_result("crop", {"single/a": {"": [0.5, 0.25]}}, suite="single")
    single = next(board for board in boards(read_results(results)) if board.suite == "single")
    assert heat.baseline(single) is None
    assert heat.scale([single]).low < heat.scale([single]).high
    base = heat.baseline(board)
    assert base is not None
    assert base.name == "bm25"
    assert heat.scale([board]) == heat.scale([board, board])
    assert heat.scale([board]).limit == 0.4


def test_clear_differences_are_those_of_the_tests(board: Board) -> None:
    """Worked out again from the values: one family over all pairs on both tasks, the part without the second."""
    base = heat.baseline(board)
    assert base is not None
    systems = {"crop": (0.8, 4, 0.51), "msm": (0.5, 3, 0.3), "part": (0.7, 5, None), "bm25": (0.4, 4, 0.5)}
    samples = {
        name: Sample({"a": values(a, seed)} | ({} if b is None else {"b": values(b, NOISE[name])}))
        for name, (a, seed, b) in systems.items()
    }
    tests = family(samples, {"a": {"a": 1.0}, "b": {"b": 1.0}})
    expected = {
        (name, f"made/{task}")
        for task in ("a", "b")
        for name in systems
        if tests.has(name, "bm25", task) and tests.comparison(name, "bm25", task).decided
    }
    assert heat.significant(board, base) == expected
    assert ("part", "made/a") in expected
    assert ("crop", "made/b") not in expected
    rows = board.all_rows
    digits = heat.bits(board, base, rows)
    assert len(digits) == len(rows) * 2
    assert digits.count("1") == len(expected)


MRTYDI = ("ar", "bn", "en", "fi", "id", "ja", "ko", "ru", "sw", "te", "th")


def test_groups_by_hand() -> None:
    """Scripts and families of two languages or more, others together; of a pair what is not English."""
    by_property = {(group.by, group.name): " ".join(group.tasks) for group in groups({name: name for name in MRTYDI})}
    assert by_property == {
        ("Script", "Latin"): "en fi id sw",
        ("Script", "other"): "ar bn ja ko ru te th",
        ("Resource class", "4–5"): "ar en fi ja ko ru",
        ("Resource class", "3"): "bn id th",
        ("Resource class", "0–2"): "sw te",
        ("Family", "Indo-European"): "bn en ru",
        ("Family", "other"): "ar fi id ja ko sw te th",
    }
    pairs = {name: name for name in ("eng-fra", "deu-eng", "eng-rus", "bul-eng")}
    counts = [("Cyrillic", 2), ("Latin", 2), ("3", 1), ("4–5", 3)]
    assert [(group.name, len(group.tasks)) for group in groups(pairs)] == counts
    assert groups({name: name for name in ("arguana", "fiqa", "nq", "quora")}) == []
    assert groups({name: name for name in ("de", "en", "fr")}) == [], "too few"
    assert average({"a": 0.5, "b": 0.25}, ("a", "b")) == 0.375
    assert average({"a": 0.5}, ("a", "b")) is None


def test_a_board_shows_its_groups(publish_result: Publisher, results: Path, site: Build) -> None:
    """Means of the tasks by hand; languages of the corpus are those that its preparation counted."""
    names = ("ar", "en", "fi", "ru")
    macros = (Macro("Avg.", tuple(f"made/{name}" for name in names)),)
    tasks = {f"made/{name}": {"": [0.1 * at + 0.1]} for at, name in enumerate(names)}
    metadata: dict[str, Any] = {"metadata": {"prepare": {"languages": {"ar": {}, "en": {}, "ja": {}}}}}
    publish_result("crop", tasks, macros=macros, system={"budget": 5}, subset=metadata)
    publish_result("bm25", tasks, macros=macros)
    (board,) = boards(read_results(results))
    titles = {column.task: column.name for column in board.columns}
    assert split_by_pretraining(board.systems["crop"], titles) == ({"made/ar", "made/en"}, {"made/fi", "made/ru"})
    assert split_by_pretraining(board.systems["bm25"], titles) == (set(), set())
    page = site()["suites/made/unsupervised.html"].decode()
    row = page[page.index('id="languages"') :].partition('<th scope="row">crop</th>')[2].partition("</tr>")[0]
    cells = [cell.partition("<")[0].strip() for cell in row.split('<td class="n">')[1:]]
    assert cells == ["25.0", "25.0", "30.0", "20.0", "15.0", "35.0"], (
        "Latin, other; Indo-European, other; split_by_pretraining, not"
    )
