"""Boards: who is ranked, on what, and what the tests leave open."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from bench.core.errors import StoreError
from bench.evaluation.measures.evaluate import mean
from bench.evaluation.results import results as read_results
from bench.evaluation.results.format import Average
from bench.evaluation.significance.allocation import common_luck, needs
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.families import intervals, stratified
from bench.testing import fields
from bench.types import Macro
from leaderboard.pages.suites import _buys
from leaderboard.site.boards import Board, boards
from leaderboard.site.columns import TableRow, View, board_json, columns
from leaderboard.site.systems import System
from tests.conftest import cases
from tests.leaderboard.conftest import Bundle, Publisher, values

BOTH = (Macro("Avg. (2)", ("made/a", "made/b")),)


def only(results: Path) -> Board:
    (board,) = boards(read_results(results))
    return board


def three(publish_result: Publisher) -> None:
    """A clearly best system, and two of one strength, over a long and a short task."""
    for label, level, seeds in (("best", 0.8, (1, 2)), ("mid", 0.4, (1, 2)), ("twin", 0.4, (5, 6))):
        tasks = {"made/a": {"": values(level, seeds[0], 60)}, "made/b": {"": values(level, seeds[1], 25)}}
        publish_result(label, tasks, macros=BOTH)


def test_numbers_are_those_of_the_results(publish_result: Publisher, results: Path) -> None:
    """Scores, averages, intervals and tests, worked out again; twins share the places behind the best."""
    three(publish_result)
    board = only(results)
    assert board.rows[0].name == "best"
    assert (board.headline, board.whole_suite, board.measure) == ("Avg. (2)", True, "RR@100")
    assert (board.queries, board.pairs) == (85, 3)
    assert [(column.name, column.queries) for column in board.columns] == [("a", 60), ("b", 25)]
    best = board.rows[0]
    a, b = values(0.8, 1, 60), values(0.8, 2, 25)
    assert best.tasks == {"made/a": pytest.approx(mean(a)), "made/b": pytest.approx(mean(b))}
    assert best.score == best.averages["Avg. (2)"] == pytest.approx((mean(a) + mean(b)) / 2)
    assert (best.low, best.high) == pytest.approx(intervals({"": Sample({"a": a, "b": b})}, {"a": 1.0, "b": 1.0})[""])
    comparison = board.best_against["mid"]
    pair = stratified({"a": (a, values(0.4, 1, 60)), "b": (b, values(0.4, 2, 25))})
    assert (comparison.difference, comparison.low, comparison.wins) == pytest.approx(
        (pair.difference, pair.low, pair.wins)
    )
    assert comparison.p_uncorrected == pytest.approx(pair.p_uncorrected)
    assert pair.p_uncorrected <= comparison.adjusted <= 3 * pair.p_uncorrected, "the clearest of three pairs"
    assert {row.name: (row.ranks, row.tied) for row in board.rows} == {
        "best": ((1, 1), True),
        "mid": ((2, 3), False),
        "twin": ((2, 3), False),
    }
    assert board.best == ["best"]


def test_one_system_or_one_query(publish_result: Publisher, results: Path) -> None:
    """One system has an interval and no rank; one query has no spread, and a point would pretend certainty."""
    publish_result("only", {"made/a": {"": [0.1, 0.9, 0.5]}})
    (row,) = only(results).rows
    assert row.score == pytest.approx(0.5)
    assert (row.ranks, row.tied) == (None, False)
    assert row.low is not None
    assert row.low < 0.5
    publish_result("only", {"made/a": {"": [0.5]}})
    publish_result("two", {"made/a": {"": [0.7]}})
    assert [(row.low, row.tied) for row in only(results).rows] == [(None, True), (None, True)]


def test_an_incomplete_system_has_no_average_and_no_rank(publish_result: Publisher, results: Path) -> None:
    """It is listed behind, with what it has."""
    three(publish_result)
    publish_result("partial", {"made/a": {"": values(0.99, 9, 60)}}, macros=BOTH)
    board = only(results)
    assert [row.name for row in board.unranked] == ["partial"]
    assert board.unranked[0].score is None
    assert set(board.unranked[0].tasks) == {"made/a"}
    assert board.pairs == 3


def test_without_an_average_of_the_suite(publish_result: Publisher, results: Path) -> None:
    """The mean of what is there, and no claim to be the suite's."""
    publish_result(
        "x", {"made/a": {"": [0.2, 0.4]}, "made/b": {"": [0.8, 0.6]}}, macros=(Macro("All", ("made/a", "made/c")),)
    )
    board = only(results)
    assert (board.headline, board.whole_suite) == ("Mean of 2 tasks", False)
    assert board.rows[0].score == pytest.approx(0.5)


def test_subsets_count_alike_within_their_task(publish_result: Publisher, results: Path) -> None:
    """Tatoeba's directions: the task is their mean, however many queries each has."""
    macros = (Macro("Avg.", ("made/fra-eng", "made/deu-eng")),)
    tasks = {
        "made/fra-eng": {"fra-eng": [1.0] * 3, "eng-fra": [0.0] * 9},
        "made/deu-eng": {"deu-eng": [0.9] * 4, "eng-deu": [0.7] * 4},
    }
    publish_result("x", tasks, macros=macros)
    halves = {
        task: {subset: [v / 2 for v in column] for subset, column in subsets.items()} for task, subsets in tasks.items()
    }
    publish_result("y", halves, macros=macros)
    board = only(results)
    assert (board.headline, board.averages, board.untested) == ("Avg.", ("Avg.",), "")
    assert [row.score for row in board.rows] == pytest.approx([0.65, 0.325])
    assert board.best_against["y"].difference == pytest.approx(0.325)
    assert board.queries == 20
    assert (board.over_tasks, board.reliability) == ({}, None), "two tasks are too few to be a sample"


def test_the_best_row_is_compared_over_tasks(publish_result: Publisher, results: Path) -> None:
    """From three tasks on, by Student's t over them; subsets weigh as in the score; files have the row's numbers."""
    noise = [0.01 * at for at in range(-10, 10)]
    gains = {"a": 0.3, "b": 0.2, "c": 0.4}
    for label, share in (("x", 1.0), ("y", 0.0)):
        tasks = {
            f"made/{task}": {
                subset: [0.4 + share * gain + value for value in (noise if label == "x" else reversed(noise))]
                for subset in (("p", "q") if task == "c" else ("",))
            }
            for task, gain in gains.items()
        }
        publish_result(label, tasks, system={"deterministic": True})
    board = only(results)
    expected = ttest_rel(list(gains.values()), [0.0] * 3)
    interval = expected.confidence_interval()
    assert list(board.over_tasks) == ["y"]
    compared = board.over_tasks["y"]
    assert compared.difference == pytest.approx(0.3) == pytest.approx(board.best_against["y"].difference)
    assert (compared.low, compared.high, compared.p_uncorrected) == pytest.approx(
        (interval.low, interval.high, expected.pvalue)
    )
    assert (compared.wins, compared.ties, compared.tasks, compared.better_in) == (3, 0, 3, 3)
    for view in (View.CSV, View.JSON):
        keys = [column.key for column in columns(board, view) if column.key.startswith("over_tasks")]
        assert keys == (["over_tasks"] if view is View.JSON else [f"over_tasks_{name}" for name in vars(compared)])
        cells = [
            column.take(TableRow(board, row))
            for row in board.rows
            for column in columns(board, view)
            if column.key in keys
        ]
        numbers = {
            name: round(value, 6) if isinstance(value, float) else value for name, value in vars(compared).items()
        }
        assert cells == ([None, numbers] if view is View.JSON else [None] * len(keys) + [*numbers.values()])


def test_reliability_leaves_out_what_no_training_changes(publish_result: Publisher, results: Path) -> None:
    """By the values of the rows; a fixed system far above does not raise it."""
    levels = {"x": (0.5, 0.6, 0.7), "y": (0.4, 0.4, 0.7), "z": (0.3, 0.5, 0.4), "bm25": (0.9, 0.9, 0.9)}
    for label, row in levels.items():
        tasks = {f"made/{task}": {"": [level, level]} for task, level in zip("abc", row, strict=True)}
        publish_result(label, tasks, system={"deterministic": label == "bm25"})
    table = np.array([levels[name] for name in "xyz"])
    residual = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    within = (residual**2).sum() / 4
    between = 0.01 - within / 3
    measured = only(results).reliability
    assert measured is not None
    assert measured.coefficient == pytest.approx(between / 0.01)
    assert (measured.systems, measured.tasks) == (3, 3)
    assert measured.tasks_needed == math.ceil(19 * within / between)
    assert json.loads(board_json(only(results)))["reliability"] == {
        "coefficient": round(measured.coefficient, 6),
        "tasks_needed": measured.tasks_needed,
        "systems": 3,
        "tasks": 3,
    }


@pytest.mark.parametrize(
    ("names", "shown"), [("a", []), ("ab", ["made/a", "made/b"]), ("abc", ["made/a", "made/b", "made/c"])]
)
def test_the_only_task_is_printed_once(names: str, shown: list[str], publish_result: Publisher, results: Path) -> None:
    """As the headline; of several tasks each has a column in print, and always in files."""
    tasks = {f"made/{name}": {"": [0.4, 0.2]} for name in names}
    for label in ("x", "y"):
        publish_result(label, tasks)
    board = only(results)
    assert [column.key for column in columns(board, View.PRINT) if column.group == "tasks"] == shown
    assert [column.key for column in columns(board, View.CSV) if column.group == "tasks"] == list(tasks)


def test_seeds_are_averaged_per_query(publish_result: Publisher, results: Path) -> None:
    """The row is the mean over seeds; its interval is over trainings too, and stays within what a measure can be."""
    for seed, column in enumerate(([0.0, 0.4, 1.0], [0.2, 0.6, 1.0], [0.1, 0.2, 0.9])):
        publish_result("x", {"made/a": {"": column}}, seed=seed)
    (row,) = only(results).rows
    assert row.seeds == (0, 1, 2)
    assert row.score == pytest.approx(4.4 / 9)
    assert row.seed_scores == pytest.approx((1.4 / 3, 0.6, 0.4))
    assert (row.low, row.high) == (0.0, 1.0), "three queries say next to nothing"


def test_a_seed_with_fewer_tasks_is_left_out_and_named(publish_result: Publisher, results: Path) -> None:
    """Else the columns would rest on different seeds."""
    full = {"made/a": {"": [0.5, 0.7]}, "made/b": {"": [0.1, 0.2]}}
    publish_result("x", full, seed=0)
    publish_result("x", {"made/a": {"": [0.9, 0.9]}}, seed=1)
    board = only(results)
    assert board.rows[0].seeds == (0,)
    assert board.notes == ("x: seed 1 lacks tasks that other seeds have, and is left out.",)


def test_two_systems_of_one_label_are_told_apart(publish_result: Publisher, results: Path) -> None:
    """By their hashes."""
    paths = [publish_result("x", {"made/a": {"": [0.5, 0.6]}}, system={"version": version}) for version in "12"]
    hashes = [json.loads(path.read_text())["system"]["hash"][:8] for path in paths]
    assert {row.name for row in only(results).rows} == {f"x ({hash_})" for hash_ in hashes}
    assert len({*hashes}) == 2


@pytest.mark.parametrize("members", [True, False])
def test_an_average_is_tested_where_its_members_are_known(
    publish_result: Publisher, results: Path, *, members: bool
) -> None:
    """A nested mean has its value by hand; ranks come from a test that weighs the tasks as it does, or from none."""
    macros = (Macro("Avg. (2)", ("made/a", Macro("forums", ("made/f/x", "made/f/y")))),)
    for label, level in (("p", 0.3), ("q", 0.6)):
        tasks = {f"made/{name}": {"": [level, level / (i + 2)]} for i, name in enumerate(("a", "f/x", "f/y"))}
        path = publish_result(label, tasks, macros=macros)
        if not members:
            Bundle(path.parent).rewrite(lambda content: [average.pop("members") for average in content["macro"]])
    board = only(results)
    assert board.rows[0].score == pytest.approx((0.45 + (0.4 + 0.375) / 2) / 2)
    assert [row.ranks is not None for row in board.rows] == [members] * 2
    assert board.untested == ("" if members else "these results do not say which tasks Avg. (2) averages")


def test_members_give_nested_weights(publish_result: Publisher, results: Path) -> None:
    """Where a result names its average's members, a nested mean counts as one of them."""
    publish_result("x", {f"made/{name}": {"": [0.5]} for name in ("a", "f/x", "f/y")})
    (result,) = read_results(results)
    average = Average(name="A", measures={}, members=["made/a", ["made/f/x", "made/f/y"]])
    content = result.content.model_copy(update={"macro": [average]})
    system = System("x", (type(result)(result.path, content),))
    assert system.headline_weights([column.task for column in only(results).columns], "A") == {
        ("made/a", ""): 0.5,
        ("made/f/x", ""): 0.25,
        ("made/f/y", ""): 0.25,
    }


def test_kinds_of_data_and_settings_stand_apart(publish_result: Publisher, results: Path) -> None:
    """A board each; official ones first."""
    kinds = {"mini": "mini/made/a", "mini-few-names": "mini-few-names/made/a", "official": "made/a", "local": "made/a"}
    for data, task in kinds.items():
        publish_result("x", {task: {"": [0.5]}}, data=data)
    publish_result("x", {"made/a": {"": [0.5]}}, heading={"regime": "english"})
    shown = [(board.data, board.regime) for board in boards(read_results(results))]
    unsupervised = [(data, "unsupervised") for data in ("official", "mini", "mini-few-names", "local")]
    assert shown == [("official", "english"), *unsupervised]
    assert {column.name for board in boards(read_results(results)) for column in board.columns} == {"a"}


@pytest.mark.parametrize(("options", "fault"), cases("what-must-not-be-paired"))
def test_what_must_not_be_paired(publish_result: Publisher, results: Path, options: dict[str, Any], fault: str) -> None:
    """As many other questions, or another version of the suite, which may score otherwise."""
    publish_result("x", {"made/a": {"": [0.5, 0.6]}})
    publish_result("y", {"made/a": {"": [0.5, 0.6]}}, **options)
    with pytest.raises(StoreError, check=fields(found=fault)):
        boards(read_results(results))


def test_dev_tasks_rank_nobody(publish_result: Publisher, results: Path) -> None:
    """They are read, and neither a column nor a lack of others; a result of dev tasks alone makes no board."""
    publish_result("crop", {"made/a": {"": [0.5, 0.25]}, "made/a@dev": {"": [1.0]}})
    publish_result("bm25", {"made/a": {"": [0.25, 0.25]}})
    publish_result("msm", {"other/a@dev": {"": [1.0]}}, suite="other")
    (board,) = boards(read_results(results))
    assert [column.task for column in board.columns] == ["made/a"]
    assert [(row.name, row.score) for row in board.rows] == [("crop", 0.375), ("bm25", 0.25)]
    assert not board.unranked


def test_order_of_names_decides_no_rank(publish_result: Publisher, results: Path) -> None:
    """The worse system comes first in the alphabet, and behind the better one on the board."""
    for label, level, seed in (("a-weak", 0.3, 1), ("z-strong", 0.8, 2)):
        publish_result(label, {"made/a": {"": values(level, seed, 60)}})
    assert {row.name: (row.ranks, row.tied) for row in only(results).rows} == {
        "z-strong": ((1, 1), True),
        "a-weak": ((2, 2), False),
    }


def test_an_open_gain_says_what_would_decide_it(publish_result: Publisher, results: Path) -> None:
    """As `bench compare --next` does; a dash for one that is decided, and where trainings are too few to say."""
    draw = np.random.default_rng(8)
    gains: dict[str, tuple[float, ...]] = {
        "open": (0.02, -0.005, 0.03),
        "clear": (0.30, 0.31, 0.29),
        "few": (0.02, 0.01),
    }
    for label, by_seed in gains.items():
        for seed, gain in enumerate(by_seed):
            start = 0.3 + 0.1 * draw.random(200)
            trained = {"train": f"{label}{seed}"}
            for name, level, keys in ((f"{label}@init", 0.0, dict[str, str]()), (label, gain, trained)):
                tasks = {f"made/{task}": {"": list(start + level + 0.02 * draw.random(200))} for task in "abc"}
                subset = {"keys": {"init": f"{label}{seed}", **keys}}
                publish_result(name, tasks, seed=seed, system={"deterministic": False}, subset=subset)
    board = only(results)
    bought = {name: _buys(board, name, start) for name, start in board.tests.gains.pairs()}
    comparison = board.tests.gains.comparison("open", "open@init")
    single = [board.tests.cells.comparison("open", "open@init", f"made/{task}") for task in "abc"]
    needed = needs(comparison, 3, common_luck(comparison, single))
    assert needed is not None
    assert needed.seeds is not None
    assert bought["open"].startswith(f"{needed.seeds} seeds")
    assert (bought["clear"], bought["few"]) == ("—", "—")
