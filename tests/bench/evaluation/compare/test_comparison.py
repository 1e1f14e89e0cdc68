"""Systems compared: seeds, settings, tasks, ranks, what is doubtful."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.cli.compare_formats import tables
from bench.core.errors import UsageError
from bench.evaluation.compare.comparison import Compared, CompareOptions, compare
from bench.evaluation.significance import tasks
from bench.evaluation.significance.families import stratified
from bench.types import Suite

Write = Callable[..., Path]
Column = Callable[..., dict[str, list[float]]]


def chosen(key: str, value: Any) -> dict[str, Any]:
    """A setting as a result holds it."""
    return {"key": key, "value": value, "origin": "--set"}


@pytest.fixture
def held(tmp_path: Path, suite: Suite) -> Callable[..., Compared]:
    def hold(*names: str, **asked: Any) -> Compared:
        (found,) = compare(names, tmp_path / "results", suite, CompareOptions(**asked))
        return found

    return hold


def test_settings_of_one_system_are_paired_by_their_trainings(write: Write, column: Column, held: Any) -> None:
    """Each run with its own tuned self; the runs scatter far more than tuning helps, yet the difference is found."""
    shifts = (-0.2, -0.1, 0.0, 0.1, 0.2)
    for seed, shift in enumerate(shifts):
        plain = column(0.4, 1, shift)
        write("crop", plain, seed=seed, trained="t")
        better = {language: [value + 0.02 for value in values] for language, values in plain.items()}
        write("crop", better, seed=seed, trained="t", setting="english")
        write("other", better, seed=seed, trained="o", setting="english")
    found = held("crop:english", "crop:unsupervised")
    (test,) = found.tests
    assert (test.first, test.second) == ("crop:english", "crop:unsupervised")
    assert (test.comparison.seeds, test.same_trainings) == ((5, 5), True)
    assert (test.comparison.low, test.comparison.high) == pytest.approx((0.02, 0.02))
    assert found.settings == {"crop:english": "english", "crop:unsupervised": "unsupervised"}
    assert found.about["setting"] == "english, unsupervised"
    doubt = "different settings are compared: crop:english is english, crop:unsupervised is unsupervised"
    assert doubt in found.doubts
    apart = held("other:english", "crop:unsupervised").tests[0]
    assert not apart.same_trainings
    assert apart.comparison.low < 0 < apart.comparison.high
    assert apart.comparison.p > 0.5, "apart their runs scatter far more than they differ"


def test_a_system_in_two_settings_is_found_in_each(write: Write, column: Column, tmp_path: Path, suite: Suite) -> None:
    """Its hash differs between them, and that is no second system."""
    for setting in ("unsupervised", "english"):
        write("crop", column(0.4, 1), setting=setting)
        write("ict", column(0.5, 2), setting=setting)
    found = compare(("crop", "ict"), tmp_path / "results", suite, CompareOptions())
    assert sorted(one.about["setting"] for one in found) == ["english", "unsupervised"]
    with pytest.raises(UsageError, match="crop has results in 2 settings; say which: crop:english or crop:unsup"):
        compare(("crop", "ict:english"), tmp_path / "results", suite, CompareOptions())
    (one,) = compare(("crop", "ict:english"), tmp_path / "results", suite, CompareOptions(setting="unsupervised"))
    assert [side.label for side in one.sides] == ["crop:unsupervised", "ict:english"]


def test_names_with_settings_that_mean_nothing(write: Write, column: Column, tmp_path: Path, suite: Suite) -> None:
    """An unknown setting, one without results, settings in which nobody meets."""
    write("crop", column(0.4, 1))
    write("ict", column(0.4, 1), setting="english")
    for names, sentence in (
        (("crop:englsh", "ict"), "no setting 'englsh'; did you mean english"),
        (("crop:english", "ict"), "crop has no results on mrtydi in .* in setting english; it has some in unsupervis"),
        (("crop", "ict"), "to compare settings, name them: crop:unsupervised"),
        (("crop:unsupervised", "icd"), "no system 'icd'; did you mean ict"),
    ):
        with pytest.raises(UsageError, match=sentence):
            compare(names, tmp_path / "results", suite, CompareOptions())


def test_every_task_is_tested_and_corrected_together(write: Write, column: Column, held: Any) -> None:
    """Three pairs, two tasks: one family of six; each as the library tests it alone, turned where the pair is."""
    values = {"a": column(0.4, 1), "b": column(0.45, 2), "c": column(0.47, 3)}
    for label, own in values.items():
        write(label, own)
    found = held("a", "b", "c", by_task=True)
    for test in found.tests:
        assert test.by_task.keys() == {"mini/mrtydi/en", "mini/mrtydi/sw"}
        for task, one in test.by_task.items():
            language = task.rpartition("/")[2]
            expected = stratified({task: (values[test.first][language], values[test.second][language])})
            assert (one.difference, one.p) == pytest.approx((expected.difference, expected.p))
            assert expected.p <= one.adjusted <= min(1.0, 6 * expected.p) + 1e-12
    rows = found.as_json()["tests"][0]["by_task"]
    assert [row["task"] for row in rows] == ["mini/mrtydi/en", "mini/mrtydi/sw"]
    assert rows[0]["queries"] + rows[1]["queries"] == found.tests[0].comparison.n
    assert held("a", "b", "c").tests[0].by_task == {}


def test_ranks_and_letters_come_from_the_corrected_tests(write: Write, column: Column, held: Any) -> None:
    """Two systems that are the same but for noise, and one far below; differences are those of the values shown."""
    write("good", column(0.6, 1))
    write("same", column(0.6, 2))
    write("bad", column(0.2, 3))
    found = held("good", "bad", "same")
    apart = {frozenset({one.first, one.second}) for one in found.tests if one.comparison.decided}
    assert apart == {frozenset({"good", "bad"}), frozenset({"same", "bad"})}
    assert found.ranks == {"good": (1, 2), "same": (1, 2), "bad": (3, 3)}
    assert found.groups == {"good": "a", "same": "a", "bad": "b"}
    about = {"system": "bad", "setting": "unsupervised", "hash": found.sides[1].system["hash"]}
    scored = {"seeds": [0], "costs": {}, "value": found.values["bad"], "ranks": [3, 3], "group": "b"}
    assert found.as_json()["systems"][1] == {**about, **scored, "other_tasks": None}
    write("a", column(0.6, 1))
    write("b", {"sw": column(0.3, 2)["sw"]})
    found = held("a", "b")
    assert found.tasks == ("mini/mrtydi/sw",)
    assert found.tests[0].comparison.difference == pytest.approx(found.values["a"] - found.values["b"])
    assert "compared on 1 of 2 tasks; some systems lack mini/mrtydi/en" in found.doubts


def test_other_tasks_are_a_table_of_their_own(
    write: Write, column: Column, held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Best on both tasks, so first in every draw; two tasks are taken for enough here."""
    monkeypatch.setattr(tasks, "FEWEST", 2)
    write("good", column(0.6, 1))
    write("bad", column(0.2, 2))
    found = held("good", "bad")
    first = {"kept": 1.0, "first": 1.0, "rank": 1.0, "wins": 1.0, "places": (1, 1)}
    assert found.as_json()["systems"][0]["other_tasks"] == first
    (shown,) = (one.shown() for one in tables(found, by_task=False) if "other tasks" in one.caption)
    assert shown == [["good", "1.0", "100%", "100%", "100%", "1"], ["bad", "2.0", "0%", "100%", "0%", "2"]]


def test_too_few_trainings_speak_of_checkpoints(write: Write, column: Column, held: Any) -> None:
    """Below three; a deterministic system has no trainings, but an encoder that came trained has one."""
    for seed in range(3):
        write("three", column(0.5, seed), seed=seed)
    write("fixed", column(0.4, 9), deterministic=True)
    write("one", column(0.4, 8))
    found = held("three", "fixed")
    assert found.doubts == ()
    (test,) = found.tests
    assert (test.comparison.seeds, test.comparison.checkpoints) == ((3, 1), False)
    (doubt,) = held("one", "fixed").doubts
    assert doubt.startswith("fewer than 3 training runs: one (1)")
    assert held("one", "fixed").tests[0].comparison.checkpoints
    write("fixed", column(0.4, 9), deterministic=True, contract={"pooling": "mean"})
    found = held("three", "fixed")
    assert ("fixed (1)" in found.doubts[-1], found.tests[0].comparison.checkpoints) == (True, True)


def test_what_was_set_differently(write: Write, column: Column, held: Any) -> None:
    """Both values; a setting that another method does not know is no difference."""
    rows = [chosen("method.learning_rate", 0.002), chosen("method.clip", 1.0)]
    dense = {"contract": {"pooling": "mean"}, "method": "crop"}
    write("a", column(0.4, 1), **dense, budget=10, settings=rows)
    write("b", column(0.4, 2), **dense, budget=20, settings=[chosen("method.learning_rate", 0.001), rows[1]])
    write("k", column(0.4, 3), method="bm25", settings=[chosen("method.clip", 0.25)])
    both = {one.key: one for one in held("a", "b").differing}
    assert {key: one.values for key, one in both.items()} == {
        "budget": {"a": "10", "b": "20"},
        "method.learning_rate": {"a": "0.002", "b": "0.001"},
    }
    assert all(one.telling for one in both.values())
    apart = {one.key: one for one in held("a", "k").differing}
    assert apart["method.learning_rate"].values == {"a": "0.002", "k": "—"}
    assert [key for key, one in apart.items() if one.telling] == ["method"]
