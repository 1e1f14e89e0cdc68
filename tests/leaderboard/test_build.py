"""The build: whole or not at all, never in a stranger's place; and `bench leaderboard build` as it is typed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench.cli import main
from bench.core.errors import StoreError, UsageError
from bench.testing import fields
from leaderboard.build import LIST, build
from leaderboard.site import verify
from tests.leaderboard.conftest import Publisher


@pytest.fixture(autouse=True)
def one(made: Publisher) -> None:
    """A result to build from."""
    made("bm25", {"made/a": {"": [0.5, 0.7, 0.1]}})


def tree(folder: Path) -> dict[str, bytes]:
    """Every file under a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_bytes_and_no_leavings(results: Path, tmp_path: Path) -> None:
    """Two builds, one beside the other, then one over the other."""
    site = build(results, tmp_path / "one")
    build(results, tmp_path / "two")
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    build(results, tmp_path / "one")
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    assert (site.files, site.bytes) == (len(tree(tmp_path / "one")), sum(map(len, tree(tmp_path / "one").values())))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_page_that_has_gone_leaves_the_site(made: Publisher, results: Path, tmp_path: Path) -> None:
    """The new site takes the old one's place as a whole."""
    gone = made("bm25", {"gone/a": {"": [0.5]}}, suite="gone")
    build(results, tmp_path / "site")
    assert (tmp_path / "site" / "suites" / "gone" / "unsupervised.html").exists()
    gone.unlink()
    build(results, tmp_path / "site")
    assert not (tmp_path / "site" / "suites" / "gone" / "unsupervised.html").exists()


def test_other_files_are_never_touched(results: Path, tmp_path: Path) -> None:
    """A folder of the user's, a site to which the user added something, a file."""
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


def test_a_list_of_another_program_does_not_count(results: Path, tmp_path: Path) -> None:
    """A `site.json` is ours only if it says so."""
    home = tmp_path / "home"
    home.mkdir()
    for content in ("[]", "{}", '{"schema": "other", "files": ["site.json"]}', "[" * 100_000, "\xff"):
        (home / LIST).write_text(content)
        with pytest.raises(UsageError, check=fields(found="files that no build has written")):
            build(results, home)


def test_a_failure_leaves_the_old_site(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills up in the middle of a page; the site stands as it stood, and nothing lies about."""
    build(results, tmp_path / "site")
    before = tree(tmp_path / "site")

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StoreError, match=r"cannot write the site to .*: the disk is full"):
        build(results, tmp_path / "site")
    monkeypatch.undo()
    assert tree(tmp_path / "site") == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_the_old_site_returns_if_the_new_cannot_take_its_place(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two renames."""
    build(results, tmp_path / "site")
    before, rename = tree(tmp_path / "site"), Path.rename

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
    told = json.loads(capsys.readouterr().out)
    about = {"suite": "made", "stands_for": None, "setting": "unsupervised", "data": "official", "measure": "RR@100"}
    assert told["pages"] == [{"page": "suites/made/unsupervised.html", **about, "systems": 1, "best": []}]
    assert told["site"] == str((tmp_path / "site" / "index.html").resolve())
    assert told["files"] == len(tree(tmp_path / "site"))


def test_the_command_refuses_what_cannot_be_trusted(
    made: Publisher, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flipped byte: status 1, one sentence, no site."""
    path = made("crop", {"made/a": {"": [0.9, 0.7, 0.1]}})
    path.write_bytes(path.read_bytes().replace(b'"seed": 0', b'"seed": 7'))
    places = ["--out", str(tmp_path / "site"), "--store", str(tmp_path / "store")]
    with pytest.raises(SystemExit, match="1"):
        main(["leaderboard", "build", "--results", str(results), *places])
    said = capsys.readouterr().err
    assert said.startswith(f"bench: {path} cannot be trusted: its content does not match its seal")
    assert "Traceback" not in said
    assert not (tmp_path / "site").exists()
