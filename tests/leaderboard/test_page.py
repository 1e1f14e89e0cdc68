"""The pages: whole, resolvable, the same numbers as the files beside them, and nothing in them that acts."""

import csv
import html
import json
import math
import posixpath
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from click.testing import CliRunner

from bench.cli.compare import command
from bench.core.publications import corpus_note
from bench.evaluation.results import results as read_results
from bench.evaluation.significance.families import Family
from bench.evaluation.significance.trainings import FloatArray
from bench.types import Macro
from leaderboard.build import files
from leaderboard.pages import suites
from leaderboard.site import captions
from leaderboard.site.boards import Board, boards
from leaderboard.site.captions import BANNERS
from leaderboard.site.render import SCRIPT, STYLE, THEME
from leaderboard.site.site import Site
from leaderboard.site.statistics import Statistics
from leaderboard.site.verify import too_large
from tests.leaderboard.conftest import Build, Publisher, values

pytestmark = pytest.mark.usefixtures("board_pages")
VOID = {"meta", "link", "br", "hr", "line", "circle", "path", "input"}
HOSTILE = "<script>alert(1)</script>\" onload='x' \u202e{{ 7*7 }}"


class Sheet(HTMLParser):
    """A page taken apart; tags that do not match are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[tuple[str, str]] = []
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.rows: list[list[str]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember what a tag says."""
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in {"href", "src"}:
                self.links.append((tag, value or ""))
            if name == "id":
                self.ids.append(value or "")
        if tag == "tr":
            self.rows.append([])
        if tag in {"th", "td"}:
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """`<line/>` in a drawing."""
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the tag that was opened last."""
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        """Text of a cell, and of the page; a space that breaks no line is a space."""
        data = data.replace("\u00a0", " ")
        self.text.append(data)
        if {"th", "td"} & set(self.open):
            self.rows[-1][-1] += data


@pytest.fixture
def built(publish_result: Publisher, site: Build) -> dict[str, bytes]:
    """A site of three kinds of data, with a tie, an incomplete row and hostile text wherever text can stand."""
    macros = (Macro("Avg. (2)", ("made/a", "made/b")), Macro("b alone", ("made/b",)))
    for label, level in (("crop", 0.8), ("bm25", 0.4)):
        for prefix, data in (("", "official"), ("mini/", "mini")):
            tasks = {f"{prefix}made/a": {"": values(level, 1, 40)}, f"{prefix}made/b": {"": values(level, 2, 30)}}
            publish_result(label, tasks, macros=macros, data=data)
    publish_result("part", {"made/a": {"": values(0.5, 3, 40)}}, macros=macros)
    hostile = {"label": HOSTILE, "version": HOSTILE}
    heading = {"suite": {"name": "evil", "version": HOSTILE, "title": HOSTILE}}
    tasks = {"evil/a": {"": [0.5, 0.7]}}
    publish_result("x", tasks, system=hostile, card=HOSTILE, data="local", heading=heading)
    return site()


def sheets(built: dict[str, bytes]) -> dict[str, Sheet]:
    return {name: Sheet(data.decode()) for name, data in built.items() if name.endswith(".html")}


def test_an_incomplete_row_where_no_row_has_an_interval(publish_result: Publisher, site: Build) -> None:
    """A task of one question leaves no interval to draw; the row below the rule stays under its own headings."""
    for label, level in (("crop", 0.8), ("bm25", 0.4)):
        publish_result(label, {"made/a": {"": values(level, 1, 40)}, "made/b": {"": [level]}})
    publish_result("part", {"made/a": {"": values(0.5, 3, 40)}}, seed=4)
    rows = sheets(site())["suites/made/unsupervised.html"].rows
    head = next(row for row in rows if row[0] == "System" and "Seeds" in row)
    (part,) = (row for row in rows if row[0] == "part" and "1 of 2 tasks" in row)
    assert "Interval, drawn" not in "".join(head)
    at = head.index("Seeds")
    assert part[at - 1] == "1", "one cell for score and interval"
    assert len(part) == len(head) - 1


def test_the_pages_and_files_that_there_are(built: dict[str, bytes]) -> None:
    """A tree for each kind of data, tables as files too; every link names a file of the site, or an id of a page."""
    endings = ("html", "csv", "json", "tex", "md")
    assert set(built) == {
        STYLE,
        SCRIPT,
        THEME,
        "glossary.html",
        "index.html",
        "mini/index.html",
        "local/index.html",
        *(f"suites/made/unsupervised.{ending}" for ending in endings),
        *(f"mini/suites/made/unsupervised.{ending}" for ending in endings),
        *(f"local/suites/evil/unsupervised.{ending}" for ending in endings),
    }
    links = 0
    pages = sheets(built)
    for name, sheet in pages.items():
        assert len(sheet.ids) == len(set(sheet.ids))
        for tag, link in sheet.links:
            parts = urlsplit(link)
            if parts.scheme:
                assert (tag, parts.scheme) in {("a", "https"), ("link", "data")}
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), parts.path)) if parts.path else name
            assert target in built, (name, link)
            if parts.fragment:
                assert parts.fragment in pages[target].ids
            links += 1
    assert links > 20


def test_another_world_has_a_tree_of_its_own(publish_result: Publisher, site: Build) -> None:
    """Its pages say whose they are, with the banner of mini data; without official data the first page shows them."""
    publish_result("crop", {"mini-few-names/made/a": {"": [0.5, 0.7]}}, data="mini-few-names")
    built = site()
    page = built["mini-few-names/suites/made/unsupervised.html"].decode()
    assert "<title>mini-few-names/made: a · unsupervised</title>" in page
    assert BANNERS["mini"] in page
    assert '<body class="mini">' in page
    for first, up in (("index.html", ""), ("mini-few-names/index.html", "../")):
        shown = built[first].decode()
        assert BANNERS["mini"] in shown
        assert f'<a href="{up}mini-few-names/suites/made/unsupervised.html">mini-few-names/made: a</a>' in shown
        assert ("There are no results on official data yet" in shown) == (first == "index.html")
    assert not [name for name in built if name.startswith("mini/")]


def test_nothing_acts_and_nothing_is_fetched(built: dict[str, bytes], results: Path) -> None:
    """No picture, frame, form, inline script, style or handler, and a policy against them; hostile text is text."""
    for name, sheet in sheets(built).items():
        assert not sheet.tags & {"img", "iframe", "object", "embed", "form", "style", "base"}, name
        assert "style" not in sheet.attributes
        assert not any(attribute.startswith("on") for attribute in sheet.attributes)
        assert b"default-src 'none'; script-src 'self'; style-src 'self'" in built[name]
        for script in re.findall(rb"<script[^>]*>", built[name]):
            assert re.fullmatch(
                rb'<script (src="(\.\./)*static/(script.js" defer|theme.js")|type="application/json" id="[a-z-]+")>',
                script,
            )
    assert not any(str(results.parent).encode() in data for data in built.values()), "a place of this machine"
    assert b"url(" not in built[STYLE]
    assert b"@import" not in built[STYLE]
    name = "local/suites/evil/unsupervised.html"
    shown = "".join(sheets(built)[name].text)
    assert "<script>alert(1)</script>\" onload='x' [U+202E]{{ 7*7 }}" in shown
    for page in (name, "local/index.html"):
        assert b"<script>" not in built[page]
        assert b"</script>\\" not in built[page]
        assert "\u202e".encode() not in built[page]


def test_the_numbers_are_those_of_the_csv(built: dict[str, bytes]) -> None:
    """Every cell of the table is the CSV's fraction in percent; JSON says the same, and the first sentence."""
    name = "suites/made/unsupervised"
    rows = list(csv.DictReader(built[f"{name}.csv"].decode().splitlines()))
    assert [row["system"] for row in rows] == ["crop", "bm25", "part"]
    table = {row[0].split(" ")[0]: row for row in reversed(sheets(built)[f"{name}.html"].rows[:6])}
    for row in rows[:2]:
        cells = table[row["system"]]
        assert cells[2] == f"{100 * float(row['score']):.1f}"
        assert cells[4] == f"[{100 * float(row['low']):.1f}, {100 * float(row['high']):.1f}]"
        assert (cells[1], cells[6], cells[7]) == (row["ranks"], "1", f"{100 * float(row['b alone']):.1f}")
        assert cells[5] == {"crop": "a", "bm25": "b"}[row["system"]], "letters"
    shown = sheets(built)[f"{name}.html"].rows
    heat = shown[next(place for place, cells in enumerate(shown) if cells[:3] == ["System", "a", "b"]) :]
    crop, bm25 = rows[:2]
    for task, cell in zip(("made/a", "made/b"), heat[2][1:], strict=True):
        gap = 100 * float(crop[task]) - 100 * float(bm25[task])
        assert cell == f"+{gap:.1f} {100 * float(crop[task]):.1f}"
    assert heat[4] == ["part", heat[4][1], "— not run"]
    assert (rows[2]["score"], rows[2]["ranks"], rows[2]["made/b"]) == ("", "", "")
    content = json.loads(built["suites/made/unsupervised.json"])
    by_system = {row["system"]: row for row in rows}
    for row in content["rows"][:2]:
        assert row["score"] == float(by_system[row["system"]]["score"])
        assert row["command"].startswith(f"bench run --method {row['method']} --suite made --regime unsupervised")
        assert set(row["measures"]) == {"R@100", "RR@100"}
    (lead,) = content["best_against"]
    assert lead["difference"] == pytest.approx(content["rows"][0]["score"] - content["rows"][1]["score"], abs=2e-6)
    assert lead["n"] == 70
    assert content["sentence"].startswith(
        f"crop is significantly better than every other system; it leads bm25 by {100 * lead['difference']:.1f} "
    )
    assert "Highest score by task: crop on 2 of 2. 1 seed per system." in content["sentence"]
    assert content["sentence"].replace("). Hi", ").\nHi") in "".join(
        sheets(built)["suites/made/unsupervised.html"].text
    )


def test_a_lead_that_other_training_runs_could_turn_is_a_tie(publish_result: Publisher, site: Build) -> None:
    """Of two trainings only these checkpoints are spoken of; a third lets the trainings' scatter count."""
    leads = (0.1, 0.0, 0.05)
    publish_result("bm25", {"made/a": {"": [0.3] * 40 + [0.3]}}, system={"deterministic": True})
    for seed, lead in enumerate(leads[:2]):
        publish_result("crop", {"made/a": {"": [0.3 + lead] * 40 + [0.31 + lead]}}, seed=seed)
    page = "".join(sheets(site())["suites/made/unsupervised.html"].text)
    assert "crop is significantly better" in page
    assert "results for crop are about these checkpoints, not methods" in page
    publish_result("crop", {"made/a": {"": [0.3 + leads[2]] * 40 + [0.31 + leads[2]]}}, seed=2)
    page = "".join(sheets(site())["suites/made/unsupervised.html"].text)
    assert "crop and bm25 share first place" in page
    assert "have a standard deviation of 5.0 points" in page
    assert "these checkpoints" not in page


def test_mini_and_local_data_say_so_everywhere(built: dict[str, bytes]) -> None:
    """Banner, title, a line and a column of the CSV; captions with measure, unit and data; marks in words."""
    for kind, path in (("mini", "mini/suites/made/unsupervised"), ("local", "local/suites/evil/unsupervised")):
        page = built[f"{path}.html"].decode()
        assert f'<body class="{kind}">' in page
        assert '<p class="banner" role="note">' in page
        lines = built[f"{path}.csv"].decode().splitlines()
        assert lines[0] == f"# {kind} data: not comparable with official numbers"
        assert {row["data"] for row in csv.DictReader(lines[1:])} == {kind}
        assert json.loads(built[f"{path}.json"])["note"].startswith(f"{kind.capitalize()} data")
    assert "<title>mini/made: a and b · unsupervised</title>" in built["mini/suites/made/unsupervised.html"].decode()
    official = built["suites/made/unsupervised.html"].decode()
    assert "banner" not in official
    assert "mini/made" not in official
    assert b"evil" not in built["index.html"]
    page = built["suites/made/unsupervised.html"].decode()
    assert "RR@100, percent; Made: a and b, official data, unsupervised; 70 queries in 2 tasks, 3 systems." in page
    assert '<span class="hidden"> best or tied with best</span>' in page
    assert '<span class="hidden"> not run</span>' in page
    for row in page.split("<th ")[1:]:
        assert row.startswith("scope=")


def test_the_first_sentence(publish_result: Publisher, site: Build) -> None:
    """One system; then two of one strength; then none that has everything."""
    publish_result("a", {"s/x": {"": values(0.5, 1, 20)}}, suite="s")

    def lead() -> str:
        sentence: str = json.loads(site()["suites/s/unsupervised.json"])["sentence"]
        return sentence

    assert lead() == "a is the only ranked system, so there is nothing to compare it with."
    publish_result("b", {"s/x": {"": values(0.5, 2, 20)}}, suite="s")
    first = lead().split(" ")[0]
    assert re.fullmatch(
        f"[ab] and [ab] share first place: none is significantly worse than {first}. 1 seed per system. A true "
        r"difference from [ab] of [\d.]+ points is detected with 80 % power. With fewer than 3 training runs, results "
        "for [ab] and [ab] are about these checkpoints, not methods.",
        lead(),
    )
    publish_result("a", {"s/y": {"": values(0.5, 1, 20)}}, suite="s")
    publish_result("b", {"s/z": {"": values(0.5, 1, 20)}}, suite="s")
    assert lead() == "No system has run all 3 tasks of this table yet, so none is ranked."


def test_a_page_says_what_other_tasks_would_do(
    publish_result: Publisher, site: Build, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best minus each other, tasks won and borne out by tests, reliability; a longer page names a file."""
    levels = {"good": (0.8, 0.7, 0.6), "near": (0.79, 0.72, 0.58), "poor": (0.2, 0.3, 0.1), "poorer": (0.1, 0.1, 0.1)}
    for at, (label, row) in enumerate(levels.items()):
        publish_result(label, {f"made/{name}": {"": values(level, at)} for name, level in zip("abc", row, strict=True)})
    name = "suites/made/unsupervised.html"
    (board,) = boards(read_results(results))
    sheet = sheets(site())[name]
    assert "over-tasks" in sheet.ids
    start = next(at for at, row in enumerate(sheet.rows) if "95 % interval over tasks" in row)
    shown = {row[0]: row[1:] for row in sheet.rows[start + 1 : start + 4]}
    best, second, *poor = (row.name for row in board.rows)
    for other in (second, *poor):
        low, high = (
            value for value in (board.over_tasks[other].low, board.over_tasks[other].high) if value is not None
        )
        ends = ", ".join(f"{100 * value:.1f}".replace("-", "−") for value in (low, high))
        assert shown[other][1] == f"[{ends}]"
    assert [shown[other][2:] for other in poor] == [["3 of 3 tasks", "3 of 3 tasks"]] * 2
    assert shown[second][3] == "— no task is certain"
    text = " ".join("".join(sheet.text).split())
    assert f"Reliability of the order over tasks: {board.reliability}. Systems that no training changes" in text
    assert best in {"good", "near"}
    monkeypatch.setattr(suites, "SWITCHED", 3)
    sheet = sheets(site())[name]
    assert not [row for row in sheet.rows if "95 % interval over tasks" in row]
    text = " ".join("".join(sheet.text).split())
    assert f"The difference of {best} from every system over tasks is in unsupervised.csv" in text
    assert "Reliability of the order" in text


def test_a_large_board_keeps_its_budget(publish_result: Publisher, results: Path) -> None:
    """125 systems by 16 tasks: page within 200 KB, index 120, style 20, data 300."""
    names = [f"made/task{number:02}" for number in range(16)]
    for label in ("one", "two"):
        publish_result(label, {name: {"": values(0.5, 7, 6)} for name in names}, macros=(Macro("Avg.", tuple(names)),))
    (board,) = boards(read_results(results))
    rows = [replace(board.rows[0], name=f"some-longer-name@{number}") for number in range(125)]
    against = {row.name: board.best_against["two"] for row in rows[1:]}
    systems = dict.fromkeys((row.name for row in rows), board.systems["one"])
    tests = of_many([row.name for row in rows], board)
    large = replace(board, rows=tuple(rows), best_against=against, tests=tests, systems=systems)
    built = files(Site((), (large,)))
    assert len(json.loads(built["suites/made/unsupervised.json"])["rows"]) == 125
    pages = [name for name in built if name.startswith("suites/made/") and name.endswith(".html")]
    assert sum(built[name].count(b"<tr data-id") for name in pages) == 2 * 125
    assert len(built["suites/made/unsupervised.html"]) > 50 << 10
    assert list(too_large(built)) == []


def of_many(names: list[str], board: Board) -> Statistics:
    """Tests of as many systems as there are names, each pair the same as the board's two."""
    pairs, tasks = math.comb(len(names), 2), board.tests.cells.members
    runs, scatter = dict.fromkeys(names, 1), board.tests.ranks.scatter

    def tiled(times: int) -> dict[str, FloatArray]:
        return {name: np.repeat(column[:1], times) for name, column in board.tests.ranks.table.items()}

    ranks = Family({"": tuple(names)}, tiled(pairs), runs, scatter)
    cells = Family(dict.fromkeys(tasks, tuple(names)), tiled(pairs * len(tasks)), runs, scatter)
    return Statistics(ranks=ranks, cells=cells)


def test_tokens_that_are_not_the_official_ones_are_noted(publish_result: Publisher, site: Build) -> None:
    """R@Nkt without NLTK's model, and passages that were compared with nothing, wherever the values are shown."""
    suite = {"name": "xor-retrieve", "version": "1", "title": "XOR-Retrieve", "primary": "R@2kt"}
    for label, model, value in (("crop", "abbreviations/1", 1.0), ("bm25", "punkt_tab", 0.0)):
        mark = {"unverified": "passages put there by hand"}
        subset = {"libraries": {"tokeniser": f"nltk-3:word_tokenize:{model}"}, "metadata": {"validate": mark}}
        tasks = {"xor-retrieve/ar": {"": {"R@2kt": [value, 1.0]}}}
        path = publish_result(label, tasks, heading={"suite": suite}, subset=subset, system={"deterministic": True})
    note = "R@Nkt without NLTK's punkt_tab (nltk-3:word_tokenize:abbreviations/1): not the official tokens"
    pages = {name: html.unescape(content.decode()) for name, content in site().items() if name.endswith(".html")}
    assert note in pages["suites/xor-retrieve/unsupervised.html"]
    assert mark["unverified"] in pages["suites/xor-retrieve/unsupervised.html"]
    arguments = ["bm25", "crop", "--suite", "xor-retrieve", "--results", str(path.parents[5])]
    printed = CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False).stdout
    assert all(words in " ".join(printed.split()) for words in (note, mark["unverified"]))
    hostile: tuple[dict[str, Any], ...] = (
        {"validate": 3},
        {"validate": {"unverified": ["x"]}},
        {"validate": {"unverified": "x" * 201}},
        {},
    )
    assert [*map(corpus_note, hostile)] == [""] * 4


@pytest.mark.parametrize(
    ("tasks", "systems", "pages"), [(11, 14, 1), (16, 72, 1), (16, 73, 2), (0, 251, 2), (112, 60, 3)]
)
def test_rows_are_cut_into_pages(tasks: int, systems: int, pages: int) -> None:
    """Fewer rows where many tasks make them wide, so that a page keeps to its bytes; every row is on one, in order."""
    row, column = SimpleNamespace(), SimpleNamespace()
    board: Any = SimpleNamespace(columns=[column] * tasks, rows=(row,) * (systems - 1), all_rows=(row,) * systems)
    parts = suites.parts(board)
    assert len(parts) == pages
    assert sum(len(part.all_rows) for part in parts) == systems
    assert [len(part.unranked) for part in parts] == [0] * (pages - 1) + [1]
    assert [part.first for part in parts] == [1 + sum(len(part.all_rows) for part in parts[:n]) for n in range(pages)]
    assert [part.suffix for part in parts] == ["", "-2", "-3"][:pages]


def test_every_page_of_a_long_board_has_its_baseline(
    publish_result: Publisher, site: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script subtracts a row of its own page; bm25, the usual one, is on the last page here."""
    monkeypatch.setattr(captions, "_LISTED_BEST", 2)
    monkeypatch.setattr(suites, "CELLS", 0)
    monkeypatch.setattr(suites, "FEWEST", 2)
    for at, label in enumerate(("best", "good", "fair", "bm25")):
        publish_result(label, {name: {"": values(0.8 - 0.1 * at, at)} for name in ("made/a", "made/b")})
    for end, base in (("", "best"), ("-2", "bm25")):
        page = site()[f"suites/made/unsupervised{end}.html"].decode()
        page_data = json.loads(page.partition('id="board-data">')[2].partition("</script>")[0])
        assert page_data["base"] == base
        assert {base, *page_data["clear"]} <= set(page_data["ids"])
        assert (page_data["whole"], len(page_data["ids"])) == (4, 2)
        assert "results for 4 of 4 systems are about these checkpoints" in page, "too many to be named"


def test_a_substitute_says_so_wherever_it_shows(publish_result: Publisher, site: Build) -> None:
    """Banner, caption, list of pages, CSV and JSON; benchmarks stand before it, and none of them is marked."""
    suite = {"version": "1", "primary": "RR@100"}
    publish_result("crop", {"zoo/a": {"": [0.5, 0.7]}}, heading={"suite": {"name": "zoo", "title": "Zoo", **suite}})
    substitute = {"name": "apes", "title": "Apes", "proxy_for": "zoo", **suite}
    for label, values_ in (("crop", [0.5, 0.7]), ("bm25", [0.25, 0.5])):
        publish_result(label, {"apes/a": {"": values_}}, heading={"suite": substitute})
    built = site()
    mark = "substitute for zoo: not comparable with published numbers"
    page = built["substitutes/suites/apes/unsupervised.html"].decode()
    assert f'<p class="banner" role="note">{mark.capitalize()}.</p>' in page
    assert f"RR@100, percent; Apes: a ({mark}), unsupervised" in page
    assert "official data" not in page
    lines = built["substitutes/suites/apes/unsupervised.csv"].decode().splitlines()
    assert lines[0] == f"# {mark}"
    assert [row["proxy_for"] for row in csv.DictReader(lines[1:])] == ["zoo", "zoo"]
    content = json.loads(built["substitutes/suites/apes/unsupervised.json"])
    assert (content["note"], content["suite"]["proxy_for"]) == (f"{mark.capitalize()}.", "zoo")
    first = built["index.html"].decode()
    assert first.index("Zoo: a</a>") < first.index("Apes: a</a>")
    assert '<br><span class="why">RR@100, substitute</span>' in first
    assert f'<span class="why">{mark}</span>' in first
    assert "banner" not in first
    assert '<a class="brand" href="../../../index.html">' in page
    assert "substitutes/index.html" not in built
    assert "ubstitute" not in built["suites/zoo/unsupervised.html"].decode()
    assert built["suites/zoo/unsupervised.csv"].decode().startswith("system,")
    assert json.loads(built["suites/zoo/unsupervised.json"])["suite"]["proxy_for"] is None
