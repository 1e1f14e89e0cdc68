"""Where words begin and end, in scripts with and without blanks."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from methods.bm25 import words
from tests.methods.bm25.conftest import TOKENS


@pytest.mark.parametrize("text", TOKENS["marked"].values(), ids=TOKENS["marked"])
def test_marks_do_not_part_words(text: str) -> None:
    """Words with vowel signs and diacritics stay whole, where Python's own word class loses a mark of every one."""
    assert words.runs(text) == text.split()
    assert words.standard(text) == text.split()
    assert all(re.findall(r"\w+", word) != [word] for word in text.split())


@given(st.text())
def test_runs_hold_exactly_letters_marks_digits_and_underscores(text: str) -> None:
    """The runs are the maximal ones of the characters that Unicode puts into L, M and N, and of the underscore."""
    words_and_blanks = "".join(c if unicodedata.category(c)[0] in "LMN" or c == "_" else " " for c in text)
    assert words.runs(text) == words_and_blanks.split()


@given(st.text(st.characters(codec="ascii")) | st.text("aZ09_.,;'- ", max_size=20))
def test_ascii_has_the_words_that_it_has_elsewhere(text: str) -> None:
    """Patterns that know no mark find what those find that know all; so does what is not ASCII only at its end."""
    assert words.standard(text) == words.standard(f"{text} é")[:-1]
    assert words.runs(text) == words.bigrams(text) == words.runs(f"{text} é")[:-1]
    assert words.normalise(text) == text == unicodedata.normalize("NFKC", text)


@pytest.mark.parametrize(("text", "expected"), TOKENS["standard"])
def test_standard_joins_as_unicode_word_boundaries_do(text: str, expected: list[str]) -> None:
    """Apostrophes and points join between letters or between digits, never at an edge or between the two."""
    assert words.standard(text) == expected


@pytest.mark.parametrize(("text", "expected"), TOKENS["bigrams"])
def test_bigrams_pair_letters_with_their_marks(text: str, expected: list[str]) -> None:
    """Runs of unspaced scripts become overlapping pairs; a single letter and other scripts stand as they are."""
    assert words.bigrams(text) == expected


def test_normalise_makes_one_spelling() -> None:
    """Composed and decomposed, full-width and half-width, with and without invisible characters: one text."""
    assert words.normalise("e\u0301") == words.normalise("é")
    assert words.normalise("Ａｂ１ ｶﾞ ﬁ") == "Ab1 ガ fi"
    assert words.normalise("co\u00adop می\u200cخواهم क\u094d\u200dष") == "coop میخواهم क\u094dष"
    assert words.runs(words.normalise("ភាសា\u200bខ្មែរ")) == ["ភាសា", "ខ្មែរ"]
