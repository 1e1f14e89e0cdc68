"""Passports: which rows may be compared, averaged and merged, and what the sentences name."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.evaluation.results.passports import (
    comparison_error,
    data_difference,
    one_system_error,
    replacement_error,
    system_difference,
)

CODE = {"validate": 1, "read": 1, "score": 1, "index": [1, 2], "search": 3}
PASSPORT: Mapping[str, Any] = {
    **{name: name[0] * 16 for name in ("queries", "judgements", "corpus")},
    "weights": "0" * 16,
    "code": CODE,
    "published": [],
}
KEYS = {"validate": "v", "read": "r", "train": "t"}


def entry(keys: Mapping[str, str] = KEYS, **changes: Any) -> dict[str, Any]:
    """Return a scored subset whose passport differs in some parts; `passport=None` for one without."""
    passport = changes.pop("passport", PASSPORT)
    return {"keys": dict(keys), "passport": passport and {**passport, **changes}}


def code(**changes: Any) -> dict[str, Any]:
    return {**CODE, **changes}


@pytest.mark.parametrize(
    ("changes", "for_data", "for_system"),
    [
        ({}, "", ""),
        ({"published": ["corpus"]}, "", ""),
        ({"corpus": "1" * 16}, "corpus", ""),
        ({"queries": "1" * 16, "judgements": "1" * 16}, "queries and judgements", ""),
        ({"weights": "1" * 16}, "", "source of weights"),
        ({"weights": None}, "", "source of weights"),
        ({"code": code(read=2)}, "code of read (1 and 2)", "code of read (1 and 2)"),
        ({"code": code(score=[1, 1])}, "code of score (1 and [1, 1])", "code of score (1 and [1, 1])"),
        ({"code": code(search=4)}, "", "code of search (3 and 4)"),
        ({"code": {**CODE, "rerank": 1}}, "", ""),
        ({"code": {name: CODE[name] for name in ("validate", "read")}}, "code of score (1 and none)", ""),
    ],
)
def test_what_two_passports_do_not_share(changes: dict[str, Any], for_data: str, for_system: str) -> None:
    """Data and the code that reads and scores count between systems; weights and shared code within one."""
    pair = entry(), entry(**changes)
    assert (data_difference(*pair), system_difference(*pair)) == (for_data, for_system)
    assert bool(data_difference(*pair[::-1])) == bool(for_data)
    assert bool(system_difference(*pair[::-1])) == bool(for_system)


@pytest.mark.parametrize(
    ("keys", "difference"),
    [
        (KEYS, ""),
        ({**KEYS, "train": "other"}, ""),
        ({**KEYS, "read": "other"}, "queries or judgements"),
        ({**KEYS, "read": "other", "validate": "other"}, "corpus"),
        ({"train": "t"}, ""),
    ],
)
@pytest.mark.parametrize("without", [(True, True), (True, False), (False, True)])
def test_rows_without_passport_are_known_by_keys(
    keys: dict[str, str], difference: str, without: tuple[bool, bool]
) -> None:
    """Whichever of the two has none; as one system they count with their like alone."""
    first, second = (
        entry(part, passport=None if lacks else PASSPORT) for part, lacks in zip((KEYS, keys), without, strict=True)
    )
    assert data_difference(first, second) == difference
    assert system_difference(first, second) == ("" if all(without) else "one with a passport, the other without")


def test_the_sentences_name_systems_and_tasks() -> None:
    """Only tasks that both have are compared; `mini/` is left out of names, and a subset follows its task."""
    ours = {"mini/a/x": {"": entry()}, "a/y": {"": entry(), "de": entry()}}
    theirs = {"a/y": {"de": entry(judgements="1" * 16)}, "a/z": {"": entry(corpus="1" * 16)}}
    assert (
        comparison_error("bm25", ours, "crop", theirs)
        == "bm25 and crop, which do not have the same judgements on a/y/de"
    )
    assert comparison_error("bm25", ours, "crop", {"mini/a/x": {"": entry()}}) == ""
    assert replacement_error(ours, {"mini/a/x": {"": entry(corpus="1" * 16)}}) == "a result of a/x with other corpus"
    assert replacement_error(ours, {"mini/a/x": {"": entry(weights=None, code=code(read=9))}}) == "", "made anew"
    assert replacement_error(ours, theirs | {"a/y": {"": entry()}}) == ""


def test_one_system_over_tasks_and_seeds() -> None:
    """Tasks may have other data than each other; the same task of two seeds may not."""
    tasks = {"a/x": {"": entry()}, "a/y": {"": entry(corpus="1" * 16, queries="2" * 16)}}
    assert one_system_error([tasks]) == ""
    assert one_system_error([tasks, tasks]) == ""
    mixed = {**tasks, "a/z": {"": entry(weights="9" * 16)}}
    assert one_system_error([mixed]) == "a/x and a/z, which do not have the same source of weights"
    assert one_system_error([tasks, mixed]) == "a/x and a/z, which do not have the same source of weights"
    judged_otherwise = {"a/y": {"": entry(corpus="1" * 16, queries="2" * 16, judgements="3" * 16)}}
    assert one_system_error([tasks, judged_otherwise]) == "seeds that do not have the same judgements on a/y"
    unsigned = {"a/x": {"": entry(passport=None)}}
    assert one_system_error([unsigned, unsigned]) == ""
    assert "without" in one_system_error([tasks, unsigned])


PASSPORTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        **{name: st.sampled_from(["0" * 16, "1" * 16]) for name in ("queries", "judgements", "corpus")},
        "weights": st.sampled_from([None, "0" * 16]),
        "code": st.fixed_dictionaries({"read": st.sampled_from([1, 2]), "search": st.sampled_from([1, 2])}),
        "published": st.just([]),
    }
)


@given(st.lists(PASSPORTS, min_size=1, max_size=5))
def test_unlike_passports_never_pass_as_one_system(passports: list[dict[str, Any]]) -> None:
    """Whatever seeds there are: no sentence means that all of them are equal, and equal ones have no sentence."""
    results = [{"a/x": {"": {"keys": {}, "passport": passport}}} for passport in passports]
    assert (one_system_error(results) == "") == all(passport == passports[0] for passport in passports)
    for passport in passports[1:]:
        pair = {"passport": passports[0]}, {"passport": passport}
        assert (data_difference(*pair) == "" == system_difference(*pair)) == (passport == passports[0])
