"""A result that means harm: names are shown as text, and what is no result does not come in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.cli import bench
from bench.core.errors import BenchError
from bench.core.files import read_sealed, write_sealed

pytestmark = pytest.mark.browser

BUNDLE = "mini/mrtydi/unsupervised/bm25-*/seed-0"
HARMS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a way out in the suite": (lambda one: one["suite"].update(name="../../outside"), "suite.name"),
    "a way out in the setting": (lambda one: one.update(setting="../../../outside"), "setting"),
    "a way out in a file": (lambda one: one["files"].update({"../../outside": "0" * 64}), "../../outside"),
    "markup in a task": (lambda one: one["tasks"].update({"<b>/x": one["tasks"].popitem()[1]}), "task"),
    "not a number": (lambda one: first(one)["measures"].update({"RR@100": float("nan")}), "NaN"),
    "a huge number": (lambda one: first(one)["measures"].update({"RR@100": 1e308}), "measures.RR@100"),
    "a field of 10 MB": (lambda one: one["system"].update(method="x" * 10_000_000), "bytes, expected at most"),
    "a huge seed": (lambda one: one.update(seed=10**400), "64 bits"),
}
"""What somebody may have changed, and words of the sentence that refuses it."""


def first(content: dict[str, Any]) -> dict[str, Any]:
    """What a result says of its first leg."""
    found: dict[str, Any] = next(iter(next(iter(content["tasks"].values())).values()))
    return found


def _write(path: Path, content: dict[str, Any]) -> None:
    """Seal a result; one that our writer refuses is written as another program would."""
    try:
        write_sealed(path, content)
    except ValueError:  # not a number
        path.write_text(json.dumps({**content, "seal": "0" * 64}), encoding="utf-8")


@pytest.mark.parametrize("harm", HARMS)
def test_a_spoiled_result_is_refused(results: Path, tmp_path: Path, harm: str) -> None:
    """`add` says why in a sentence, and writes nothing, in its folder or out of it."""
    (good,) = results.glob(BUNDLE)
    theirs, ours = tmp_path / "theirs", tmp_path / "results"
    shutil.copytree(good, theirs)
    (theirs / "accepted.json").unlink(missing_ok=True)
    content = read_sealed(theirs / "result.json")
    change, why = HARMS[harm]
    change(content)
    _write(theirs / "result.json", content)
    done = CliRunner().invoke(
        bench, ["leaderboard", "add", str(theirs), "--results", str(ours), "--store", str(tmp_path / "s")]
    )
    assert isinstance(done.exception, BenchError), done.output
    assert why in str(done.exception)
    assert len(str(done.exception)) < 5000
    assert not list(ours.rglob("result.json"))
    assert not list(tmp_path.parent.rglob("outside*"))


def test_lists_in_lists_are_refused(tmp_path: Path) -> None:
    """A file that would exhaust a careless reader is a sentence, like any other that is no result."""
    theirs, ours = tmp_path / "theirs" / "result.json", tmp_path / "results"
    theirs.parent.mkdir()
    theirs.write_text(f'{{"system": {"[" * 100_000}{"]" * 100_000}}}', encoding="utf-8")
    done = CliRunner().invoke(bench, ["leaderboard", "add", str(theirs), "--results", str(ours)])
    assert isinstance(done.exception, BenchError), done.output
    assert "nesting" in str(done.exception)
    assert not ours.exists()


def test_markup_in_a_label_leads_nowhere(results: Path, tmp_path: Path) -> None:
    """A label may be any text; its folder is named by letters that mean nothing."""
    (good,) = results.glob(BUNDLE)
    theirs, ours = tmp_path / "theirs", tmp_path / "results"
    shutil.copytree(good, theirs)
    (theirs / "accepted.json").unlink()
    content = read_sealed(theirs / "result.json")
    content["system"]["label"] = "../../<img src=x onerror=alert(1)>"
    write_sealed(theirs / "result.json", content)
    done = CliRunner().invoke(
        bench, ["leaderboard", "add", str(theirs), "--results", str(ours), "--store", str(tmp_path / "s")]
    )
    assert done.exit_code == 0, done.output
    (path,) = ours.rglob("result.json")
    assert path.parent.parent.parent == ours / "mini" / "mrtydi" / "unsupervised"
    assert "<" not in path.parent.parent.name


def test_a_name_that_means_harm_is_text(visit: Any, html: list[str]) -> None:
    """Built from what the real writer wrote: no element, no dialog, no error; the name is shown letter by letter."""
    seen = visit()
    shown = 0
    for name in html:
        page = seen.go(name)
        assert page.locator("img").count() == 0, name
        assert page.locator("[onerror]").count() == 0, name
        own = page.evaluate("[...document.scripts].every(one => one.type === 'application/json' || one.src)")
        assert own, name
        shown += "onerror=" in page.locator("body").inner_text()
    assert shown >= 5
    assert seen.faults == []


def test_a_harmful_name_stays_text_in_what_the_script_makes(visit: Any, html: list[str]) -> None:
    """Pinned, chosen, compared and asked for query by query."""
    seen = visit("suites/made-up/unsupervised.html")
    page = seen.page
    page.locator("tr[data-id^=img-src] .pin").click()
    page.locator("#base").select_option(index=3)
    assert "onerror=" in page.locator("#board [data-k=score]").inner_text()
    assert "[U+202E]" in page.locator("#board [data-k=score]").inner_text()
    (row,) = [name for name in html if name.startswith("runs/made-up-unsupervised-img")]
    page = seen.go(row)
    page.get_by_role("button", name="Show values").first.click()
    page.locator(".queries table").first.wait_for()
    assert "onerror=" in page.locator(".queries table").first.inner_text()
    page = seen.go("compare/made-up-unsupervised.html")
    page.locator("#pair select").first.select_option(index=3)
    page.locator("#pair .lead").wait_for()
    assert "onerror=" in page.locator("#pair").inner_text()
    assert page.locator("img, [onerror]").count() == 0
    assert seen.faults == []
