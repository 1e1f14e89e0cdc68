"""Several sources as one."""

from __future__ import annotations

import pickle

import pytest

from bench.core.errors import UsageError
from bench.data.pairs import joined, outcomes
from bench.data.pairs.rows import tsv_pairs
from bench.testing import fields
from tests.conftest import Put


def test_ids_stay_apart(put: Put) -> None:
    """Equal ids of two sources do not meet; texts and sources stay."""
    one = tsv_pairs(put("one.tsv", "a\tb\tc\n"), language="en")
    two = tsv_pairs(put("two.tsv", "a\tb\nd\te\n"), language="sw")
    source = joined({"en": one, "sw": two}, "both")
    found = list(source.read())
    assert [pair.query.id for pair in found] == ["en:1", "sw:1", "sw:2"]
    assert [pair.source for pair in found] == ["one.tsv", "two.tsv", "two.tsv"]
    (first,) = one.read()
    assert [item.id for item in (*found[0].positives, *found[0].negatives)] == [
        f"en:{item.id}" for item in (*first.positives, *first.negatives)
    ]
    assert [(item.text, item.language) for pair in found[1:] for item in pair.positives] == [("b", "sw"), ("e", "sw")]
    assert [at for at, _ in outcomes(source)] == [1, 2, 3]
    assert source.files == (*one.files, *two.files)
    assert list(pickle.loads(pickle.dumps(source)).read()) == found  # noqa: S301 (our own bytes)


def test_key_knows_labels_and_parts(put: Put) -> None:
    """Another label makes other ids."""
    one = tsv_pairs(put("one.tsv", "a\tb\n"))
    other = tsv_pairs(one.files[0], language="en")
    assert len({joined(parts, "x").reader for parts in ({"a": one}, {"b": one}, {"a": other})}) == 3


@pytest.mark.parametrize("label", ["", "a b", "a\n"])
def test_labels_that_no_id_can_begin_with(put: Put, label: str) -> None:
    """White space would break ids."""
    with pytest.raises(UsageError, check=fields(expected="at least one, without white space")):
        joined({label: tsv_pairs(put("one.tsv", "a\tb\n"))}, "x")
    with pytest.raises(UsageError, check=fields(expected="at least one")):
        joined({}, "x")
