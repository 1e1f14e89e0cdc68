"""What a run prints besides its tables: gains or pairs with what they decide, in eight lines; and readouts."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bench.cli.outcome import _print_conclusion, readouts
from bench.evaluation.compare.conclusions import Conclusion, conclude
from bench.evaluation.results import Result
from bench.plugins import load
from tests.bench.evaluation.compare.test_paired_tests import MEASURE, bundle

SUITE = {"s": replace(load().suite("mrtydi"), name="s", macros=(), primary=MEASURE)}


def trained(folder: Path, label: str, gains: list[float], noise: float = 0.0) -> list[Result]:
    """A trained system and its start, a seed a gain in points; both answer every question alike but for noise."""
    draw, results = np.random.default_rng(len(label)), []
    for seed, gain in enumerate(gains):
        start = np.clip(0.4 + noise * draw.normal(size=40), 0, 1)
        systems = {f"{label}@init": (start, {"encode": f"start{seed}"})}
        systems[label] = np.clip(start + gain / 100, 0, 1), {"encode": f"{label}{seed}", "train": f"{label}{seed}"}
        for name, (values, keys) in systems.items():
            keys |= {"init": f"i{seed}", "score": f"{name}{seed}"}
            results.append(bundle(folder / f"{name}-{seed}", {"s/x": values.tolist()}, seed, keys=keys, label=name))
    return results


def concluded(results: list[Result]) -> Conclusion:
    """What results of one group show."""
    (conclusion,) = conclude(results, SUITE).values()
    return conclusion


def printed(conclusion: Conclusion, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of a run's conclusion."""
    _print_conclusion(conclusion)
    return capsys.readouterr().out.splitlines()


def test_seeds_that_disagree_in_sign_are_one_gain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As each seed alone would be certain of the opposite: one difference, its interval over seeds, its corrected p."""
    results = [*trained(tmp_path, "up", [3.6, -2.3, -1.4]), *trained(tmp_path, "down", [-9, -10, -9.5])]
    conclusion = concluded(results)
    gains = {test.first: test.comparison for test in conclusion.gains}
    assert {name: comparison.difference for name, comparison in gains.items()} == pytest.approx(
        {"up": -0.0003333, "down": -0.095}, abs=1e-6
    )
    head, first_row, last_row, sentence = printed(conclusion, capsys)
    assert head.split() == ["system", "start", MEASURE, "points", "95", "%", "seeds", "p,", "corrected"]
    assert first_row.split()[:3] == ["up", "up@init", "0.0"], "the largest gain first"
    assert last_row.split()[-2:] == ["3", gains["down"].chance_text.removeprefix("p = ")]
    assert sentence == "worse: down; not decided: up (not by 100 seeds)"


def test_an_open_gain_says_how_many_seeds_would_decide_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the power of the same test says with so many seeds, and not with one fewer."""
    conclusion = concluded(trained(tmp_path, "up", [4.0, 0.5, 2.0], noise=0.02))
    (test,) = conclusion.gains
    *_, sentence = printed(conclusion, capsys)
    (more,) = re.fullmatch(r"not decided: up \(about (\d+) seeds more\)", sentence).groups()  # type: ignore[union-attr]
    scatter, difference = np.std([4.0, 0.5, 2.0], ddof=1) / 100, 0.065 / 3

    def power(seeds: int) -> float:
        noncentral = difference / (scatter / np.sqrt(seeds))
        return float(stats.nct.sf(stats.t.isf(0.025, seeds - 1), seeds - 1, noncentral))

    assert not test.comparison.decided
    assert power(3 + int(more) - 1) < 0.8 < power(3 + int(more) + 1)


@pytest.mark.parametrize(
    ("gains", "interval", "sentence"),
    [
        ([3.0], False, "one seed shows how good a checkpoint is, not its method: --seed 0,1,2 tests the method"),
        ([3.0, 4.0], True, "two seeds show how good a checkpoint is, not its method: --seed 0,1,2 tests the method"),
    ],
)
def test_few_trainings_have_no_p(
    gains: list[float], interval: bool, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One has no interval either, two have that of these checkpoints; a sentence says what to type."""
    _, row, last = printed(concluded(trained(tmp_path, "ours", gains, noise=0.1)), capsys)
    assert ("[" in row) is interval
    assert row.endswith("—")
    assert "p " not in row
    assert last == sentence


def test_starts_of_one_artefact_are_one_row(tmp_path: Path) -> None:
    """Three methods begin at it, each with a start of its own name: the first is the start of all, no pair is a tie."""
    results = [result for label in ("a", "bb", "ccc") for result in trained(tmp_path, label, [1.0, 2.0, 1.5])]
    conclusion = concluded(results)
    assert {(test.first, test.second) for test in conclusion.gains} == {(name, "a@init") for name in ("a", "bb", "ccc")}
    assert len(conclusion.pairs) == 6, "of four rows"


def test_a_released_encoder_keeps_its_paired_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No seed would change it, so its p is there, and nobody is asked for seeds."""
    draw = np.random.default_rng(2)
    systems: dict[str, dict[str, Any]] = {"bm25": {}, "released": {"encoder_config": {"pooling": "mean"}}}
    results = [
        bundle(
            tmp_path / name, {"s/x": draw.uniform(low, low + 0.3, 60).tolist()}, label=name, deterministic=True, **more
        )
        for (name, more), low in zip(systems.items(), (0.6, 0.1), strict=True)
    ]
    _, row, sentence = printed(concluded(results), capsys)
    assert row.startswith("bm25 − released")
    assert row.endswith("< 0.001")
    assert sentence == "all pairs decided"


def test_systems_without_a_query_in_common_are_compared_with_nothing(tmp_path: Path) -> None:
    """The results are there, and nothing is said of their difference."""
    results = [
        bundle(tmp_path / name, {"s/x": [0.5] * queries}, label=name, deterministic=True)
        for name, queries in (("a", 3), ("b", 4))
    ]
    assert conclude(results, SUITE) == {}


def test_five_rows_and_eight_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of seven trained systems the five that gained most, and where the others are found."""
    results = [result for at in range(7) for result in trained(tmp_path, "m" * (at + 1), [at, at + 1, at])]
    lines = printed(concluded(results), capsys)
    assert len(lines) <= 8
    assert [line.split()[0] for line in lines[1:6]] == ["m" * at for at in (7, 6, 5, 4, 3)]
    assert lines[-1] == "2 more: bench compare"


def test_what_is_not_trained_is_compared_in_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Over questions, corrected for their number; cells of a grid are left to the ablation, which has its own table."""
    draw = np.random.default_rng(1)
    values = {
        name: np.clip(level + 0.1 * draw.normal(size=60), 0, 1)
        for name, level in zip("abcd", (0.7, 0.3, 0.3, 0.5), strict=True)
    }
    grid = {"d": {"preset": "m/t", "cell": "x"}}
    results = [
        bundle(tmp_path / name, {"s/x": column.tolist()}, label=name, deterministic=True, grid=grid.get(name))
        for name, column in values.items()
    ]
    conclusion = concluded(results)
    assert not conclusion.gains
    assert {frozenset((test.first, test.second)) for test in conclusion.pairs} == {*map(frozenset, ("ab", "ac", "bc"))}
    assert {test.row()["suite"] for test in conclusion.pairs} == {"s"}
    *_, sentence = printed(conclusion, capsys)
    (open_pair,) = (test.pair for test in conclusion.pairs if not test.comparison.decided)
    assert sentence == f"not decided: {open_pair}"
    assert conclude(results[:1], SUITE) == {}, "one system is compared with nothing"


def test_tables_name_the_readouts_where_they_differ() -> None:
    """Starts of two methods, read by cosine and by dot product; nothing where all are read alike, or by no encoder."""

    def result(label: str, **resolved: str) -> dict[str, Any]:
        return {"system": {"label": label}, "tasks": {"t/a": {"": {"resolved": resolved}}, "t/b": {"": {}}}}

    crop = [result(label, pooling="mean", similarity="cos") for label in ("crop", "crop@init")]
    contriever = [result(label, pooling="cls", similarity="dot") for label in ("contriever", "contriever@init")]
    assert readouts([result("bm25"), *crop, *contriever]) == [
        "read by the mean, cosine: crop, crop@init",
        "read by the first token, dot product: contriever, contriever@init",
    ]
    assert readouts([result("bm25"), *crop]) == []
    bare = result("bare", pooling="mean", similarity="cos", guess="it has no modules.json")
    assert readouts([bare]) == ["read by the mean, cosine (our guess: it has no modules.json): bare"]


def test_a_task_with_one_question_is_why_nothing_is_decided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three seeds, gains that would be certain, and a task of a single question: no p, and the reason."""
    results = []
    for seed in range(3):
        for name, level, keys in (("up@init", 0.2, {}), ("up", 0.8, {"train": f"t{seed}"})):
            values = {"s/x": [level - 0.01 * number * seed for number in range(5)], "s/y": [level]}
            trained_by = {"encode": f"{name}{seed}", "init": f"i{seed}", "score": f"{name}{seed}", **keys}
            results.append(bundle(tmp_path / f"{name}-{seed}", values, seed, keys=trained_by, label=name))
    _, row, sentence = printed(concluded(results), capsys)
    assert row.split()[-3:] == ["—", "3", "—"]
    assert sentence == "not decided: up (a task has one question)"
