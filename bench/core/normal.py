"""Unicode's normal forms in time that grows with the text, not with its square."""

import unicodedata
from typing import Literal

_LONGEST = 1000
_RUN = rf"(?:(?<!\p{{M}})|\G)\p{{M}}{{{_LONGEST}}}"


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return a text in a normal form, of marks in a row each thousand by itself.

    Python's sorting of marks is quadratic: a megabyte takes an hour. UAX 15 speaks of 30 on a letter.
    """
    if not any(map(unicodedata.combining, text[:: _LONGEST // 2])):  # then no run is longer
        return unicodedata.normalize(form, text)
    import regex  # here, for hardly a text needs it, and it is slow to load

    pieces, start = [], 0
    for match in regex.finditer(_RUN, text):
        pieces.append(unicodedata.normalize(form, text[start : match.end()]))
        start = match.end()
    return "".join((*pieces, unicodedata.normalize(form, text[start:])))
