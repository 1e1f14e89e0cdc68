"""Letters of texts, the hashes of their runs, and finding hashes among many."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.data.contamination.index import HashTable, Prints, letters, letters_of, ranges


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Who, then?\t— ME!", "whothenme"),
        ("ＡＢ１２ ﬁ Ⅻ", "ab12fixii"),  # width, ligature and Roman numeral by NFKC
        ("STRASSE straße", "strassestrasse"),
        ("हिन्दी में", "हिन्दीमें"),  # vowel signs and the virama are marks, and stay
        ("ก่อตั้ง ขึ้น", "ก่อตั้งขึ้น"),
        ("e\u0301", "\u00e9"),
        ("© — … \u200d\u0085\u2028", ""),
        ("", ""),
    ],
)
def test_letters_marks_and_digits_stay(text: str, expected: str) -> None:
    """Case, width, blanks and punctuation make no difference; marks do."""
    assert letters_of(text) == expected


@settings(deadline=None)
@given(st.lists(st.text()))
def test_texts_end_to_end(texts: list[str]) -> None:
    """Each text's letters are those that the Unicode tables name, whatever stands before and after it."""
    codes, ends = letters(texts)
    spelled = "".join(map(chr, codes.tolist()))
    first = 0
    for text, end in zip(texts, ends.tolist(), strict=True):
        folded = unicodedata.normalize("NFKC", text).casefold()
        assert spelled[first:end] == "".join(one for one in folded if unicodedata.category(one)[0] in "LMN")
        first = end
    assert first == len(codes)


@settings(deadline=None)
@given(st.text("abc", max_size=60), st.integers(1, 9))
def test_equal_runs_have_equal_hashes_and_others_do_not(text: str, size: int) -> None:
    """Wherever they begin; a hash of a window is that of the span."""
    codes, _ = letters([text])
    prints, runs = Prints(codes), [text[at : at + size] for at in range(len(text) - size + 1)]
    windows = prints.windows(size)
    places = np.arange(len(runs))
    assert windows.tolist() == prints.spans(places, places + size).tolist()
    assert len(windows) == len(runs)
    assert len(set(windows.tolist())) == len(set(runs))
    assert len(set(zip(windows.tolist(), runs, strict=True))) == len(set(runs))


@settings(deadline=None)
@given(st.lists(st.integers(0, 7), max_size=30), st.lists(st.integers(0, 9), max_size=30))
def test_a_table_finds_every_pair(rows: list[int], asked: list[int]) -> None:
    """Also of repeated hashes, on both sides; places rise."""
    spread = np.uint64(0x9E3779B97F4A7C15)
    found = HashTable(np.array(rows, np.uint64) * spread).find(np.array(asked, np.uint64) * spread)
    expected = {(at, row) for at, wanted in enumerate(asked) for row, value in enumerate(rows) if value == wanted}
    pairs = list(zip(found.places.tolist(), found.rows.tolist(), strict=True))
    assert set(pairs) == expected
    assert len(pairs) == len(expected)
    assert found.places.tolist() == sorted(found.places.tolist())


def test_ranges() -> None:
    """Worked by hand, with an empty one."""
    assert ranges(np.array([5, 9, 0]), np.array([2, 0, 3])).tolist() == [5, 6, 0, 1, 2]
