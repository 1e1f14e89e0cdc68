"""The published experiments: a board is built from the committed results; the page of findings has their numbers."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"
HEADINGS = {"Tatoeba": "tatoeba", "SciFact": "beir", "Mr. TyDi GoldP": "mrtydi-goldp", "LAReQA": "lareqa"}
ARM_L, SUPERVISED = ROOT / "experiments" / "arm-l", ROOT / "experiments" / "supervised"


def published(suite: str, results: Path = RESULTS) -> dict[str, tuple[str, float]]:
    """Return each system's seeds and the mean over them of the suite's average, or of its tasks where none is."""
    found: dict[str, dict[int, float]] = {}
    for path in (results / "official" / suite).rglob("result.json"):
        result = json.loads(path.read_text(encoding="utf-8"))
        averages = [one for one in result["macro"] if "members" in one][:1]
        parts = averages or [part for task in result["tasks"].values() for part in task.values()]
        value = fmean(part["measures"][result["suite"]["primary"]] for part in parts)
        found.setdefault(result["system"]["label"], {})[result["seed"]] = value
    return {label: (" ".join(map(str, sorted(one))), fmean(one.values())) for label, one in found.items()}


@pytest.mark.slow
def test_the_board(tmp_path: Path, bench: Callable[..., Any]) -> None:
    """Every committed row is on its suite's board with the mean over its seeds."""
    done = bench("leaderboard", "build", "--results", RESULTS, "--out", tmp_path / "site", seconds=900)
    assert done.returncode == 0, done.stderr
    boards = [*(tmp_path / "site").rglob("suites/*/unsupervised.csv")]
    assert {board.parent.name for board in boards} == {*HEADINGS.values()}
    for board in boards:
        lines = [line for line in board.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        rows = {row["system"]: (row["seeds"], float(row["score"])) for row in csv.DictReader(lines)}
        known = published(board.parent.name)
        assert {label: seeds for label, (seeds, _) in rows.items()} == {
            label: seeds for label, (seeds, _) in known.items()
        }
        for label, (_, value) in known.items():
            assert rows[label][1] == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        ("Arm L:", published("tatoeba", ARM_L)),
        ("Arm L,", published("mrtydi-goldp", ARM_L)),
        *((heading, published(suite)) for heading, suite in HEADINGS.items()),
    ],
)
def test_findings_have_the_numbers_of_the_results(heading: str, known: dict[str, tuple[str, float]]) -> None:
    """The first column of numbers of each section's first table, in percent."""
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", page.partition(f"\n## {heading}")[2], maxsplit=1, flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| (?:`([\w-]+)`|start) \| ([\d.]+) \|", section, re.MULTILINE)
    expected = {re.sub(".*@init", "", label): f"{100 * value:.1f}" for label, (_, value) in known.items()}
    assert dict(rows) == expected


def test_findings_have_the_reference_lines() -> None:
    """Each suite's column of their table, in percent."""
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8").partition("\n## Supervised reference lines")[2]
    table = re.findall(r"^\| `([\w-]+-supervised)` \|(.+)\|$", page, re.MULTILINE)
    rows = {label: [float(cell) for cell in cells.split("|")] for label, cells in table}
    for at, suite in enumerate(("tatoeba", "lareqa", "beir", "mrtydi-goldp")):
        known = published(suite, SUPERVISED)
        assert {label: cells[at] for label, cells in rows.items()} == {
            label: round(100 * value, 1) for label, (_, value) in known.items()
        }
