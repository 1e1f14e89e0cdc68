"""Rows that a reader must be told of: a collapsed one has no rank, one whose readout is a guess has its rank."""

import csv
import json
from pathlib import Path

import pytest
import yaml

from bench.evaluation.eval_results import eval_results
from bench.evaluation.results import results as read_results
from bench.evaluation.results.read import result
from leaderboard.build import files
from leaderboard.site.boards import Board, boards
from leaderboard.site.export import export
from tests.leaderboard.conftest import Publisher, site_of, values

STEM = "suites/made/unsupervised"
COLLAPSED = "collapsed: one vector for different texts of made/a; no rank"
GUESS = "read by our guess: it has no modules.json"
FLAT = {"metadata": {"encode-2": {"collapsed": True}}}


@pytest.fixture
def board(publish_result: Publisher, results: Path) -> Board:
    """Two systems like others, of which one is read by a guess, and one that collapsed with one seed of two."""
    publish_result("good", {"made/a": {"": values(0.6, 1)}}, subset={"resolved": {"guess": "it has no modules.json"}})
    publish_result("poor", {"made/a": {"": values(0.2, 1)}})
    publish_result("flat", {"made/a": {"": [1.0] * 40}}, subset=FLAT, system={"budget": 1})
    publish_result("flat", {"made/a": {"": values(0.9, 2)}}, seed=1, system={"budget": 1})
    (board,) = boards(read_results(results))
    return board


def test_a_collapsed_row_has_no_rank_and_changes_no_other(board: Board, results: Path) -> None:
    """The board is the one without it, though one of its seeds did not collapse."""
    assert [row.name for row in board.rows] == ["good", "poor"]
    (row,) = board.unranked
    assert (row.name, row.seeds, row.ranks, row.tied) == ("flat (collapsed)", (0, 1), None, False)
    (other,) = boards([result for result in read_results(results) if result.content.system.label != "flat"])
    assert (other.rows, other.headline) == (board.rows, board.headline)


@pytest.mark.usefixtures("board")
def test_marks_stand_wherever_a_row_shows(results: Path) -> None:
    """On the board's page and the row's, in CSV, JSON and print, in each kind of export; other rows have none."""
    site_files = files(site_of(results))
    page = site_files[f"{STEM}.html"].decode()
    for words in (COLLAPSED, GUESS, "flat (collapsed)", "neither ranked nor tested"):
        assert words in page, words
    rows = {row["system"]: row for row in csv.DictReader(site_files[f"{STEM}.csv"].decode().splitlines())}
    assert {name: row["marks"] for name, row in rows.items()} == {
        "flat (collapsed)": COLLAPSED,
        "good": GUESS,
        "poor": "",
    }
    assert rows["flat (collapsed)"]["ranks"] == ""
    as_json = json.loads(site_files[f"{STEM}.json"])["rows"]
    assert {row["system"]: row["marks"] for row in as_json}["good"] == [GUESS]
    assert COLLAPSED in site_files[f"{STEM}.md"].decode()
    of_row = next(text.decode() for name, text in site_files.items() if name.startswith("runs/made-unsupervised-flat"))
    assert "flat (collapsed) is not ranked, because different texts have one vector." in of_row
    for kind in ("csv", "markdown", "mteb", "model-index"):
        label = "flat (collapsed)" if kind == "model-index" else None
        exported = export("all", kind, results, system=label)
        assert "flat (collapsed)" in f"{exported}" or "flat-collapsed" in "".join(exported), kind
    records = export("made/unsupervised", "every-eval-ever", results)
    assert sum(COLLAPSED.encode() in record for record in records.values()) == 1
    assert sum(GUESS.encode() in record for record in records.values()) == 1


def test_a_board_of_collapsed_rows_alone(publish_result: Publisher, results: Path) -> None:
    """None is ranked, and the first sentence says why."""
    publish_result("flat", {"made/a": {"": [1.0] * 40}}, subset=FLAT)
    assert "is collapsed, so none is ranked" in files(site_of(results))[f"{STEM}.html"].decode()


def test_points_of_a_training_are_told_and_not_ranked(publish_result: Publisher, results: Path) -> None:
    """Neither the best number nor a cooled branch has a rank among whole trainings, and each says its budget."""
    publish_result("whole", {"made/a": {"": values(0.6, 1)}}, system={"budget": 1000})
    publish_result("poor", {"made/a": {"": values(0.2, 1)}})
    publish_result("whole@500", {"made/a": {"": values(0.9, 2)}}, system={"point": {"kind": "along", "share": 0.5}})
    cooled = {"kind": "cooled", "share": 0.25, "cool": 0.2}
    publish_result("whole@250-cooled", {"made/a": {"": values(0.8, 2)}}, system={"point": cooled})
    (board,) = boards(read_results(results))
    assert [row.name for row in board.rows] == ["whole", "poor"]
    names = ["whole@250-cooled (after 25 % of the budget, cooled down)", "whole@500 (after 50 % of the budget)"]
    assert [(row.name, row.ranks) for row in board.unranked] == [(name, None) for name in names]
    site_files = files(site_of(results))
    page = site_files[f"{STEM}.html"].decode()
    for words in (*names, "or a point of a training", "points on the way of a training: they are not ranked"):
        assert words in page, words
    of_row = next(
        text.decode() for name, text in site_files.items() if name.startswith("runs/made-unsupervised-whole-500")
    )
    assert "is not ranked, because it is a point on the way of a training" in of_row
    assert b"whole@500 (after 50 % of the budget)" in export("all", "csv", results)["table"]


def test_a_board_of_points_alone(publish_result: Publisher, results: Path) -> None:
    """None is ranked, and the first sentence does not call them collapsed."""
    publish_result("a@500", {"made/a": {"": values(0.9, 2)}}, system={"point": {"kind": "along", "share": 0.5}})
    assert "No whole training that ran all tasks" in files(site_of(results))[f"{STEM}.html"].decode()


def test_a_strangers_marks_may_be_anything(publish_result: Publisher, results: Path) -> None:
    """Metadata of other types mark nothing and break nothing."""
    odd = {"metadata": {"encode": ["collapsed"], "encode-2": {"collapsed": "yes"}}, "resolved": ["guess"]}
    publish_result("odd", {"made/a": {"": [1.0] * 40}}, subset=odd)
    (board,) = boards(read_results(results))
    assert [(row.name, row.marks) for row in board.rows] == [("odd", ())]


def test_the_hubs_entries_say_so(publish_result: Publisher) -> None:
    """In the notes of `.eval_results`."""
    task = {"beir/msmarco": {"": {"nDCG@10": [0.5]}}}
    path = publish_result("flat", task, suite="beir", subset=FLAT)
    written, _ = eval_results(result(path).whole)
    ((entry,),) = (yaml.safe_load(text) for text in written.values())
    assert entry["notes"].endswith("; collapsed: one vector for different texts of beir/msmarco; no rank")
