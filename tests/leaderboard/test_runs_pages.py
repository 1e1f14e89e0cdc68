"""Pages of rows: everything that a reader who doubts a number asks for, small, and true to the bundle."""

import csv
import io
import json
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from leaderboard.build import files
from leaderboard.pages import methods, runs
from leaderboard.site import perquery
from leaderboard.site.perquery import QueryTable
from leaderboard.site.render import Renderer
from tests.leaderboard.conftest import Build, Publisher, site_of

HOSTILE = "<script>alert(1)</script>\" onload='x' \u202e{{ 7*7 }}"


def pages(files: dict[str, bytes], folder: str = "runs/") -> list[str]:
    return [content.decode() for name, content in files.items() if name.startswith(folder) and name.endswith(".html")]


def script_value(content: dict[str, bytes], path: str) -> tuple[str, Any]:
    text = content[path].decode()
    key, value = json.loads(f"[{text.removeprefix('RB.put(').removesuffix(');' + chr(10))}]")
    return key, value


def test_a_row_says_where_it_comes_from(publish_result: Publisher, site: Build) -> None:
    """Command, versions, hash, keys, machine, seconds, settings of the harness and the state of the audit."""
    subset = {
        "keys": {"search": "c0ffee" * 5},
        "compute": {"device": "cuda", "threads": 3},
        "seconds": {"search": 90.0},
        "settings": [{"key": "search.k", "value": 7, "origin": "--set"}],
        "audits": [{"corpus": "wiki", "audited": None}],
        "release": "v9.9",
    }
    publish_result("bm25@x", {"made/a": {"": [0.25, 0.5]}, "made/b": {"": [1.0, 0.0]}}, subset=subset)
    (page,) = pages(site())
    for phrase in ("bench run --method bm25", "c0ffeec0ffee<", "device cuda, threads 3", "v9.9", "wiki: not audited"):
        assert phrase in page, phrase
    assert '<code>search.k</code></th><td class="wrap"><code>7</code></td><td>--set</td>' in page
    assert "<dt>search</dt><dd>1.5 min</dd>" in page
    assert '<th scope="row">a</th><td class="n">2</td><td class="n">75.0</td><td class="n">37.5</td>' in page
    assert "run where this site was built" in page
    command = page.partition('aria-label="Command"><code>')[2].partition("</code>")[0]
    assert shlex.split(command)[:2] == ["bench", "run"]


def test_seeds_of_unlike_environments_are_said(publish_result: Publisher, site: Build) -> None:
    """Below the board and on the row's page, once each; what differs is named with its seeds."""
    for seed, threads in ((0, 1), (1, 8)):
        subset = {"compute": {"device": "cpu", "threads": threads}, "harness": "0.2.0"}
        publish_result("crop", {"made/a": {"": [0.5, 0.75]}}, seed=seed, subset=subset)
    content = site()
    sentence = "crop averages results of unlike environments: threads 1 (seed 0) and 8 (seed 1)"
    (page,) = pages(content)
    assert page.count(sentence) == content["suites/made/unsupervised.html"].decode().count(sentence) == 1


def test_values_query_by_query_are_those_of_the_bundle(publish_result: Publisher, site: Build) -> None:
    """Script, ids and CSV: means over seeds, ids once a task, in one order."""
    values = {0: [0.1, 0.9, 0.30005], 3: [0.3, 0.7, 0.5]}
    for seed, some in values.items():
        publish_result("crop", {"made/a": {"": some}}, seed=seed)
    publish_result("bm25", {"made/a": {"": [0.0, 1.0, 0.5]}})
    content = site()
    scripts = sorted(name for name in content if name.startswith("data/q/") and name.endswith(".js"))
    assert len(scripts) == 2
    assert len([name for name in content if name.startswith("data/ids/")]) == 1
    (crop,) = (name for name in scripts if "-crop-" in name)
    key, script = script_value(content, crop)
    assert crop == f"data/q/{key}.js"
    assert script["measures"]["RR@100"] == [2000, 8000, 4000]
    assert script_value(content, f"data/ids/{script['ids']}.js") == (script["ids"], ["q00000", "q00001", "q00002"])
    rows = list(csv.DictReader(io.StringIO(content[crop.replace(".js", ".csv")].decode())))
    assert [float(row["RR@100"]) for row in rows] == pytest.approx(np.mean([*values.values()], axis=0))
    assert [row["query"] for row in rows] == ["q00000", "q00001", "q00002"]


def test_files_of_mini_data_and_substitutes_say_so(publish_result: Publisher, site: Build) -> None:
    """In a tree of their own, a first line and a column, so that no file can be mistaken when it is mailed alone."""
    publish_result("bm25", {"mini/made/a": {"": [0.5]}}, data="mini")
    suite = {"name": "made", "version": "1", "title": "M", "proxy_for": "real"}
    publish_result("bm25", {"made/a": {"": [0.5]}}, heading={"suite": suite})
    files = site()
    tables = {name: content.decode() for name, content in files.items() if "/q/" in name and name.endswith(".csv")}
    assert {name.partition("data/")[0] for name in tables} == {"mini/", "substitutes/"}
    for name, text in tables.items():
        mark = "mini data: not comparable" if name.startswith("mini/") else "real"
        assert text.startswith("# ")
        assert mark in text.partition("\n")[0]


def test_addresses_are_stable_and_differ(publish_result: Publisher, site: Build) -> None:
    """Two rows that look alike have two pages; other rows beside them move none."""
    system = {"method": "bm25"}
    publish_result("BM25 é", {"made/a": {"": [0.5]}}, system=system)
    first = set(site())
    publish_result("BM25 è", {"made/a": {"": [0.5]}}, system=system)
    publish_result("x" * 200, {"made/a": {"": [0.5]}}, system=system)
    paths = set(site())
    assert {name for name in first if name.startswith("runs/")} < paths
    run_paths = [name for name in paths if name.startswith("runs/")]
    assert len(run_paths) == 3
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-/.") for name in run_paths)


def test_free_keys_of_a_result_cannot_act_or_break(publish_result: Publisher, site: Build) -> None:
    """What the format leaves free may hold anything: text stays text, other kinds are passed over, lists are cut."""
    settings = [{"key": f"k{at}", "value": HOSTILE * 9, "origin": "--set"} for at in range(500)]
    free = {"compute": HOSTILE, "seconds": {HOSTILE: HOSTILE}, "settings": settings, "audits": {"a": 1}}
    subset = {"keys": {"x": HOSTILE}, "release": HOSTILE, **free}
    publish_result(HOSTILE, {"made/a": {"": [0.5, 0.5]}}, ids=HOSTILE, system={"method": "bm25"}, subset=subset)
    files = site()
    (page,) = pages(files)
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "Lists are shortened" in page
    assert "bench reproduce path/to/result.json" in page
    assert len(page.encode()) <= 40 << 10
    assert all(b"<script>alert" not in content for name, content in files.items() if name.endswith(".js"))


def test_runs_are_copied_where_asked_and_allowed(publish_result: Publisher, results: Path) -> None:
    """The whole bundle; of the user's own folders the result file alone."""
    path = publish_result("bm25", {"made/a": {"": [0.5]}})
    publish_result("bm25", {"made/mine": {"": [0.5]}}, data="local")
    source = site_of(results)
    plain, everything = files(source), files(replace(source, runs=True))
    copied = {name: everything[name] for name in everything.keys() - plain.keys()}
    kinds = {name.partition("runs/")[0] + name.rpartition("seed-0/")[2] for name in copied}
    bundle = {"cards.json", "per-query/made/a.json.gz", "result.json", "runs/made/a.trec.gz"}
    assert kinds == bundle | {"local/result.json"}
    assert path.read_bytes() in copied.values()


def test_an_incomplete_row_has_a_page_without_rank(publish_result: Publisher, results: Path) -> None:
    """It says how much it has; its method's page has the score of its only task."""
    publish_result("bm25", {"made/a": {"": [0.5]}, "made/b": {"": [0.5]}})
    path = publish_result("part", {"made/a": {"": [0.25]}})
    shown = site_of(results)
    (method,) = (page.decode() for name, page in methods.files(shown, Renderer(shown)) if "part" in name)
    assert '25.0 <span class="why">made/a, 1 of 2 tasks</span>' in method
    texts = [content.decode() for _, content in runs.files(shown, Renderer(shown)) if b"<html" in content]
    assert sum("part has results on 1 of 2 tasks, so it is not ranked." in text for text in texts) == 1
    assert sum(f"<dt>results folder</dt><dd>{path.parent.parent.name}</dd>" in text for text in texts) == 1


def test_values_of_very_many_questions_have_no_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be larger than a page may be is left to the CSV: questions times measures times six characters."""
    entry: Any = SimpleNamespace(inside="", id="x")
    table = QueryTable(entry, "made/a", "", ("q1", "q2", "q3"), dict.fromkeys(("R@1", "R@2"), np.zeros((3, 1))))
    for largest, path in ((3 * 2 * 6 + 1, f"data/q/x-{table.name}.js"), (3 * 2 * 6, None)):
        monkeypatch.setattr(perquery, "LARGEST", largest)
        assert table.script_path == path
