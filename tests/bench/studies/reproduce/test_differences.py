"""What makes two results differ is named, and only libraries and machines excuse a small difference."""

from copy import deepcopy
from typing import Any

import pytest

from bench.studies.reproduce.differences import CLOSE, causes, compare
from tests.conftest import cases

BASE: dict[str, Any] = cases("a-result-to-compare")[0]
VALUES = {("s/a", ""): {"R@1": {"q1": 1.0, "q2": 1.0, "q3": 0.0, "q4": 0.0}}}


def changed(*path: str, value: Any) -> dict[str, Any]:
    """The base with another value somewhere."""
    found = deepcopy(BASE)
    inner = found
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    return found


LEG = ("tasks", "s/a", "")


@pytest.mark.parametrize(
    ("other", "kind", "said"),
    [
        (changed("system", "version", value="2"), "version", "version of the system: the file has 1, here it is 2"),
        (changed("suite", "version", value="2"), "version", "version of suite s"),
        (changed("seed", value=3), "seed", "seed: the file has 0, here it is 3"),
        (changed(*LEG, "release", value="v2"), "data", "release of s/a: the file has v1, here it is v2"),
        (changed(*LEG, "keys", "validate", value="z"), "data", "the corpus of s/a: other files"),
        (changed("system", "corpus", "digest", value={}), "data", "pretraining corpus: wiki has other documents"),
        (changed(*LEG, "protocol", value={"k": 9}), "settings", "protocol of s/a"),
        (changed("system", "settings", value=[]), "settings", "method.rate: the file has 0.1, here it is nothing"),
        (changed("system", "hash", value="b" * 64), "settings", "hash of the system"),
        (changed(*LEG, "libraries", "torch", value="3"), "libraries", "torch: the file has 2.0, here it is 3"),
        (changed(*LEG, "compute", "threads", value=8), "machine", "threads: the file has 2, here it is 8"),
    ],
)
def test_each_cause_is_named_once(other: dict[str, Any], kind: str, said: str) -> None:
    """With both values; only libraries and machine are slight."""
    (found,) = causes(BASE, other)
    assert found.kind == kind
    assert found.sentence.startswith(said)
    assert found.slight == (kind in {"libraries", "machine"})


def test_what_excuses_and_what_does_not() -> None:
    """The same number is OK whatever else; a small step needs a slight cause and no grave one; a large one nothing."""
    near, far = (changed(*LEG, "measures", value={"R@1": 0.5 + step}) for step in (CLOSE * 0.9, CLOSE * 1.1))
    assert compare(BASE, BASE, VALUES, VALUES).verdict == "OK"
    assert compare(BASE, changed("seed", value=1), VALUES, VALUES).verdict == "OK"
    report = compare(BASE, near, {}, {})
    assert (report.verdict, report.causes[0].kind) == ("close", "machine"), "an encoder's processor is not known"
    assert compare(BASE, far, {}, {}).verdict == "differs"
    trained = changed(*LEG, "keys", value={"train": "k"})
    assert "a training on another is one with another seed" in compare(trained, far, {}, {}).causes[0].sentence
    assert "training" not in report.causes[0].sentence
    grave = deepcopy(near) | {"seed": 1}
    assert "do not have the same seed" in compare(BASE, grave, {}, {}).sentence
    words = deepcopy(BASE), deepcopy(near)
    for one in words:
        del one["system"]["contract"]
    assert "nothing else is different" in compare(*words, {}, {}).sentence


def test_queries_that_swap_are_seen() -> None:
    """The mean is the same, two queries are not; a measure or a task on one side only differs."""
    swapped = {("s/a", ""): {"R@1": {"q1": 0.0, "q2": 1.0, "q3": 1.0, "q4": 0.0}}}
    report = compare(BASE, BASE, VALUES, swapped)
    assert (report.verdict, report.values[0].changed) == ("close", 2)
    assert "(2 of 4 queries) by 0" in report.sentence
    more = changed(*LEG, "measures", value={"R@1": 0.5, "R@5": 0.6})
    assert "in one of the two results only" in compare(more, BASE, {}, {}).sentence
    assert compare(BASE, changed("tasks", value={}), {}, {}).verdict == "differs"
