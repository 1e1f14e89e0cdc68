"""The build: whole or not at all, never in a stranger's place; and `bench leaderboard build` as it is typed."""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from bench.cli import main
from bench.core.errors import StoreError, UsageError
from bench.testing import fields
from leaderboard.build import LIST, build
from leaderboard.site import verify
from tests.conftest import tree
from tests.leaderboard.conftest import Bundle, Publisher


@pytest.fixture(autouse=True)
def lexical_row(publish_result: Publisher) -> None:
    publish_result("bm25", {"made/a": {"": [0.5, 0.7, 0.1]}})


def test_the_same_bytes_and_no_leavings(results: Path, tmp_path: Path) -> None:
    """Two builds, one beside the other, then one over the other."""
    site = build(results, tmp_path / "one")
    build(results, tmp_path / "two")
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    build(results, tmp_path / "one")
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    assert (site.files, site.bytes) == (len(tree(tmp_path / "one")), sum(map(len, tree(tmp_path / "one").values())))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_page_that_has_gone_leaves_the_site(publish_result: Publisher, results: Path, tmp_path: Path) -> None:
    """The new site takes the old one's place as a whole."""
    removed = publish_result("bm25", {"gone/a": {"": [0.5]}}, suite="gone")
    build(results, tmp_path / "site")
    assert (tmp_path / "site" / "suites" / "gone" / "unsupervised.html").exists()
    removed.unlink()
    build(results, tmp_path / "site")
    assert not (tmp_path / "site" / "suites" / "gone" / "unsupervised.html").exists()


def test_other_files_are_never_touched(results: Path, tmp_path: Path) -> None:
    """A folder of the user's, a site with an added file, a file; a `site.json` is ours only if it says so."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, check=fields(found="(thesis.tex)", expected="an absent or empty folder")):
        build(results, home)
    build(results, tmp_path / "site")
    (tmp_path / "site" / "CNAME").write_text("example.org")
    with pytest.raises(UsageError, check=fields(found="(CNAME)")):
        build(results, tmp_path / "site")
    with pytest.raises(UsageError, check=fields(found="a file", expected="a folder")):
        build(results, home / "thesis.tex")
    with pytest.raises(UsageError, check=fields(found="files that no build has written")):
        build(results, results)
    assert tree(home) == {"thesis.tex": b"years of work"}
    assert (tmp_path / "site" / "CNAME").exists()
    for content in ("[]", "{}", '{"schema": "other", "files": ["site.json"]}', "[" * 100_000, "\xff"):
        (home / LIST).write_text(content)
        with pytest.raises(UsageError, check=fields(found="files that no build has written")):
            build(results, home)


def test_a_failure_leaves_the_old_site(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills up in the middle of a page, or fails between two renames: the old site stays, and no leavings."""
    build(results, tmp_path / "site")
    before, rename = tree(tmp_path / "site"), Path.rename

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StoreError, match=r"cannot write the site to .*: the disk is full"):
        build(results, tmp_path / "site")
    monkeypatch.undo()
    assert tree(tmp_path / "site") == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]

    def refuses(self: Path, target: Path) -> Path:
        if self.name.endswith(".new"):
            raise OSError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuses)
    with pytest.raises(StoreError, match="permission is denied"):
        build(results, tmp_path / "site")
    assert tree(tmp_path / "site") == before


def test_no_results_is_a_sentence(tmp_path: Path) -> None:
    """With what to type."""
    with pytest.raises(UsageError, check=fields(found="no results", hint="bench run --results")):
        build(tmp_path / "nowhere", tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_page_over_its_budget_is_refused(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than a page that no browser opens quickly."""
    monkeypatch.setattr(verify, "BUDGETS", ((re.compile(r".*\.html"), 1000),))
    with pytest.raises(UsageError, check=fields(expected="at most 1,000", hint="fewer systems")):
        build(results, tmp_path / "site")


def test_the_command(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the site is, for people and for machines."""
    store = tmp_path / "store"
    typed = ["leaderboard", "build", "--results", str(results), "--out", str(tmp_path / "site"), "--store", str(store)]
    with pytest.raises(SystemExit, match="0"):
        main(typed)
    printed = capsys.readouterr().out
    assert f"site: {(tmp_path / 'site' / 'index.html').resolve()}" in printed
    assert "suites/made/unsupervised.html" in printed
    with pytest.raises(SystemExit, match="0"):
        main([*typed, "--json"])
    report = json.loads(capsys.readouterr().out)
    listing = {"suite": "made", "proxy_for": None, "regime": "unsupervised", "data": "official", "measure": "RR@100"}
    assert report["pages"] == [{"page": "suites/made/unsupervised.html", **listing, "systems": 1, "best": []}]
    assert report["site"] == str((tmp_path / "site" / "index.html").resolve())
    assert report["files"] == len(tree(tmp_path / "site"))


def test_the_command_leaves_out_what_cannot_be_trusted(
    publish_result: Publisher, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flipped byte: the row is named, on stderr and on the first page, and is on no other page."""
    path = publish_result("crop", {"made/a": {"": [0.9, 0.7, 0.1]}})
    path.write_bytes(path.read_bytes().replace(b'"seed": 0', b'"seed": 7'))
    places = ["--out", str(tmp_path / "site"), "--store", str(tmp_path / "store")]
    with pytest.raises(SystemExit, match="0"):
        main(["leaderboard", "build", "--results", str(results), *places])
    place = path.parent.relative_to(results).as_posix()
    assert f"bench: {place} is left out: {path} cannot be trusted: its content does not" in capsys.readouterr().err
    assert place in (tmp_path / "site" / "index.html").read_text()
    assert "crop" not in (tmp_path / "site" / "suites" / "made" / "unsupervised.csv").read_text()


LONG_SETTINGS = [{"key": f"k{at}", "value": "x" * 99, "origin": ""} for at in range(9000)]
HARMS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another version of the suite": (lambda content: content["suite"].update(version="99"), "versions 1 and 99"),
    "a headline that no task has": (lambda content: content["suite"].update(primary="nDCG@7"), "no task with a nDCG@7"),
    "settings beyond the size of a page": (
        lambda content: content["system"].update(settings=LONG_SETTINGS),
        "expected at most",
    ),
    "curves that are none": (
        lambda content: content["files"].update({"curves.json": sha256(b"[1]").hexdigest()}),
        "curves",
    ),
}


@pytest.mark.parametrize("harm", HARMS)
def test_one_bad_bundle_stops_nothing(publish_result: Publisher, results: Path, tmp_path: Path, harm: str) -> None:
    """It is left out and named; the others are as if it were not there."""
    build(results, tmp_path / "without")
    path = publish_result(
        "zzz" if "version" in harm else "aaa", {"made/a": {"": [0.9, 0.7, 0.1]}}
    )  # before or after the other
    (path.parent / "curves.json").write_bytes(b"[1]")
    change, why = HARMS[harm]
    Bundle(path.parent).rewrite(change)
    ((omitted, reason),) = build(results, tmp_path / "site").omitted.items()
    assert omitted == path.parent.relative_to(results).as_posix()
    assert why in reason
    page = "suites/made/unsupervised.html"
    assert (tmp_path / "site" / page).read_bytes() == (tmp_path / "without" / page).read_bytes()


def test_a_label_with_another_end_of_line(publish_result: Publisher, results: Path, tmp_path: Path) -> None:
    """U+2028 ends no line of a CSV, and is shown by its code point."""
    publish_result("a\u2028b\u2029", {"made/a": {"": [0.9, 0.7, 0.1]}}, system={"method": "x"})
    assert build(results, tmp_path / "site").omitted == {}
    assert "a[U+2028]b[U+2029]" in (tmp_path / "site" / "suites" / "made" / "unsupervised.html").read_text()
