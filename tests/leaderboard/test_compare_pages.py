"""Pages of pairs: the table without the script, the same numbers for the script, doubts before anything else."""

import csv
import io
import json
from typing import Any

import pytest

from bench.evaluation.significance.families import stratified
from bench.evaluation.tables import chance_text, points
from leaderboard.pages import compare
from tests.leaderboard.conftest import Build, Publisher, values

LEVELS = {"best": 0.7, "good": 0.69, "bad": 0.3}


@pytest.fixture
def three(publish_result: Publisher, site: Build) -> dict[str, dict[str, list[float]]]:
    """Three systems on two tasks; the first alone has no page of pairs, and no link to one."""
    columns = {}
    for place, (name, level) in enumerate(LEVELS.items()):
        columns[name] = {task: values(level, 10 * place + at) for at, task in enumerate(("made/a", "made/b"))}
        settings = [{"key": "method.rate", "value": 0.1 * (place > 0), "origin": "--set"}]
        system = {"method": "crop", "budget": 100 + place, "settings": settings}
        publish_result(name, {task: {"": some} for task, some in columns[name].items()}, system=system)
        assert place or not [path for path in site() if "compare" in path or "pairs" in path]
    return columns


def handed(pages: dict[str, bytes], name: str) -> dict[str, Any]:
    (path,) = (path for path in pages if path.startswith(f"data/pairs/made-unsupervised-{name}-"))
    text = pages[path].decode()
    key, value = json.loads(f"[{text.removeprefix('RB.put(').removesuffix(');' + chr(10))}]")
    assert path == f"data/pairs/{key.removeprefix('pairs-')}.js"
    content: dict[str, Any] = value
    return content


def test_all_pairs_stand_in_the_page_and_in_the_csv(three: dict[str, Any], site: Build) -> None:
    """Without the script the table is whole; the CSV also has each task, whose numbers are those of the tests."""
    pages = site()
    page, rows = pages["compare/made-unsupervised.html"].decode(), _rows(pages)
    assert page.count('<tr><th scope="row">') == 3
    headline = [row for row in rows if not row["task"]]
    assert {(row["system"], row["other"]) for row in headline} == {("best", "good"), ("best", "bad"), ("good", "bad")}
    for row in headline:
        assert f'<td class="n">{points(float(row["difference"]), sign=True)}</td>' in page
    for row in (row for row in rows if row["task"] == "made/a"):
        expected = stratified({"": (three[row["system"]]["made/a"], three[row["other"]]["made/a"])})
        assert float(row["difference"]) == pytest.approx(expected.difference, abs=1e-6)
        assert int(row["wins"]) == expected.wins
        assert float(row["p_uncorrected"]) == pytest.approx(expected.p_uncorrected, abs=1e-6)
        assert expected.p_uncorrected <= float(row["adjusted"]) + 1e-6 <= 6 * expected.p_uncorrected + 2e-6, (
            "corrected over three pairs on two tasks"
        )
    assert "2 of 3 pairs of systems differ significantly. A true difference from" in page


def _rows(pages: dict[str, bytes]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(pages["compare/made-unsupervised.csv"].decode())))


def test_the_script_gets_the_numbers_of_the_table(three: dict[str, Any], site: Build) -> None:
    """A row's file has the pairs with the rows below it, first minus second, also where a task's order is another."""
    pages = site()
    page_data = json.loads(
        pages["compare/made-unsupervised.html"].decode().partition('id="compare-data">')[2].partition("<")[0]
    )
    ids = {row["name"]: row["id"] for row in page_data["rows"]}
    assert [row["name"] for row in page_data["rows"]] == ["best", "good", "bad"]
    assert page_data["tasks"] == ["a", "b"]
    rows = {(row["system"], row["other"], row["task"]): row for row in _rows(pages)}
    best = handed(pages, "best")
    assert best["pairs"].keys() == {ids["good"], ids["bad"]}
    difference, low, _high, chance, clear, *_, n = best["pairs"][ids["bad"]]["whole"]
    row = rows["best", "bad", ""]
    assert (difference, low, n) == (round(1e6 * float(row["difference"])), round(1e6 * float(row["low"])), 80)
    assert (chance, clear) == (chance_text(float(row["adjusted"])), 1)
    task = rows.get(("best", "bad", "made/b")) or rows["bad", "best", "made/b"]
    sign = 1 if task["system"] == "best" else -1
    numbers = best["pairs"][ids["bad"]]["tasks"][1]
    assert numbers[0] == sign * round(1e6 * float(task["difference"]))
    assert numbers[5] == round(1e6 * float(task["detectable"])), "what this task's test detects, not the headline's"
    assert handed(pages, "bad")["pairs"] == {}


def test_settings_and_doubts_are_told(three: dict[str, Any], site: Build) -> None:
    """What differs, what makes it unfair; links from the table to pairs, rows, and back."""
    pages = site()
    best = handed(pages, "best")
    assert best["settings"]["method.rate"] == "0.0"
    assert best["settings"]["budget"] == "100"
    doubts = [doubt for pair in best["pairs"].values() for doubt in pair["doubts"]]
    assert "budget of pretraining (tokens): best has 100, good has 101" in doubts
    assert b'href="../../compare/made-unsupervised.html"' in pages["suites/made/unsupervised.html"]
    assert b'href="made-unsupervised.html"' in pages["compare/index.html"]
    (row,) = (content for name, content in pages.items() if name.startswith("runs/made-unsupervised-best"))
    assert b'href="../compare/made-unsupervised.html#a=best"' in row


def test_a_board_with_very_many_pairs_keeps_its_files_small(
    three: dict[str, Any], site: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No doubts, no tasks in the CSV, a script without tasks; and the page says where they are."""
    assert three
    monkeypatch.setattr(compare, "DOUBTED", 2)
    monkeypatch.setattr(compare, "_LISTED", 2)
    monkeypatch.setattr(compare, "LARGEST", 300)
    monkeypatch.setattr(compare, "_SHOWN", 1)
    pages = site()
    assert {row["task"] for row in _rows(pages)} == {""}
    assert all(pair["doubts"] == pair["tasks"] == [] for pair in handed(pages, "best")["pairs"].values())
    page = pages["compare/made-unsupervised.html"].decode()
    assert "2 more pairs in the CSV" in page
    assert "too many pairs to check" in page
