"""Normal forms: Python's own, but for what would take it an hour."""

import unicodedata
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.data.contamination.index import normalize_text
from bench.data.corpora.dedupe import fingerprint
from bench.data.formats.text import normalize
from tests.conftest import least_ratio

MARKS = "\u0300\u0316"


@given(st.text(), st.text("a\u0300\u0316\u0301\u1100\u1161", max_size=900))
def test_texts_of_any_writing_system(text: str, marks: str) -> None:
    """Character by character what Python makes of them, up to a thousand marks in a row."""
    for form in ("NFC", "NFKC", "NFD", "NFKD"):
        assert normalize(form, text + marks) == unicodedata.normalize(form, text + marks)


@pytest.mark.parametrize(
    "parse", [lambda text: normalize("NFKC", text), normalize_text, lambda text: fingerprint([text])]
)
@pytest.mark.parametrize(
    "build", [lambda size: "a" + MARKS * size, lambda size: "".join(mark * size for mark in MARKS)]
)
def test_marks_in_a_row_cost_linear_time(parse: Callable[[str], object], build: Callable[[int], str]) -> None:
    """Four times as many take about four times as long, not sixteen times."""
    short, long = (partial(parse, build(size)) for size in (5_000, 20_000))
    assert least_ratio(long, short, enough=7) < 7
