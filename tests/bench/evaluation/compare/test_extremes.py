"""The queries that differ most: which, with which passages, and with texts only where they are."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench.core.errors import UsageError
from bench.evaluation.compare.comparison import Compared, CompareOptions, compare
from bench.types import DataRequest, Suite, Task

Write = Callable[..., Path]
Hold = Callable[[Suite], Compared]


@pytest.fixture
def compared(write: Write, tmp_path: Path, suite: Suite, questions: Mapping[str, Sequence[str]]) -> Hold:
    """Two systems that are alike but for three questions: one gain in each language, and a loss in Swahili."""
    flat = {language: [0.5] * len(own) for language, own in questions.items()}
    good = {language: list(own) for language, own in flat.items()}
    good["en"][3], good["sw"][4], good["sw"][5] = 1.0, 0.9, 0.3
    runs = {questions["en"][3]: ["en-3#0", "en-24#1", "en-5#0", "en-6#0"]}
    for seed in (0, 1):
        write("good", good, seed=seed, runs=runs)
    write("flat", flat, deterministic=True, runs={questions["en"][3]: ["en-24#1"]})

    def hold(suite: Suite) -> Compared:
        return compare(("flat", "good"), tmp_path / "results", suite, CompareOptions(queries=2))[0]

    return hold


def test_gains_and_losses_with_their_texts(
    compared: Hold, suite: Suite, questions: Mapping[str, Sequence[str]]
) -> None:
    """The largest first, losses last; texts are those of the mini world."""
    found = compared(suite)
    shown = [(one.first, one.second, one.task, one.query, round(one.difference, 6)) for one in found.extremes]
    assert shown == [
        ("good", "flat", "mini/mrtydi/en", questions["en"][3], 0.5),
        ("good", "flat", "mini/mrtydi/sw", questions["sw"][4], 0.4),
        ("good", "flat", "mini/mrtydi/sw", questions["sw"][5], -0.2),
    ]
    (leg,) = suite.load("en", DataRequest("mini", None, offline=True)).legs
    assert leg.qrels is not None
    asked = {item.id: item.text for item in leg.queries.read()}
    passages = {item.id: item for item in leg.corpus.items.read()}
    right = {row.document for row in leg.qrels.read() if row.query == questions["en"][3] and row.grade > 0}
    first = found.extremes[0]
    assert (first.text, first.language) == (asked[first.query], "en")
    assert [one.id for one in first.passages[0]] == ["en-3#0", "en-24#1", "en-5#0"], "three, in the run's order"
    assert [one.id for one in first.passages[1]] == ["en-24#1"]
    for one in (*first.passages[0], *first.passages[1]):
        assert passages[one.id].text in one.text
        assert one.relevant == (one.id in right)
    assert found.notes == ()
    assert found.as_json()["queries"][0]["difference"] == pytest.approx(0.5)


def test_without_the_data_ids_stay(compared: Hold, suite: Suite) -> None:
    """A sentence says why there are no texts: no files, or another release, whose ids may be other passages."""

    def missing(name: str, asked: DataRequest) -> Task:
        assert (asked.data, asked.world, asked.offline) == ("mini", "default", True)
        raise UsageError(f"{name}: found no files")

    found = compared(replace(suite, load=missing))
    assert [bool(one.text) for one in found.extremes] == [False] * 3
    assert [one.id for one in found.extremes[0].passages[1]] == ["en-24#1"]
    assert found.notes == (
        "no texts of mini/mrtydi/en, so ids alone: en: found no files",
        "no texts of mini/mrtydi/sw, so ids alone: sw: found no files",
    )
    found = compared(replace(suite, load=lambda name, asked: replace(suite.load(name, asked), release="v2")))
    assert not any(one.text for one in found.extremes)
    assert "found release v2 here, the results are on (none)" in found.notes[0]


def test_no_queries_unless_asked_for(write: Write, tmp_path: Path, suite: Suite) -> None:
    """And no data are opened."""
    for label, value in (("a", 0.1), ("b", 0.2)):
        write(label, {"en": [value] * 60}, deterministic=True)

    def never(_name: str, _asked: DataRequest) -> Task:
        raise AssertionError

    (found,) = compare(("a", "b"), tmp_path / "results", replace(suite, load=never), CompareOptions())
    assert (found.extremes, found.notes) == ((), ())
