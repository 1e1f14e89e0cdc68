"""No output prints the p of a pair by itself or of one seed, though seeds disagree in sign and each is certain."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import bench
from bench.cli.compare import command
from bench.cli.outcome import _print_conclusion
from bench.evaluation.compare.conclusions import conclude
from bench.evaluation.results import results as read_results
from bench.evaluation.tables import chance_text
from bench.plugins import load
from leaderboard.site.boards import boards
from tests.leaderboard.conftest import Build
from tests.published import SyntheticResult

GAINS = {"up": (3.6, -2.3, -1.4), "down": (-1.0, -6.5, -4.0)}  # points, a seed each
SURE = "< 0.001"
CONTRASTS = "[[contrast]]\nfirst = 'up'\nsecond = 'up@init'\nsuites = ['mrtydi']\n"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two trained systems and their starts, three seeds each, on two languages; by itself every seed is certain."""
    draw = np.random.default_rng(1)
    folder = tmp_path / "results"
    for label, gains in GAINS.items():
        for seed, gain in enumerate(gains):
            start = {language: np.clip(0.4 + 0.1 * draw.normal(size=60), 0, 1) for language in ("en", "sw")}
            trained = {
                language: values + gain / 100 + 0.001 * draw.normal(size=60) for language, values in start.items()
            }
            for at, values in enumerate(trained.values()):
                assert stats.ttest_1samp(values - [*start.values()][at], 0).pvalue < 1e-6
            keys = {"init": f"i{label}{seed}", "encode": f"e{label}{seed}"}
            for name, columns, more in (
                (f"{label}@init", start, {}),
                (label, trained, {"train": f"t{label}{seed}", "encode": f"t{label}{seed}"}),
            ):
                system = {
                    "backbone": "scratch:2x128",
                    "deterministic": False,
                    "budget": 1000 if more else 0,
                    "encoder_config": {"pooling": "mean"},
                }
                of_seed = {"keys": keys | more | {"score": f"{name}{seed}"}}
                tasks = {
                    f"mini/mrtydi/{language}": {"": list(map(float, values))} for language, values in columns.items()
                }
                published = SyntheticResult(
                    name, tasks, suite="mrtydi", data="mini", seed=seed, system=system, subset=of_seed
                )
                published.publish(tmp_path / "scratch", folder)
    return folder


def of_commands(results: Path, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """What `bench compare` prints, by the words that were typed."""
    (tmp_path / "contrasts.toml").write_text(CONTRASTS)
    systems = ("up", "up@init", "down", "down@init", "--suite", "mrtydi")
    for words in (
        systems,
        (*systems, "--pairs", "--costs", "--per-task"),
        (*systems, "--next"),
        *((*systems, "--pairs", "--per-task", "--format", form) for form in ("csv", "markdown", "latex")),
        (*systems, "--json"),
        *(("--contrasts", str(tmp_path / "contrasts.toml"), *more) for more in ((), ("--json",), ("--format", "csv"))),
    ):
        typed = [*words, "--results", str(results)]
        yield " ".join(words), CliRunner().invoke(command, typed, catch_exceptions=False, standalone_mode=False).stdout


def numbers(name: str, text: str) -> Iterator[tuple[str, float]]:
    """Every number of a JSON or CSV text with the name that it stands under."""
    if text.startswith("{") or name.endswith(".json"):
        yield from of_json("", json.loads(text))
    elif "csv" in name:
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        for row in csv.DictReader(io.StringIO("\n".join(lines))):
            for key, value in row.items():
                try:
                    yield key, float(value)
                except (TypeError, ValueError):
                    continue


def of_json(key: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from of_json(name, part)
    elif isinstance(value, list):
        for part in value:
            yield from of_json(key, part)
    elif isinstance(value, float):
        yield key, value


def test_roles_and_arms_are_fields(results: Path) -> None:
    """By the stages that results rest on: what was trained here, what it began as, and with what."""
    (compared,) = bench.compare("up", "up@init", "down", suite="mrtydi", results=results)
    roles = {row["system"]: (row["role"], row["arm"]) for row in compared.as_json()["systems"]}
    arm = "scratch:2x128"
    assert roles == {"up": ("contestant", arm), "up@init": ("start", arm), "down": ("contestant", arm)}


def test_no_output_prints_another_p_than_the_corrected_one(
    results: Path, site: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands in every form, Python's text, table and frame, the end of a run, and every file of the board."""
    compared = bench.compare(
        *(name for label in GAINS for name in (label, f"{label}@init")), suite="mrtydi", results=results
    )
    tests = [test for comparison in compared for test in (*comparison.tests, *comparison.gains)]
    comparisons = [comparison for test in tests for comparison in (test.comparison, *test.by_task.values())]
    comparisons += [
        family.comparison(*pair, estimand)
        for board in boards(read_results(results))
        for family in (board.tests.ranks, board.tests.cells, board.tests.gains)
        for estimand in family.members
        for pair in family.pairs(estimand)
    ]
    corrected = {comparison.chance_text for comparison in comparisons}
    by_themselves = {chance_text(comparison.p_uncorrected) for comparison in comparisons} - corrected
    assert by_themselves
    assert not any(SURE in text for text in corrected)
    values = {comparison.p_uncorrected for comparison in comparisons} - {
        comparison.adjusted for comparison in comparisons
    }
    (conclusion,) = conclude(read_results(results), {"mrtydi": load().suite("mrtydi")}).values()
    _print_conclusion(conclusion)
    outputs = dict(of_commands(results, tmp_path))
    outputs |= {"run": capsys.readouterr().out, "repr": repr(compared), "html": compared._repr_html_()}
    frame = compared.frame()
    outputs |= {f"frame.{name}": str(frame[name].tolist()) for name in frame.columns if name[:2] != "p_"}
    pages = {
        name: content.decode() for name, content in site().items() if name.endswith((".html", ".json", ".csv", ".js"))
    }
    assert any(chance in page for page in pages.values() for chance in corrected)
    for name, text in {**outputs, **pages}.items():
        plain = text.replace("&lt;", "<").replace("\\textless{}", "<").replace("\\textless", "<")
        assert SURE not in plain, name
        for chance in by_themselves:
            assert f"{chance} " not in plain, (name, chance)
            assert f"{chance}<" not in plain, (name, chance)
        for key, value in numbers(name, text):
            assert key != "p", name
            assert key == "p_uncorrected" or not any(abs(value - p) < 1e-9 for p in values), (name, key)
