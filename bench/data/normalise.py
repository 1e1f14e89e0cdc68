"""Plain punctuation, as Contriever prepares the texts of MKQA: quotes, dashes, slashes, control characters.

The classes of characters are those of ChemDataExtractor, from which Contriever's `normalize_text` comes. What they do
not name stays as it is: tildes, plus signs, tabs and line ends among others.
"""

from __future__ import annotations

import re

_REMOVED = [*range(0x01, 0x09), 0x0E, 0x0F, *range(0x11, 0x1C), 0xAD]  # most control characters; the soft hyphen
_PLAIN = {
    " ": "\u000b\u000c\u0085",  # line tabulation, form feed, next line
    "-": "‐‑‒–—―⁃⁻−－",  # hyphens, dashes, bars, minus signs
    "/": "⁄∕",  # fraction and division slash
    '"': "“”„‟",
    "'": "‘’‚‛՚Ꞌꞌ＇`´′‵",  # quotes, apostrophes, accents, primes
    "''": "″‶",
    "'''": "‴‷",
    "''''": "⁗",
    "...": "…",
}
_BECOMES = {
    **dict.fromkeys(map(chr, _REMOVED), ""),
    **{character: plain for plain, characters in _PLAIN.items() for character in characters},
}
_ANY = re.compile(f"[{re.escape(''.join(_BECOMES))}]")  # four times as fast as `str.translate`: most texts have few


def normalise(text: str) -> str:
    """Return the text with plain punctuation; letters, their case and their accents stay.

    Three dots with blanks around and between them are drawn together as well.
    """
    return _ANY.sub(lambda found: _BECOMES[found[0]], text).replace(" . . . ", " ... ")
