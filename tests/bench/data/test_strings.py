"""Strings on disk, one at a time."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.data.formats.strings import Strings, write_strings


@given(st.lists(st.text(st.characters(codec="utf-8"))))
def test_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """Any strings, also empty ones, line ends and letters of four bytes; slices and negative places as in a list."""
    folder = tmp_path_factory.mktemp("strings")
    write_strings(folder, "x", iter(texts))
    read = Strings(folder, "x")
    assert list(read) == texts
    assert len(read) == len(texts)
    assert read[-2:] == texts[-2:]
    if texts:
        assert read[-1] == texts[-1]
    with pytest.raises(IndexError):
        read[len(texts)]


def test_sorted_strings_can_be_searched(tmp_path: Path) -> None:
    """The order of Python's strings is the order on disk."""
    terms = sorted(["z", "é", "𝒳", "a", "\uffff", "東京"])
    write_strings(tmp_path, "terms", terms)
    assert [bisect_left(Strings(tmp_path, "terms"), term) for term in terms] == list(range(6))
