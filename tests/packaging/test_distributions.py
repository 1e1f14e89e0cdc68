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
TRAINED = ("auto-mlm", "ccp", "cmlm", "contriever", "crop", "ict", "mlm", "msm", "quickthought", "simcse")
TINY = ROOT / "tests" / "fixtures" / "tiny-beir"


def command(*arguments: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command, which must succeed; return its stdout."""
    completed = subprocess.run(
        [str(argument) for argument in arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def build(source: Path, folder: Path, *kinds: str) -> Path:
    """Build a distribution without isolation (so without a network) and return the one file."""
    command(sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", folder, source, cwd=folder.parent)
    (distribution,) = folder.iterdir()
    return distribution


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "--wheel")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("sdist"), "--sdist")


def checksums(wheel: Path) -> dict[str, int]:
    """Return file → CRC-32 of its bytes."""
    with zipfile.ZipFile(wheel) as archive:
        return {item.filename: item.CRC for item in archive.infolist() if not item.is_dir()}


def sources() -> set[str]:
    """Files of the four packages that git knows or would add."""
    listed = command("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *sorted(PACKAGES), cwd=ROOT)
    return {name for name in listed.split("\0") if name and (ROOT / name).is_file()}


def test_the_wheel_holds_the_packages_whole_and_nothing_else(wheel: Path) -> None:
    """Every file of the four packages, READMEs of methods, cards and `py.typed` among them, and otherwise metadata."""
    names = set(checksums(wheel))
    metadata = {name for name in names if PurePosixPath(name).parts[0].endswith(".dist-info")}
    assert names - metadata == sources()
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    expected = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "LICENSE"}
    assert {PurePosixPath(name).name for name in metadata} == expected
    methods = {f"methods/{path.parent.name}/README.md" for path in (ROOT / "methods").glob("*/__init__.py")}
    cards = {f"suites/cards/{path.name}" for path in (ROOT / "suites" / "cards").glob("*.md")}
    assert methods
    assert cards
    assert methods | cards <= names


def test_the_sdist_holds_the_packages_and_the_papers_of_the_project(sdist: Path) -> None:
    """No tests, no scripts of ours: only what is needed to build the same wheel."""
    with tarfile.open(sdist) as archive:  # names below its one folder
        names = {item.name.partition("/")[2] for item in archive.getmembers() if item.isfile()}
    assert {name for name in names if PurePosixPath(name).parts[0] in PACKAGES} == sources()
    other_files = {name for name in names if PurePosixPath(name).parts[0] not in PACKAGES}
    guide = {str(path.relative_to(ROOT)) for path in ROOT.glob("docs/[gp]*/*") if path.suffix != ".py"}
    papers = {"docs/architecture.md", "CITATION.cff", "constraints.txt", "CHANGELOG.md", "LICENSE", "README.md"}
    assert other_files == guide | papers | {"PKG-INFO", "pyproject.toml", ".gitignore"}


def test_the_sdist_builds_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    """File by file the same bytes, so what is shown of an installed wheel holds for both."""
    unpack(sdist, tmp_path / "unpacked")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert checksums(build(source, tmp_path / "again", "--wheel")) == checksums(wheel)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel was installed, without its dependencies (this environment has them)."""
    target = tmp_path_factory.mktemp("installed")
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    command(sys.executable, *install, target, wheel, cwd=target)
    return target


def elsewhere(target: Path, folder: Path, *arguments: str | Path) -> str:
    """Run the installed entry point from a folder outside the checkout."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    return command(target / "bin" / "bench", *arguments, cwd=folder, env={**inherited, "PYTHONPATH": str(target)})


def test_it_is_the_installed_copy_that_runs(installed: Path, tmp_path: Path) -> None:
    """`import` finds the installed folder, not the checkout; plugins of ours come by the installed entry points."""
    code = "import bench, methods, suites, leaderboard as l; print(*(m.__file__ for m in (bench, methods, suites, l)))"
    env = {**os.environ, "PYTHONPATH": str(installed)}
    printed = command(sys.executable, "-c", code, cwd=tmp_path, env=env).split()
    packages = ("bench", "methods", "suites", "leaderboard")
    assert printed == [str(installed / package / "__init__.py") for package in packages]
    assert "bench run" in elsewhere(installed, tmp_path, "--help")
    listed = json.loads(elsewhere(installed, tmp_path, "list", "--json"))
    assert {*TRAINED, "bm25", "pretrained"} == {row["name"] for row in listed["methods"]}
    assert "beir" in {row["name"] for row in listed["suites"]}
    code = "from bench.plugins import load; p = load(); print(*(p.suite(name).card()[:2] for name in p.suites), sep='')"
    assert command(sys.executable, "-c", code, cwd=tmp_path, env=env) == "# " * len(listed["suites"]) + "\n"


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


def test_every_trainer_is_found_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    """Each method trains a tiny encoder, and its result has the cards of method and suite."""
    sentences = [json.loads(line)["text"] for line in (TINY / "corpus.jsonl").read_text().splitlines()]
    rows = [{"id": str(at), "sentences": sentences[at : at + 4]} for at in range(0, len(sentences), 4)]
    (tmp_path / "en.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    task = ("--method", ",".join(TRAINED), "--suite", "beir", "--task", TINY, "--corpus", "en.jsonl")
    small = ("--backbone", "scratch:1x16", "--set", "prepare.vocabulary=512", "--set", "budget.tokens=300")
    printed = json.loads(elsewhere(installed, tmp_path, "run", *task, *small, "--json"))
    paths = {row["method"]: Path(row["result_file"]) for row in printed["results"]}
    assert set(paths) == set(TRAINED)
    for path in paths.values():
        cards = json.loads(path.with_name("cards.json").read_text())
        assert all(card.startswith("#") for card in cards.values()), path
        assert len(cards) > 1
