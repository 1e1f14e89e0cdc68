"""Results: averages only of what is whole, merging, files that say what they are."""

from typing import Any

import pytest

from bench.evaluation.results import averages, headline
from bench.types import Macro


def _task(**legs: float) -> dict[str, Any]:
    return {leg.strip("_"): {"measures": {"R@100": value}} for leg, value in legs.items()}


def test_only_a_whole_suite_has_its_average() -> None:
    """A missing member leaves no average; with it, the unweighted mean, nested means counting as one."""
    forums = Macro("forums", ("s/x", "s/y"))
    macros = (Macro("all", ("s/a", forums)), forums)
    tasks = {"s/a": _task(_=0.8), "s/x": _task(_=0.2)}
    assert averages(tasks, macros) == []
    tasks["s/y"] = _task(_=0.4)
    first, second = averages(tasks, macros)
    assert first["measures"]["R@100"] == pytest.approx((0.8 + 0.3) / 2)
    assert first["members"] == ["s/a", ["s/x", "s/y"]]
    assert second["measures"]["R@100"] == pytest.approx(0.3)


def test_a_task_of_several_legs_has_their_mean() -> None:
    """By the task's name, counted once in an average; an average may name one leg, e.g. XTREME's of Tatoeba."""
    tasks = {"s/a": _task(there=0.2, back=0.4), "s/b": _task(_=0.9)}
    mean, whole = averages(tasks, (Macro("all", ("s/a", "s/b")),))
    assert (mean["name"], mean["note"]) == ("s/a", "mean of its legs")
    assert mean["measures"]["R@100"] == pytest.approx(0.3)
    assert whole["measures"]["R@100"] == pytest.approx(0.6)
    tasks = {"mini/s/a": _task(there=0.2, back=0.4), "mini/s/b": _task(there=0.6, back=0.8)}
    *_, one = averages(tasks, (Macro("back", ("s/a:back", "s/b:back")),))
    assert (one["name"], one["measures"]) == ("back", {"R@100": pytest.approx(0.6)})


def test_the_headline_is_the_first_average_that_is_meant_for_the_data() -> None:
    """The embedded world's are for its data alone; where members lack, the mean of the tasks under its own name."""
    few = Macro("Avg. (1)", ("s/a",), mini=True)
    assert averages({"s/a": _task(_=0.2)}, (few,)) == []
    for task in ("mini/s/a", "mini-few-names/s/a"):
        (found,) = averages({task: _task(_=0.5)}, (few,))
        assert (found["name"], found["measures"]) == ("Avg. (1)", {"R@100": 0.5})
    three, ours = Macro("Avg. (3)", ("s/a", "s/b", "s/c")), Macro("Ours", ("s/a", "s/b"), mini=True)
    macros = (three, Macro("Some", ("s/a",)), ours)

    def tasks(*names: str) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
        return {name: {"": {"measures": {"m": place / 4}}} for place, name in enumerate(names, 1)}

    assert headline(tasks("mini/s/a", "mini/s/b"), macros, "m") == ("Ours", 0.375)
    assert headline(tasks("s/a", "s/b"), macros, "m") == ("mean of 2 tasks", 0.375)
    assert headline(tasks("s/a", "s/b", "s/c"), macros, "m") == ("Avg. (3)", 0.5)
    assert headline(tasks("s/a"), macros, "m") == ("s/a", 0.25)
