"""Paired tests: pairs on per-query means over shared seeds, within tasks, corrected for their number."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.core.files import sha256_file, write_sealed
from bench.evaluation.compare.paired_tests import PairedTest, SeedResults, all_tests
from bench.evaluation.results import RESULT, SCHEMA, Result
from bench.evaluation.results.format import place
from bench.evaluation.results.read import result
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.families import Comparison, family
from tests.published import identified

MEASURE = "RR@100"


def bundle(
    folder: Path,
    tasks: Mapping[str, Sequence[float]],
    seed: int = 0,
    parallel: str = "",
    keys: Mapping[str, str] | None = None,
    resolved: Mapping[str, Any] | None = None,
    **system: Any,
) -> Result:
    metadata = {"regime": "unsupervised", "data": "official", "profile": "mini", "seed": seed}
    empty: dict[str, Any] = {"macro": [], "tasks": {}, "files": {}}
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "system": identified({"label": "x", "method": "x", "version": "1", "deterministic": False, **system}),
        "suite": {"name": "s", "version": "1", "title": "S", **({"parallel": parallel} if parallel else {})},
        **metadata,
        **empty,
    }
    for name, values in tasks.items():
        task, _, subset = name.partition(":")
        names = [f"q{number}" for number in range(len(values))]
        scored = {"measures": {MEASURE: float(np.mean(values))}, "queries": len(values), "keys": dict(keys or {})}
        scored |= {"resolved": dict(resolved)} if resolved else {}
        content["tasks"].setdefault(task, {})[subset] = scored
        table = {"queries": names, "measures": {MEASURE: [float(value) for value in values]}}
        content["files"][place("per-query", task, subset)] = put(folder, place("per-query", task, subset), table)
    write_sealed(folder / RESULT, content)
    return result(folder / RESULT)


def put(folder: Path, name: str, table: Any) -> str:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(gzip.compress(json.dumps(table).encode()))
    return sha256_file(folder / name)


@pytest.fixture
def values() -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Three systems on 40 queries; the second is better than the first by 0.1 on average, the third is noise."""
    chance = np.random.default_rng(0)
    base = 0.35 + 0.2 * chance.random(40)
    better = np.clip(base + chance.normal(0.1, 0.1, 40), 0.1, 0.9)
    return {"a": base, "b": better, "c": base + chance.uniform(-0.1, 0.1, 40)}


def test_one_result_that_knows_of_parallel_queries_is_enough(tmp_path: Path, values: dict[str, Any]) -> None:
    """An earlier release's says nothing of them; two subsets that ask the same are half as many questions, with any."""

    def reach(*parallel: str) -> float:
        rows = []
        for label, kind in zip("ab", parallel, strict=True):
            folder, column = tmp_path / "-".join((*parallel, label)), values[label]
            rows.append(SeedResults(label, {0: bundle(folder, {"s/x:to": column, "s/x:from": column}, parallel=kind)}))
        (test,) = all_tests(rows, MEASURE).pairs
        assert test.comparison.low is not None
        return test.comparison.difference - test.comparison.low

    assert reach("", "subsets") == reach("subsets", "") == reach("subsets", "subsets") > 1.3 * reach("", "")


def test_pairs_are_tested_on_all_seeds(tmp_path: Path, values: dict[str, Any]) -> None:
    """Equal to the library's family of values put together here: the better first, corrected over the three pairs."""
    rows, samples = [], {}
    for label, column in values.items():
        runs = {seed: column + shift for seed, shift in enumerate((-0.05, 0.02, 0.05))}
        tasks = {seed: {"s/x": tasks_of, "s/y:there": column} for seed, tasks_of in runs.items()}
        bundles = {seed: bundle(tmp_path / label / str(seed), tasks_of) for seed, tasks_of in tasks.items()}
        rows.append(SeedResults(label, bundles))
        samples[label] = Sample({"x": np.stack([*runs.values()]), "y": np.tile(column, (3, 1))})
    expected = family(samples, {"": {"x": 1.0, "y": 1.0}, "cell": {"x": 1.0}, "other": {"y": 1.0}})
    headline = family(samples, {"": {"x": 1.0, "y": 1.0}})
    tests = all_tests(rows, MEASURE, by_task=True).pairs
    assert [(test.first, test.second) for test in tests] == [("b", "a"), ("c", "a"), ("b", "c")]
    for test in tests:
        assert test.metadata == {"seeds": [0, 1, 2]}
        assert test.comparison.difference >= 0
        reference = headline.comparison(test.first, test.second)
        assert (test.comparison.p_uncorrected, test.comparison.adjusted) == pytest.approx(
            (reference.p_uncorrected, reference.adjusted), abs=0.005
        )
        cell = expected.comparison(test.first, test.second, "cell")
        assert (test.by_task["s/x"].difference, test.by_task["s/x"].p_uncorrected) == pytest.approx(
            (cell.difference, cell.p_uncorrected)
        )
    assert "p_adjusted" in tests[0].row()


def test_only_the_named_tasks_count(tmp_path: Path, values: dict[str, Any]) -> None:
    """A task with its subsets; queries are paired by name, in whatever order a bundle lists them."""
    rows = [
        SeedResults("a", {0: bundle(tmp_path / "a", {"s/x": values["a"], "s/y:there": values["b"]})}),
        SeedResults("b", {0: bundle(tmp_path / "b", {"s/x": values["b"], "s/y:there": values["b"]})}),
    ]
    (test,) = all_tests(rows, MEASURE, {"s/y"}).pairs
    assert test.comparison.difference == 0
    assert test.comparison.n == 40
    first = bundle(tmp_path / "one", {"s/x": [0.1, 0.9]})
    second = bundle(tmp_path / "reversed", {"s/x": [0.1, 0.9]})
    checksum = put(
        tmp_path / "reversed", "per-query/s/x.json.gz", {"queries": ["q1", "q0"], "measures": {MEASURE: [0.9, 0.1]}}
    )
    files = {"per-query/s/x.json.gz": checksum}
    second = Result(second.path, second.content.model_copy(update={"files": files}))
    (test,) = all_tests([SeedResults("a", {0: first}), SeedResults("b", {0: second})], MEASURE).pairs
    assert (test.comparison.difference, test.comparison.ties) == (0, 2)


def test_systems_need_no_seed_in_common(tmp_path: Path, values: dict[str, Any]) -> None:
    """Seed 3 of one method has nothing to do with seed 3 of another; a deterministic system has one result."""
    fixed = SeedResults("bm25", {0: bundle(tmp_path / "f", {"s/x": values["a"]})}, deterministic=True)
    moving = SeedResults("b", {seed: bundle(tmp_path / f"b{seed}", {"s/x": values["b"]}) for seed in (3, 4, 5)})
    lonely = SeedResults("c", {9: bundle(tmp_path / "c", {"s/x": values["c"]})})
    pairs = {frozenset({test.first, test.second}): test for test in all_tests([fixed, moving, lonely], MEASURE).pairs}
    assert len(pairs) == 3
    assert pairs[frozenset({"bm25", "b"})].metadata["seeds"] == [3, 4, 5]
    assert not pairs[frozenset({"bm25", "b"})].comparison.checkpoints
    assert pairs[frozenset({"b", "c"})].comparison.checkpoints
    expected = float(np.mean(values["b"] - values["a"]))
    assert pairs[frozenset({"bm25", "b"})].comparison.difference == pytest.approx(abs(expected))


def test_the_line_for_people() -> None:
    """Signs, units, the corrected p with two digits; a rounded zero has no sign; checkpoints have no p, in JSON too."""
    shown = Comparison(0.4123, -0.0004, 0.4349, 1e-5, 1e-4, None, None, 6600, 1, 3)
    test = PairedTest({"seeds": [0]}, "crop", "crop@init", "RR@100", shown)
    assert (
        str(test) == "crop − crop@init: +41.2 RR@100 points, 95 % [0.0, 43.5], p < 0.001 corrected, over 6,600 queries"
    )
    worse = Comparison(-0.021, None, None, 0.0123, 0.02, None, None, 12, 1, 3, checkpoints=True)
    few = PairedTest({"seeds": [0]}, "a", "b", "P@1", worse, {"x": worse}, about_methods=False)
    assert str(few) == "a − b: −2.1 P@1 points, of these checkpoints, over 12 queries"
    assert (few.as_json()["p_adjusted"], few.as_json()["by_task"][0]["p_adjusted"]) == (None, None)
    assert (few.as_json()["p_uncorrected"], test.as_json()["p_adjusted"]) == (0.0123, 1e-4)


def test_a_task_with_one_question_leaves_no_p() -> None:
    """Nothing says how questions scatter there: no p = 1, which would read as a verdict, for people nor in JSON."""
    values = {"x": [[0.1, 0.4, 0.5], [0.2, 0.5, 0.1], [0.3, 0.1, 0.4]], "y": [[0.5], [0.6], [0.2]]}
    systems = {
        "a": Sample(values),
        "b": Sample({name: [[1.0 - v for v in r] for r in rows] for name, rows in values.items()}),
    }
    comparison = family(systems, {"": {"x": 1.0, "y": 1.0}}, {}).comparison("a", "b")
    test = PairedTest({"seeds": [0, 1, 2]}, "a", "b", "P@1", comparison)
    assert str(test).endswith("P@1 points, a task has one question, over 4 queries")
    assert test.as_json()["p_adjusted"] is None
    assert test.chance_text(comparison) is None
