"""Wheel and sdist hold exactly the four packages, and what they install runs outside the checkout."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from bench.data.fetching.unpack import unpack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
PACKAGES = {"bench", "methods", "suites", "leaderboard"}
TINY = ROOT / "tests" / "fixtures" / "tiny-beir"


def command(*arguments: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command, which must succeed; return its stdout."""
    done = subprocess.run(
        [str(argument) for argument in arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(source: Path, folder: Path, *kinds: str) -> Path:
    """Build a distribution without isolation (so without a network) and return the one file."""
    command(sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", folder, source, cwd=folder.parent)
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built straight from the checkout."""
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "--wheel")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist."""
    return build(ROOT, tmp_path_factory.mktemp("sdist"), "--sdist")


@pytest.fixture(scope="module")
def wheel_of_sdist(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that a stranger's machine builds from the sdist."""
    place = tmp_path_factory.mktemp("unpacked")
    unpack(sdist, place)
    (source,) = place.iterdir()
    return build(source, tmp_path_factory.mktemp("wheel-of-sdist"), "--wheel")


def wheel_names(wheel: Path) -> set[str]:
    """Names of the files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def sdist_names(sdist: Path) -> set[str]:
    """Names of the files in an sdist, below its one folder."""
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}


def sources() -> set[str]:
    """Files of the four packages that git knows or would add."""
    listed = command("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *sorted(PACKAGES), cwd=ROOT)
    return {name for name in listed.split("\0") if name and (ROOT / name).is_file()}


def test_the_wheel_holds_the_packages_whole_and_nothing_else(wheel: Path) -> None:
    """Every file of the four packages is in, with its cards, READMEs and `py.typed`; beside them metadata alone."""
    names = wheel_names(wheel)
    metadata = {name for name in names if PurePosixPath(name).parts[0].endswith(".dist-info")}
    assert names - metadata == sources()
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert {PurePosixPath(name).name for name in metadata} == {
        "METADATA",
        "WHEEL",
        "RECORD",
        "entry_points.txt",
        "LICENSE",
    }


def test_what_people_read_is_in_the_wheel(wheel: Path) -> None:
    """Each method has its README and each suite its card, a file of Markdown that the package itself reads."""
    names = wheel_names(wheel)
    methods = {f"methods/{path.parent.name}/README.md" for path in (ROOT / "methods").glob("*/__init__.py")}
    cards = {f"suites/cards/{path.name}" for path in (ROOT / "suites" / "cards").glob("*.md")}
    assert methods
    assert cards
    assert methods | cards <= names


def test_the_sdist_holds_the_packages_and_the_papers_of_the_project(sdist: Path) -> None:
    """No tests, no scripts of ours: only what is needed to build the same wheel."""
    names = sdist_names(sdist)
    assert {name for name in names if PurePosixPath(name).parts[0] in PACKAGES} == sources()
    rest = {name for name in names if PurePosixPath(name).parts[0] not in PACKAGES}
    guide = {f"docs/guide/{path.name}" for path in (ROOT / "docs" / "guide").iterdir()}
    assert rest == guide | {
        "docs/architecture.md",
        "CITATION.cff",
        "constraints.txt",
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
        ".gitignore",
    }


def test_the_sdist_builds_the_same_wheel(wheel: Path, wheel_of_sdist: Path) -> None:
    """File by file, the same bytes."""
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(wheel_of_sdist) as other:
        assert {item.filename: item.CRC for item in one.infolist()} == {
            item.filename: item.CRC for item in other.infolist()
        }


@pytest.fixture(scope="module", params=["wheel", "wheel_of_sdist"])
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which a wheel was installed, without its dependencies (this environment has them)."""
    target = tmp_path_factory.mktemp("installed")
    made = request.getfixturevalue(request.param)
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    command(sys.executable, *install, target, made, cwd=target)
    return target


def elsewhere(target: Path, folder: Path, *arguments: str | Path) -> str:
    """Run the installed entry point from a folder outside the checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    return command(target / "bin" / "bench", *arguments, cwd=folder, env={**kept, "PYTHONPATH": str(target)})


def test_it_is_the_installed_copy_that_runs(installed: Path, tmp_path: Path) -> None:
    """`import` finds the installed folder, not the checkout."""
    code = "import bench, methods, suites, leaderboard as l; print(*(m.__file__ for m in (bench, methods, suites, l)))"
    env = {**os.environ, "PYTHONPATH": str(installed)}
    printed = command(sys.executable, "-c", code, cwd=tmp_path, env=env).split()
    assert printed == [
        str(installed / package / "__init__.py") for package in ("bench", "methods", "suites", "leaderboard")
    ]


def test_help_and_list_work_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    """Our own plugins are found through the entry points of the installed metadata."""
    assert "bench run" in elsewhere(installed, tmp_path, "--help")
    listed = json.dumps(json.loads(elsewhere(installed, tmp_path, "list", "--json")))
    assert '"bm25"' in listed
    assert '"beir"' in listed


def test_a_tiny_run_works_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    """BM25 ranks and scores a folder in BEIR layout; store and results stay where they were asked for."""
    places = ("--store", tmp_path / "store", "--results", tmp_path / "results")
    task = ("--method", "bm25", "--suite", "beir", "--task", TINY)
    printed: dict[str, Any] = json.loads(elsewhere(installed, tmp_path, "run", *task, *places, "--json"))
    (row,) = printed["results"]
    assert (row["method"], row["suite"], row["queries"]) == ("bm25", "beir", 12)
    assert 0.5 < row["measures"]["nDCG@10"] <= 1
    ranked = {line.split()[0] for line in Path(row["run_file"]).read_text().splitlines() if not line.startswith("#")}
    assert "q-sourdough" in ranked
    assert "q-unjudged" not in ranked
    assert {path.name for path in tmp_path.iterdir()} == {"store", "results"}


TRAINED = ("auto-mlm", "ccp", "cmlm", "contriever", "crop", "ict", "mlm", "msm", "quickthought", "simcse")


def test_every_card_and_trainer_is_found_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    """Each suite has its card; each method trains a tiny encoder, and its result has the cards of method and suite."""
    listed = json.loads(elsewhere(installed, tmp_path, "list", "--json"))
    assert {*TRAINED, "bm25", "pretrained"} == {row["name"] for row in listed["methods"]}
    for row in listed["suites"]:
        assert json.loads(elsewhere(installed, tmp_path, "show", row["name"], "--json"))["card"].startswith("#")
    sentences = [json.loads(line)["text"] for line in (TINY / "corpus.jsonl").read_text().splitlines()]
    rows = [{"id": str(at), "sentences": sentences[at : at + 4]} for at in range(0, len(sentences), 4)]
    (tmp_path / "en.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    task = ("--method", ",".join(TRAINED), "--suite", "beir", "--task", TINY, "--corpus", "en.jsonl")
    small = ("--backbone", "scratch:1x16", "--set", "prepare.vocabulary=512", "--set", "budget.tokens=300")
    printed = json.loads(elsewhere(installed, tmp_path, "run", *task, *small, "--json"))
    found = {row["method"]: Path(row["result_file"]) for row in printed["results"]}
    assert set(found) == set(TRAINED)
    for path in found.values():
        cards = json.loads(path.with_name("cards.json").read_text())
        assert all(card.startswith("#") for card in cards.values()), path
        assert len(cards) > 1
