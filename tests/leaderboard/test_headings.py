"""Headings: the suite's name for the whole suite alone, on every page and in every export."""

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.evaluation.results.format import SuiteAbout
from bench.types import GridCell, Macro, Preset, Suite
from leaderboard.build import files
from leaderboard.site.export import export
from leaderboard.site.site import Catalogue
from leaderboard.site.text import suite_heading
from tests.leaderboard.conftest import Publisher, method_of, site_of, suite_of

TASKS = ("a", "b", "c", "d", "e")
ABOUT = SuiteAbout(name="zephyr", version="1", title="Zephyr Bench")
ZEPHYR = suite_of(
    "zephyr",
    "Zephyr Bench",
    data=("official", "mini"),
    task_names=lambda data: TASKS if data == "official" else TASKS[:2],
    titles={"a": "AlphaSet"},
)
CALM = suite_of("calm", "Calm Bench", data=("official",), task_names=lambda _: ("a", "b"))


def ids(names: str, mark: str = "") -> list[str]:
    return [f"{mark}zephyr/{name}" for name in names]


@pytest.mark.parametrize(
    ("data", "plugin", "scored", "run", "expected"),
    [
        ("official", ZEPHYR, ids("abcde"), ids("abcde"), "Zephyr Bench"),
        ("official", ZEPHYR, ids("ab"), ids("abcde"), "Zephyr Bench"),  # the suite's own headline is of two
        ("official", ZEPHYR, ids("a"), ids("a"), "Zephyr Bench: AlphaSet"),
        ("official", ZEPHYR, ids("cba"), ids("abc"), "Zephyr Bench: AlphaSet, b and c"),
        ("official", ZEPHYR, ids("abcd"), ids("abcd"), "Zephyr Bench (4 of 5 tasks)"),
        ("official", ZEPHYR, ids("ab"), ids("abcd"), "Zephyr Bench: AlphaSet and b"),
        ("mini", ZEPHYR, ids("ab", "mini/"), ids("ab", "mini/"), "mini/zephyr"),
        (
            "mini-few-names",
            ZEPHYR,
            ids("b", "mini-few-names/"),
            ids("b", "mini-few-names/"),
            "mini-few-names/zephyr: b",
        ),
        ("local", ZEPHYR, ids("abcde"), ids("abcde"), "local/zephyr (5 tasks)"),  # a user's own folders
        ("official", None, ids("abcde"), ids("abcde"), "Zephyr Bench (5 tasks)"),
    ],
)
def test_a_suite_is_named_by_what_was_run(
    data: str, plugin: Suite | None, scored: Sequence[str], run: Sequence[str], expected: str
) -> None:
    assert suite_heading(ABOUT, data, plugin, scored, run) == expected


@pytest.fixture
def shown(publish_result: Publisher) -> Catalogue:
    """Every kind of partial board of one suite, a grid on it, and another suite that was run whole."""
    zephyr = {"name": "zephyr", "version": "1", "title": "Zephyr Bench", "primary": "RR@100"}
    averages = (Macro("Avg. (2)", ("zephyr/a", "zephyr/b")),)
    options: dict[str, Any] = {"suite": "zephyr", "system": {"method": "m"}, "heading": {"suite": zephyr}}
    trained = {"keys": {"init": "i", "train": "t"}, "metadata": {"train": {"seconds": 9.0, "tokens": 100}}}
    for label, level in (("m", 0.5), ("m@t5=x", 0.7), ("bm25", 0.3)):
        column = [level, level + 0.1, level - 0.2]
        official = {f"zephyr/{task}": {"": column} for task in "abcd"}
        publish_result(label, official, macros=averages, subset=trained if label == "m" else {}, **options)
        english = {"suite": zephyr, "regime": "english"}
        publish_result(label, {"zephyr/a": {"": column}}, **(options | {"heading": english}))
        publish_result(label, {"mini/zephyr/a": {"": column}}, data="mini", **options)
        publish_result(label, {"zephyr/a": {"": column}}, data="local", **options)
        own = zephyr | {"name": "calm", "title": "Calm Bench"}
        whole = {"calm/a": {"": column}, "calm/b": {"": column}}
        publish_result(label, whole, **(options | {"suite": "calm", "heading": {"suite": own}}))
    grid = Preset({}, "Somebody 2020", "one factor", (GridCell("x", {"x": 1}, {"accuracy": 1.0}),), suite="zephyr")
    method = method_of("m", {"t5": grid})
    return Catalogue({"m": method}, {"zephyr": ZEPHYR, "calm": CALM})


def test_no_page_and_no_export_heads_a_part_by_the_name_of_the_whole(shown: Catalogue, results: Path) -> None:
    """In all files of a site and in all formats, the suite's title is followed by tasks or by their number."""
    built = {name: content.decode() for name, content in files(site_of(results, shown)).items()}
    # The pages of protocols are about the suite, not about what was run of it.
    outputs = {name: content for name, content in built.items() if not name.startswith("protocols/")}
    printed = ["csv", "json", "latex", "markdown", "html", "mteb", "every-eval-ever"]
    exports = [("zephyr/unsupervised", kind) for kind in printed]
    exports += [(f"{part}/unsupervised", "latex") for part in ("mini/zephyr", "local/zephyr")]
    for table, kind in exports:
        for name, exported in export(table, kind, results, suites=shown.suites).items():
            outputs[f"{table}.{kind}/{name}"] = exported.decode()
    (index,) = export("all", "model-index", results, system="m").values()
    outputs["all.model-index"] = index.decode()
    tasks = r"(: (AlphaSet|[a-e])| \(4 of 5 tasks\)| \([a-e]\))"
    heads = re.compile(r"<(title|h[1-6]|caption|figcaption|th|li)\b[^>]*>(.*?)</\1>", re.DOTALL)
    named = 0
    for name, content in outputs.items():
        text = html.unescape(content)
        for place in re.finditer("Zephyr Bench|(?:mini|local)/zephyr(?!/)", text):
            if place[0].startswith(("mini", "local")) and not name.endswith((".html", ".tex", ".md")):
                continue  # there it is a key, not a heading
            named += 1
            assert re.match(tasks, text[place.end() :]), (name, text[place.start() - 60 : place.end() + 60])
        if name.endswith(".html"):  # nor by the name that one types
            for head in heads.finditer(content):
                assert not re.search(r"\bzephyr\b(?![/:])", re.sub(r"<[^>]*>", "", head[2])), (name, head[0])
    assert named > 100
    assert "<h1>Calm Bench · unsupervised</h1>" in built["suites/calm/unsupervised.html"]
    assert "<h1>Zephyr Bench: AlphaSet · english</h1>" in built["suites/zephyr/english.html"]
