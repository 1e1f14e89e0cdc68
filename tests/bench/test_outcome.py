"""What a run prints besides its tables: tests, all of a few and the telling ones of many; and readouts."""

from itertools import combinations
from typing import Any

from bench.cli.outcome import informative_pairs, readouts
from bench.evaluation.compare.paired_tests import PairedTest
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.families import family


def held_for(*labels: str, seed: int = 0) -> list[PairedTest]:
    """Every pair of systems, each better than those named after it."""
    values = {label: Sample({"t": [1.0 - at / 10, 0.5 - at / 20, 0.4]}) for at, label in enumerate(labels)}
    decisions = family(values, {"": {"t": 1.0}})
    heading = {"suite": "s", "regime": "unsupervised", "data": "mini", "seed": seed}
    return [
        PairedTest(heading, first, second, "RR@100", decisions.comparison(first, second))
        for first, second in combinations(labels, 2)
    ]


def pairs(tests: list[PairedTest]) -> list[tuple[str, str]]:
    return [(test.first, test.second) for test in informative_pairs(tests)]


def test_few_pairs_are_printed_in_full() -> None:
    """A start with its own method alone, or with the only other system; four systems have six pairs."""
    printed = pairs(held_for("bm25", "msm", "crop", "msm@init", "crop@init"))
    assert printed == [("bm25", "msm"), ("bm25", "crop"), ("msm", "crop"), ("msm", "msm@init"), ("crop", "crop@init")]
    assert len(pairs(held_for("a", "b", "c", "d"))) == 6
    assert pairs(held_for("bm25", "msm@init")) == [("bm25", "msm@init")]


def test_of_many_the_best_is_compared_with_each() -> None:
    """Five systems have ten pairs, four of them with the best; seeds are groups of their own."""
    for tests in (held_for("a", "b", "c", "d", "e"), held_for("a", "b", "c", "d", "e", seed=1)):
        assert pairs(tests) == [("a", "b"), ("a", "c"), ("a", "d"), ("a", "e")]
    both = held_for("a", "b", "c", "d", "e") + held_for("a", "b", seed=1)
    assert pairs(both)[-1] == ("a", "b")
    assert len(pairs(both)) == 5


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
