"""Plain punctuation."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.readers.mkqa import normalise


@pytest.mark.parametrize(
    ("plain", "names"),
    [
        ("-", ("HYPHEN", "NON-BREAKING HYPHEN", "FIGURE DASH", "EN DASH", "EM DASH", "HORIZONTAL BAR", "MINUS SIGN")),
        ("-", ("HYPHEN BULLET", "SUPERSCRIPT MINUS", "FULLWIDTH HYPHEN-MINUS")),
        ("/", ("FRACTION SLASH", "DIVISION SLASH")),
        ('"', ("LEFT DOUBLE QUOTATION MARK", "RIGHT DOUBLE QUOTATION MARK", "DOUBLE LOW-9 QUOTATION MARK")),
        ('"', ("DOUBLE HIGH-REVERSED-9 QUOTATION MARK",)),
        ("'", ("LEFT SINGLE QUOTATION MARK", "RIGHT SINGLE QUOTATION MARK", "SINGLE LOW-9 QUOTATION MARK")),
        ("'", ("SINGLE HIGH-REVERSED-9 QUOTATION MARK", "GRAVE ACCENT", "ACUTE ACCENT", "ARMENIAN APOSTROPHE")),
        ("'", ("LATIN CAPITAL LETTER SALTILLO", "LATIN SMALL LETTER SALTILLO", "FULLWIDTH APOSTROPHE")),
        ("'", ("PRIME", "REVERSED PRIME")),
        ("''", ("DOUBLE PRIME", "REVERSED DOUBLE PRIME")),
        ("'''", ("TRIPLE PRIME", "REVERSED TRIPLE PRIME")),
        ("''''", ("QUADRUPLE PRIME",)),
        ("...", ("HORIZONTAL ELLIPSIS",)),
        ("", ("SOFT HYPHEN",)),
        ("PLUS SIGN", ("PLUS SIGN",)),
    ],
)
def test_characters_by_their_names(plain: str, names: tuple[str, ...]) -> None:
    """Every character of a class becomes the plain one, wherever it stands."""
    if plain in names:
        plain = unicodedata.lookup(plain)
    for name in names:
        character = unicodedata.lookup(name)
        assert normalise(f"a{character}b{character}") == f"a{plain}b{plain}", name


def test_control_characters() -> None:
    """Most vanish; three line breaks become a blank; tabs, line ends and some others stay."""
    kept = "\0\t\n\r\x10\x1c\x1d\x1e\x1f\x7f"
    for code in (*range(0x20), 0x7F, 0x85):
        found = normalise(f"a{chr(code)}b")
        expected = " " if chr(code) in "\x0b\x0c\x85" else chr(code) if chr(code) in kept else ""
        assert found == f"a{expected}b", hex(code)


def test_dots() -> None:
    """Three dots apart are drawn together only between blanks."""
    assert normalise("a . . . b") == "a ... b"
    assert normalise("a . . .") == "a . . ."
    assert normalise("Köln ～ ＋ ½ É") == "Köln ～ ＋ ½ É"


@given(st.text(st.sampled_from("a .…″′`\x0b\u00ad-"), max_size=12))
def test_characters_are_replaced_one_by_one(text: str) -> None:
    """But for the dots, a text becomes what its characters become."""
    alone = "".join(normalise(character) for character in text)
    assert normalise(text) == alone.replace(" . . . ", " ... ")
