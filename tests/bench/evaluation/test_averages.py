"""Averages over tasks: only of what is whole, nested ones, weights of subsets."""

from typing import Any

import pytest

from bench.core.errors import UsageError
from bench.evaluation.measures.evaluate import macro, mean
from bench.evaluation.results import averages, headline, shares
from bench.types import Macro


def test_a_nested_average_counts_as_one_member() -> None:
    """BEIR counts the mean of CQADupStack's forums as one data set; the mean of nothing is not 0."""
    # (0.6 + (0.1 + 0.3) / 2) / 2
    forums = Macro("CQADupStack", ("beir/cqadupstack/android", "beir/cqadupstack/tex"))
    values = {"beir/scifact": 0.6, "beir/cqadupstack/android": 0.1, "beir/cqadupstack/tex": 0.3}
    assert macro(Macro("Avg.", ("beir/scifact", forums)), values) == pytest.approx(0.4, abs=1e-15)
    del values["beir/cqadupstack/tex"]
    assert macro(Macro("Avg.", ("beir/scifact", forums)), values) is None
    with pytest.raises(UsageError, match="nothing to average"):
        mean([])
    with pytest.raises(UsageError, match="nothing to average"):
        macro(Macro("Avg.", ()), {})


TASKS = {"mini/s/x": ("",), "mini/s/y": ("en", "fr"), "mini/s/z": ("",)}
VALUES = {("mini/s/x", ""): 0.1, ("mini/s/y", "en"): 0.4, ("mini/s/y", "fr"): 0.8, ("mini/s/z", ""): 0.7}


def content() -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    return {
        task: {subset: {"measures": {"P@1": VALUES[task, subset]}} for subset in subsets}
        for task, subsets in TASKS.items()
    }


@pytest.mark.parametrize(
    "members", [("s/x", "s/y", "s/z"), ("s/x", "s/y"), ("s/x", Macro("inner", ("s/y", "s/z"))), ("s/y:fr", "s/z")]
)
def test_the_weighted_subsets_are_the_average(members: tuple[str | Macro, ...]) -> None:
    """As results compute it."""
    average = Macro("some", members)
    weights = shares(TASKS, average)
    (expected,) = (row["measures"]["P@1"] for row in averages(content(), [average]) if row["name"] == average.name)
    assert sum(weights.values()) == pytest.approx(1)
    assert sum(share * VALUES[stratum] for stratum, share in weights.items()) == pytest.approx(expected)


def test_without_an_average_tasks_count_alike() -> None:
    """Subsets share their task's part."""
    weights = shares(TASKS)
    assert weights["mini/s/y", "en"] == pytest.approx(1 / 6)
    name, value = headline(content(), (), "P@1")
    assert name == "mean of 3 tasks"
    assert sum(share * VALUES[stratum] for stratum, share in weights.items()) == pytest.approx(value)


def _task(**subsets: float) -> dict[str, Any]:
    return {subset.strip("_"): {"measures": {"R@100": value}} for subset, value in subsets.items()}


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


def test_a_task_of_several_subsets_has_their_mean() -> None:
    """By the task's name, counted once in an average; an average may name one subset, e.g. XTREME's of Tatoeba."""
    tasks = {"s/a": _task(there=0.2, back=0.4), "s/b": _task(_=0.9)}
    mean, average = averages(tasks, (Macro("all", ("s/a", "s/b")),))
    assert (mean["name"], mean["note"]) == ("s/a", "mean of its subsets")
    assert mean["measures"]["R@100"] == pytest.approx(0.3)
    assert average["measures"]["R@100"] == pytest.approx(0.6)
    tasks = {"mini/s/a": _task(there=0.2, back=0.4), "mini/s/b": _task(there=0.6, back=0.8)}
    *_, average = averages(tasks, (Macro("back", ("s/a:back", "s/b:back")),))
    assert (average["name"], average["measures"]) == ("back", {"R@100": pytest.approx(0.6)})


def test_the_headline_is_the_first_average_that_is_meant_for_the_data() -> None:
    """The embedded world's are for its data alone; where members lack, the mean of the tasks under its own name."""
    mini_average = Macro("Avg. (1)", ("s/a",), mini=True)
    assert averages({"s/a": _task(_=0.2)}, (mini_average,)) == []
    for task in ("mini/s/a", "mini-few-names/s/a"):
        (average,) = averages({task: _task(_=0.5)}, (mini_average,))
        assert (average["name"], average["measures"]) == ("Avg. (1)", {"R@100": 0.5})
    three, ours = Macro("Avg. (3)", ("s/a", "s/b", "s/c")), Macro("Ours", ("s/a", "s/b"), mini=True)
    macros = (three, Macro("Some", ("s/a",)), ours)

    def tasks(*names: str) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
        return {name: {"": {"measures": {"m": place / 4}}} for place, name in enumerate(names, 1)}

    assert headline(tasks("mini/s/a", "mini/s/b"), macros, "m") == ("Ours", 0.375)
    assert headline(tasks("s/a", "s/b"), macros, "m") == ("mean of 2 tasks", 0.375)
    assert headline(tasks("s/a", "s/b", "s/c"), macros, "m") == ("Avg. (3)", 0.5)
    assert headline(tasks("s/a"), macros, "m") == ("s/a", 0.25)
