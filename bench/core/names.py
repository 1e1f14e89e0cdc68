"""Names of somebody's own folders and files as identities and file names hold them: safe everywhere, in any script."""

import hashlib
import unicodedata
from collections.abc import Iterable
from itertools import groupby

LONGEST, LONGEST_BYTES = 64, 200
"""Characters and UTF-8 bytes of a name: with the endings of a bundle's files, and of temporary ones, they fit in the
255 bytes that file systems allow."""
_DIGITS = 6
_NAMELESS = "folder"
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{port}{at}" for port in ("com", "lpt") for at in range(10))})
"""What Windows takes for a device, whatever ending follows."""


def is_name_character(char: str) -> bool:
    """Return whether a name keeps a character: `.`, `_`, `-`, and letters, marks and digits of all scripts."""
    category = unicodedata.category(char)
    return char in "._-" or category[0] in "LM" or category in {"Nd", "Nl"}


def safe_name(name: str) -> str:
    """Return the name of a folder or file as part of an identity, which is a file name on Linux, macOS and Windows.

    It is in NFC, since file systems differ in how they spell a letter with its marks. What no name keeps becomes `-`,
    a leading dot, dash or mark and a trailing dot are left out, and a long name is cut. Where any of this happened, or
    the name is a device's, six digits of the digest of the whole name follow, so that unequal names stay unequal.

    Example:
        >>> " ".join(map(safe_name, ("日本語", "a-b", "a b", "a;b")))
        '日本語 a-b a-b-c8687a a-b-5719af'
    """
    composed = unicodedata.normalize("NFC", name)
    readable = "".join("".join(run) if kept else "-" for kept, run in groupby(composed, key=is_name_character))
    while readable and (readable[0] in ".-" or unicodedata.category(readable[0])[0] == "M"):
        readable = readable[1:]
    readable = readable.rstrip(".")
    is_device = readable.partition(".")[0].casefold() in _DEVICES
    fits = len(readable) <= LONGEST and len(readable.encode()) <= LONGEST_BYTES
    if readable == composed and readable and fits and not is_device:
        return readable
    ending = f"-{hashlib.sha256(composed.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"
    if is_device:
        readable = readable.replace(".", "-", 1)
    short = readable[: LONGEST - len(ending)].encode()[: LONGEST_BYTES - len(ending)].decode(errors="ignore")
    return (short.rstrip(".-") or _NAMELESS) + ending


def one_place(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that are one on file systems which ignore case, such as `Data` and `data`; None without any."""
    first: dict[str, str] = {}
    for name in names:
        before = first.setdefault(unicodedata.normalize("NFC", name.casefold()), name)
        if before != name:
            return before, name
    return None
