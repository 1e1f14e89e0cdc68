"""Systems compared: seeds, settings, tasks, ranks, what is doubtful."""

import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from scipy.stats import ttest_rel

from bench.cli.compare_formats import explained, tables
from bench.core.errors import UsageError
from bench.evaluation.compare.comparison import Compared, CompareOptions, compare
from bench.evaluation.significance.families import stratified
from bench.evaluation.significance.tasks import better_in_at_least
from bench.testing import fields
from bench.types import Suite

Write = Callable[..., Path]
Column = Callable[..., dict[str, list[float]]]
FOUR = ("ar", "bn", "en", "sw")
NO_INTERVAL = {"low": None, "high": None, "p_uncorrected": None}


def setting(key: str, value: Any) -> dict[str, Any]:
    """A setting as a result holds it."""
    return {"key": key, "value": value, "origin": "--set"}


@pytest.fixture
def compare_all(tmp_path: Path, suite: Suite) -> Callable[..., Compared]:
    def hold(*names: str, **options: Any) -> Compared:
        (compared,) = compare(names, tmp_path / "results", suite, CompareOptions(**options))
        return compared

    return hold


def test_settings_of_one_system_are_paired_by_their_trainings(write: Write, column: Column, compare_all: Any) -> None:
    """Each run with its own tuned self; the runs scatter far more than tuning helps, yet the difference is found."""
    shifts = (-0.2, -0.1, 0.0, 0.1, 0.2)
    for seed, shift in enumerate(shifts):
        plain = column(0.4, 1, shift)
        write("crop", plain, seed=seed, trained="t")
        better = {language: [value + 0.02 for value in values] for language, values in plain.items()}
        write("crop", better, seed=seed, trained="t", regime="english")
        write("other", better, seed=seed, trained="o", regime="english")
    compared = compare_all("crop:english", "crop:unsupervised")
    (test,) = compared.tests
    assert (test.first, test.second) == ("crop:english", "crop:unsupervised")
    assert (test.comparison.seeds, test.same_trainings) == ((5, 5), True)
    assert (test.comparison.low, test.comparison.high) == pytest.approx((0.02, 0.02))
    assert compared.regimes == {"crop:english": "english", "crop:unsupervised": "unsupervised"}
    assert compared.metadata["regime"] == "english, unsupervised"
    warning = "different regimes are compared: crop:english is english, crop:unsupervised is unsupervised"
    assert warning in compared.warnings
    unpaired = compare_all("other:english", "crop:unsupervised").tests[0]
    assert not unpaired.same_trainings
    assert unpaired.comparison.low < 0 < unpaired.comparison.high
    assert unpaired.comparison.p_uncorrected > 0.5, "apart their runs scatter far more than they differ"


def test_seeds_that_were_typed(write: Write, column: Column, compare_all: Any) -> None:
    """Only these are compared, and what no seed changes with them; one that a system lacks is refused by name."""
    write("flat", column(0.5, 9), deterministic=True)
    for seed in (0, 1, 2):
        write("crop", column(0.4 + 0.1 * seed, 1), seed=seed)
        write("ict", column(0.3, 2), seed=seed)
    compared = compare_all("crop", "ict", "flat", seeds=(1, 2))
    assert {system.label: system.seeds for system in compared.systems} == {"crop": [1, 2], "ict": [1, 2], "flat": [0]}
    values = [column(0.4 + 0.1 * seed, 1) for seed in (1, 2)]
    assert compared.values["crop"] == pytest.approx(
        fmean(fmean(questions) for by_language in values for questions in by_language.values())
    )
    with pytest.raises(UsageError, check=fields(where="crop", found="no results of --seed 7", hint="type --seed 0")):
        compare_all("crop", "ict", seeds=(7,))


def test_a_system_in_two_regimes_is_found_in_each(write: Write, column: Column, tmp_path: Path, suite: Suite) -> None:
    """Its hash differs between them, and that is no second system."""
    for regime in ("unsupervised", "english"):
        write("crop", column(0.4, 1), regime=regime)
        write("ict", column(0.5, 2), regime=regime)
    comparisons = compare(("crop", "ict"), tmp_path / "results", suite, CompareOptions())
    assert sorted(compared.metadata["regime"] for compared in comparisons) == ["english", "unsupervised"]
    with pytest.raises(UsageError, match="crop has results in 2 regimes; say which: crop:english or crop:unsup"):
        compare(("crop", "ict:english"), tmp_path / "results", suite, CompareOptions())
    (compared,) = compare(("crop", "ict:english"), tmp_path / "results", suite, CompareOptions(regime="unsupervised"))
    assert [system.label for system in compared.systems] == ["crop:unsupervised", "ict:english"]


def test_names_with_regimes_that_mean_nothing(write: Write, column: Column, tmp_path: Path, suite: Suite) -> None:
    """An unknown regime, one without results, regimes in which nobody meets."""
    write("crop", column(0.4, 1))
    write("ict", column(0.4, 1), regime="english")
    for names, sentence in (
        (("crop:englsh", "ict"), "no regime 'englsh'; did you mean english"),
        (("crop:english", "ict"), "crop has no results on mrtydi in .* in regime english; it has some in unsupervis"),
        (("crop", "ict"), "to compare regimes, name them: crop:unsupervised"),
        (("crop:unsupervised", "icd"), "no system 'icd'; did you mean ict"),
    ):
        with pytest.raises(UsageError, match=sentence):
            compare(names, tmp_path / "results", suite, CompareOptions())


def test_every_task_is_tested_and_corrected_together(write: Write, column: Column, compare_all: Any) -> None:
    """Three pairs, two tasks: one family of six; each as the library tests it alone, turned where the pair is."""
    values = {"a": column(0.4, 1), "b": column(0.45, 2), "c": column(0.47, 3)}
    for label, column_values in values.items():
        write(label, column_values)
    compared = compare_all("a", "b", "c", by_task=True)
    for test in compared.tests:
        assert test.by_task.keys() == {"mini/mrtydi/en", "mini/mrtydi/sw"}
        for task, comparison in test.by_task.items():
            language = task.rpartition("/")[2]
            expected = stratified({task: (values[test.first][language], values[test.second][language])})
            assert (comparison.difference, comparison.p_uncorrected) == pytest.approx(
                (expected.difference, expected.p_uncorrected)
            )
            assert expected.p_uncorrected <= comparison.adjusted <= min(1.0, 6 * expected.p_uncorrected) + 1e-12
    rows = compared.as_json()["tests"][0]["by_task"]
    assert [row["task"] for row in rows] == ["mini/mrtydi/en", "mini/mrtydi/sw"]
    assert rows[0]["queries"] + rows[1]["queries"] == compared.tests[0].comparison.n
    assert compare_all("a", "b", "c").tests[0].by_task == {}


def test_ranks_and_letters_come_from_the_corrected_tests(write: Write, column: Column, compare_all: Any) -> None:
    """Two systems that are the same but for noise, and one far below; differences are those of the values shown."""
    write("good", column(0.6, 1))
    write("same", column(0.6, 2))
    write("bad", column(0.2, 3))
    compared = compare_all("good", "bad", "same")
    decided = {frozenset({test.first, test.second}) for test in compared.tests if test.comparison.decided}
    assert decided == {frozenset({"good", "bad"}), frozenset({"same", "bad"})}
    assert compared.ranks == {"good": (1, 2), "same": (1, 2), "bad": (3, 3)}
    assert compared.letters == {"good": "a", "same": "a", "bad": "b"}
    identity = {"system": "bad", "regime": "unsupervised", "hash": compared.systems[1].system["hash"]}
    identity |= {"role": "reference", "arm": None}
    scored = {"seeds": [0], "costs": {}, "value": compared.values["bad"], "ranks": [3, 3], "group": "b"}
    assert compared.as_json()["systems"][1] == {**identity, **scored}
    write("a", column(0.6, 1))
    write("b", {"sw": column(0.3, 2)["sw"]})
    compared = compare_all("a", "b")
    assert compared.tasks == ("mini/mrtydi/sw",)
    assert compared.tests[0].comparison.difference == pytest.approx(compared.values["a"] - compared.values["b"])
    assert "compared on 1 of 2 tasks; some systems lack mini/mrtydi/en" in compared.warnings


def test_a_single_question_is_why_there_is_no_interval(write: Write, column: Column, compare_all: Any) -> None:
    """The task is named; it costs the mean its interval and p, in the table as in JSON, and not the other task's."""
    for seed in range(3):
        for name, level in (("a", 0.6), ("b", 0.3)):
            write(name, {"en": column(level, seed)["en"], "sw": [level]}, seed=seed)
    compared = compare_all("a", "b", by_task=True)
    sentence = "how questions scatter is unknown there, so differences have no interval and no p"
    assert f"one question: mini/mrtydi/sw; {sentence}" in compared.warnings
    (test,) = compared.as_json()["tests"]
    assert (test["low"], test["p_adjusted"], test["decided"]) == (None, None, False)
    chances = {row["task"]: row["p_adjusted"] for row in test["by_task"]}
    assert chances["mini/mrtydi/sw"] is None
    assert chances["mini/mrtydi/en"] < 0.05


def test_two_tasks_are_no_sample_of_tasks(write: Write, column: Column, compare_all: Any) -> None:
    """Who wins where is said, without an interval; there is no table and no sentence."""
    write("good", column(0.6, 1))
    write("bad", column(0.2, 2))
    compared = compare_all("bad", "good")
    (test,) = compared.as_json()["tests"]
    counts = {"wins": 2, "ties": 0, "tasks": 2, "better_in": None}
    assert test["over_tasks"] == {"difference": pytest.approx(test["difference"]), **NO_INTERVAL, **counts}
    assert compared.as_json()["reliability"] is None
    assert not [table for table in tables(compared, by_task=False) if "over tasks" in table.caption]
    assert not [sentence for sentence in explained(compared) if "over tasks" in sentence]


def test_pairs_over_tasks_are_a_table_of_their_own(write: Write, column: Column, compare_all: Any) -> None:
    """Four languages: each pair as scipy's t test over their means says; tests of tasks only where they are made."""
    levels = {"good": (0.6, 0.6, 0.7, 0.5), "fair": (0.5, 0.45, 0.65, 0.45), "bad": (0.2, 0.3, 0.3, 0.0)}
    values = {
        label: {
            language: column(level, draw + 10 * at, languages=(language,))[language]
            for at, (language, level) in enumerate(zip(FOUR, row, strict=True))
        }
        for draw, (label, row) in enumerate(levels.items())
    }
    for label, columns in values.items():
        write(label, columns, deterministic=label == "bad")
    means = {label: [fmean(columns[language]) for language in FOUR] for label, columns in values.items()}
    compared = compare_all("bad", "good", "fair")
    assert list(compared.over_tasks) == [("good", "bad"), ("fair", "bad"), ("good", "fair")]
    for (first, second), pair in compared.over_tasks.items():
        expected = ttest_rel(means[first], means[second])
        interval = expected.confidence_interval()
        assert (pair.low, pair.high, pair.p_uncorrected) == pytest.approx(
            (interval.low, interval.high, expected.pvalue)
        )
        assert (pair.wins, pair.tasks, pair.better_in) == (4, 4, None)
    (table,) = (table for table in tables(compared, by_task=False) if "pairs over tasks" in table.caption)
    assert [column.key for column in table.columns][-1] == "wins"
    assert table.shown()[0][0] == "good − bad"
    assert table.shown()[0][-1] == "4 of 4"
    by_task = compare_all("bad", "good", "fair", by_task=True)
    (table,) = (table for table in tables(by_task, by_task=True) if "pairs over tasks" in table.caption)
    assert [column.key for column in table.columns][-1] == "better in at least"
    for pair_values, test in zip(by_task.over_tasks.values(), by_task.tests, strict=True):
        one_sided = [
            single.p_uncorrected / 2 if single.difference > 0 else 1 - single.p_uncorrected / 2
            for single in test.by_task.values()
        ]
        assert pair_values.better_in == better_in_at_least(one_sided, pairs=3)
    assert by_task.over_tasks["good", "bad"].better_in == 4
    assert table.shown()[0][-1] == "4 of 4"


def test_reliability_is_that_of_systems_with_trainings(write: Write, column: Column, compare_all: Any) -> None:
    """A fixed system far from all others would raise it; of two systems without it there is none."""
    for at, level in enumerate((0.5, 0.4, 0.45)):
        write(f"m{at}", column(level, at, languages=FOUR))
    write("fixed", column(0.9, 3, languages=FOUR), deterministic=True)
    trained = compare_all("m0", "m1", "m2")
    with_reference = compare_all("m0", "fixed", "m1", "m2")
    assert with_reference.reliability == trained.reliability
    assert trained.reliability.systems == 3
    assert with_reference.as_json()["reliability"] == vars(trained.reliability)
    (sentence,) = (sentence for sentence in explained(trained) if sentence.startswith("reliability"))
    assert str(trained.reliability) in sentence
    assert compare_all("m0", "fixed", "m1").reliability is None


def test_systems_are_compared_on_the_seeds_that_all_have(write: Write, column: Column, compare_all: Any) -> None:
    """The intersection of seeds where there is one; a deterministic system counts whatever its seed is, and once."""
    shifts = {0: -0.2, 1: 0.0, 2: 0.1, 3: 0.2}
    for seed in (0, 1, 2):
        write("low", column(0.4, 1, shifts[seed]), seed=seed)
    for seed in (1, 2, 3):
        write("high", column(0.5, 2, shifts[seed]), seed=seed)
    write("fixed", column(0.3, 3), deterministic=True)
    compared = compare_all("low", "high", "fixed")
    assert {system.label: system.seeds for system in compared.systems} == {"low": [1, 2], "high": [1, 2], "fixed": [0]}
    for label, level, draw in (("low", 0.4, 1), ("high", 0.5, 2)):
        expected = [
            fmean(fmean(column(level, draw, shifts[seed])[language]) for language in ("en", "sw")) for seed in (1, 2)
        ]
        assert compared.values[label] == pytest.approx(fmean(expected))
    test = next(test for test in compared.tests if {test.first, test.second} == {"low", "high"})
    assert (test.comparison.seeds, test.metadata["seeds"]) == ((2, 2), [1, 2])
    assert test.comparison.difference == pytest.approx(compared.values["high"] - compared.values["low"])
    assert "seeds: low has 0,1,2, high has 1,2,3" in compared.warnings
    write("apart", column(0.6, 4), seed=7)
    compared = compare_all("low", "apart")
    assert [system.seeds for system in compared.systems] == [[0, 1, 2], [7]], "without a common seed all count"


def test_too_few_trainings_speak_of_checkpoints(write: Write, column: Column, compare_all: Any) -> None:
    """Below three; a deterministic system has no trainings, but an encoder that came trained has one."""
    for seed in range(3):
        write("three", column(0.5, seed), seed=seed)
    write("fixed", column(0.4, 9), deterministic=True)
    write("one", column(0.4, 8))
    compared = compare_all("three", "fixed")
    assert compared.warnings == ()
    (test,) = compared.tests
    assert (test.comparison.seeds, test.comparison.checkpoints) == ((3, 1), False)
    (warning,) = compare_all("one", "fixed").warnings
    assert warning.startswith("fewer than 3 training runs: one (1)")
    assert compare_all("one", "fixed").tests[0].comparison.checkpoints
    write("fixed", column(0.4, 9), deterministic=True, encoder_config={"pooling": "mean"})
    compared = compare_all("three", "fixed")
    assert compared.warnings == (), "nobody can train it again"
    assert (compared.tests[0].comparison.checkpoints, compared.tests[0].about_methods) == (True, True)


def test_what_was_set_differently(write: Write, column: Column, compare_all: Any) -> None:
    """Both values; a setting that another method does not know is no difference."""
    rows = [setting("method.learning_rate", 0.002), setting("method.clip", 1.0)]
    dense = {"encoder_config": {"pooling": "mean"}, "method": "crop"}
    write("a", column(0.4, 1), **dense, budget=10, settings=rows)
    write("b", column(0.4, 2), **dense, budget=20, settings=[setting("method.learning_rate", 0.001), rows[1]])
    write("k", column(0.4, 3), method="bm25", settings=[setting("method.clip", 0.25)])
    same_method = {difference.key: difference for difference in compare_all("a", "b").setting_differences}
    assert {key: difference.values for key, difference in same_method.items()} == {
        "budget": {"a": "10", "b": "20"},
        "method.learning_rate": {"a": "0.002", "b": "0.001"},
    }
    assert all(difference.is_relevant for difference in same_method.values())
    other_method = {difference.key: difference for difference in compare_all("a", "k").setting_differences}
    assert other_method["method.learning_rate"].values == {"a": "0.002", "k": "—"}
    assert [key for key, difference in other_method.items() if difference.is_relevant] == ["method"]


def test_one_system_under_two_labels_is_told(write: Write, column: Column, compare_all: Any) -> None:
    """A model's folder under another name, say: two rows whose difference says nothing."""
    values = column(0.4, 1)
    first = json.loads(write("one", values).read_text())["system"]
    write("two", values, **{name: first[name] for name in ("method", "version", "hash", "untuned_hash", "graph")})
    write("three", values)
    warnings = compare_all("one", "two", "three").warnings
    assert [warning for warning in warnings if "under several" in warning] == [
        "one and two are one system under several labels"
    ]
