"""Unicode's normal forms in time that grows with the text, not with its square."""

import unicodedata
from typing import Literal

import regex

_LONGEST = 1000
_RUN = regex.compile(rf"(?:(?<!\p{{M}})|\G)\p{{M}}{{{_LONGEST}}}")


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return a text in a normal form, where of marks in a row each thousand is brought into it by itself.

    Python sorts the marks behind a letter by moving each past all before it: a megabyte of them takes an hour. No
    writing system puts more than a few on a letter; UAX 15 speaks of 30.
    """
    if not any(map(unicodedata.combining, text[:: _LONGEST // 2])):  # then no run is longer
        return unicodedata.normalize(form, text)
    pieces, start = [], 0
    for found in _RUN.finditer(text):
        pieces.append(unicodedata.normalize(form, text[start : found.end()]))
        start = found.end()
    return "".join((*pieces, unicodedata.normalize(form, text[start:])))
