"""Every suite, from its hosts' true layouts: fetched by one command, run by one, and run again without a network."""

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.plugins import load
from tests.internet.conftest import User, World, releases, serve_suite
from tests.internet.layouts import layout
from tests.internet.made import Files

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
SUITES = sorted(load().suites)


@pytest.mark.parametrize("name", SUITES)
def test_a_suite(name: str, world: World, user: User, later: User, ended: Callable[[], None]) -> None:
    """What can be fetched is, and the others' steps are printed; then it is run, and again when nothing answers."""
    suite = world.plugins.suite(name)
    made = layout(suite)
    task = made.task
    files, by_library = serve_suite(world, suite), made.fetched()
    run = ("--method", "bm25", *(() if suite.by_id else ("--suite", name)), "--task", task, "--data", "official")
    for path, data in made.by_hand().items():
        put_as_told(user, user.folder / "irds" / path, data, run)
    if by_library:
        user("data", "fetch", "--for", shlex.join(["run", *run]), "--yes")
    else:
        fetch(user, world, name, task, files)
    first = user.ran(*run)
    asked = {f"{request.host}{request.path}" for request in world.internet.requests}
    assert {url.partition("://")[2] for url in by_library} <= {address.partition("?")[0] for address in asked}
    ended()
    again = later.ran(*run, "--offline")
    assert [row["measures"] for row in again] == [row["measures"] for row in first]
    assert all(row["queries"] > 1 for row in first)
    assert max(row["measures"][measure] for row in first for measure in row["measures"]) > 0.5
    if releases(suite):
        later("data", "fetch", name, "--task", task, "--offline")


def put_as_told(user: User, place: Path, data: bytes, run: tuple[str, ...]) -> None:
    """Run what lacks a file that nobody may fetch: it says the steps, and finds a file that is cut; put it there."""
    told = user("run", *run, status=2)
    for words in ("<https://github.com/hltcoe/HC4>", f"symlink the source file here: {place}"):
        assert words in told.stderr
    assert not place.exists()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data[:-20])
    results = user.folder / "of-a-cut-file"
    told = user("run", *run, "--results", results, status=2)
    assert f"if {place} is damaged, replace it" in told.stderr, told.stderr
    assert not [*results.rglob("result.json")]
    place.write_bytes(data)


def fetch(user: User, world: World, name: str, task: str, files: Files) -> None:
    """Fetch a suite's task by one command; what is by hand is put where that says."""
    suite = world.plugins.suite(name)
    wanted = [release for release in releases(suite) if not release.tasks or task in release.tasks]
    by_hand = [release for release in wanted if not release.urls]
    said = user("data", "fetch", name, "--task", task, "--yes", status=1 if by_hand else 0)
    for release in by_hand:
        place = user.data / release.path
        assert f"put it at {place}" in said.stdout
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(files[release.path])
    if by_hand:
        user("data", "fetch", name, "--task", task, "--yes")
    if name == "tatoeba-pairs":  # its pairs are drawn from what was fetched
        draw = [sys.executable, "-m", "suites.tatoeba_pairs", str(user.data)]
        subprocess.run(draw, check=True, cwd=Path(__file__).parents[2], timeout=120)
