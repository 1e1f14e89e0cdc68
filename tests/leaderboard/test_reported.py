"""Reported against reproduced: every printed number on its page, averages, names, conditions, agreement."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

from bench.core.publications import Reported
from bench.evaluation.results.format import About
from bench.types import Macro, Method, Preset
from leaderboard.pages import reported as pages
from leaderboard.site.printed import is_average, paper_tables, stems
from leaderboard.site.render import Renderer
from leaderboard.site.reported import Pair, matched, model_of, names_of, pairs, printed_unit, setting_of
from leaderboard.site.site import Catalogue, Site
from suites import reported as data
from tests.conftest import cases
from tests.leaderboard.conftest import Publisher, method_of, site_of, suite_of
from tests.published import identified

LARGEST_PAGE = 500_000
AVERAGE = (Macro("Avg. (2)", ("made/a", "made/b")),)
ROW = Reported("Paper", "Table 1", "unsupervised", "BM25", "made", "AVG", "avg", "RR@100", "50.0", 50.0, "percent")
# What the arithmetic of the printed tables contradicts by more than half a unit, worked out by hand.
MEANS = {
    ("CCP", "Table 3", "XLMR", "RR@100", "0.333"): "0.3325",
    ("CCP", "Table 4", "XLMR", "R@2kt", "0.452"): "0.4949",
    ("CCP", "Table 4", "CCP", "R@5kt", "0.570"): "0.5793",
    ("MSM", "Table 15", "GMT + PATH", "R@2kt", "58.2"): "55.71",
    ("Contriever", "Table 4", "BM25 (Zhang et al., 2021)", "R@100", "74.3"): "75.81",
    ("Contriever", "Table 10", "Gen-Q", "R@100 (capped for Trec-COVID)", "64.2"): "64.26",
    ("Contriever", "Table 11", "BERT", "nDCG@10", "8.7"): "5.80",
}
CONTRADICTED = 27


class Tables(HTMLParser):
    """The tables of a page: rows of cells, a cell being its text up to the first mark beside it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: dict[str, list[list[tuple[str, int]]]] = {}
        self.heading, self.inside, self.skipped = "", False, 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "h2":
            self.heading = attributes.get("id") or ""
        if tag == "tr":
            self.found.setdefault(self.heading, []).append([])
        if tag in {"th", "td"}:
            self.found[self.heading][-1].append(("", int(attributes.get("colspan") or 1)))
            self.inside, self.skipped = True, 0
        elif tag in {"span", "a"} and self.inside and attributes.get("class") in {"hidden", "right", None}:
            self.skipped += tag == "span" or self.found[self.heading][-1][-1][0] != ""

    def handle_endtag(self, tag: str) -> None:
        if tag in {"th", "td"}:
            self.inside = False

    def handle_data(self, data: str) -> None:
        """Text of a cell before the first mark."""
        if self.inside and not self.skipped:
            text, width = self.found[self.heading][-1][-1]
            self.found[self.heading][-1][-1] = (text + data, width)


def placed(rows: list[list[tuple[str, int]]]) -> Iterator[tuple[str, ...]]:
    """Yield setting, model, measure, column and number of every cell of the tables below a heading."""
    groups: list[str] = []
    columns: list[str] = []
    setting = ""
    for row in rows:
        first, *cells = [text.strip() for text, _ in row]
        if not first:
            groups = [text.split()[-1] for (_, width), text in zip(row[1:], cells, strict=True) for _ in range(width)]
        elif first == "Model":
            columns = cells
        elif not cells:
            setting = first
        else:
            for group, column, text in zip(groups, columns, cells, strict=True):
                if text != "—":
                    yield setting, first, group, column, text


def shown(reported: Sequence[Reported], methods: Sequence[Method] = ()) -> Catalogue:
    """What plugins would tell, a suite for every one that the numbers name."""
    by_suite: dict[str, list[Reported]] = {}
    for row in reported:
        by_suite.setdefault(row.suite or "elsewhere", []).append(row)
    suites = {
        name: suite_of(name, name.title(), card="# card", reported=partial(tuple, rows))
        for name, rows in by_suite.items()
    }
    return Catalogue({method.name: method for method in methods}, suites)


def site(results: Path, reported: Sequence[Reported], methods: Sequence[Method] = ()) -> Site:
    return site_of(results, shown(reported, methods))


def built(source: Site) -> dict[str, str]:
    return {name: content.decode() for name, content in pages.files(source, Renderer(source))}


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    return built(Site((), (), shown(data.rows())))


def test_every_number_stands_in_its_place_as_printed(printed: dict[str, str]) -> None:
    """All 3,235 cells, found by paper, table, setting, model, measure and column."""
    cells: Counter[tuple[str, ...]] = Counter()
    for name, stem in stems(row.paper for row in data.rows()).items():
        for table, rows in Tables(printed[f"reported/{stem}.html"]).found.items():
            cells.update((name, table, *cell) for cell in placed(rows))
    expected = Counter(
        (
            row.paper,
            row.table.lower().replace(" ", "-"),
            row.setting,
            row.model,
            row.measure.split()[-1] if not row.suite else row.measure.partition(" (")[0].replace("Rcap@", "R@"),
            row.dataset,
            row.printed,
        )
        for row in data.rows()
    )
    assert sum(expected.values()) == 3235
    assert cells == expected


def test_averages_are_worked_out_again() -> None:
    """Every average that the cells of its row contradict, and no other, has the mean beside it."""
    means = {
        (cell.row.paper, cell.row.table, cell.row.model, cell.row.measure, cell.row.printed): cell.mean
        for sheet in paper_tables(data.rows())
        for block in sheet.blocks
        for _, lines in block.parts
        for line in lines
        for cell in line.cells
        if cell is not None and cell.mean
    }
    assert MEANS.items() <= means.items()
    assert len(means) == CONTRADICTED
    assert all(is_average(row) for row in data.rows() if row.average and row.key != "cqadupstack")


def test_a_column_names_the_measure_of_its_cells() -> None:
    """Its own where it is not that above it, as with a capped recall."""
    named = {
        (column.measure or column.group, cell.row.measure)
        for sheet in paper_tables(data.rows())
        for block in sheet.blocks
        for _, lines in block.parts
        for line in lines
        for column, cell in zip(block.columns, line.cells, strict=True)
        if cell is not None
    }
    assert {cell_measure for _, cell_measure in named} >= {"R@100", "Rcap@100"}
    assert [pair for pair in named if pair[0] != pair[1]] == []


def test_errors_are_marked_and_put_right(printed: dict[str, str]) -> None:
    """‡ leads to what is wrong; the right value stands beside the printed one."""
    page = printed["reported/ccp.html"]
    assert '0.566 <a href="#error-ccp-2">‡' in page
    assert "correct: 0.266" in page
    assert page.count('id="error-ccp-2"') == 1
    assert "63 of the 237 questions" in page
    assert "illegible in our copy" in printed["reported/contriever.html"]


def test_pages_are_small_and_lead_to_each_other(printed: dict[str, str]) -> None:
    """The budget of a page; a CSV beside each; no number of ours without results."""
    assert {name for name in printed if name.endswith(".html")} == {
        "reported.html",
        *(f"reported/{name}.html" for name in ("auto-mlm", "ccp", "contriever", "msm", "pyserini-2cr")),
        "reported/contriever-readme-released-code.html",
    }
    assert all(len(page.encode()) < LARGEST_PAGE for name, page in printed.items() if name.endswith(".html"))
    assert "3,235 numbers from 41 tables of 6 sources. None of our numbers" in printed["reported.html"]
    assert printed["reported/ccp.csv"].count("\n") == 444 + 1


@pytest.mark.parametrize(("model", "paper", "name", "size", "added"), cases("names-of-models"))
def test_names_of_models(model: str, paper: str, name: str, size: str, added: str) -> None:
    """What is told of a model by its name alone."""
    assert model_of(replace(ROW, model=model, paper=paper)) == (name, size, added)


@pytest.mark.parametrize(("setting", "model", "ours"), cases("settings-of-papers"))
def test_settings_of_papers(setting: str, model: str, ours: str) -> None:
    """A paper's words as our setting; empty where it does not say."""
    assert setting_of(replace(ROW, setting=setting, model=model)) == ours


def system_of(label: str, method: str, *origins: str, **more: Any) -> About:
    settings = [{"key": f"method.k{at}", "value": 1, "origin": origin} for at, origin in enumerate(origins)]
    return About.model_validate(
        identified({"label": label, "method": method, "version": "1", "settings": settings, **more})
    )


def test_names_of_systems() -> None:
    """The method and its preset; a system that was changed by hand has none."""
    assert names_of(system_of("auto-mlm", "auto-mlm", "default")) == {"automlm"}
    assert names_of(system_of("x", "pretrained", "preset labse", "default")) == {"pretrained", "labse"}
    assert names_of(system_of("x", "contriever", "preset mcontriever")) == {"mcontriever"}
    assert names_of(system_of("msm", "msm", "--set")) == set()
    assert names_of(system_of("msm@init", "msm")) == set()
    assert names_of(system_of("bm25+msm", "bm25")) == set()
    assert names_of(system_of("ccp@table5=a", "ccp", "preset table5=a")) == set()
    assert names_of(system_of("crop", "crop", readout={"layer": 3})) == set()


def values(level: float, n: int = 100) -> list[float]:
    return [1.0] * round(n * level) + [0.0] * (n - round(n * level))


def one_pair(results: Path, *reported: Reported, methods: Sequence[Method] = ()) -> Pair:
    (pair,) = pairs(site(results, reported, methods))
    return pair


FIXED = {"deterministic": True}


def test_a_deterministic_system_agrees_within_a_point(publish_result: Publisher, results: Path) -> None:
    """BM25: its difference in the paper's unit, from the right value; machine and print move it by .3 points."""
    publish_result("bm25", {"made/a": {"": values(0.5)}, "made/b": {"": values(0.6)}}, macros=AVERAGE, system=FIXED)
    pair = one_pair(results, replace(ROW, average="Avg. (2)"))
    assert pair.matched
    assert pair.difference == pytest.approx(5.0)
    assert pair.agreement is not None
    assert (pair.agreement.low, pair.agreement.high) == pytest.approx((0.047, 0.053))
    assert pair.agreement.verdict == "differs"
    for value, verdict in ((55.1, "agrees"), (54.4, "agrees"), (54.2, "differs"), (55.9, "differs")):
        judged = one_pair(results, replace(ROW, average="Avg. (2)", value=value)).agreement
        assert judged is not None
        assert judged.verdict == verdict, value
    fraction = replace(ROW, task="made/b", key="b", printed="0.612", value=0.612, unit="fraction")
    judged = one_pair(results, fraction).agreement
    assert judged is not None
    assert (judged.low, judged.high) == pytest.approx((-0.015, -0.009))
    wrong = replace(ROW, task="made/a", printed="80.0", value=80.0, corrected=50.0, error="P-1")
    judged = one_pair(results, wrong).agreement
    assert judged is not None
    assert (judged.verdict, judged.difference) == ("agrees", 0.0)


TRAINED = {"deterministic": False}


def test_a_trained_system_has_the_scatter_of_the_board(publish_result: Publisher, results: Path) -> None:
    """In that very number, pooled over two systems by hand; one with a single seed is judged too; starts are not in."""
    for label, levels in {"bm25": (0.5,), "x": (0.40, 0.42, 0.44, 0.42), "y": (0.30, 0.32, 0.36, 0.34)}.items():
        for seed, level in enumerate(levels):
            publish_result(
                label, {"made/a": {"": values(level)}}, seed=seed, system=TRAINED, subset=trained(label, seed)
            )
    for seed, level in enumerate((0.1, 0.9, 0.4)):
        publish_result("x@init", {"made/a": {"": values(level)}}, seed=seed, system=TRAINED, subset=begun(seed))
    pooled = (stdev((0.40, 0.42, 0.44, 0.42)) ** 2 + stdev((0.30, 0.32, 0.36, 0.34)) ** 2) / 2
    larger = stdev((0.30, 0.32, 0.36, 0.34)) ** 2
    single, repeated = (
        one_pair(results, replace(ROW, model=model, task="made/a")).ours.reach for model in ("BM25", "y")
    )
    assert single == pytest.approx(2.446912 * (pooled * 2) ** 0.5), "six degrees of freedom"
    assert repeated == pytest.approx(3.182446 * (larger * 5 / 4) ** 0.5), (
        "so few that the larger of pooled and own counts"
    )


def trained(label: str, seed: int) -> dict[str, Any]:
    """The keys of a training."""
    return {"keys": {"init": f"i{seed}", "train": f"{label}{seed}"}}


def begun(seed: int) -> dict[str, Any]:
    """The keys of a start."""
    return {"keys": {"init": f"i{seed}"}}


def test_without_two_trainings_of_any_system_nobody_can_tell(publish_result: Publisher, results: Path) -> None:
    """The difference is there, an interval is not."""
    publish_result("bm25", {"made/a": {"": values(0.5)}}, system=TRAINED)
    judged = one_pair(results, replace(ROW, task="made/a", value=40.0)).agreement
    assert judged is not None
    assert judged.verdict == "cannot tell"
    assert judged.difference == pytest.approx(0.1)
    assert judged.low is None


@pytest.mark.parametrize("change", [{"value": None}, {"suite": ""}, {"task": ""}])
def test_a_number_without_a_value_or_a_place_is_no_pair(
    publish_result: Publisher, results: Path, change: dict[str, Any]
) -> None:
    """What a paper left empty, and what has no suite, task or average here."""
    publish_result("bm25", {"made/a": {"": values(0.5)}})
    row = replace(ROW, task="made/a")
    source = site(results, [row])
    assert len(pairs(source, [row])) == 1
    assert pairs(source, [replace(row, **change)]) == []


SUBSTITUTE = {"suite": {"name": "made", "version": "1", "title": "Made", "proxy_for": "other"}}


@pytest.mark.parametrize(
    ("task", "options"),
    [("mini/made/a", {"data": "mini"}), ("made/a", {"data": "local"}), ("made/a", {"heading": SUBSTITUTE})],
)
def test_only_official_data_of_the_benchmark_itself(
    publish_result: Publisher, results: Path, task: str, options: dict[str, Any]
) -> None:
    """Numbers of mini data, of the user's own and of substitutes are never shown with a paper's."""
    publish_result("bm25", {task: {"": values(0.5)}}, **options)
    source = site(results, [replace(ROW, task="made/a")])
    assert pairs(source) == []
    assert matched(source, source.boards[0], source.boards[0].rows[0]) is None


XLMR = method_of("pretrained", {"xlm-r-base": Preset({"model": "org/xlm-r-base@abc"}, "a script", "as it comes")})
MSM = method_of(
    "msm", {"paper": Preset({"k": 1}, "MSM (arXiv 1), section 4; 200k steps", "MSM for XLM-R base on wiki")}
)
DENSE = {"backbone": "org/xlm-r-base", "corpus": {"name": "wiki:17"}, "budget": 1000}


def test_what_was_trained_here_needs_all_four(publish_result: Publisher, results: Path) -> None:
    """Backbone and data by the paper's words, tuning by its setting; without the steps, or all alike, no difference."""
    row = replace(ROW, paper="MSM", model="MSM (ours)", task="made/a")
    publish_result("msm", {"made/a": {"": values(0.5)}}, system={"method": "msm", **DENSE})
    pair = one_pair(results, row, methods=[XLMR, MSM])
    assert [chip.name for chip in pair.chips] == ["backbone", "data", "tuning", "steps"]
    assert [chip.same for chip in pair.chips] == [True, True, True, None]
    assert (pair.matched, pair.difference, pair.agreement) == (False, None, None)
    assert [chip.same for chip in one_pair(results, row).chips] == [None, None, True, None]
    tuned = replace(row, setting="zero-shot, NQ fine-tune")
    assert [chip.same for chip in one_pair(results, tuned, methods=[XLMR, MSM]).chips] == [True, True, False, None]
    page = built(site(results, [row], [XLMR, MSM]))
    assert "Papers and our results" not in page["reported.html"]
    assert "200,000" not in page["reported/msm.html"]
    assert 'class="pairs grey"' in page["reported/msm.html"]
    publish_result("msm", {"made/a": {"": values(0.5)}}, system={"method": "msm", **DENSE, "backbone": "scratch:2x128"})
    chips = one_pair(results, replace(ROW, paper="MSM", model="MSM", task="made/a"), methods=[XLMR, MSM]).chips
    assert (chips[0].same, chips[0].detail) == (False, "ours scratch:2x128; the paper's org/xlm-r-base")


def test_a_released_encoder_brings_its_training(publish_result: Publisher, results: Path) -> None:
    """Its name says the weights; only the tuning can differ."""
    settings = [{"key": "method.model", "value": "org/xlm-r-base", "origin": "preset xlm-r-base"}]
    publish_result("x", {"made/a": {"": values(0.5)}}, system={"method": "pretrained", "settings": settings})
    row = replace(ROW, model="XLM-R Base (Conneau et al., 2019)", task="made/a")
    assert one_pair(results, row, methods=[XLMR]).matched
    assert not one_pair(results, replace(row, setting="few-shot"), methods=[XLMR]).matched
    assert pairs(site(results, [replace(row, model="XLM-R")], [XLMR])) == []


def test_the_paper_column(publish_result: Publisher, results: Path) -> None:
    """The headline of a row under the same conditions; the method's own paper before others; nothing else."""
    publish_result("bm25", {"made/a": {"": values(0.5)}, "made/b": {"": values(0.6)}}, macros=AVERAGE)
    average = replace(ROW, average="Avg. (2)")
    first_source = replace(average, paper="BM25", table="Table 9")
    wrong = [replace(average, measure="R@100"), replace(average, model="MSM"), replace(average, average="Avg. (3)")]
    source = site(results, [*wrong, average, first_source])
    (board,) = source.boards
    assert matched(source, board, board.rows[0]) == first_source
    source = site(results, wrong)
    assert matched(source, board, board.rows[0]) is None


def test_the_page_says_what_agrees(publish_result: Publisher, results: Path) -> None:
    """Dumbbells on one axis, the sign of the difference, and hostile words of papers harmless."""
    publish_result("bm25", {"made/a": {"": values(0.5)}, "made/b": {"": values(0.6)}}, macros=AVERAGE, system=FIXED)
    evil = "<script>alert(1)</script>"
    reported = [
        replace(ROW, average="Avg. (2)", printed="90.0", value=90.0),
        replace(ROW, task="made/a", key="a", dataset="a"),
        replace(ROW, paper=evil, table=evil, setting=evil, model=evil, dataset=evil, error=evil, wrong=evil),
    ]
    page = built(site(results, reported))
    text = page["reported.html"]
    assert "a number under the same conditions for 2 of them: 1 agree, 1 differs; for 0 we cannot tell." in text
    assert '<td class="n">−35.0</td><td class="n">[−35.3, −34.7]</td><td>differs</td>' in text
    assert all("<script>alert" not in content for name, content in page.items() if name.endswith(".html"))
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-/.") for name in page)


def test_units_and_file_names() -> None:
    """One in the last printed digit; two papers of one spelling have two files; no papers, no pages."""
    assert built(Site((), ())) == {}
    assert [printed_unit(text) for text in ("48.1", "0.566", "12")] == pytest.approx([0.1, 0.001, 1])
    file_names = stems(["A b", "a-b", "C"])
    assert file_names["C"] == "c"
    assert len(set(file_names.values())) == 3


def test_steps_of_a_paper_may_be_millions(publish_result: Publisher, results: Path) -> None:
    """1.5M steps are a million and a half."""
    method = method_of("msm", {"paper": Preset({"k": 1}, "MSM (arXiv 1), section 4; 1.5M steps", "MSM on wiki")})
    publish_result("msm", {"made/a": {"": values(0.5)}}, system={"method": "msm", **DENSE})
    chips = one_pair(results, replace(ROW, paper="MSM", model="MSM", task="made/a"), methods=[XLMR, method]).chips
    assert {chip.name: chip.detail for chip in chips}["steps"] == "ours unknown; the paper's 1500000.0"
